"""
A model of 2.6 GB
=================

Makes a model with external data, optimizes it and saves it to another folder with one call,
measures the peak of memory that takes, and compares the time with copying the data file twice. What
the model does to its weights varies from layer to layer: nothing, a Transpose the product absorbs,
a scale, a Transpose that has to be written. No weight is ever held.

``python _doc/examples/bench_large_model.py`` needs 8 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto

#: most additional memory the optimization may take, in MB
MEMORY_LIMIT = 300


def weight_nodes(layer: int) -> tuple[list[onnx.NodeProto], str]:
    """What a layer does to its weight, and the name of the result."""
    weight, moved = f"w{layer}", f"moved{layer}"
    kinds: list[list[onnx.NodeProto]] = [
        [],
        [oh.make_node("Transpose", [weight], [moved], perm=[1, 0])],
        [oh.make_node("Mul", [weight, "half"], [moved])],
        [
            oh.make_node("Neg", [weight], [f"neg{layer}"]),
            oh.make_node("Transpose", [f"neg{layer}"], [moved], perm=[1, 0]),
        ],
    ]
    made = kinds[layer % len(kinds)]
    return made, moved if made else weight


def make_model(folder: Path, layers: int, width: int) -> Path:
    """Writes a chain of MatMul, Add, Relu with useless moves; the weights go to one data file."""
    folder.mkdir(parents=True, exist_ok=True)
    block = np.random.default_rng(0).standard_normal((width, width), dtype=np.float32) / width
    nodes, name = [], "x"
    initializers = [onnx.numpy_helper.from_array(np.float32(0.5), "half")]
    with open(folder / "model.onnx.data", "wb") as data:
        for i in range(layers):
            weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[width, width])
            weight.data_location = TensorProto.EXTERNAL
            for key, value in (
                ("location", "model.onnx.data"),
                ("offset", data.tell()),
                ("length", block.nbytes),
            ):
                weight.external_data.add(key=key, value=str(value))
            block[0, 0] = i
            block.tofile(data)
            bias = onnx.numpy_helper.from_array(np.zeros(width, np.float32), f"b{i}")
            initializers += [weight, bias]
            made, weight_name = weight_nodes(i)
            nodes += made
            nodes += [
                oh.make_node("Transpose", [name], [f"t{i}"], perm=[1, 0]),
                oh.make_node("Transpose", [f"t{i}"], [f"u{i}"], perm=[1, 0]),
                oh.make_node("MatMul", [f"u{i}", weight_name], [f"m{i}"]),
                oh.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"]),
                oh.make_node("Relu", [f"a{i}"], [f"r{i}"]),
            ]
            name = f"r{i}"
    graph = oh.make_graph(
        nodes,
        "large",
        [oh.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])],
        [oh.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])],
        initializers,
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def optimize(source: Path, target: Path) -> dict[str, float]:
    """Optimizes a file into another one, in this process. Returns time and memory."""
    from xbuilder import GraphBuilder, OptimizationOptions
    from xoptim.api.selection import get_pattern_list

    options = OptimizationOptions(patterns="default+onnxruntime")
    get_pattern_list(options.patterns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    builder = GraphBuilder(str(source), infer_shapes_options=True, optimization_options=options)
    container = builder.to_onnx(optimize=True, large_model=True)
    optimized = time.perf_counter()
    container.save(target)
    end = time.perf_counter()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "optimize s": optimized - begin,
        "save s": end - optimized,
        "total s": end - begin,
        "additional MB": (after - before) / 1024,
        "nodes": len(container.proto.graph.node),
    }


def copy_twice(source: Path, folder: Path) -> float:
    """Seconds spent copying the data file twice."""
    begin = time.perf_counter()
    for i in range(2):
        shutil.copyfile(source, folder / f"copy{i}.data")
    duration = time.perf_counter() - begin
    for i in range(2):
        (folder / f"copy{i}.data").unlink()
    return duration


def main(layers: int, width: int) -> int:
    """Runs everything, returns an exit code."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        source = make_model(folder / "source", layers, width)
        data = source.with_name("model.onnx.data")
        target = folder / "target" / "model.onnx"
        target.parent.mkdir()
        copy = copy_twice(data, folder)
        command = [sys.executable, __file__, "--optimize", str(source), str(target)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        row = json.loads(done.stdout)
        row = {"GB": data.stat().st_size / 1e9, **row, "two copies s": copy}
        print(", ".join(f"{k}: {v:.2f}" for k, v in row.items()))
        ok = row["additional MB"] < MEMORY_LIMIT and row["total s"] < copy
        print("OK" if ok else "FAILED: more memory or more time than allowed")
        return 0 if ok else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Optimizes a large model.")
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--width", type=int, default=5700)
    parser.add_argument("--optimize", nargs=2, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.optimize:
        print(json.dumps(optimize(Path(args.optimize[0]), Path(args.optimize[1]))))
        sys.exit(0)
    sys.exit(main(args.layers, args.width))
