"""
Every family of transformers, exported
======================================

One row for each ``model_type`` of the installed transformers: a tiny model with random weights
(``tiny_models.py``), exported by :func:`torch_interpreter.to_onnx`, by ``torch.onnx.export`` and by
the exporter of transformers, with a dynamic batch and a dynamic length, the cache among inputs and
outputs for a decoder. The model is compared with torch on the arguments of the export and at other
sizes, onnxruntime runs it.

    python _doc/examples/bench_transformers.py                     # every family, what is missing
    python _doc/examples/bench_transformers.py llama mamba         # some of them
    python _doc/examples/bench_transformers.py --kinds causal      # those of a kind
    python _doc/examples/bench_transformers.py --exporters dynamo transformers
    python _doc/examples/bench_transformers.py --again             # rows that exist too
    python _doc/examples/bench_transformers.py --failed            # rows that failed

A family has a process of its own and a time limit. It starts as a copy of a process that exported
a first model, so that nothing but the family is measured. A row goes to
``_doc/tables/transformers.csv`` as soon as it is known, and is not computed twice: the command may
be interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import inspect
import io
import multiprocessing
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas
import torch
import transformers
from corpus.family_causes import cause_in_words
from corpus.tiny_models import TinyModel, families, tiny_model
from tools.table_rows import Rows, read_table, row_within, write_table

from torch_interpreter import ExportError, to_onnx
from torch_interpreter.inputs.cache_states import cache_parts
from torch_interpreter.inputs.caches import register_caches

TABLE = Path(__file__).resolve().parents[1] / "tables" / "transformers.csv"
COLUMNS = [
    *("family", "kind", "exporter", "cache"),
    *("status", "nodes", "error", "seconds", "cause"),
]
KEYS = ("family", "exporter")
#: the status of a family that this project has not exported yet
MISSING = "not measured"
TOLERANCE = 1e-3
#: what the message of an error proposes where the content of a tensor decides
EXAMPLE = "strategy='example'"
DECISION = re.compile(r"The content of a tensor decides at \S*/(\S+:\d+, in \w+)")
#: batch, length of the past, of the sequence: those of the export, then others
SIZES = ((2, 5, 3), (3, 7, 4))
tree = torch.utils._pytree


def cache_of(model: torch.nn.Module, arguments: dict[str, Any]) -> tuple[str, Any]:
    """The cache a model returns, and the name of the argument it is; an empty name for none."""
    with torch.no_grad():
        result = model(**arguments)
    items = result.items() if hasattr(result, "items") else ()
    found = [(k, v) for k, v in items if k in ("cache", "past_key_values", "cache_params")]
    return next(((k, v) for k, v in found if v is not None), ("", None))


def states_of(cache: Any) -> dict[str, list[torch.Tensor]]:
    """The states of a cache by name, whatever exporter registered its class."""
    return cache_parts(cache)[0]


def arguments_of(tiny: TinyModel, sizes: tuple[int, int, int], past: bool) -> dict[str, Any]:
    """The arguments of a call; the next step of a recurrence takes one token."""
    batch, before, length = sizes
    if not past:
        return tiny.inputs(batch, length + before)
    name, cache = cache_of(tiny.model, tiny.inputs(batch, before))
    is_recurrent = set(states_of(cache)) != {"key_cache", "value_cache"}
    return {**tiny.inputs(batch, 1 if is_recurrent else length), name: cache}


def dims_of(tiny: TinyModel, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The dynamic dimensions of the arguments: what differs between two calls."""
    dims: dict[str, Any] = {}
    for name, value in first.items():
        if isinstance(value, torch.Tensor):
            names = tiny.dims.get(name, {})
            dims[name] = differences(value, second[name], names)
            continue
        if isinstance(value, list):
            pairs = zip(value, second[name], strict=True)
            dims[name] = [differences(a, b, {0: "batch"}) for a, b in pairs]
            continue
        others = states_of(second[name])
        dims[name] = {
            state: [
                differences(a, b, {0: "batch", 2: "past"} if "_cache" in state else {0: "batch"})
                for a, b in zip(tensors, others[state], strict=True)
            ]
            for state, tensors in states_of(value).items()
        }
    return dims


def differences(first: torch.Tensor, second: torch.Tensor, names: dict[int, str]) -> dict[int, Any]:
    """The dimensions that differ, with their names."""
    pairs = enumerate(zip(first.shape, second.shape, strict=True))
    return {i: names.get(i, torch.export.Dim.DYNAMIC) for i, (a, b) in pairs if a != b}


def with_ours(tiny: TinyModel, arguments: Any, dims: Any) -> onnx.ModelProto:
    """Exported by this project, optimized as it is by default, with the branches of the example if
    the content of a tensor decides."""
    try:
        return to_onnx(tiny.model, kwargs=arguments, dynamic_shapes=dims)
    except ExportError as e:
        if EXAMPLE not in str(e):
            raise
    return to_onnx(tiny.model, kwargs=arguments, dynamic_shapes=dims, export_options="example")


