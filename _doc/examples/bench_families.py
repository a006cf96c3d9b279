"""
Families of transformers, one row each
======================================

For each family and each exporter: attentions found, nodes, the largest error against the exported
model when onnxruntime changes nothing, and latencies against the exported model under the
optimizations onnxruntime makes at load, for this project, for the optimizer of
``onnxruntime.transformers`` where it knows the family, for the optimizer of onnxscript and its
fusions for onnxruntime. Models have random weights, nothing is downloaded, see
``transformer_families.py`` and ``more_families.py``.

    python _doc/examples/bench_families.py                    # every family, every exporter
    python _doc/examples/bench_families.py bert vit           # some of them
    python _doc/examples/bench_families.py --more             # the others: more_families.py
    python _doc/examples/bench_families.py --exporters dynamo --attention eager sdpa
    python _doc/examples/bench_families.py --length 256       # other numbers of words
    python _doc/examples/bench_families.py --threads 1        # time of the processor
    python _doc/examples/bench_families.py --write            # writes _doc/tables/families.csv
    python _doc/examples/bench_families.py --export FOLDER    # writes the models, measures nothing

As many threads as cores run, which is what onnxruntime does by default, the time elapses; with one
thread, it is the one of the processor.

An attention is found when an operator computes it, or when it is recognized and stays products:
they are faster, or no operator takes it; or when it is computed once, as the model is optimized.

"""

from __future__ import annotations

import argparse
import collections
import itertools
import logging
import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas
from corpus.more_families import MORE
from corpus.transformer_families import EXPORTERS, FAMILIES, HEADS, LENGTH, WIDTH, Family, export

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.runtimes.processors import processor_features
from xoptim.trust.latency import compare_sessions, fast_session
from xoptim.trust.sessions.session_child import open_session

EVERY = {**FAMILIES, **MORE}
TABLE = Path(__file__).resolve().parents[1] / "tables" / "families.csv"
ATTENTIONS = ("Attention", "MultiHeadAttention", "GroupQueryAttention")
#: patterns that write an operator for an attention another one recognized
OPERATORS = (
    "apply_Attention3D",
    "apply_AttentionGQA",
    "apply_GroupQueryAttention3D",
    "apply_MultiHeadAttention3D",
    "apply_SharedHeadsAttention",
)
#: what exporters are measured with, unless it is asked: transformers has both
USUAL = {"ours": ["eager"], "dynamo": ["sdpa"], "script": ["eager"]}
#: the last opset of torch.onnx.export(dynamo=False)
LAST_SCRIPT = 20


def ours(proto: onnx.ModelProto, family: Family, folder: Path) -> tuple[onnx.ModelProto, int]:
    """This project, the set for onnxruntime; attentions that are recognized without an operator."""
    options = OptimizationOptions(patterns="default+onnxruntime")
    builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
    rows = builder.optimize()
    found = sum(row["changed"] for row in rows if row["pattern"] == "apply_FunctionAttention")
    operators = sum(row["changed"] for row in rows if row["pattern"] in OPERATORS)
    made = builder.to_onnx(optimize=False)
    return made, found - operators + max(0, weighted(proto) - weighted(made))


def weighted(proto: onnx.ModelProto) -> int:
    """Attentions, and Softmax, which gives the weights of the others."""
    return sum(node.op_type in (*ATTENTIONS, "Softmax") for node in proto.graph.node)


def onnxruntime_tool(
    proto: onnx.ModelProto, family: Family, folder: Path
) -> onnx.ModelProto | None:
    """The tool of onnxruntime for transformers, None if it does not know the family."""
    from onnxruntime.transformers.optimizer import optimize_model

    if not family.known:
        return None
    path = folder / "model.onnx"
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.producer_name = "pytorch"  # it looks at no other model
    onnx.save(copy, path)
    made = optimize_model(
        str(path), model_type=family.known, num_heads=HEADS, hidden_size=WIDTH, opt_level=0
    )
    return made.model


def onnxscript_tool(proto: onnx.ModelProto, family: Family, folder: Path) -> onnx.ModelProto:
    """The optimizer of onnxscript and its fusions for onnxruntime."""
    import onnx_ir
    from onnxscript.optimizer import optimize
    from onnxscript.rewriter.ort_fusions import optimize_for_ort

    model = onnx_ir.from_proto(proto)
    made = optimize_for_ort(optimize(model) or model)
    return onnx_ir.to_proto(made[0] if isinstance(made, tuple) else made)


TOOLS: dict[str, Callable[..., Any]] = {
    "ours": ours,
    "onnxruntime": onnxruntime_tool,
    "onnxscript": onnxscript_tool,
}


def count(proto: onnx.ModelProto) -> tuple[int, int]:
    """Attentions, nodes; Constant apart."""
    types = collections.Counter(n.op_type for n in proto.graph.node)
    return sum(types[a] for a in ATTENTIONS), sum(types.values()) - types["Constant"]


