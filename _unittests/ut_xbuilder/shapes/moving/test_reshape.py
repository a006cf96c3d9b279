"""Reshape: what the target means, what may be stated about it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import (
    In,
    check_runs,
    content,
    infer,
    ints,
    is_fresh,
    scalar,
    shape_of,
    value_of,
)

from xbuilder.dims import Constraints, DimensionError, evaluate, prod, symbols
from xbuilder.facts.facts import ResultFacts

I64 = 7
SIZES = [{"a": 2, "b": 3, "c": 5}, {"a": 4, "b": 1, "c": 3}]


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        (("a", "b", 6), [0, 0, 2, 3], ("a", "b", 2, 3)),
        (("a", "b", 6), [0, 0, 2, -1], ("a", "b", 2, 3)),
        (("a", "b", 6), [0, -1], ("a", "6*b")),
        (("a", "b", 6), [-1, 6], ("a*b", 6)),
        (("a", "b", 6), [-1, 3], ("2*a*b", 3)),
        (("a", "b", 6), [-1], ("6*a*b",)),
        (("a", "b", 6), [0, 0, -1], ("a", "b", 6)),
        (("a", "b", 6), [0, 0, -1, 1], ("a", "b", 6, 1)),
        ((4, 6), [3, -1], (3, 8)),
        ((4, 6), [2, 12], (2, 12)),
        ((0, 6, 2), [3, 2, -1], (3, 2, 0)),
        (("a", "b"), [0, 1, -1], ("a", 1, "b")),
        (("a", 1, 1), [-1], ("a",)),
        ((1,), [], ()),
        ((), [1, 1], (1, 1)),
        ((), [-1], (1,)),
        ((2, "3*a"), [-1, 2, 3], ("a", 2, 3)),
        (("a+b", 4), [-1, 2], ("2*a+2*b", 2)),
    ],
)
def test_reshape(shape: tuple, target: list, expected: tuple) -> None:
    """Zeros copy, -1 is the exact quotient, with real runs."""
    check_runs("Reshape", [In(shape), ints(*target)], SIZES, [expected])


def not_null() -> Constraints:
    """The dimensions a, b and c are at least 1."""
    constraints = Constraints()
    for name in "abc":
        constraints.add_at_least(name, 1)
    return constraints


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        (("a", "b", 64), ("a", "b", 8, 8), ("a", "b", 8, 8)),
        (("a", "b", 64), ("a", "b", 8, -1), ("a", "b", 8, 8)),
        (("a", "b", 64), ("a", -1, 8, 8), ("a", "b", 8, 8)),
        (("a", "b", 64), (-1, "b", 64), ("a", "b", 64)),
        (("a", "b", 64), ("a*b", 64), ("a*b", 64)),
        (("a", "b", 64), ("a*b", -1), ("a*b", 64)),
        (("a*b", 64), ("a", "b", -1), ("a", "b", 64)),
        (("a*b", 64), ("a", -1, 64), ("a", "b", 64)),
        (("2*a", "b"), ("a", -1), ("a", "2*b")),
        (("2*a", "b"), ("a", "b", -1), ("a", "b", 2)),
        (None, ("a", 3), ("a", 3)),
    ],
)
def test_reshape_content(shape: Any, target: tuple, expected: tuple) -> None:
    """The target is a followed content."""
    x = ResultFacts(1, shape)
    assert shape_of("Reshape", [x, content(*target)], constraints=not_null()) == expected


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        (("a", 4), ("a-1", 8), "? 8"),
        (("a", "b-1"), ("b-1", "a"), "b-1 a"),
        (("4*b-4",), ("b-1", 4), "b-1 4"),
        (None, (-1, 4), "? 4"),
        (None, (0, 4), "? 4"),
        (("a", 4), (0, 0, 0), "invalid"),
        (("a", 4), (-1, -1), "invalid"),
        (("a", 4), (-2, 4), "invalid"),
        ((3, 4), (5, 2), "invalid"),
        ((3, 4), (13,), "invalid"),
        ((3, 4), (0, 4), "3 4"),
    ],
)
def test_reshape_doubts(shape: Any, target: tuple, expected: str) -> None:
    """An uncertain dimension is a fresh symbol, a wrong shape is unknown."""
    found = infer("Reshape", [ResultFacts(1, shape), content(*target)])[0]
    if expected == "invalid":
        assert found == ResultFacts()
    else:
        assert " ".join("?" if is_fresh(d) else str(d) for d in found.shape) == expected


def test_reshape_allowzero() -> None:
    """A zero is a zero with allowzero."""
    given = {"attributes": {"allowzero": 1}, "opset": 14}
    assert shape_of("Reshape", [ResultFacts(1, (3, 2, 0)), ints(0, 0, 3)], **given) == (0, 0, 3)
    assert shape_of("Reshape", [ResultFacts(1, ("a", 2)), ints(0, 2)], **given) == (0, 2)
    # the check on sizes refuses what cannot be
    assert infer("Reshape", [ResultFacts(1, (3, 2)), ints(0, 6)], **given)[0] == ResultFacts()


def test_reshape_unknown_target() -> None:
    """The length of the target is the rank."""
    x = ResultFacts(1, ("a", 3))
    facts = infer("Reshape", [x, ResultFacts(I64, (3,))])[0]
    assert len(facts.shape) == 3 and all(is_fresh(d) for d in facts.shape)
    assert shape_of("Reshape", [x, ResultFacts(I64, (1,))]) == ("3*a",)
    assert infer("Reshape", [x, ResultFacts(I64, ("n",))])[0] == ResultFacts(1)
    assert infer("Reshape", [x, ResultFacts(I64)])[0] == ResultFacts(1)


def test_reshape_opset1() -> None:
    """The target is an attribute."""
    x = ResultFacts(1, ("a", 6))
    assert shape_of("Reshape", [x], attributes={"shape": [0, 2, 3]}, opset=1) == ("a", 2, 3)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (scalar("a"), [1], ("a",)),
        (scalar("a"), [-1], ("a",)),
        (content("a"), [], "a"),
        (content("a", "b"), [-1], ("a", "b")),
        (content("a", "b"), [2, 1], None),
    ],
)
def test_reshape_keeps_content(value: ResultFacts, target: list, expected: Any) -> None:
    """Content survives between ranks 0 and 1."""
    assert value_of("Reshape", [value, ints(*target)]) == expected


def test_quotients_are_exact_at_run_time() -> None:
    """A quotient that is not simplified is right for the sizes the model accepts."""
    dim = shape_of("Reshape", [ResultFacts(1, ("a", "b")), ints(-1, 4)])[0]
    assert dim == "a*b//4"
    assert evaluate(dim, {"a": 2, "b": 6}) == 3


def grouped(rng: random.Random, factors: list) -> list:
    """Products of consecutive factors, cut at random, with ones here and there."""
    groups: list[list] = [[]]
    for factor in factors:
        if groups[-1] and rng.random() < 0.6:
            groups.append([])
        groups[-1].append(factor)
    dims = [prod(group) for group in groups]
    for _ in range(rng.randrange(2)):
        dims.insert(rng.randrange(len(dims) + 1), 1)
    return dims


@pytest.mark.parametrize("seed", range(40))
def test_random_reshapes(seed: int) -> None:
    """Random groups of the same factors, a hole at a random place, three sizes."""
    rng = random.Random(seed)
    factors = [rng.choice(["a", "b", "c", "a+1", 2, 3, 4]) for _ in range(rng.randrange(1, 6))]
    shape = tuple(grouped(rng, factors))
    rng.shuffle(factors)
    dims = grouped(rng, factors)
    target = list(dims)
    if rng.random() < 0.7:
        target[rng.randrange(len(target))] = -1
    inputs = [ResultFacts(1, shape), content(*target)]
    found = shape_of("Reshape", inputs, constraints=not_null())
    assert found is not None and not any(is_fresh(d) for d in found), (shape, target)
    for sizes in ({"a": 2, "b": 3, "c": 5}, {"a": 4, "b": 1, "c": 2}, {"a": 1, "b": 7, "c": 3}):
        array = np.zeros([evaluate(d, sizes) for d in shape])
        real = array.reshape([evaluate(d, sizes) for d in target]).shape
        assert tuple(evaluate(d, sizes) for d in found) == real, (shape, target, found)
    assert found == tuple(dims), (shape, target)


# --- elements that may be null -------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        # a rounding, a remainder, a difference may be 0: the element copies the dimension
        (("a", "b"), ("a%2", -1), "? -"),
        (("a", "b"), ("a//2", -1), "? -"),
        (("a", 8), ("a//2", 16), "? 16"),
        (("a", "b", 6), ("a-b", -1), "? -"),
        (("a", "b", 6), ("a", "b//2", 12), "a ? 12"),
        # never null
        (("a", "b"), ("a%2+1", -1), "a%2+1 -"),
        (("a", "b"), ("a//2+1", -1), "a//2+1 -"),
        # what is copied is the same, or is null too
        (("a//2", "b"), ("a//2", -1), "a//2 b"),
        (("2*(a//2)", "b"), ("a//2", 2, -1), "a//2 2 b"),
        (("b*(a//2)", "c"), ("a//2", "b", "c"), "a//2 b c"),
        # nothing to copy, the model is not valid if the element is 0
        ((8, "a"), (4, 2, "a//2", 2), "4 2 a//2 2"),
        # a 0 would change the number of elements
        ((4, "2*(a//2)"), ("a//2", 8), "a//2 8"),
        # the convention: named dimensions of the input
        (("a", 4, "b", "b"), ("4*a", "b", -1), "4*a b b"),
        (("a", 2, 2, "b", 8), ("a", 4, "b", 8), "a 4 b 8"),
        # it gives no size to what is empty
        (("a", "b", 64), ("a*b", -1), "? -"),
        (("a", "b", 64), ("a*b", 64), "a*b 64"),
        ((3, "n"), ("n", -1), "? -"),
        (("n", 3), ("n", -1), "n 3"),
        ((3, "n"), ("n", 3), "n 3"),
        ((2, 3, "n"), ("n", 2, -1), "? 2 -"),
        (("a", 4, "b", 64), (-1, "b", 64), "- ? 64"),
        # a 0 would change the number of elements
        (("a", "b"), ("b", "a"), "b a"),
        # a//2 is null and copies 8: it needs a*(a//2) to be null, so is a//2 if a is not
        (("a", "b*(a//2)", 8), (0, 1, "a//2", 8), "a 1 a//2 8"),
        (("a", "b*(a//2)", 8), (0, 1, "a//2", -1), "a 1 ? -"),
        # the dimension of another tensor
        (("a", "b"), ("c", -1), "? -"),
        (("a", "b"), (0, "c", -1), "a ? -"),
        (("a", "b"), ("b*c", -1), "? -"),
        ((3, "b"), ("c", 3), "? 3"),
        (("a", 1), ("a", "c"), "a ?"),
        (("a", 1), ("a", "c+1"), "a c+1"),
        (("a", "c"), ("a", "c", 1), "a c 1"),
        # a null c would change the number of elements
        (("a", 2, 3), ("c", 2, 3), "? 2 3"),
        (("a", "2*c"), ("a", 2, "c"), "a 2 c"),
    ],
)
def test_reshape_elements_that_may_be_null(shape: Any, target: tuple, expected: str) -> None:
    """`?` is a fresh dimension, `-` is anything."""
    found = shape_of("Reshape", [ResultFacts(1, shape), content(*target)])
    for dim, wanted in zip(found, expected.split(), strict=True):
        assert wanted == "-" or ("?" if is_fresh(dim) else str(dim)) == wanted


def test_reshape_named_and_generated_symbols() -> None:
    """A count may be 0 in a model that works: the convention is for the names of the user."""
    x, target = ResultFacts(1, ("n", "b", 64)), content("b*n", -1)
    constraints = Constraints(generated=["n"])
    constraints.add_at_least("b", 1)
    # a null n would make -1 invalid
    assert shape_of("Reshape", [x, target], constraints=constraints) == ("b*n", 64)
    counts = Constraints(generated=["b", "n"])
    assert is_fresh(shape_of("Reshape", [x, target], constraints=counts)[0])
    swapped = [ResultFacts(1, ("b", "n", 64)), content("n", -1)]
    assert is_fresh(shape_of("Reshape", swapped, constraints=constraints)[0])
    assert is_fresh(shape_of("Reshape", [x, target])[0])  # a null b copies n
    named = [ResultFacts(1, ("n", 4, "b", "b")), content("4*n", "b", -1)]
    assert shape_of("Reshape", named) == ("4*n", "b", "b")
    # proven: a null element would change the number of elements
    found = shape_of("Reshape", [x, content("b*n", 64)], constraints=constraints)
    assert found == ("b*n", 64)
    known = Constraints(generated=["n"])
    known.add_equal("n", "b+1", "test")
    assert shape_of("Reshape", [x, content("n", -1)], constraints=known) == ("n", "64*b")


def test_reshape_allowzero_keeps_elements() -> None:
    """With allowzero, a null element is a null dimension."""
    found = shape_of(
        "Reshape",
        [ResultFacts(1, ("a", 8)), content("a//2", 16)],
        attributes={"allowzero": 1},
        opset=14,
    )
    assert found == ("a//2", 16)


def onnx_reshape(shape: tuple, target: tuple) -> tuple | None:
    """The shape onnxruntime gives, None if it fails."""
    if any((d == 0 and i >= len(shape)) or d < -1 for i, d in enumerate(target)):
        return None
    dims = [shape[i] if d == 0 else d for i, d in enumerate(target)]
    total = prod(shape)
    if dims.count(-1) > 1:
        return None
    if -1 in dims:
        others = prod(d for d in dims if d != -1)
        if others == 0 or total % others:
            return None
        dims[dims.index(-1)] = total // others
    return tuple(dims) if prod(dims) == total else None


def reshape_cases() -> list[tuple]:
    """Shapes and targets that fit together at some sizes at least."""
    rng = random.Random(1)
    shapes = [1, 2, 4, "a", "b", "2*a", "a*b", "a+1", "a//2", "a%2", "2*b", "4*(a//2)", "a+b"]
    cases = []
    for _ in range(3000):
        shape = tuple(rng.choice(shapes) for _ in range(rng.randint(1, 3)))
        items = [*shapes, *shape, *shape, -1, 0, "a-b", "a-1", prod(shape), prod(shape[:2])]
        cases.append((shape, tuple(rng.choice(items) for _ in range(rng.randint(2, 4)))))
    return cases


@pytest.mark.parametrize("is_generated", [False, True])
def test_reshape_states_nothing_wrong(is_generated: bool) -> None:
    """Every stated dimension is the real one at all sizes, null ones included unless the symbols
    are named in the shape of the input (see the convention)."""
    stated = 0
    for shape, target in reshape_cases():
        constraints = Constraints(generated=["a", "b"] if is_generated else [])
        found = infer(
            "Reshape", [ResultFacts(1, shape), content(*target)], constraints=constraints
        )[0].shape
        names = set() if is_generated else frozenset().union(*map(symbols, shape))
        ranges = [range(int(name in names), 7) for name in "ab"]
        for a, b in itertools.product(*ranges):
            sizes = {"a": a, "b": b}
            values = [tuple(evaluate(d, sizes) for d in dims) for dims in (shape, target)]
            real = onnx_reshape(*values)
            if found is None or real is None:
                assert found is not None or real is None, (shape, target, sizes)
                continue
            for dim, size in zip(found, real, strict=True):
                if not is_fresh(dim):
                    stated += isinstance(dim, str) and bool(symbols(dim))
                    try:
                        assert evaluate(dim, sizes) == size, (shape, target, found, sizes, real)
                    except DimensionError as error:
                        raise AssertionError((shape, target, found, sizes)) from error
    assert stated > 5000
