"""MatMul, Gemm, Einsum, integer and quantized products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, make_context, run, shape_of

from xbuilder.dims import Constraints, prove_equal
from xbuilder.facts.facts import ResultFacts

SIZES = [{"a": 2, "b": 3, "m": 4, "n": 5}, {"a": 1, "b": 2, "m": 3, "n": 2}]

PRODUCTS = [
    (("m", "n"), ("n", "a"), ("m", "a")),
    (("a", "m", "n"), ("n", 4), ("a", "m", 4)),
    (("m", "n"), ("a", "n", 4), ("a", "m", 4)),
    (("a", "b", "m", "n"), ("a", "b", "n", "m"), ("a", "b", "m", "m")),
    (("a", 1, "m", "n"), (1, "b", "n", 4), ("a", "b", "m", 4)),
    (("b", "m", "n"), ("a", 1, "n", 4), ("a", "b", "m", 4)),
    (("n",), ("n",), ()),
    (("n",), ("n", "m"), ("m",)),
    (("m", "n"), ("n",), ("m",)),
    (("a", "m", "n"), ("n",), ("a", "m")),
    (("n",), ("a", "n", "m"), ("a", "m")),
]


@pytest.mark.parametrize(("left", "right", "expected"), PRODUCTS)
def test_matmul(left: tuple, right: tuple, expected: tuple) -> None:
    """Numpy's rule, with real runs."""
    check_runs("MatMul", [In(left), In(right)], SIZES, [expected])
    integers = [In(left, np.uint8), In(right, np.uint8)]
    if len(left) > 1 and len(right) > 1:
        facts = check_runs("MatMulInteger", integers, SIZES, [expected])
        assert facts[0].type == 6


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (ResultFacts(1), ResultFacts(1, ("a", "b")), (None, None)),
        (ResultFacts(1, None, 3), ResultFacts(1, ("a", "b")), (None, 3)),
        (ResultFacts(1, None, 1), ResultFacts(1, ("a", "b", "c")), (None, 2)),
        (ResultFacts(1, None, 1), ResultFacts(1, None, 1), (None, 0)),
    ],
)
def test_matmul_unknown(left: ResultFacts, right: ResultFacts, expected: Any) -> None:
    """Ranks are enough to know the rank."""
    facts = infer("MatMul", [left, right])[0]
    assert (facts.type, facts.shape, facts.rank) == (1, *expected)


@pytest.mark.parametrize(
    ("left", "right"), [((2, 3), (4, 5)), ((), (2, 2)), ((2, 2, 3), (3, 3, 2))]
)
def test_matmul_invalid(left: tuple, right: tuple) -> None:
    """An impossible product has no known shape."""
    assert infer("MatMul", [ResultFacts(1, left), ResultFacts(1, right)])[0] == ResultFacts()


def test_matmul_constraint() -> None:
    """The inner dimensions are equal in a valid model."""
    constraints = Constraints()
    facts = [ResultFacts(1, ("a", "k")), ResultFacts(1, ("l", "b"))]
    assert run(make_context("MatMul", facts, constraints=constraints))[0].shape == ("a", "b")
    assert prove_equal("k", "l", constraints) is True
    assert prove_equal("k", "l") is None


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm(trans_a: int, trans_b: int) -> None:
    """Two matrices, possibly transposed."""
    left = ("n", "m") if trans_a else ("m", "n")
    right = (4, "n") if trans_b else ("n", 4)
    attributes = {"transA": trans_a, "transB": trans_b}
    inputs = [In(left), In(right), In((4,))]
    check_runs("Gemm", inputs, SIZES, [("m", 4)], attributes=attributes)


def test_gemm_unknown() -> None:
    """Always a matrix."""
    assert infer("Gemm", [ResultFacts(1), ResultFacts(1)])[0] == ResultFacts(1, None, 2)
    assert infer("Gemm", [ResultFacts(1, ("a",)), ResultFacts(1)])[0] == ResultFacts()
    wrong = [ResultFacts(1, (2, 3)), ResultFacts(1, (4, 2))]
    assert infer("Gemm", wrong)[0] == ResultFacts()


