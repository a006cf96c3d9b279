"""
Cost against the number of nodes
================================

Optimizes the same kind of model with more and more nodes and measures each step. The time by node
should not depend on the size. The last column is the exponent of the growth between two sizes: 1 is
linear. ``make bench`` runs this script.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import pandas
from bench_models import chain_model

from xbuilder import GraphBuilder, OptimizationOptions


def measure(n_nodes: int, patterns: str, repeat: int) -> dict[str, float]:
    """Returns the best time of each step for one size."""
    model = chain_model(n_nodes)
    best: dict[str, float] = {}
    for _ in range(repeat):
        begin = time.perf_counter()
        builder = GraphBuilder(
            model,
            infer_shapes_options=True,
            optimization_options=OptimizationOptions(patterns=patterns),
        )
        loaded = time.perf_counter()
        builder.optimize()
        optimized = time.perf_counter()
        result = builder.to_onnx(optimize=False)
        end = time.perf_counter()
        times = {
            "import": loaded - begin,
            "optimize": optimized - loaded,
            "export": end - optimized,
            "total": end - begin,
        }
        best = {k: min(v, best.get(k, math.inf)) for k, v in times.items()}
    return {"nodes": len(model.graph.node), "after": len(result.graph.node), **best}


def main(output: Path, sizes: list[int], patterns: str, repeat: int) -> pandas.DataFrame:
    """Measures every size, prints and writes the table."""
    rows: list[dict[str, float]] = []
    measure(100, patterns, 1)  # the patterns are imported the first time they are used
    for size in sizes:
        row = measure(size, patterns, repeat)
        row["us_by_node"] = row["total"] / row["nodes"] * 1e6
        if rows:
            ratio = math.log(row["nodes"] / rows[-1]["nodes"])
            row["exponent"] = math.log(row["total"] / rows[-1]["total"]) / ratio
        rows.append(row)
        print(", ".join(f"{k}={v:.4g}" for k, v in row.items()), flush=True)
    table = pandas.DataFrame(rows)
    output.mkdir(parents=True, exist_ok=True)
    table.to_csv(output / "scaling.csv", index=False)
    print(table.to_string(index=False))
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measures the cost against the number of nodes.")
    parser.add_argument("--output", type=Path, default=Path("bench_output"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, 10000, 30000, 100000])
    parser.add_argument("--patterns", default="default+onnxruntime")
    parser.add_argument("--repeat", type=int, default=1)
    args = parser.parse_args()
    main(args.output, args.sizes, args.patterns, args.repeat)
