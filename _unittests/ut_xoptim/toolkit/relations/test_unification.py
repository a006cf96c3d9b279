"""Results of a graph as terms: unify, reify, cons."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xoptim.testing import model_from_text
from xoptim.toolkit.relations import (
    GraphResult,
    Operator,
    cons,
    eq_comm,
    etuple,
    op,
    reify,
    run,
    term_of,
    unify,
    var,
    write,
)

TEXT = """
g (float[n,4] x, float[n,4] y, bool c) => (float[n,4] z, float[n,2] a, float[n,4] s)
<float two = {2}, float[2] pair = {1, 3}> {
    d = Sub(x, y)
    w = Mul(d, two)
    z = Add(w, x)
    a, b = Split <axis=1, num_outputs=2> (x)
    s = Softmax <axis=1> (y)
    o = OneHot <axis=-1> (x, two, pair)
    t = Constant <value = float[2] {1, 3}> ()
    r = Clip(x, , two)
}
"""
X, Y, Z = var("x"), var("y"), var("z")


@pytest.fixture
def builder() -> GraphBuilder:
    return GraphBuilder(model_from_text(TEXT, 18))


def named(builder: GraphBuilder, state: Any) -> Any:
    """The state with names instead of results."""
    if state is False:
        return False
    return {k.token: v.name if isinstance(v, GraphResult) else v for k, v in state.items()}


CASES = {
    "z = Add": ("z", op.Add(X, Y), {"x": "w", "y": "x"}),
    "nested": ("z", op.Add(op.Mul(X, 2), Y), {"x": "d", "y": "x"}),
    "same": ("z", op.Add(op.Mul(op.Sub(X, Y), 2.0), X), {"x": "x", "y": "y"}),
    "not the same": ("z", op.Add(op.Mul(op.Sub(Y, X), 2.0), X), False),
    "another number": ("w", op.Mul(X, 3), False),
    "not a number": ("z", op.Add(X, 2), False),
    "array": ("o", op.OneHot(X, Y, np.array([1, 3], np.float32)), {"x": "x", "y": "two"}),
    "another array": ("o", op.OneHot(X, Y, np.array([1, 2], np.float32)), False),
    "another type": ("o", op.OneHot(X, Y, np.array([1, 3], np.float64)), False),
    "another operator": ("z", op.Sub(X, Y), False),
    "another domain": ("z", op.Add(X, Y, domain="a.b"), False),
    "another arity": ("z", op.Add(X), False),
    "input": ("x", op.Add(X, Y), False),
    "attribute": ("s", op.Softmax(X, axis=Y), {"x": "y", "y": 1}),
    "attribute, default": ("s", op.Softmax(X), False),
    "default written": ("o", op.OneHot(X, Y, Z, axis=-1), {"x": "x", "y": "two", "z": "pair"}),
    "default not written": ("o", op.OneHot(X, Y, Z), {"x": "x", "y": "two", "z": "pair"}),
    "first result": ("a", op.Split(X, num_outputs=2, axis=1), {"x": "x"}),
    "second result": ("b", op.Split(X, num_outputs=2, axis=1), False),
    "missing": ("r", op.Clip(X, None, Y), {"x": "x", "y": "two"}),
    "not missing": ("r", op.Clip(X, 0, Y), False),
}


@pytest.mark.parametrize("case", CASES)
def test_unify(builder, case):
    name, term, expected = CASES[case]
    assert named(builder, unify(term_of(builder, name), term, {})) == expected
    assert named(builder, unify(term, term_of(builder, name), {})) == expected


def test_variable_operator_and_operands(builder):
    operator, operands = var("operator"), var("operands")
    state = unify(term_of(builder, "z"), cons(operator, operands), {})
    assert state[operator] == Operator("Add")
    assert [o.name for o in state[operands]] == ["w", "x"]
    state = unify(term_of(builder, "s"), (Operator(X, attributes=Y), Z), {})
    assert (state[X], state[Y], state[Z].name) == ("Softmax", {"axis": 1}, "y")
    assert unify(term_of(builder, "x"), cons(operator, operands), {}) is False


def test_operands_of_any_number(builder):
    """The same term finds Add and Clip, whatever their number of operands."""
    rest = var("rest")
    for name, count in ("z", 1), ("r", 2), ("o", 2):
        state = unify(term_of(builder, name), cons(X, cons(Y, rest)), {})
        assert len(state[rest]) == count


def test_results_are_equal_by_name(builder):
    x = term_of(builder, "x")
    assert unify(x, term_of(builder, "x"), {}) == {}
    assert unify(x, term_of(builder, "y"), {}) is False
    assert x != term_of(GraphBuilder(model_from_text(TEXT, 18)), "x")
    assert len({x, term_of(builder, "x")}) == 1


def test_depth(builder):
    nested = op.Add(op.Mul(X, Y), Z)
    assert unify(term_of(builder, "z", depth=2), nested, {})
    assert unify(term_of(builder, "z", depth=1), nested, {}) is False


def test_reify_and_write(builder):
    state = unify(term_of(builder, "z"), op.Add(op.Mul(X, 2), Y), {})
    term = reify(op.Concat(X, op.Neg(Y), axis=-1), state)
    assert write(builder, term, "new") == "new"
    node = builder.nodes[-1]
    assert (node.op_type, node.output[0], node.attribute[0].i) == ("Concat", "new", -1)
    assert builder.nodes[-2].op_type == "Neg" and node.input[0] == "d"
    assert builder.get_shape("new") == ("n", 8)


def test_reify_operators_attributes_and_lists_of_operands(builder):
    """Values bound to an operator, its attributes, its operands make another term."""
    kind, attributes, rest = var("kind"), var("attributes"), var("rest")
    state = unify(term_of(builder, "a"), cons(Operator(X, attributes=Y, results=2), Z), {})
    assert (state[X], state[Y]) == ("Split", {"axis": 1, "num_outputs": 2})
    state = unify(term_of(builder, "s"), cons(Operator(kind, attributes=attributes), rest), {})
    same = reify(cons(Operator(kind, attributes=attributes), rest), state)
    assert unify(term_of(builder, "s"), same, {}) == {}
    write(builder, reify(cons(Operator("LogSoftmax", attributes=attributes), rest), state), "new")
    node = builder.nodes[-1]
    assert (node.op_type, list(node.input), node.attribute[0].i) == ("LogSoftmax", ["y"], 1)

    state = unify(term_of(builder, "z"), cons(X, rest), {})
    write(builder, reify(cons(Operator("Sum"), cons(term_of(builder, "y"), rest)), state), "more")
    assert list(builder.nodes[-1].input) == ["y", "w", "x"]
    with pytest.raises(OptionError, match="cannot be written"):
        write(builder, reify(cons(Operator(kind), rest), state), "unknown")


def test_write_with_an_operator_of_the_graph(builder):
    """The operator that was found keeps its attributes on other operands."""
    state = unify(term_of(builder, "s"), cons(X, Y), {})
    write(builder, reify(etuple(X, term_of(builder, "x")), state), "new")
    node = builder.nodes[-1]
    assert (node.op_type, node.input[0], node.attribute[0].i) == ("Softmax", "x", 1)


def test_a_number_takes_the_type_of_the_result_beside_it(builder):
    write(builder, op.Mul(term_of(builder, "x"), 3), "new")
    assert builder.get_type("new") == onnx.TensorProto.FLOAT


def test_commutative_operators_are_known_to_kanren(builder):
    found = run(0, X, eq_comm(term_of(builder, "z"), op.Add(term_of(builder, "x"), X)))
    assert term_of(builder, "w") in found
    assert run(0, X, eq_comm(term_of(builder, "d"), op.Sub(term_of(builder, "y"), X))) == ()


def test_errors(builder):
    with pytest.raises(OptionError, match="no result 'nothing'"):
        term_of(builder, "nothing")
    with pytest.raises(OptionError, match="cannot be written"):
        write(builder, op.Add(X, Y), "new")
    with pytest.raises(OptionError, match="is not an operator applied"):
        write(builder, term_of(builder, "x"), "new")
    with pytest.raises(OptionError, match="has no type"):
        write(builder, op.Add(1, 2), "new")
