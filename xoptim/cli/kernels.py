"""``xoptim kernels``: lists the operators onnxruntime can run."""

from __future__ import annotations

from typing import Any

import click

from xbuilder.errors import OptionError
from xbuilder.runtimes.installed import kernel_table
from xbuilder.runtimes.kernel_table import Kernel, KernelTable
from xbuilder.runtimes.processors import PROVIDERS
from xbuilder.support.close_names import closest_names

from .output import common_options, counted, print_json, print_list


@click.command()
@click.option("--op", "op_type", help="Shows one operator: Relu, com.microsoft::Gelu.")
@click.option(
    "--processor",
    type=click.Choice(sorted(PROVIDERS)),
    default="CPU",
    show_default=True,
    help="What runs the model.",
)
@common_options
def kernels(op_type: str | None, processor: str, as_json: bool, verbose: int) -> None:
    """Lists the kernels of onnxruntime: operators, opsets, types.

    A rewrite never writes an operator without a kernel for the types of the model.
    """
    table = kernel_table(processor)
    rows = describe_kernels(table, op_type)
    if as_json:
        print_json({"runtime": table.runtime, "provider": table.provider, "kernels": rows})
        return
    print_list(
        f"{table.runtime}, {table.provider}, {counted(len(rows), 'kernel')}",
        ["operator", "opset", "types"],
        [(r["operator"], r["opset"], r["types"]) for r in rows],
    )


def describe_kernels(table: KernelTable, op_type: str | None = None) -> list[dict[str, Any]]:
    """Describes kernels.

    :param table: the table
    :param op_type: an operator, with or without its domain; all of them if None
    :return: rows with `operator`, `opset`, `types`
    :raises OptionError: no kernel has this name
    """
    wanted = [o for o in table.operators if op_type in (None, o, o.rpartition("::")[2])]
    if not wanted:
        close = closest_names(str(op_type), {o.rpartition("::")[2] for o in table.operators})
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise OptionError(
            f"{table.runtime} has no kernel for {op_type!r} on {table.provider}.{hint}"
        )
    return [
        {"operator": name, "opset": _opsets(kernel), "types": _types(kernel)}
        for name in wanted
        for kernel in table.of(name.rpartition("::")[2], name.rpartition("::")[0])
    ]


def _opsets(kernel: Kernel) -> str:
    if kernel.until is None:
        return f"{kernel.since}+"
    return str(kernel.since) if kernel.since == kernel.until else f"{kernel.since}-{kernel.until}"


def _types(kernel: Kernel) -> str:
    return "; ".join(f"{name}: {', '.join(types)}" for name, types in kernel.types.items())
