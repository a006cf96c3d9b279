"""Graphs as lines of text."""

from __future__ import annotations

import onnx
import pytest

from xoptim.testing import canonical_graph, model_from_text


def graph(body: str, inits: str = "") -> onnx.GraphProto:
    text = f"agraph (float[a] X, float[a] Z) => (float[a] Y) {f'<{inits}>' if inits else ''}"
    return model_from_text(f"{text} {{ {body} }}", domains=("toy",)).graph


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (("k = Neg(X) Y = Abs(k)", ""), ("m = Neg(X) Y = Abs(m)", ""), True),
        (("k = Neg(X) Y = Abs(k)", ""), ("Y = Abs(X)", ""), False),
        (("Y = Sub(X, Z)", ""), ("Y = Sub(Z, X)", ""), False),
        (("Y = Sub(X, Z)", ""), ("Y = toy.Sub(X, Z)", ""), False),
        (("Y = Softmax<axis = 0>(X)", ""), ("Y = Softmax<axis = -1>(X)", ""), False),
        (("Y = Add(X, k)", "float k = {1}"), ("Y = Add(X, m)", "float m = {1}"), True),
        (("Y = Add(X, k)", "float k = {1}"), ("Y = Add(X, k)", "float k = {2}"), False),
        (("Y = Add(X, k)", "float k = {1}"), ("Y = Add(X, k)", "float[1] k = {1}"), False),
        (
            ("Y = Add(X, k)", "float k = {1}"),
            ("k = Constant<value = float {1}>() Y = Add(X, k)", ""),
            True,
        ),
        (("k = Neg(X) Y = Abs(X)", ""), ("Y = Abs(X)", ""), False),
        (("k = Neg(X) m = Neg(X) Y = Add(k, m)", ""), ("k = Neg(X) Y = Add(k, k)", ""), False),
        (
            ("b = Abs(Z) a = Abs(X) Y = Sub(a, b)", ""),
            ("a = Abs(X) b = Abs(Z) Y = Sub(a, b)", ""),
            True,
        ),
        (
            ("k, m = Split<axis = 0, num_outputs = 2>(X) Y = Sub(k, m)", ""),
            ("k, m = Split<axis = 0, num_outputs = 2>(X) Y = Sub(m, k)", ""),
            False,
        ),
        (("Y = Clip(X, , k)", "float k = {1}"), ("Y = Clip(X, k)", "float k = {1}"), False),
    ],
)
def test_canonical_graph(a: tuple[str, str], b: tuple[str, str], same: bool) -> None:
    assert (canonical_graph(graph(*a)) == canonical_graph(graph(*b))) is same


IF = """agraph (float[2] X, bool c) => (float[2] Y) {{ {outer} Y = If(c) <
    then_branch = tg () => (float[2] T) {{ {inner} }},
    else_branch = eg () => (float[2] E) {{ E = Identity(X) }} > }}"""


@pytest.mark.parametrize(
    ("outer", "inner", "same"),
    [
        ("k = Neg(X)", "T = Abs(k)", True),
        ("n = Neg(X)", "T = Abs(n)", True),
        ("k = Neg(X)", "Q = Abs(k) T = Identity(Q)", False),
        ("k = Abs(X)", "T = Abs(k)", False),
        ("k = Neg(X)", "T = Neg(k)", False),
    ],
)
def test_canonical_graph_of_subgraphs(outer: str, inner: str, same: bool) -> None:
    reference = model_from_text(IF.format(outer="k = Neg(X)", inner="T = Abs(k)"))
    other = model_from_text(IF.format(outer=outer, inner=inner))
    assert (canonical_graph(reference.graph) == canonical_graph(other.graph)) is same
