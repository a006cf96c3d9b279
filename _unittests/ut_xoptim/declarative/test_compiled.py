"""Graphs that begin the same way are looked for together."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization
from xoptim.declarative import rule
from xoptim.declarative.compiled import CompiledGraph, matchers_of, quiet
from xoptim.declarative.function_writer import compiled
from xoptim.declarative.rules import compile_equation
from xoptim.patterns.normalization.instance_norm import instance_normalization
from xoptim.testing import check_no_match, model_from_text

TEXT = """agraph (float[a, 4] X, float[a, 4] Z) => (float[a, 4] Y)
    <float one = {1}, float two = {2}> """


def graphs(text: str, root: str = "") -> tuple[CompiledGraph, ...]:
    return tuple(side.left for side in compile_equation(text, root=root))


def found(text: str, body: str, name: str = "Y", root: str = "") -> list[tuple[int, list[str]]]:
    """The matches at the producer of a result: the position of the graph, its nodes."""
    builder = GraphBuilder(model_from_text(TEXT + f"{{ {body} }}"), infer_shapes_options=True)
    g = GraphBuilderPatternOptimization(builder, None)
    rows = []
    for make in matchers_of(graphs(text, root), g.main_opset):
        for records, _, place in make(g, quiet)(g.store.producers[name]):
            rows.append((place, [r.op_type for r in records]))
    return rows


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Abs(X) b = Neg(a) c = Mul(b, Z) Y = Add(c, one)", (1, ["Abs", "Neg", "Mul", "Add"])),
        ("a = Exp(X) b = Neg(a) c = Mul(b, Z) Y = Add(one, c)", (0, ["Exp", "Neg", "Mul", "Add"])),
        ("a = Neg(X) c = Mul(Z, a) Y = Add(one, c)", None),
        ("a = Exp(X) b = Neg(a) c = Mul(b, Z) Y = Add(two, c)", None),
    ],
)
def test_one_function(body: str, expected: Any) -> None:
    text = "Neg(Exp(x) | Abs(x)) * z + 1 -> x"
    assert len(graphs(text)) == 2 and len(matchers_of(graphs(text), 18)) == 1
    assert found(text, body) == ([] if expected is None else [expected])


def test_every_graph_is_found() -> None:
    """Two graphs with one root: the first one first."""
    text = "d = Neg(x); d * (Exp(d) | Abs(d)) -> x"
    body = "d = Neg(X) e = Exp(d) b = Abs(d) m = Mul(d, b) n = Mul(e, d) Y = Add(m, n)"
    assert found(text, body, "m") == [(1, ["Neg", "Abs", "Mul"])]
    assert found(text, body, "n") == [(0, ["Neg", "Exp", "Mul"])]
    text = "d = Neg(x); y = Exp(d) | Abs(d); y * z -> x"
    assert found(text, "d = Neg(X) e = Exp(d) f = Neg(Z) b = Abs(f) Y = Mul(b, e)") == [
        (0, ["Neg", "Exp", "Mul"]),
        (1, ["Neg", "Abs", "Mul"]),
    ]


def test_several_functions() -> None:
    """The first steps differ, or there is no loop: what comes after a test that fails is not
    reached."""
    assert len(matchers_of(graphs("Neg(x) | Abs(x) | Exp(x) -> x"), 18)) == 3
    assert len(matchers_of(graphs("Neg(Exp(x) | Abs(x)) -> x"), 18)) == 2
    assert len(matchers_of(graphs("Neg(x + Exp(x) | x * Abs(x)) -> x"), 18)) == 2


def test_a_reader_of_another_type() -> None:
    """The only reader of a result is not the one that is looked for, or there is another one."""
    text = "m = Neg(x); e = Exp(m); e * z -> x"

    @rule(text, root="m")
    def neg_exp(g: Any) -> None:
        """Exp(Neg(x)) * z -> x."""

    for body, reason in (
        ("m = Neg(X) Y = Abs(m)", "Exp was expected, Abs was found"),
        ("m = Neg(X) e = Exp(m) n = Mul(e, Z) Y = Add(n, m)", "an inner result is used elsewhere"),
    ):
        check_no_match(TEXT + f"{{ {body} }}", neg_exp(), reason)
        assert found(text, body, "m", root="m") == []


def test_steps_are_merged_once() -> None:
    """Fourteen ways to write one normalization: one function, whose first steps are there once."""
    sides = instance_normalization.sides
    assert len(sides) == 14
    assert len(matchers_of(tuple(s.left for s in sides), 18)) == 1


def test_text() -> None:
    lines = ("    def search(n0):", "        if n0 < 0: return ()")
    one = [lines, ("        for i in range(n0):", "            yield i, 0")]
    two = [lines, ("        for i in range(n0):", "            yield -i, 1")]
    store = type("Store", (), {"producers": {}, "consumers": {}, "is_used_more_than_once": None})
    constants = type("Constants", (), {"initializers": {}, "computed": {}, "parent": None})
    graph = type("Graph", (), {"constants": constants})
    g = type("G", (), {"store": store, "facts": {}, "graph": graph})
    make = compiled("search", [one, two, one], {})
    assert list(make(g, quiet)(2)) == [(0, 0), (1, 0), (0, 1), (-1, 1)]
    assert list(make(g, quiet)(-1)) == []
