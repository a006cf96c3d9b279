"""
.. _plot-demo-mlp:

From torch to an optimized ONNX model
=====================================

A multi-layer perceptron written the way people write them is converted into ONNX, optimized with
the patterns *default+onnxruntime*, and the two models are compared: a page shows the graphs, what
the patterns did and what they did not, the difference between the results of the models, their
latencies. ``make demo`` runs this script.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas
import torch

import xoptim
from torch_interpreter import to_onnx
from xbuilder import GraphBuilder, OptimizationOptions, pretty_onnx
from xoptim.reports.model_summary import pattern_totals
from xoptim.toolkit.profiles import Profile
from xoptim.trust.verification import verify_models

PATTERNS = "default+onnxruntime"

# %%
# The model
# +++++++++
#
# The normalization is written by hand, and the shape of the input goes through a few views, as in
# many repositories. The batch is a dynamic dimension.


class HandMadeNorm(torch.nn.Module):
    """Normalizes the last dimension, without torch.nn.LayerNorm."""

    def __init__(self, size: int):
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.rand(size) + 0.5)
        self.beta = torch.nn.Parameter(torch.rand(size) - 0.5)

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        variance = (centered**2).mean(-1, keepdim=True)
        return centered / torch.sqrt(variance + 1e-5) * self.gamma + self.beta


class MLP(torch.nn.Module):
    """Two blocks: linear, activation, normalization; then a classifier."""

    def __init__(self, size: int = 64, hidden: int = 128, classes: int = 10):
        super().__init__()
        self.first = torch.nn.Linear(size, hidden)
        self.norm = HandMadeNorm(hidden)
        self.second = torch.nn.Linear(hidden, hidden)
        self.last = torch.nn.Linear(hidden, classes)

    def forward(self, x):
        x = x.reshape(x.shape[0], -1)
        x = self.norm(torch.nn.functional.silu(self.first(x)))
        x = self.norm(torch.nn.functional.gelu(self.second(x)))
        return torch.softmax(self.last(x), dim=-1)


def convert() -> onnx.ModelProto:
    """Converts the model into ONNX, without optimizing it."""
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=1, max=4096)
    return to_onnx(
        MLP().eval(),
        (torch.randn(4, 8, 8),),
        input_names=["x"],
        dynamic_shapes=({0: batch},),
        optimize=False,
    )


# %%
# One call
# ++++++++
#
# It optimizes the model, runs both models, checks each rewrite, measures, and writes a page with
# everything: it opens in a browser, without any other file.


def write_page(model: onnx.ModelProto, path: Path) -> None:
    """Optimizes the model and writes the page of the optimization."""
    done = xoptim.optimize(
        model, patterns=PATTERNS, verify=True, validate=True, measure=True, profile=Profile()
    )
    done.report(path)


# %%
# Step by step
# ++++++++++++
#
# The builder reads the model, its options select the patterns, ``to_onnx`` optimizes and returns
# the model with one row for each thing that was done: ``pattern_totals`` adds
# them up by pattern.


def optimize(model: onnx.ModelProto) -> tuple[onnx.ModelProto, pandas.DataFrame]:
    """Optimizes the model, returns it with the statistics by pattern."""
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=PATTERNS),
    )
    optimized, rows = builder.to_onnx(return_optimize_report=True)
    table = pandas.DataFrame(pattern_totals(rows)).set_index("pattern")
    return optimized, table[(table["added"] > 0) | (table["removed"] > 0)]


# %%
# Latency
# +++++++
#
# onnxruntime's own optimizations are disabled to see what the patterns are worth alone,
# then enabled.


def latency(model: onnx.ModelProto, x: np.ndarray, level: str, repeat: int = 15) -> float:
    """Returns the median time of one run, in seconds, on one thread."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        for _ in range(20):
            session.run(None, {"x": x})
        times.append((time.perf_counter() - begin) / 20)
    return float(np.median(times))


def draw(model: onnx.ModelProto, path: Path) -> list[Path]:
    """Writes the graph for graphviz, and its drawing where graphviz is installed."""
    from onnx_array_api.plotting.dot_plot import to_dot

    path.write_text(to_dot(model), encoding="utf-8")
    program = shutil.which("dot")
    if program is None:
        return [path]
    image = path.with_suffix(".svg")
    subprocess.run([program, "-Tsvg", "-o", str(image), str(path)], check=True)
    return [path, image]


# %%
# Everything together
# +++++++++++++++++++


def main(output: Path) -> None:
    """Runs the demonstration, writes the models and their drawings in a folder."""
    output.mkdir(parents=True, exist_ok=True)
    before = convert()
    write_page(before, output / "report.html")
    print(f"\n----- {output / 'report.html'} shows it all, open it in a browser\n")
    after, table = optimize(before)

    print("\n----- before\n")
    print(pretty_onnx(before))
    print("\n----- after\n")
    print(pretty_onnx(after))

    print(f"\n----- what each pattern did ({PATTERNS})\n")
    print(table.to_string())
    print(f"\nnodes: {len(before.graph.node)} -> {len(after.graph.node)}")

    for batch in (1, 32):
        report = verify_models(before, after, sizes={"batch": batch})
        print(
            f"batch={batch}: largest difference {report.max_abs:.3g} absolute, "
            f"{report.max_rel:.3g} relative"
        )
        report.raise_if_different()

    x = np.random.default_rng(0).standard_normal((32, 8, 8)).astype(np.float32)
    for level, text in (("ORT_DISABLE_ALL", "disabled"), ("ORT_ENABLE_ALL", "enabled")):
        a, b = latency(before, x, level), latency(after, x, level)
        print(
            f"onnxruntime's optimizations {text}: {a * 1e6:.0f} us -> {b * 1e6:.0f} us, "
            f"ratio {b / a:.2f}"
        )

    written = [output / "mlp.onnx", output / "mlp.optimized.onnx"]
    for model, path in zip((before, after), written, strict=True):
        onnx.save(model, path)
    written += draw(before, output / "mlp.dot") + draw(after, output / "mlp.optimized.dot")
    print("\nwrote " + ", ".join(str(path) for path in written))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Optimizes a small torch model.")
    parser.add_argument("--output", type=Path, default=Path("demo_output"))
    main(parser.parse_args().output)
