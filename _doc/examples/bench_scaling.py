"""
Cost against the number of nodes
================================

Optimizes chains of repeated motifs (two Transpose, two Reshape, two Cast, MatMul and Add, Identity)
with more and more nodes, then twins, two equal chains side by side which become one. It measures
each step, beside onnxsim and onnxruntime (basic optimizations) on the sizes they finish quickly.
The time by node should not depend on the size. The exponent is the slope of the logarithm of the
total time against the logarithm of the size: 1 is linear. ``make bench`` runs this script.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas
from corpus.bench_models import motif_chain

from xbuilder import GraphBuilder, OptimizationOptions

#: the other tools are not run on more nodes than this
PEER_NODES = 10000
#: shape of the graph -> number of equal chains
SHAPES = {"chain": 1, "twins": 2}


def xoptim(model: onnx.ModelProto, patterns: str) -> tuple[dict[str, float], int]:
    """Times of the steps of this project, in seconds, and number of nodes left."""
    begin = time.perf_counter()
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns),
    )
    built = time.perf_counter()
    builder.optimize()
    optimized = time.perf_counter()
    result = builder.to_onnx(optimize=False)
    end = time.perf_counter()
    times = {
        "import": built - begin,
        "optimize": optimized - built,
        "export": end - optimized,
        "total": end - begin,
    }
    return times, len(result.graph.node)


def onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    """onnx-simplifier."""
    import onnxsim as package

    return package.simplify(model)[0]


def ort_basic(model: onnx.ModelProto) -> onnx.ModelProto:
    """The basic optimizations of onnxruntime; the model is not read back."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return model


PEERS: dict[str, Callable[[onnx.ModelProto], onnx.ModelProto]] = {
    "onnxsim": onnxsim,
    "onnxruntime basic": ort_basic,
}


def peer_time(name: str, model: onnx.ModelProto) -> float:
    """Microseconds a node of another tool, NaN if it is not installed or too slow to be asked."""
    if len(model.graph.node) > PEER_NODES * 1.1:
        return math.nan
    begin = time.perf_counter()
    try:
        PEERS[name](model)
    except ImportError:
        return math.nan
    return (time.perf_counter() - begin) / len(model.graph.node) * 1e6


def measure(shape: str, n_nodes: int, patterns: str, repeat: int) -> dict[str, Any]:
    """One row of the table, times in microseconds a node."""
    model = motif_chain(n_nodes, SHAPES[shape])
    size = len(model.graph.node)
    best: dict[str, float] = {}
    after = 0
    for _ in range(repeat):
        times, after = xoptim(model, patterns)
        best = {k: min(v / size * 1e6, best.get(k, math.inf)) for k, v in times.items()}
    row: dict[str, Any] = {"shape": shape, "nodes": size, "after": after, **best}
    for name in PEERS:
        row[name] = peer_time(name, model)
    return row


def main(output: Path, sizes: list[int], patterns: str, repeat: int) -> pandas.DataFrame:
    """Measures every size, prints and writes the table."""
    measure("twins", 100, patterns, 1)  # patterns and peers are imported when they are used
    rows = []
    for shape, size in itertools.product(SHAPES, sizes):
        rows.append(measure(shape, size, patterns, repeat))
        figures = [f"{k}={v:.4g}" for k, v in rows[-1].items() if k != "shape"]
        print(f"{shape}: {', '.join(figures)}", flush=True)
    table = pandas.DataFrame(rows)
    output.mkdir(parents=True, exist_ok=True)
    table.to_csv(output / "scaling.csv", index=False)
    print("microseconds a node")
    print(table.to_string(index=False, float_format=lambda v: f"{v:.1f}"))
    for shape, part in table.groupby("shape") if len(sizes) > 1 else ():
        seconds = np.log(part["total"] * part["nodes"])
        slope = np.polyfit(np.log(part["nodes"]), seconds, 1)[0]
        print(f"{shape}: time grows as N^{slope:.3f}")
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measures the cost against the number of nodes.")
    parser.add_argument("--output", type=Path, default=Path("bench_output"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, 10000, 30000, 100000])
    parser.add_argument("--patterns", default="default+onnxruntime")
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    main(args.output, args.sizes, args.patterns, args.repeat)
