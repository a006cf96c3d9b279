"""
Every operator of torch, exported
=================================

One row for each operator of ``op_db``, the table torch tests itself with: the first sample in
float32 is exported by :func:`torch_interpreter.to_onnx`, onnxruntime runs the model and the results
are compared with those of torch.

    python _doc/examples/bench_opinfo.py                     # every operator, what is missing
    python _doc/examples/bench_opinfo.py linalg.svd cov      # some of them
    python _doc/examples/bench_opinfo.py --dynamic           # every dimension may change
    python _doc/examples/bench_opinfo.py --dynamo            # by torch.onnx.export as well
    python _doc/examples/bench_opinfo.py --again             # rows that exist too
    python _doc/examples/bench_opinfo.py --failed            # rows that are not right

An operator has a process of its own and a time limit. A row goes to ``_doc/tables/opinfo.csv``
as soon as it is known, and is not computed twice: the command may be interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import onnx
import pandas
import torch
from tools.table_rows import read_table, row_within, write_table

from xbuilder.errors import XoptimError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "_unittests"))
from ut_torch_interpreter import opinfo_samples

TABLE = ROOT / "_doc" / "tables" / "opinfo.csv"
COLUMNS = ["operator", "exporter", "status", "cause"]
KEYS = COLUMNS[:2]
OPERATORS = {opinfo_samples.full_name(op): op for op in opinfo_samples.OPERATORS}


def with_ours(model: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> onnx.ModelProto:
    """Exported by this project, not optimized."""
    return opinfo_samples.exported(model, tensors)


def with_dynamo(model: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> onnx.ModelProto:
    """Exported by torch.onnx.export, not optimized."""
    program = torch.onnx.export(model, tensors, dynamo=True, verbose=False, optimize=False)
    return program.model_proto


def with_dynamic_dimensions(
    model: torch.nn.Module, tensors: tuple[torch.Tensor, ...]
) -> onnx.ModelProto:
    """Exported by this project, every dimension may change."""
    return opinfo_samples.exported_with_dynamic_dimensions(model, tensors)


DYNAMIC = "ours, dynamic"
EXPORTERS = {"ours": with_ours, DYNAMIC: with_dynamic_dimensions, "dynamo": with_dynamo}


def row_of(name: str, exporter: str) -> dict[str, str]:
    """The first sample of an operator: right, refused, wrong, or none that can be compared."""
    row = {"operator": name, "exporter": exporter, "status": "no sample", "cause": ""}
    sample = opinfo_samples.first_sample(OPERATORS[name], torch.float32)
    if sample is None:
        return row
    if exporter == DYNAMIC and not any(t.ndim for t in sample.tensors):
        return row
    refusals = Exception if exporter == "dynamo" else XoptimError
    others = opinfo_samples.similar_samples(sample) if exporter == DYNAMIC else ()
    status, cause = opinfo_samples.explained(sample, EXPORTERS[exporter], refusals, others)
    row.update(status="no sample" if status == "invalid" else status, cause=cause)
    return row


def limited(limit: float, *way: str) -> dict[str, str]:
    """The same within a time limit, or why there is no row."""
    row = row_within(limit, row_of, *way)
    failed = isinstance(row, str)
    return dict(zip(COLUMNS, (*way, "crashed", row), strict=True)) if failed else row


def main() -> None:
    """Completes the table, prints how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", metavar="operator")
    parser.add_argument("--dynamic", action="store_true", help="dynamic dimensions as well")
    parser.add_argument("--dynamo", action="store_true", help="torch.onnx.export as well")
    parser.add_argument("--limit", type=float, default=120, help="seconds for an operator")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--failed", action="store_true")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args()
    rows = read_table(options.table, *KEYS)
    wanted = {"ours": True, DYNAMIC: options.dynamic, "dynamo": options.dynamo}
    print(f"torch {torch.__version__}, {len(OPERATORS)} operators", flush=True)
    for name in options.operators or OPERATORS:
        for exporter in (way for way, chosen in wanted.items() if chosen):
            known = rows.get((name, exporter))
            failed = known is not None and known["status"] not in ("right", "no sample")
            if known is not None and not options.again and not (failed and options.failed):
                continue
            row = rows[name, exporter] = limited(options.limit, name, exporter)
            write_table(options.table, rows, COLUMNS)
            if row["status"] != "right":
                print(" ".join(row.values()), flush=True)
    table = pandas.DataFrame(rows.values())
    print(table.groupby("exporter")["status"].value_counts().to_string())


if __name__ == "__main__":
    main()
