"""Elementwise operators and broadcasting."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, make_context, run, shape_of

from xbuilder.dims import Constraints
from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes.arithmetic.elementwise import UNARY

SIZES = [{"a": 2, "b": 3, "c": 3}, {"a": 4, "b": 5, "c": 1}]
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Max", "Min", "Sum", "Mean", "Mod"]


@pytest.mark.parametrize("op_type", [*UNARY, "Abs", "Ceil", "Neg", "Relu", "Clip", "Identity"])
def test_unary(op_type: str) -> None:
    """Type, shape and rank go through."""
    for facts in (ResultFacts(10, ("a", 3)), ResultFacts(1, None, 2), ResultFacts(1)):
        assert infer(op_type, [facts])[0] == facts


PAIRS = [
    (("a", "b"), ("a", "b"), ("a", "b")),
    (("a", "b"), ("b",), ("a", "b")),
    (("b",), ("a", "b"), ("a", "b")),
    (("a", 1), (1, "b"), ("a", "b")),
    (("a", "b"), (), ("a", "b")),
    ((), ("a", "b"), ("a", "b")),
    ((), (), ()),
    ((1,), (), (1,)),
    (("a", 1), (4,), ("a", 4)),
    (("a", "b"), ("c",), ("a", "broadcast(b,c)")),
]


@pytest.mark.parametrize("op_type", ["Add", "Max", "Pow"])
@pytest.mark.parametrize(("left", "right", "expected"), PAIRS)
def test_broadcasting(op_type: str, left: tuple, right: tuple, expected: tuple) -> None:
    """Numpy's rule, with real runs."""
    sizes = [row for row in SIZES if "c" not in right or row["c"] in (1, row["b"])]
    check_runs(op_type, [In(left), In(right)], sizes, [expected])


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Equal", "And", "Max", "Where", "BitwiseAnd"])
def test_broadcasting_unknown(op_type: str) -> None:
    """Ranks are enough to know the rank, a scalar changes nothing."""
    full, rank = ResultFacts(1, ("a", 3)), ResultFacts(1, None, 3)
    last = [full] if op_type == "Where" else []
    opset = 18

    def both(a: ResultFacts, b: ResultFacts) -> ResultFacts:
        return infer(op_type, [a, *last, b], opset=opset)[0]

    assert (both(full, rank).shape, both(full, rank).rank) == (None, 3)
    assert both(full, ResultFacts(1)).known_rank() is None
    assert both(rank, ResultFacts(1, None, 0)).known_rank() == 3
    if op_type != "Where":
        assert both(rank, ResultFacts(1, ())).known_rank() == 3
        assert both(full, ResultFacts(1, ("a", 4))).shape is None
        assert both(ResultFacts(1, (2,)), ResultFacts(1, (3,))).shape is None


def test_broadcasting_records_constraints() -> None:
    """An integer above one wins over a symbol, which is that integer or 1."""
    constraints = Constraints()
    ctx = make_context(
        "Add", [ResultFacts(1, ("a",)), ResultFacts(1, (4,))], constraints=constraints
    )
    assert run(ctx)[0].shape == (4,)
    assert list(constraints.items())


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Equal", "And", "Max", "Sum"])
def test_legacy_broadcasting(op_type: str) -> None:
    """In the first opsets the output has the shape of the first input."""
    facts = infer(op_type, [ResultFacts(1, ("a", "b")), ResultFacts(1, ("b",))], opset=6)[0]
    assert facts.shape == ("a", "b")


@pytest.mark.parametrize("op_type", BINARY)
def test_types(op_type: str) -> None:
    """The type is the one of the first input, or the other one."""
    x = ResultFacts(10, ("a",))
    assert infer(op_type, [x, x])[0].type == 10
    assert infer(op_type, [ResultFacts(0, ("a",)), x])[0].type == (0 if op_type == "Pow" else 10)


def test_variadic() -> None:
    """Several inputs, or one."""
    shapes = [("a", 1, 1), ("b", 1), ("c",)]
    facts = [ResultFacts(1, shape) for shape in shapes]
    assert shape_of("Sum", facts) == ("a", "b", "c")
    assert shape_of("Max", facts[:1]) == ("a", 1, 1)
    for order in itertools.permutations(facts):
        assert shape_of("Mean", list(order)) == ("a", "b", "c")


def test_where() -> None:
    """Three shapes, the type of the branches."""
    inputs = [In(("a", 1), np.bool_), In((1, "b")), In(())]
    check_runs("Where", inputs, SIZES, [("a", "b")])


@pytest.mark.parametrize(("opset", "mask"), [(7, 1), (10, 9), (13, 9)])
def test_dropout(opset: int, mask: int) -> None:
    """The type of the mask."""
    facts = infer("Dropout", [ResultFacts(1, ("a",))], 2, opset=opset)
    assert [f.type for f in facts] == [1, mask]
    assert [f.shape for f in facts] == [("a",), ("a",)]
    assert len(infer("Dropout", [ResultFacts(1, ("a",))], 1, opset=opset)) == 1


def test_identity_of_a_sequence() -> None:
    """Everything goes through Identity."""
    facts = ResultFacts(sequence=ResultFacts(1, ("a",)))
    assert infer("Identity", [facts])[0] == facts
    facts = ResultFacts(7, (2,), None, ("a", 1))
    assert infer("Identity", [facts])[0] == facts


def test_swiglu() -> None:
    """Both inputs have the same shape."""
    known: Any = ResultFacts(1, ("a", 4))
    assert infer("SwiGLU", [ResultFacts(0, None, 2), known], opset=28)[0] == known
    other = ResultFacts(1, ("b", "c"))
    assert infer("SwiGLU", [other, known], opset=28)[0].shape == ("b", 4)


@pytest.mark.parametrize(
    ("shape", "slope", "expected"),
    [
        (("a", 3), (3,), ("a", 3)),
        (("a", 3), (1, 1), ("a", 3)),
        (("a", "b"), ("c", 1), ("a", "b")),
        (("a", 3), (1, 1, 3), None),
        (("a", 1), (3,), None),
        ((), (3,), None),
    ],
)
def test_prelu(shape: tuple, slope: tuple, expected: tuple | None) -> None:
    """A slope wider than the input is not valid, onnxruntime runs it nevertheless."""
    found = infer("PRelu", [ResultFacts(1, shape), ResultFacts(1, slope)])[0]
    assert found == ResultFacts(1, expected)