@pytest.mark.parametrize(
    ("bias", "more", "expected"),
    [
        ((4,), None, ("a", 4)),
        ((1, 4), None, ("a", 4)),
        ((3, 4), None, (3, 4)),
        ((3, 1), None, (3, "c")),
        (("p",), None, ("a", "c")),
        (("two",), None, ("a", "two")),
        # a bias of one element is broadcast
        ((1,), None, ("a", "c")),
        ((1, 1), None, ("a", "c")),
        ((), None, ("a", "c")),
        # the reference does not read it
        ((4,), {"beta": 0.0}, ("a", "c")),
    ],
)
def test_the_bias_of_gemm(bias: tuple, more: Any, expected: tuple) -> None:
    """Its lengths are those of the product, unless they may be 1."""
    constraints = Constraints()
    constraints.add_at_least("two", 2)
    facts = [ResultFacts(1, shape) for shape in (("a", "b"), ("b", "c"), bias)]
    found = run(make_context("Gemm", facts, more, constraints=constraints))[0].shape
    assert found is not None
    for dim, other in zip(found, expected, strict=True):
        assert prove_equal(dim, other, constraints) is True
    if expected == ("a", "c"):
        assert list(constraints.items()) == [] and found == expected


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij,jk->ik", [("m", "n"), ("n", "a")], ("m", "a")),
        ("ij,jk", [("m", "n"), ("n", "a")], ("m", "a")),
        ("ba", [("m", "n")], ("n", "m")),
        ("bij,bjk->bik", [("a", "m", "n"), ("a", "n", 4)], ("a", "m", 4)),
        ("...ij,...jk->...ik", [("a", "m", "n"), ("a", "n", 4)], ("a", "m", 4)),
        ("bhid,bhjd->bhij", [("a", 2, "m", "n"), ("a", 2, "b", "n")], ("a", 2, "m", "b")),
        ("ii->i", [("m", "m")], ("m",)),
        ("ij->", [("m", "n")], ()),
        (" i j -> j i ", [("m", "n")], ("n", "m")),
    ],
)
def test_einsum(equation: str, shapes: list, expected: tuple) -> None:
    """One dimension by label."""
    inputs = [In(shape) for shape in shapes]
    check_runs("Einsum", inputs, SIZES, [expected], attributes={"equation": equation})


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij,jk->ik", [("a",), ("b", "c")], ResultFacts()),
        ("ij,jk->ik", [("a", "b")], ResultFacts()),
        ("ij,jk->ik", [(2, 3), (4, 5)], ResultFacts()),
        ("ij->z", [("a", "b")], ResultFacts()),
        ("ij,jk->ik", [None, ("b", "c")], ResultFacts(1, None, 2)),
        ("...j->...", [None], ResultFacts(1)),
    ],
)
def test_einsum_doubts(equation: str, shapes: list, expected: ResultFacts) -> None:
    """Wrong or unknown."""
    inputs = [ResultFacts(1, shape) for shape in shapes]
    assert infer("Einsum", inputs, attributes={"equation": equation})[0] == expected


def test_det() -> None:
    """The last two axes go away."""
    check_runs("Det", [In(("a", "m", "m"))], SIZES, [("a",)])
    assert infer("Det", [ResultFacts(1, None, 4)])[0] == ResultFacts(1, None, 2)
    assert infer("Det", [ResultFacts(1, (2, 3))])[0] == ResultFacts()


def test_qlinear_matmul() -> None:
    """The type is the one of the output's zero point."""
    scale, zero = ResultFacts(1, ()), ResultFacts(3, ())
    a, b = ResultFacts(2, ("m", "n")), ResultFacts(2, ("n", 4))
    inputs = [a, scale, zero, b, scale, zero, scale, zero]
    assert infer("QLinearMatMul", inputs)[0] == ResultFacts(3, ("m", 4))
    assert shape_of("QLinearMatMul", inputs) == ("m", 4)
