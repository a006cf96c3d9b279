"""Attention in float16 on CUDA when lengths change: the time of a length seen before, of a new one.

On a GPU of compute capability 9 or above, onnxruntime prefers the kernel of cuDNN, which builds a
plan for each length. ``ORT_ENABLE_CUDNN_FLASH_ATTENTION=0`` chooses another kernel. onnxruntime
reads the variable when it creates a session, so each value has a process of its own:

    python _doc/examples/tools/attention_plans.py CUDA
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from onnx.parser import parse_model

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.trust.latency import bound_run, fast_session

VARIABLE = "ORT_ENABLE_CUDNN_FLASH_ATTENTION"
#: batch, number of queries, of keys
SIZES = ((1, 1, 512), (1, 128, 128), (8, 128, 128), (1, 512, 512), (1, 1024, 1024), (4, 1024, 1024))
#: twelve heads of length 64
TEXT = """<ir_version: 10, opset_import: ["": 18]>
attention (float16[b, n, 768] q, float16[b, s, 768] k, float16[b, s, 768] v{mask})
=> (float16[b, n, 768] y)
<int64[4] heads = {{0, 0, 12, 64}}, int64[3] flat = {{0, 0, 768}}, float eighth = {{0.125}}> {{
    scale = Cast<to = 10>(eighth)
    q4 = Reshape(q, heads) qt = Transpose<perm = [0, 2, 1, 3]>(q4)
    k4 = Reshape(k, heads) kt = Transpose<perm = [0, 2, 3, 1]>(k4)
    v4 = Reshape(v, heads) vt = Transpose<perm = [0, 2, 1, 3]>(v4)
    m = MatMul(qt, kt) z = Mul(m, scale) {added}
    w = Softmax<axis = -1>(z{z}) o = MatMul(w, vt)
    ot = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(ot, flat)
}}"""


def model(masked: bool) -> onnx.ModelProto:
    """An attention with its products, in float16.

    :param masked: a mask is added to the scores
    """
    mask, added = (", float16[b, 1, n, s] mask", "z2 = Add(z, mask)") if masked else ("", "")
    return parse_model(TEXT.format(mask=mask, added=added, z="2" if masked else ""))


def draw(masked: bool, batch: int, queries: int, keys: int) -> dict[str, np.ndarray]:
    """Random inputs of :func:`model`."""
    rng = np.random.default_rng(0)
    shapes = {"q": (batch, queries, 768), "k": (batch, keys, 768), "v": (batch, keys, 768)}
    if masked:
        shapes["mask"] = (batch, 1, queries, keys)
    return {n: rng.standard_normal(s).astype(np.float16) for n, s in shapes.items()}


def seconds_of(session: Any, feeds: dict[str, np.ndarray], runs: int) -> list[float]:
    """The time of each run, inputs and outputs on the device."""
    run, found = bound_run(session, feeds), []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return found


def measure(processor: str) -> Iterator[dict[str, Any]]:
    """One row for each mask and each size, in microseconds: the products and the attention when the
    length was seen before, the attention when the number of keys is new.

    :param processor: what runs the models
    """
    options = OptimizationOptions(patterns="default+onnxruntime", processor=processor)
    for masked in (False, True):
        proto = model(masked)
        builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
        contents = proto, builder.to_onnx(optimize=True)
        products, fused = (
            fast_session(c.SerializeToString(), 1, processor=processor) for c in contents
        )
        for batch, queries, keys in SIZES:
            row: dict[str, Any] = {"mask": masked, "batch": batch, "queries": queries, "keys": keys}
            try:
                row |= timed(products, fused, masked, batch, queries, keys)
            except Exception as e:
                row["error"] = str(e).strip()[:200]
            yield row


def timed(
    products: Any, fused: Any, masked: bool, batch: int, queries: int, keys: int
) -> dict[str, float]:
    """The times of one size, in microseconds."""
    feeds = draw(masked, batch, queries, keys)
    found = {
        name: min(seconds_of(session, feeds, 60))
        for name, session in (("products", products), ("attention", fused))
    }
    grown = [draw(masked, batch, queries, keys + i) for i in (1, 2, 3)]
    found["new_length"] = median(seconds_of(fused, fed, 1)[0] for fed in grown)
    return {name: round(value * 1e6, 1) for name, value in found.items()}


def measured_by_kernel(processor: str) -> Iterator[dict[str, Any]]:
    """The rows of :func:`measure`, with the kernel onnxruntime chooses and without that of cuDNN.

    :param processor: what runs the models
    """
    for cudnn in ("auto", "0"):
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        variables.pop(VARIABLE, None)
        if cudnn == "0":
            variables[VARIABLE] = "0"
        command = [sys.executable, str(Path(__file__).resolve()), processor, "--rows"]
        done = subprocess.run(command, env=variables, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        for line in done.stdout.splitlines():
            yield {"cudnn": cudnn} | json.loads(line)


if __name__ == "__main__":
    for found in (measure if "--rows" in sys.argv else measured_by_kernel)(sys.argv[1]):
        print(json.dumps(found), flush=True)