def error(
    proto: onnx.ModelProto, feeds: dict[str, np.ndarray], expected: list[np.ndarray]
) -> float:
    """Largest error relative to the largest value of an output; onnxruntime changes nothing."""
    got = open_session(proto.SerializeToString(), []).run(None, feeds)
    pairs = list(zip(expected, got, strict=True))
    return max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-6)) for a, b in pairs)


def row_of(
    row: dict[str, Any], family: Family, arguments: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """The rest of a row, which says how the family is exported."""
    way = row["exporter"], row["attention"], row["opset"]
    proto, feeds = export(family, *way, arguments.length)
    expected = open_session(proto.SerializeToString(), []).run(None, feeds)
    row["nodes"] = count(proto)[1]
    threads = arguments.threads
    clock = time.process_time if threads == 1 else time.perf_counter
    first = fast_session(proto.SerializeToString(), threads, threads > 1)
    for tool in arguments.tools:
        try:
            made = TOOLS[tool](proto, family, folder)
            if made is None:
                continue
            made, products = made if isinstance(made, tuple) else (made, 0)
            gap = error(made, feeds, expected)
            second = fast_session(made.SerializeToString(), threads, threads > 1)
            found = compare_sessions(first, second, feeds, arguments.blocks, 0.05, clock)
        except Exception as e:  # another tool may fail in any way
            row[f"{tool} latency"] = type(e).__name__
            continue
        attentions, nodes = count(made)
        row[f"{tool} attention"] = f"{attentions + products}/{family.expected}"
        row.update({f"{tool} nodes": nodes, f"{tool} error": f"{gap:.0e}"})
        row[f"{tool} latency"] = round(found.ratio, 3)
        row["microseconds"] = round(found.before * 1e6)
    return row


def ways_of(arguments: argparse.Namespace) -> Iterator[tuple[str, str, str, int]]:
    """Family, exporter, attention, opset of each row."""
    for exporter, family in itertools.product(arguments.exporters, arguments.families):
        attentions = arguments.attention or USUAL[exporter]
        for attention, opset in itertools.product(attentions, arguments.opsets):
            if exporter != "script" or opset <= LAST_SCRIPT:
                yield family, exporter, attention, opset


def rows_of(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for each family, exporter, attention and opset."""
    with tempfile.TemporaryDirectory() as folder:
        for way in ways_of(arguments):
            row = dict(zip(("family", "exporter", "attention", "opset"), way, strict=True))
            print(", ".join(map(str, way)), flush=True)
            family = EVERY[row["family"]]
            try:
                yield row_of(row, family, arguments, Path(folder))
            except Exception as e:  # the export fails, or onnxruntime refuses what is exported
                yield {**row, "nodes": type(e).__name__}


def write_models(arguments: argparse.Namespace) -> None:
    """Writes the exported models, those that are not in the folder yet."""
    for name, exporter, attention, opset in ways_of(arguments):
        words = "_".join(name.replace(",", "").split())
        path = arguments.export / exporter / f"{words}-{attention}-{opset}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            continue
        print(path, flush=True)
        try:
            onnx.save(export(EVERY[name], exporter, attention, opset, arguments.length)[0], path)
        except Exception as e:  # an exporter may fail in any way
            print(f"{type(e).__name__}: {e}"[:200], flush=True)


def arguments_of() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", metavar="family")
    parser.add_argument("--more", action="store_true", help="those of more_families.py")
    parser.add_argument("--exporters", nargs="+", default=list(EXPORTERS), choices=EXPORTERS)
    parser.add_argument("--attention", nargs="+", default=[], choices=["eager", "sdpa"])
    parser.add_argument("--opsets", type=int, nargs="+", default=[18, 23])
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--length", type=int, default=LENGTH)
    parser.add_argument("--blocks", type=int, default=9)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--export", type=Path, help="a folder of models, nothing is measured")
    arguments = parser.parse_args()
    arguments.families = arguments.families or list(MORE if arguments.more else FAMILIES)
    return arguments


def main() -> None:
    """Prints the table, writes it if it is asked."""
    arguments = arguments_of()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if arguments.export is not None:
        write_models(arguments)
        return
    rows = []
    for row in rows_of(arguments):
        row["onnxruntime"], row["features"] = onnxruntime.__version__, processor_features()
        rows.append(row)
        table = pandas.DataFrame(rows)
        if arguments.write:  # as soon as it is known: the whole table takes a while
            table.to_csv(TABLE, index=False)
    print(table.drop(columns=["onnxruntime", "features"]).to_string(index=False, na_rep=""))
    for tool in arguments.tools:
        logs = pandas.to_numeric(table[f"{tool} latency"], errors="coerce").map(math.log)
        means = logs.groupby(table["opset"]).mean().map(math.exp)
        rows = ", ".join(f"{mean:.3f} at opset {opset}" for opset, mean in means.items())
        print(f"geometric mean of the latencies of {tool}: {math.exp(logs.mean()):.3f}, {rows}")


if __name__ == "__main__":
    main()
