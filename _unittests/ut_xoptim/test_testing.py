"""The tools that test patterns must see what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from ut_xoptim.toy_patterns import NegNeg, Rename, Wrong

from xbuilder.errors import XoptimError
from xoptim.testing import (
    PatternTestError,
    assert_same_outputs,
    canonical_graph,
    check_no_match,
    check_pattern,
    compare_models,
    make_feeds,
    model_from_text,
    random_array,
    reasons_of,
)

BEFORE = "agraph (float[a, b] X) => (float[a, b] Y) { n = Neg(X) m = Neg(n) Y = Abs(m) }"
AFTER = "agraph (float[a, b] X) => (float[a, b] Y) { Y = Abs(X) }"


def graph(body: str, inits: str = "") -> onnx.GraphProto:
    text = f"agraph (float[a] X, float[a] Z) => (float[a] Y) {f'<{inits}>' if inits else ''}"
    return model_from_text(f"{text} {{ {body} }}", domains=("toy",)).graph


# -- models


def test_model_from_text() -> None:
    model = model_from_text(BEFORE, 20, ("com.microsoft", "toy"))
    assert {o.domain: o.version for o in model.opset_import} == {
        "": 20,
        "com.microsoft": 1,
        "toy": 1,
    }
    full = f'<ir_version: 8, opset_import: ["": 15]>\n{BEFORE}'
    assert model_from_text(full).opset_import[0].version == 15


# -- graphs


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


# -- inputs


@pytest.mark.parametrize(
    "elem_type", ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT64", "UINT8", "BOOL", "STRING"]
)
def test_random_array(elem_type: str) -> None:
    kind = onnx.TensorProto.DataType.Value(elem_type)
    array = random_array(kind, (2, 3), np.random.default_rng(0))
    assert array.shape == (2, 3)
    assert elem_type == "STRING" or oh.np_dtype_to_tensor_dtype(array.dtype) == kind


def test_make_feeds() -> None:
    text = """agraph (float[a, b] X, int64[a] I, bool C, float[2] K) => (float[a, b] Y)
        <float[2] K = {1, 2}> {
        Y = Neg(X) }"""
    feeds = make_feeds(model_from_text(text), {"a": 3, "b": 5})
    assert {n: v.shape for n, v in feeds.items()} == {"X": (3, 5), "I": (3,), "C": ()}
    other = make_feeds(model_from_text(text), {"a": 3, "b": 5}, seed=1)
    assert not np.array_equal(feeds["X"], other["X"])


# -- values


A = np.array([1.0, np.nan], dtype=np.float32)


@pytest.mark.parametrize(
    ("a", "b", "atol", "same"),
    [
        ([A], [A.copy()], 0, True),
        ([A], [A + np.float32(1e-3)], 0, False),
        ([A], [A + np.float32(1e-3)], 1e-2, True),
        ([A], [A.astype(np.float64)], 1, False),
        ([A], [A[None]], 1, False),
        ([A], [], 1, False),
        ([np.array([1.0, 0])], [np.array([1.0, np.nan])], 1, False),
        ([np.array([1, 2])], [np.array([1, 3])], 10, False),
        ([np.array(["a"])], [np.array(["a"])], 0, True),
        ([np.array(["a"])], [np.array(["b"])], 0, False),
        ([np.array([1j])], [np.array([1j])], 0, True),
        ([np.array([1j])], [np.array([2j])], 0, False),
        ([[A, A]], [[A, A]], 0, True),
        ([[A, A]], [[A]], 0, False),
    ],
)
def test_same_outputs(a: list[Any], b: list[Any], atol: float, same: bool) -> None:
    if same:
        assert_same_outputs(a, b, atol, 0, "here")
        return
    with pytest.raises(PatternTestError, match="here"):
        assert_same_outputs(a, b, atol, 0, "here")


def test_compare_models() -> None:
    a, b = (model_from_text(t) for t in (BEFORE, AFTER))
    feeds = [make_feeds(a, {"a": 2, "b": 3})]
    compare_models(a, b, feeds)
    wrong = model_from_text(AFTER.replace("Abs", "Neg"))
    with pytest.raises(PatternTestError, match="onnxruntime, output 0: values differ"):
        compare_models(a, wrong, feeds)
    with pytest.raises(PatternTestError, match="reference, output 0: values differ"):
        compare_models(a, wrong, feeds, runtime=False)


# -- check_pattern


def test_check_pattern() -> None:
    model = check_pattern(BEFORE, AFTER, [NegNeg()])
    assert [n.op_type for n in model.graph.node] == ["Abs"]
    check_pattern(BEFORE, None, [NegNeg()])
    check_pattern(model_from_text(BEFORE), model_from_text(AFTER), [NegNeg()])


FAILURES = {
    "another graph": (BEFORE, BEFORE, [NegNeg()], "expected graph"),
    "no match": (AFTER, AFTER, [NegNeg()], "no pattern of .* matched"),
    "not idempotent": (AFTER, None, "grow", "not idempotent"),
    "wrong values": (BEFORE, None, [Rename("Abs", "Relu")], "values differ"),
    "wrong graph and values": (BEFORE, AFTER, [Rename("Abs", "Relu")], "expected graph"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_check_pattern_fails(name: str) -> None:
    before, after, patterns, message = FAILURES[name]
    options = {}
    if patterns == "grow":
        from ut_xoptim.toy_patterns import Grow

        patterns, options = [Grow()], {"max_iter": 1}
    with pytest.raises(PatternTestError, match=message):
        check_pattern(before, after, patterns, **options)


def test_check_pattern_sees_a_modified_model() -> None:
    model = model_from_text(BEFORE)

    def spoil(g: Any, a: Any, b: Any) -> list[Any]:
        model.graph.node[0].name = "spoiled"
        return [g.make_node("Identity", [a.input[0]], list(b.output))]

    with pytest.raises(PatternTestError, match="original model was modified"):
        check_pattern(model, AFTER, [Wrong(spoil)])


def test_two_sizes_are_run() -> None:
    """A rewrite that is right for one size only (a is 3 in the first run) does not pass."""
    text = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Neg(n) Y = Abs(m) }"

    def shifted(g: Any, a: Any, b: Any) -> list[Any]:
        three = g.make_initializer("", np.array(3, dtype=np.int64))
        return [
            g.make_node("Size", ["X"], ["size"]),
            g.make_node("Sub", ["size", three], ["zero"]),
            g.make_node("Cast", ["zero"], ["shift"], to=1),
            g.make_node("Add", ["X", "shift"], list(b.output)),
        ]

    check_pattern(text, None, [Wrong(shifted)], sizes={"a": 3})
    with pytest.raises(PatternTestError, match="values differ"):
        check_pattern(text, None, [Wrong(shifted)])


def test_sizes_and_feeds() -> None:
    check_pattern(BEFORE, AFTER, [NegNeg()], sizes={"a": 1, "b": 7})
    check_pattern(BEFORE, AFTER, [NegNeg()], sizes=[{"a": 1, "b": 7}, {"a": 0, "b": 7}])
    feeds = [{"X": np.array([[np.inf, np.nan]], dtype=np.float32)}]
    check_pattern(BEFORE, AFTER, [NegNeg()], feeds=feeds)


def test_error_type() -> None:
    assert issubclass(PatternTestError, AssertionError) and issubclass(
        PatternTestError, XoptimError
    )


# -- check_no_match


def test_check_no_match() -> None:
    check_no_match(AFTER, NegNeg())
    one = BEFORE.replace("m = Neg(n)", "m = Relu(n)")
    check_no_match(one, NegNeg(), "no Neg before")
    with pytest.raises(PatternTestError, match="the pattern matches"):
        check_no_match(BEFORE, NegNeg())
    with pytest.raises(PatternTestError, match="no rejection for 'something else'"):
        check_no_match(one, NegNeg(), "something else")
    with pytest.raises(PatternTestError, match="no rejection"):
        check_no_match(AFTER, NegNeg(), "no Neg before")


def test_reasons_of() -> None:
    found = reasons_of(model_from_text(BEFORE), NegNeg())
    assert [op for op, _ in found] == ["Neg", "Neg"]
    assert found[0][1].startswith("no Neg before") and found[1][1].startswith("MatchResult")
