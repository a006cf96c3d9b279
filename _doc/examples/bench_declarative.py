"""
Equations against hand-written rewrites
=======================================

A rewrite declared as an equation, ``Not(Not(x)) -> x``, is compiled once into a function which
looks at the records of the graph. This script optimizes graphs of 4,000 nodes with one rewrite,
where it applies everywhere and where it applies nowhere, and compares with the rewrites of another
checkout, written by hand, of the same names::

    python bench_declarative.py --against ../base

``--by-hand`` compares with two of them written by hand for this engine: what declaring costs.

Times are processor times, the best of several runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import onnx
import onnx.helper as oh
from onnx import TensorProto

from xbuilder import GraphBuilder
from xoptim import (
    GraphBuilderPatternOptimization,
    MatchResult,
    PatternOptimization,
    get_pattern_list,
)

TANH = [
    *("p = Pow(X, three)", "c = Mul(k, p)", "i = Add(X, c)", "u = Mul(s, i)", "t = Tanh(u)"),
    *("o = Add(one, t)", "h = Mul(half, X)", "Y = Mul(h, o)"),
]
NORM = [
    *("m = ReduceMean(X, axes)", "d = Sub(X, m)", "q = Pow(d, two)", "v = ReduceMean(q, axes)"),
    *("w = Add(v, eps)", "r = Sqrt(w)", "Y = Div(d, r)"),
]
LEAKY = ["c = Greater(X, zero)", "m = Mul(X, half)", "Y = Where(c, X, m)"]
#: rewrite, opset, where it applies, where it does not; X is the input of a block, Y its result
CASES = {
    "NotNot": (18, ["a = Not(X)", "b = Not(a)", "Y = And(b, Z)"], ["a = Not(X)", "Y = And(a, Z)"]),
    "Identity": (18, ["a = Add(X, zero)", "Y = Sin(a)"], ["a = Add(X, two)", "Y = Mul(a, Z)"]),
    "LeakyRelu": (18, LEAKY, [*LEAKY[:2], "Y = Where(c, m, X)"]),
    "Gelu": (20, TANH, [*TANH[:-2], "h = Mul(two, X)", "Y = Mul(h, o)"]),
    "LayerNormalization": (18, NORM, [*NORM[:-1], "Y = Div(r, d)"]),
}
CONSTANTS = {"zero": 0, "one": 1, "two": 2, "three": 3, "half": 0.5, "k": 0.044715, "eps": 1e-5}


def chain(opset: int, block: list[str], n_nodes: int) -> onnx.ModelProto:
    """A graph made of one block repeated, each one reads the result of the one before."""
    nodes = []
    for i in range(n_nodes // len(block)):
        names = {"X": f"y{i - 1}" if i else "x", "Z": "x", "Y": f"y{i}"}
        for line in block:
            result, _, call = line.partition(" = ")
            op_type, _, arguments = call[:-1].partition("(")
            inputs = arguments.split(", ")
            known = {**names, **{c: c for c in (*CONSTANTS, "s", "axes")}}
            read = [known.get(name, f"{name}{i}") for name in inputs]
            nodes.append(oh.make_node(op_type, read, [names.get(result, f"{result}{i}")]))
    elem_type = TensorProto.BOOL if "Not(" in block[0] else TensorProto.FLOAT
    x, y = (
        oh.make_tensor_value_info(name, elem_type, ["a", 8]) for name in ("x", nodes[-1].output[0])
    )
    inits = [oh.make_tensor(n, TensorProto.FLOAT, [], [v]) for n, v in CONSTANTS.items()]
    inits.append(oh.make_tensor("s", TensorProto.FLOAT, [], [0.7978845608028654]))
    inits.append(oh.make_tensor("axes", TensorProto.INT64, [1], [-1]))
    graph = oh.make_graph(nodes, "chain", [x], [y], inits)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=9)


class HandLeakyReluPattern(PatternOptimization):
    """Where(X > 0, X, X * s) -> LeakyRelu(X, alpha=s), by hand."""

    roots = ("Where",)
    after = ("Greater", "GreaterOrEqual")
    priority = 0

    def match(self, g, node, matched):
        """Checks every condition of the rule."""
        greater, product = (g.node_before(node.input[i]) for i in (0, 2))
        if greater is None or product is None or product.op_type != "Mul":
            return self.none(node, "something else comes before")
        x, zero = greater.input
        if x != node.input[1] or x not in product.input:
            return self.none(node, "another operand")
        if any(g.is_used_more_than_once(n.output[0]) for n in (greater, product)):
            return self.none(node, "an inner result is used elsewhere")
        (slope,) = (name for name in product.input if name != x)
        if not all(
            g.is_constant_scalar(n) and g.get_constant_shape(n) == () for n in (zero, slope)
        ):
            return self.none(node, "not a scalar")
        if g.get_constant_scalar(zero) != 0 or g.try_infer_type(x) != TensorProto.FLOAT:
            return self.none(node, "not zero, or not a float")
        return MatchResult(self, [greater, product, node], self.apply)

    def apply(self, g, greater, product, node):
        """Writes LeakyRelu."""
        (slope,) = (name for name in product.input if name != node.input[1])
        alpha = float(g.get_constant_scalar(slope))
        inputs, outputs = [node.input[1]], list(node.output)
        return [g.make_node("LeakyRelu", inputs, outputs, alpha=alpha, name=node.name)]


class HandNotNotPattern(PatternOptimization):
    """Not(Not(X)) -> X, by hand."""

    roots = ("Not",)
    after = ("Not",)

    def match(self, g, node, matched):
        """Checks what comes before."""
        before = g.node_before(node.input[0])
        if before is None or before.op_type != "Not":
            return self.none(node, "no Not before")
        used = g.is_used_more_than_once(node.input[0])
        return MatchResult(self, [node] if used else [before, node], self.apply)

    def apply(self, g, *nodes):
        """Writes Identity."""
        before = g.node_before(nodes[-1].input[0])
        return [g.make_node("Identity", [before.input[0]], list(nodes[-1].output))]


BY_HAND = {"LeakyRelu": HandLeakyReluPattern, "NotNot": HandNotNotPattern}


def best_time(
    model: onnx.ModelProto, rewrite: str | type[PatternOptimization], repeat: int
) -> tuple[float, int]:
    """Seconds of the processor to optimize a model with one rewrite, and number of matches."""
    times, count = [], 0
    for _ in range(repeat):
        builder = GraphBuilder(model, infer_shapes_options=True)
        optimizer = GraphBuilderPatternOptimization(builder, get_pattern_list([rewrite]))
        begin = time.process_time()
        rows = optimizer.optimize()
        times.append(time.process_time() - begin)
        count = sum(r.get("instances", 0) for r in rows if r["pattern"].startswith("apply_"))
    return min(times), count


def measure(n_nodes: int, repeat: int, by_hand: bool = False) -> dict[str, tuple[float, int]]:
    """Times of every case, for this checkout, or of the rewrites written by hand here."""
    rows = {}
    for name, (opset, matching, other) in CASES.items():
        if by_hand and name not in BY_HAND:
            continue
        rewrite = BY_HAND[name] if by_hand else name
        for kind, block in (("matches", matching), ("nothing", other)):
            rows[f"{name}, {kind}"] = best_time(chain(opset, block, n_nodes), rewrite, repeat)
    return rows


def main() -> None:
    """Prints one line per case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--against", help="another checkout")
    parser.add_argument("--by-hand", action="store_true", help="against the same engine")
    parser.add_argument("--json", action="store_true", help="prints the times of this checkout")
    args = parser.parse_args()
    if args.json:
        print(json.dumps(measure(args.nodes, args.repeat)))
        return
    here = measure(args.nodes, args.repeat)
    there = measure(args.nodes, args.repeat, True) if args.by_hand else {}
    if args.against:
        path = os.path.abspath(args.against)
        command = [sys.executable, os.path.abspath(__file__), "--json"]
        command += ["--nodes", str(args.nodes), "--repeat", str(args.repeat)]
        run = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True
        )
        there = json.loads(run.stdout)
    for case, (seconds, count) in here.items():
        line = f"{case:30} {count:5} matches {seconds * 1e3:8.2f} ms"
        if case in there:
            other, found = there[case]
            line += f"  against {other * 1e3:8.2f} ms ({found} matches), x{seconds / other:.2f}"
        print(line)


if __name__ == "__main__":
    main()
