"""``xoptim kernels``: lists the operators onnxruntime can run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import click
import onnx

from xbuilder.errors import OptionError
from xbuilder.nodes.loading import types_without_kernel
from xbuilder.nodes.schema_functions import has_function
from xbuilder.operators.op_schemas import schema_of
from xbuilder.operators.opsets import newest_opset
from xbuilder.runtimes.installed import kernel_table
from xbuilder.runtimes.kernel_table import Kernel, KernelTable
from xbuilder.support.close_names import closest_names

from .options.timing import processor_option
from .terminal.output import common_options, print_json, print_list


@click.command()
@click.option("--op", "op_type", help="Shows one operator: Relu, com.microsoft::Gelu.")
@processor_option("What runs the model.")
@common_options
def kernels(op_type: str | None, processor: str, as_json: bool) -> None:
    """Lists the kernels of onnxruntime: operators, opsets, types.

    A rewrite never writes an operator without a kernel for the types of the model. With --op, the
    list also has the types that onnxruntime runs without a kernel: by function means that it
    replaces the operator by those of the function that defines it, by cast that it computes float16
    in float.
    """
    from ..reports.tables import counted

    table = kernel_table(processor)
    rows = describe_kernels(table, op_type)
    if as_json:
        print_json({"runtime": table.runtime, "provider": table.provider, "kernels": rows})
        return
    print_list(
        f"{table.runtime}, {table.provider}, {counted(len(rows), 'row')}",
        ["operator", "opset", "by", "types"],
        [(r["operator"], r["opset"], r["by"], r["types"]) for r in rows],
    )


def describe_kernels(table: KernelTable, op_type: str | None = None) -> list[dict[str, Any]]:
    """Describes kernels.

    :param table: the table
    :param op_type: an operator, with or without its domain; all of them if None
    :return: rows with `operator`, `opset`, `by` (`"kernel"`, `"function"`, `"cast"`), `types`
    :raises OptionError: the runtime has no kernel with this name, and runs no such operator
    """
    wanted = [o for o in table.operators if op_type in (None, o, o.rpartition("::")[2])]
    rows = [
        {
            "operator": name,
            "opset": _opsets(name, kernel),
            "by": "kernel",
            "types": _types(kernel),
        }
        for name in wanted
        for kernel in table.of(name.rpartition("::")[2], name.rpartition("::")[0])
    ]
    if op_type is not None and onnx.defs.has(op_type):
        rows.extend(_without_kernel(table, op_type))
    if not rows:
        word = str(op_type).rpartition("::")[2]
        close = closest_names(word, {o.rpartition("::")[2] for o in table.operators})
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise OptionError(
            f"{table.runtime} has no kernel for {op_type!r} on {table.provider}.{hint}"
        )
    return rows


def _without_kernel(table: KernelTable, op_type: str) -> Iterator[dict[str, Any]]:
    """The rows of the types an operator of the main domain runs on without kernel."""

    def described(opset: int) -> tuple[str, str]:
        name, types = types_without_kernel(table, op_type, opset)
        by = "function" if has_function(op_type, "", opset) else "cast"
        return by, f"{name}: {', '.join(types)}" if types else ""

    for (by, types), group in groupby(range(1, newest_opset() + 1), described):
        opsets = list(group)
        if types:
            yield {"operator": op_type, "opset": _range(opsets), "by": by, "types": types}


def _opsets(name: str, kernel: Kernel) -> str:
    """The opsets a kernel is for: one without end is only for the definition it was written for."""
    if kernel.until is not None:
        return _range([kernel.since, kernel.until])
    domain, _, op_type = name.rpartition("::")
    newest = schema_of(op_type, domain)
    if newest is None or newest.since_version <= kernel.since:
        return f"{kernel.since}+"
    opsets = range(kernel.since, newest.since_version)
    definitions = ((v, schema_of(op_type, domain, v)) for v in opsets)
    return _range([v for v, s in definitions if s and s.since_version == kernel.since])


def _range(opsets: Sequence[int]) -> str:
    if opsets[-1] == newest_opset():
        return f"{opsets[0]}+"
    return str(opsets[0]) if opsets[0] == opsets[-1] else f"{opsets[0]}-{opsets[-1]}"


def _types(kernel: Kernel) -> str:
    return "; ".join(f"{name}: {', '.join(types)}" for name, types in kernel.types.items())
