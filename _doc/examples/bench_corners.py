"""
Corners where a cost could become quadratic
===========================================

Optimizes graphs that are large in one way only: a node with as many inputs as the graph has nodes,
a result with as many readers, as many initializers, outputs, declared shapes, branches of ``If``,
local functions, a deep chain, a node that moves along one, a dimension with ten thousand names.
Each is measured at several sizes. The exponent is the slope of the logarithm of the CPU time
against the logarithm of the size: 1 is linear, 2 is quadratic.

    python _doc/examples/bench_corners.py
    python _doc/examples/bench_corners.py --only readers outputs --sizes 1000 10000 100000
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pandas

from xbuilder import GraphBuilder, OptimizationOptions

FLOAT = onnx.TensorProto.FLOAT
#: a dimension that is the sum of this many names, at most: text of an expression is not a graph
MOST_NAMES = 10000


def value(name: str, *shape: str | int) -> onnx.ValueInfoProto:
    """A float tensor."""
    return oh.make_tensor_value_info(name, FLOAT, shape)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    weights: list[onnx.TensorProto] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
    shapes: list[onnx.ValueInfoProto] | None = None,
) -> onnx.ModelProto:
    """A model at opset 18, with the domain ``local``."""
    graph = oh.make_graph(nodes, "corner", inputs, outputs, weights or [], value_info=shapes or [])
    opsets = [oh.make_opsetid("", 18), oh.make_opsetid("local", 1)]
    return oh.make_model(graph, opset_imports=opsets, functions=functions or [], ir_version=9)


def scalar(name: str, number: float) -> onnx.TensorProto:
    """A weight of one number."""
    return onh.from_array(np.array([number], np.float32), name)


def inputs_of_a_node(n: int) -> onnx.ModelProto:
    """Every input of one Concat gets another name, as the Identity before it goes."""
    nodes = [oh.make_node("Neg", ["X"], [f"n{i}"]) for i in range(2)]
    nodes += [oh.make_node("Identity", [f"n{i % 2}"], [f"i{i}"]) for i in range(n)]
    nodes.append(oh.make_node("Concat", [f"i{i}" for i in range(n)], ["Y"], axis=0))
    return model(nodes, [value("X", "a", 2)], [value("Y", "b", 2)])


def readers(n: int) -> onnx.ModelProto:
    """One result has n readers which stay, and one Identity before them which goes."""
    nodes = [oh.make_node("Neg", ["X"], ["n"]), oh.make_node("Identity", ["n"], ["i"])]
    nodes += [oh.make_node("Add", ["i", f"w{i}"], [f"a{i}"]) for i in range(n)]
    nodes.append(oh.make_node("Sum", [f"a{i}" for i in range(n)], ["Y"]))
    weights = [scalar(f"w{i}", i) for i in range(n)]
    return model(nodes, [value("X", "a", 2)], [value("Y", "a", 2)], weights)


def initializers(n: int) -> onnx.ModelProto:
    """Half of the initializers are equal to another one."""
    nodes = []
    for i in range(0, n, 2):
        nodes.append(oh.make_node("Mul", [f"t{i - 2}" if i else "X", f"w{i}"], [f"m{i}"]))
        nodes.append(oh.make_node("Pow", [f"m{i}", f"w{i + 1}"], [f"t{i}"]))
    weights = [onh.from_array(np.array([2 + i // 2, 3], np.float32), f"w{i}") for i in range(n)]
    return model(nodes, [value("X", "a", 2)], [value(nodes[-1].output[0], "a", 2)], weights)


def outputs(n: int) -> onnx.ModelProto:
    """Every result is an output, half of them are made by an Identity."""
    nodes = []
    for i in range(n):
        source = f"y{i - 1}" if i else "X"
        nodes.append(oh.make_node("Identity" if i % 2 else "Neg", [source], [f"y{i}"]))
    return model(nodes, [value("X", "a", 2)], [value(f"y{i}", "a", 2) for i in range(n)])


def value_infos(n: int) -> onnx.ModelProto:
    """Every result of a deep chain has its declared shape."""
    nodes = [oh.make_node("Tanh", [f"t{i}" if i else "X"], [f"t{i + 1}"]) for i in range(n)]
    shapes = [value(f"t{i}", "a", 2) for i in range(1, n)]
    return model(nodes, [value("X", "a", 2)], [value(f"t{n}", "a", 2)], shapes=shapes)


def bodies(n: int) -> onnx.ModelProto:
    """Each If reads the result before it and has two branches of two nodes."""
    nodes = []
    for i in range(n):
        source = f"y{i - 1}" if i else "X"
        branches = {
            f"{side}_branch": oh.make_graph(
                [
                    oh.make_node("Identity", [source], [f"{side}_i{i}"]),
                    oh.make_node(op_type, [f"{side}_i{i}"], [f"{side}_y{i}"]),
                ],
                f"{side}{i}",
                [],
                [value(f"{side}_y{i}", "a", 2)],
            )
            for side, op_type in (("then", "Neg"), ("else", "Tanh"))
        }
        nodes.append(oh.make_node("If", ["C"], [f"y{i}"], **branches))
    condition = oh.make_tensor_value_info("C", onnx.TensorProto.BOOL, [])
    return model(nodes, [value("X", "a", 2), condition], [value(f"y{n - 1}", "a", 2)])


def functions(n: int) -> onnx.ModelProto:
    """Each node calls a local function of its own."""
    opsets = [oh.make_opsetid("", 18)]
    made = [
        oh.make_function(
            "local",
            f"f{i}",
            ["x"],
            ["y"],
            [oh.make_node("Identity", ["x"], ["i"]), oh.make_node("Neg", ["i"], ["y"])],
            opsets,
        )
        for i in range(n)
    ]
    nodes = [
        oh.make_node(f"f{i}", [f"y{i - 1}" if i else "X"], [f"y{i}"], domain="local")
        for i in range(n)
    ]
    return model(nodes, [value("X", "a", 2)], [value(f"y{n - 1}", "a", 2)], functions=made)


def deep_chain(n: int) -> onnx.ModelProto:
    """A rewrite applies to every second pair of nodes."""
    cycle = ("Tanh", "Neg", "Neg", "Identity")
    nodes = [oh.make_node(cycle[i % 4], [f"t{i}" if i else "X"], [f"t{i + 1}"]) for i in range(n)]
    return model(nodes, [value("X", "a", 2)], [value(f"t{n}", "a", 2)])


def moving_node(n: int) -> onnx.ModelProto:
    """A Reshape moves along half of the nodes, one at each iteration."""
    nodes = []
    for i in range(0, n, 2):
        nodes.append(oh.make_node("Reshape", [f"t{i}" if i else "X", "shape"], [f"t{i + 1}"]))
        nodes.append(oh.make_node("Exp", [f"t{i + 1}"], [f"t{i + 2}"]))
    shape = onh.from_array(np.array([-1, 4]), "shape")
    return model(nodes, [value("X", "a", 8)], [value(nodes[-1].output[0], "b", 4)], [shape])


def names_in_a_dimension(n: int) -> onnx.ModelProto:
    """A dimension is the sum of n names and goes through ten nodes."""
    n = min(n, MOST_NAMES)
    nodes = [oh.make_node("Concat", [f"X{i}" for i in range(n)], ["c0"], axis=0)]
    nodes += [oh.make_node("Tanh", [f"c{i}"], [f"c{i + 1}"]) for i in range(10)]
    inputs = [value(f"X{i}", f"d{i}", 2) for i in range(n)]
    return model(nodes, inputs, [value("c10", "rows", 2)])


CORNERS: dict[str, Callable[[int], onnx.ModelProto]] = {
    made.__name__: made
    for made in (
        inputs_of_a_node,
        readers,
        initializers,
        outputs,
        value_infos,
        bodies,
        functions,
        deep_chain,
        moving_node,
        names_in_a_dimension,
    )
}


def seconds(proto: onnx.ModelProto, patterns: str) -> tuple[float, int]:
    """CPU time of import, optimization and export, and number of nodes left."""
    gc.collect()
    begin = time.process_time()
    builder = GraphBuilder(
        proto,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns),
    )
    made = builder.to_onnx(optimize=True)
    return time.process_time() - begin, len(made.graph.node)


def main(names: list[str], sizes: list[int], patterns: str, output: Path) -> pandas.DataFrame:
    """Measures each corner at each size, prints and writes the table."""
    seconds(deep_chain(100), patterns)  # patterns are imported when they are used
    rows = []
    for name in names:
        for size in sorted({min(s, MOST_NAMES) if "dimension" in name else s for s in sizes}):
            took, left = seconds(CORNERS[name](size), patterns)
            row = {"corner": name, "size": size, "left": left, "seconds": took}
            rows.append({**row, "us_each": took / size * 1e6})
            print(", ".join(f"{k}={v}" for k, v in rows[-1].items()), flush=True)
    table = pandas.DataFrame(rows)
    output.mkdir(parents=True, exist_ok=True)
    table.to_csv(output / "corners.csv", index=False)
    print(table.to_string(index=False, float_format=lambda v: f"{v:.3g}"))
    for name, part in table.groupby("corner", sort=False):
        if len(part) > 1:
            slope = np.polyfit(np.log(part["size"]), np.log(part["seconds"]), 1)[0]
            print(f"{name}: time grows as N^{slope:.2f}")
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measures graphs that are large in one way.")
    parser.add_argument("--only", nargs="+", choices=sorted(CORNERS), default=list(CORNERS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10000, 100000])
    parser.add_argument("--patterns", default="default+onnxruntime")
    parser.add_argument("--output", type=Path, default=Path("bench_output"))
    args = parser.parse_args()
    main(args.only, args.sizes, args.patterns, args.output)
