"""Windows: what they hold, how they grow, their keys, their models in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import rewrite
from xoptim.authoring import RewriteContext
from xoptim.engine.engine import Engine
from xoptim.engine.observers import Observer
from xoptim.engine.outcomes import Application
from xoptim.testing import model_from_text
from xoptim.trust.windows.doubles import to_double
from xoptim.trust.windows.keys import WindowKeys
from xoptim.trust.windows.roles import Role, roles_of
from xoptim.trust.windows.runs import DOUBLE, REFERENCE, RUNTIME, Runner
from xoptim.trust.windows.window import Window, by_dependencies, window_of


class Keeper(Observer):
    """Calls a function on each window, when it is made."""

    def __init__(self, function: Any):
        self.function, self.found = function, []

    def replaced(self, engine: Engine, done: Application) -> None:
        self.found.append(self.function(window_of(engine.graph, done), done))


def windows(text: str, patterns: Any, function: Any) -> list[Any]:
    keeper = Keeper(function)
    options = OptimizationOptions(patterns=patterns, features=[keeper])
    model = model_from_text(text)
    GraphBuilder(model, infer_shapes_options=True, optimization_options=options).optimize()
    return keeper.found


def types(nodes: list[onnx.NodeProto]) -> list[str]:
    return [n.op_type for n in nodes]


CHAIN = """g (float[n, 4] x, float[4, 4] w) => (float[n, 4] z) {
    m = MatMul(x, w) s = Sin(m) a = Transpose<perm = [1, 0]>(s) b = Transpose<perm = [1, 0]>(a)
    z = Exp(b) }"""


@rewrite(root="Floor")
def ceil(g: RewriteContext, node: onnx.NodeProto) -> Any:
    """Floor(x) -> Ceil(x)"""
    return g.op.Ceil(node.input[0])


def test_a_reader_that_was_renamed_is_added_once() -> None:
    """An earlier rewrite gave another name to what it reads."""

    def look(window: Window, done: Application) -> None:
        if types(window.before) == ["Floor"]:
            assert window.grow_forward() and window.results == ["z"]
            assert types(window.sides()[0]) == ["Floor", "Add"]
            assert window.grow_forward() and window.results == ["w"]
            assert types(window.sides()[1]) == ["Ceil", "Add", "Exp"]
            seen.append(window)

    seen: list[Window] = []
    text = """g (float[n, 4] x) => (float[n, 4] w) {
        a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a)
        s = Floor(x) z = Add(b, s) w = Exp(z) }"""
    windows(text, ["TransposeTranspose", ceil], look)
    assert len(seen) == 1


def test_growth() -> None:
    def look(window: Window, done: Application) -> None:
        assert types(window.before) == ["Transpose", "Transpose"]
        assert window.inputs() == ["s"] and window.results == ["b"]
        assert window.grow() and window.inputs() == ["m"]
        assert not window.grow() and window.grow(heavy=True)  # a product costs much
        assert sorted(window.inputs()) == ["w", "x"] and not window.grow(heavy=True)
        assert types(window.sides()[0])[:2] == ["MatMul", "Sin"]
        assert window.grow_forward() and window.results == ["z"]
        assert not window.grow_forward()  # an output
        for i in range(2):
            onnx.checker.check_model(window.model(i))
        joint, names = window.joint_model() or pytest.fail("no joint model")
        onnx.checker.check_model(joint)
        assert [n.op_type for n in joint.graph.node].count("MatMul") == 1 and len(names) == 1

    assert len(windows(CHAIN, "TransposeTranspose", look)) == 1


def test_growth_by_levels() -> None:
    """Several levels of producers at once are those of one level after the other."""

    def look(window: Window, done: Application) -> None:
        other = window_of(window.graph, done)
        count = 0
        while other.grow(True):
            count += 1
        assert count > 1 and window.grow(True, count) and not window.grow(True, 5)
        assert list(map(str, window.producers)) == list(map(str, other.producers))
        assert window.inputs() == other.inputs()
        small = window_of(window.graph, done)
        assert small.grow(True, 5, most=0) and len(small.around) == 1

    assert len(windows(CHAIN, "TransposeTranspose", look)) == 1


def test_constants() -> None:
    """Small ones are initializers of the models, big ones are inputs."""
    text = """g (float[n, 4] x) => (float[n, 4] z) {
    big = Constant<value_float = 2.0>() a = Mul(x, big) z = Neg(a) }"""

    @rewrite(root="Mul", name="Twice")
    def twice(g: RewriteContext, node: onnx.NodeProto) -> Any:
        return g.op.Add(node.input[0], node.input[0])

    def look(window: Window, done: Application) -> None:
        assert "big" in window.constants and not window.fed_constants()
        window.constants["big"] = np.ones((200, 200), dtype=np.float32)
        assert "big" in window.fed_constants() and not window.fed_constants(embed=True)
        assert "big" in [i.name for i in window.model(0).graph.input]
        assert "big" in [i.name for i in window.model(0, embed=True).graph.initializer]

    assert len(windows(text, [twice()], look)) == 1


def test_keys() -> None:
    """Names do not count; attributes, constants, shapes do."""

    def keys(*graphs: str) -> set[bytes]:
        return {
            key
            for text in graphs
            for key in windows(
                text, "TransposeTranspose", lambda w, done: WindowKeys(w, done.match.pattern).whole
            )
        }

    renamed = CHAIN.replace("s ", "t ").replace("(s)", "(t)").replace("n,", "batch,")
    assert len(keys(CHAIN, renamed)) == 1
    assert len(keys(CHAIN, CHAIN.replace("4", "5"))) == 2


def test_in_order() -> None:
    model = model_from_text("g (float x) => (float z) { a = Sin(x) b = Cos(a) z = Add(a, b) }")
    assert types(by_dependencies(reversed(model.graph.node))) == ["Sin", "Cos", "Add"]


def test_roles() -> None:
    model = model_from_text(
        """g (float[n] x, int64[k] i, int64 d, int64[1] s, int64[k, 1] p) => (float[m] z) {
        j = Div(i, d) y = Gather(x, j) t = Expand(y, s) z = ScatterND(t, p, x) }"""
    )
    roles = roles_of(model.graph.node)
    assert (roles["i"], roles["d"], roles["s"]) == (Role.INDEX, Role.INDEX, Role.LENGTH)
    assert roles["p"] is Role.DISTINCT and roles["x"] is Role.ANY


@pytest.mark.parametrize("way", [RUNTIME, DOUBLE, REFERENCE])
def test_ways_to_run(way: str) -> None:
    model = model_from_text(
        """g (float[n] x, int64[1] k) => (float[n] z) <float h = {0.5}> {
        c = Constant<value_float = 2.0>() f = Cast<to = 1>(k) o = ConstantOfShape(k)
        y = Mul(x, c) w = Add(y, f) v = Add(w, h) z = Add(v, o) }"""
    )
    runner = Runner(lambda: model)
    try:
        assert runner.loads(way) and not runner.error(way)
        feeds = {"x": np.array([1, 2], dtype=np.float32), "k": np.array([2])}
        (found,) = runner.run(way, feeds)
    finally:
        runner.close()
    assert found.tolist() == [4.5, 6.5]
    assert found.dtype == (np.float64 if way == DOUBLE else np.float32)


def test_doubles_in_a_body() -> None:
    model = model_from_text(
        """g (bool c, float[n] x) => (float[n] z) {
        z = If(c) <then_branch = a () => (float[n] p) { p = Neg(x) },
                   else_branch = b () => (float[n] q) { q = Cast<to = 1>(x) }> }"""
    )
    found = to_double(model)
    onnx.checker.check_model(found, full_check=True)
    assert found.graph.input[1].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    assert model.graph.input[1].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