def automatic(dims: Any) -> Any:
    """The same dimensions without names."""
    if isinstance(dims, dict):
        return {k: automatic(v) for k, v in dims.items()}
    if isinstance(dims, list):
        return [automatic(v) for v in dims]
    return torch.export.Dim.AUTO


def with_dynamo(tiny: TinyModel, arguments: Any, dims: Any) -> onnx.ModelProto:
    """Exported by torch.onnx.export, as it does by default."""
    shapes = automatic(dims)
    for name, parts in shapes.items():
        if isinstance(parts, dict) and all(isinstance(p, list) for p in parts.values()) and parts:
            shapes[name] = list(parts.values())
    shapes = by_parameter(tiny.model, shapes)
    program = torch.onnx.export(
        tiny.model, (), kwargs=arguments, dynamic_shapes=shapes, dynamo=True, verbose=False
    )
    return program.model_proto


def by_parameter(model: torch.nn.Module, shapes: dict[str, Any]) -> dict[str, Any]:
    """The shapes by parameter of the model: what it receives in ``**kwargs`` is one of them."""
    parameters = inspect.signature(model.forward).parameters
    others = {k: v for k, v in shapes.items() if k not in parameters}
    keywords = [n for n, p in parameters.items() if p.kind is inspect.Parameter.VAR_KEYWORD]
    known = {k: v for k, v in shapes.items() if k in parameters}
    return {**known, **{name: others for name in keywords if others}}


def with_transformers(tiny: TinyModel, arguments: Any, dims: Any) -> onnx.ModelProto:
    """Exported by transformers, every dimension dynamic."""
    import onnx_ir
    from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

    exported = OnnxExporter().export(tiny.model, arguments, config=OnnxConfig(dynamic=True))
    return onnx_ir.to_proto(exported.program)


EXPORTERS: dict[str, Callable[..., onnx.ModelProto]] = {
    "ours": with_ours,
    "dynamo": with_dynamo,
    "transformers": with_transformers,
}


def arrays(values: Any, numbers: bool = False) -> list[np.ndarray]:
    """The tensors of nested values, and their numbers: a graph may return sizes."""
    kinds = (torch.Tensor, int) if numbers else (torch.Tensor,)
    leaves = [v for v in tree.tree_leaves(values) if isinstance(v, kinds)]
    return [torch.as_tensor(v).detach().clone().numpy() for v in leaves]


def gap(session: Any, model: torch.nn.Module, arguments: Any) -> float:
    """The largest difference with torch, relative to the largest value of an output."""
    names = [i.name for i in session.get_inputs()]
    given = arrays(arguments)
    if len(given) != len(names):
        raise ValueError(f"{len(names)} inputs for {len(given)} tensors: {names}")
    with torch.no_grad():
        results = copy.deepcopy(model)(**arguments)
    got = session.run(None, dict(zip(names, given, strict=True)))
    expected = arrays(results)
    return distance(expected if len(expected) == len(got) else arrays(results, numbers=True), got)


def distance(expected: list[np.ndarray], got: list[np.ndarray]) -> float:
    """The largest difference between outputs, relative to the largest value of an output."""
    if len(got) != len(expected):
        raise ValueError(f"{len(got)} outputs for {len(expected)} tensors")
    worst = 0.0
    for a, b in zip(expected, got, strict=True):
        if a.shape != b.shape:
            raise ValueError(f"shape {b.shape}, torch {a.shape}")
        if a.size and a.dtype != bool:
            unit = max(1e-3, float(np.abs(a[np.isfinite(a)]).max(initial=0)))
            worst = max(worst, float(np.nanmax(np.abs(a - b) / unit, initial=0)))
    return worst


def torch_differs(tiny: TinyModel, arguments: Any) -> bool:
    """Whether the program of torch.export, before any exporter, differs from the model."""
    kwargs = copy.deepcopy(arguments)
    try:
        program = torch.export.export(tiny.model, (), kwargs=kwargs, strict=False)
    except Exception:  # a type of output it does not know
        return False
    with torch.no_grad():
        expected = arrays(copy.deepcopy(tiny.model)(**copy.deepcopy(arguments)))
        got = arrays(program.module()(**copy.deepcopy(arguments)))
    try:
        return distance(expected, got) > TOLERANCE
    except ValueError:  # other shapes
        return True


