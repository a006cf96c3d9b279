"""
Modules as people write them, exported
======================================

Exports the modules of ``written_modules.py`` with :func:`torch_interpreter.to_onnx` and
``torch.onnx.export(dynamo=True)``, and compares each model with torch at two sizes. The table is
``_doc/tables/written_modules.csv``::

    python _doc/examples/bench_written.py               # what is missing in the table
    python _doc/examples/bench_written.py Rotary Warp   # some modules, once more
    python _doc/examples/bench_written.py --again       # all of them
"""

from __future__ import annotations

import argparse
import copy
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
from corpus.written_modules import MODULES, Written

from torch_interpreter import to_onnx

TABLE = Path(__file__).parents[1] / "tables" / "written_modules.csv"
TOLERANCE = 1e-3
COLUMNS = ["module", "exporter", "status", "nodes", "error", "seconds", "cause"]
tree = torch.utils._pytree


def with_ours(model: torch.nn.Module, written: Written) -> onnx.ModelProto:
    """Exported by this project."""
    return to_onnx(model, written.calls[0], dynamic_shapes=written.dims)


def with_dynamo(model: torch.nn.Module, written: Written) -> onnx.ModelProto:
    """Exported by torch.onnx.export."""
    program = torch.onnx.export(
        model, written.calls[0], dynamic_shapes=written.dims, dynamo=True, verbose=False
    )
    return program.model_proto


EXPORTERS: dict[str, Callable[..., onnx.ModelProto]] = {"ours": with_ours, "dynamo": with_dynamo}


def gap(proto: onnx.ModelProto, model: torch.nn.Module, arguments: tuple[Any, ...]) -> float:
    """The largest difference with torch."""
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [i.name for i in session.get_inputs()]
    feeds = dict(zip(names, (a.numpy() for a in arguments), strict=True))
    with torch.no_grad():
        leaves = tree.tree_leaves(copy.deepcopy(model)(*copy.deepcopy(arguments)))
    worst = 0.0
    for expected, got in zip(leaves, session.run(None, feeds), strict=True):
        if tuple(expected.shape) != got.shape:
            raise ValueError(f"shape {got.shape}, torch {tuple(expected.shape)}")
        if got.size:
            difference = np.abs(expected.numpy().astype(float) - got.astype(float))
            worst = max(worst, float(np.nanmax(difference)))
    return worst


def row_of(name: str, exporter: str) -> dict[str, Any]:
    """The export of a module: what failed, or nodes, error, time of the processor."""
    written = MODULES[name]
    torch.manual_seed(0)
    model = written.make().eval().requires_grad_(False)
    row: dict[str, Any] = {"module": name, "exporter": exporter}
    step = "export"
    try:
        begin = time.process_time()
        proto = EXPORTERS[exporter](copy.deepcopy(model), written)
        row["seconds"] = round(time.process_time() - begin, 1)
        row["nodes"] = sum(node.op_type != "Constant" for node in proto.graph.node)
        for title, arguments in zip(("same sizes", "other sizes"), written.calls, strict=True):
            step = title
            error = gap(proto, model, arguments)
            row["error"] = f"{error:.0e}"
            if not error <= TOLERANCE:
                raise ValueError(f"error {error:.0e}")
        row["status"] = "right"
    except Exception as e:  # an exporter may fail in any way
        cause = e if e.__cause__ is None else e.__cause__
        text = " ".join(str(cause).split())
        row.update(status=step, cause=f"{type(cause).__name__}: {text}"[:200])
    return row


def main() -> None:
    """Completes the table, prints how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="module")
    parser.add_argument("--exporters", nargs="+", default=list(EXPORTERS), choices=list(EXPORTERS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    onnxruntime.set_default_logger_severity(4)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    if options.table.exists():
        known = pandas.read_csv(options.table, keep_default_na=False, dtype=str)
        rows = {(r["module"], r["exporter"]): r for r in known.to_dict("records")}
    for name in MODULES:
        for exporter in options.exporters:
            asked = name in options.modules
            missing = (name, exporter) not in rows and not options.modules
            if not (asked or missing or options.again):
                continue
            row = row_of(name, exporter)
            rows[name, exporter] = row
            print(*(f"{v}" for v in row.values()), flush=True)
            table = pandas.DataFrame([rows[k] for k in sorted(rows)]).reindex(columns=COLUMNS)
            table.to_csv(options.table, index=False)
    found = pandas.DataFrame(rows.values())
    print(found.groupby("exporter")["status"].value_counts().to_string())


if __name__ == "__main__":
    main()
