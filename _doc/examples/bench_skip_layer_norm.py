"""
Skipped normalizations against an addition and a normalization
==============================================================

The kernels of onnxruntime that add and normalize, beside the two they replace: time of the
processor, one thread, in turns. ``--write`` keeps the table that decides if the set ``onnxruntime``
writes them for a CPU:

::

    python _doc/examples/bench_skip_layer_norm.py --write

When nothing else reads the sum, onnxruntime makes SkipLayerNormalization when it loads the model:
both take the same time.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import model_from_text

LAYERS = 12
SIZES = [(1, 1, 768), (1, 16, 64), (2, 32, 256), (1, 128, 768), (8, 128, 768), (2, 512, 256)]
#: pattern -> the normalization it looks for
NORMALIZATIONS = {
    "SkipLayerNormalization": "LayerNormalization({}, w, c)",
    "SkipSimplifiedLayerNormalization": "SimplifiedLayerNormalization <axis=-1> ({}, w)",
}
TABLE = Path(__file__).resolve().parents[1] / "tables" / "skip_layer_norm.csv"


def model(hidden: int, normalization: str, sum_is_used: bool) -> onnx.ModelProto:
    """Layers which add, normalize, and add the sum again if it is used."""
    body, last = [], "x"
    for i in range(LAYERS):
        body.append(f"s{i} = Add({last}, z) n{i} = {normalization.format(f's{i}')}")
        body.append(f"r{i} = Relu(n{i})")
        last = f"r{i}"
        if sum_is_used:
            body.append(f"p{i} = Add(r{i}, s{i})")
            last = f"p{i}"
    dims = f"float[b, s, {hidden}]"
    text = f"g ({dims} x, {dims} z) => ({dims} y) {{ {' '.join(body)} y = Neg({last}) }}"
    made = model_from_text(text, 18)
    rng = np.random.default_rng(0)
    for name in "wc" if ", c)" in normalization else "w":
        value = rng.normal(size=hidden).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return made


def session(proto: onnx.ModelProto, patterns: str) -> onnxruntime.InferenceSession:
    """A session on the optimized model, with one thread."""
    options = OptimizationOptions(patterns=patterns)
    builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    content = builder.to_onnx().SerializeToString()
    return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])


def measure(
    pattern: str, batch: int, length: int, hidden: int, sum_is_used: bool
) -> tuple[float, float]:
    """Microseconds without the pattern, then with it: the shortest blocks."""
    proto = model(hidden, NORMALIZATIONS[pattern], sum_is_used)
    sessions = [session(proto, p) for p in ("default", f"default+{pattern}(on_cpu=True)")]
    rng = np.random.default_rng(1)
    shape = batch, length, hidden
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name in "xz"}
    runs = max(1, 2_000_000 // (batch * length * hidden * LAYERS))
    times: list[list[float]] = [[], []]
    for _ in range(60):
        for rows, one in zip(times, sessions, strict=True):
            begin = time.process_time()
            for _ in range(runs):
                one.run(None, feeds)
            rows.append((time.process_time() - begin) / runs * 1e6)
    return min(times[0]), min(times[1])


parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
parser.add_argument("--write", action="store_true", help="writes the table")
args = parser.parse_args()
rows = []
for pattern in NORMALIZATIONS:
    for sum_is_used in (True, False):
        for size in SIZES:
            alone, fused = measure(pattern, *size, sum_is_used)
            case = "the sum is used" if sum_is_used else "the sum is not used"
            ratio = round(fused / alone, 2)
            rows.append([pattern, case, *size, round(alone), ratio, onnxruntime.__version__])
            print(*rows[-1], file=sys.stderr)
if args.write:
    with TABLE.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        columns = "pattern case batch sequence hidden microseconds ratio onnxruntime"
        writer.writerow(columns.split())
        writer.writerows(rows)