def row_of(family: str, kind: str, exporter: str) -> dict[str, Any]:
    """The export of a family: what failed, or nodes, error, time of the processor."""
    row: dict[str, Any] = {"family": family, "kind": kind, "exporter": exporter, "status": ""}
    step = "torch runs the model"
    try:
        tiny = tiny_model(family)
        row["cache"] = ""
        if kind == "causal":
            name, cache = cache_of(tiny.model, tiny.inputs(*SIZES[0][:2]))
            register_caches(tiny.model, cache)
            has_parts = name and type(cache) in tree.SUPPORTED_NODES
            row["cache"] = type(cache).__name__ if has_parts else ""
        past = bool(row["cache"])
        calls = [arguments_of(tiny, sizes, past) for sizes in SIZES]
        dims = dims_of(tiny, *calls)
        with torch.no_grad():
            copy.deepcopy(tiny.model)(**copy.deepcopy(calls[1]))
        step = "export"
        first = copy.deepcopy(calls[0])
        begin = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", category=UserWarning)
            proto = EXPORTERS[exporter](tiny, first, dims)
        row["cause"] = next(filter(None, map(decision_of, caught)), "")
        row["seconds"] = round(time.process_time() - begin, 1)
        row["nodes"] = sum(node.op_type != "Constant" for node in proto.graph.node)
        step = "onnxruntime"
        session = onnxruntime.InferenceSession(proto.SerializeToString())
        for title, arguments in zip(("same sizes", "other sizes"), calls, strict=True):
            step = title
            error = gap(session, tiny.model, arguments)
            row["error"] = f"{error:.0e}"
            if error > TOLERANCE:
                raise ValueError(f"error {error:.0e}")
        row["status"] = "right"
    except Exception as e:  # an exporter may fail in any way
        row["status"] = step
        row["cause"] = cause_in_words(family, cause_of(e))
        if step == "same sizes" and torch_differs(tiny, calls[0]):
            row["cause"] += ", and the program of torch.export differs as much"
    return row


def decision_of(warning: warnings.WarningMessage) -> str:
    """The first line that decides as the example does, if a warning names one."""
    found = DECISION.match(str(warning.message))
    return f"right where {found[1]} decides as in the example" if found else ""


def cause_of(error: BaseException) -> str:
    """The lines of an error that say most."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    if "conflicts between" in text or "Constraints violated" in text:
        text = lines[1]
    return f"{type(error).__name__}: {text}"[:240]


def limited(limit: float, *way: str) -> dict[str, Any]:
    """The same within a time limit, or why there is no row."""
    row = row_within(limit, row_of, *way)
    if isinstance(row, str):
        return {**dict(zip(COLUMNS, way, strict=False)), "status": "export", "cause": row}
    return dict(row)


def sweep(exporter: str, families: dict[str, str], limit: float, table: Path) -> None:
    """Adds the rows of families by their kind, each computed in a copy of this process, which
    exports a model before: modules are imported and torch is warm.

    :param exporter: name of an exporter
    :param families: ``model_type -> kind``
    :param limit: seconds of the processor for a family
    :param table: the table that is completed
    """
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()):
        row_of("bert", "encoder", exporter)
    gc.collect()
    gc.freeze()
    for family, kind in families.items():
        row = limited(limit, family, kind, exporter)
        write_table(table, {**read_table(table, *KEYS), (family, exporter): row}, COLUMNS)
        print(" ".join(f"{v}" for v in row.values()), flush=True)


def named_rows(table: Path) -> Rows:
    """The rows of the table, where each family of the installed transformers has one at least.

    :param table: the table, which is written again
    """
    known = read_table(table, *KEYS)
    kinds = {family: kind for family, (kind, _) in families().items()}
    missing: Rows = {
        (family, "ours"): {"family": family, "kind": kind, "exporter": "ours", "status": MISSING}
        for family, kind in kinds.items()
    }
    rows = {**missing, **{key: row for key, row in known.items() if key[0] in kinds}}
    write_table(table, rows, COLUMNS)
    return rows


def main() -> None:
    """Completes the table, prints how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", metavar="family")
    parser.add_argument("--kinds", nargs="+", default=[])
    parser.add_argument("--exporters", nargs="+", default=["ours"], choices=list(EXPORTERS))
    parser.add_argument(
        "--limit", type=float, default=300, help="seconds of the processor for a family"
    )
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--failed", action="store_true")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}", flush=True)
    known = named_rows(options.table)
    kinds = {
        family: kind
        for family, (kind, _) in families().items()
        if family in (options.families or [family]) and kind in (options.kinds or [kind])
    }
    if options.kinds:
        kinds = dict(sorted(kinds.items(), key=lambda item: options.kinds.index(item[1])))
    for exporter in options.exporters:
        rows = {family: known.get((family, exporter)) for family in kinds}
        missing = {
            family: kinds[family]
            for family, row in rows.items()
            if row is None
            or row["status"] == MISSING
            or options.again
            or (options.failed and row["status"] != "right")
        }
        # an exporter registers classes of caches: the next one must not find them
        way = (exporter, missing, options.limit, options.table)
        process = multiprocessing.get_context("fork").Process(target=sweep, args=way)
        process.start()
        process.join()
    table = pandas.DataFrame(read_table(options.table, *KEYS).values())
    print(table.groupby(["kind", "exporter"])["status"].value_counts().to_string())


if __name__ == "__main__":
    main()
