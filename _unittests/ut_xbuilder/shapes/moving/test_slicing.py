"""Slice, Gather, Split, Concat, Pad, Compress, Scatter."""

from __future__ import annotations

import itertools
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
    shape_of,
    value_of,
)

from xbuilder.dims import evaluate
from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes.moving.slicing import slice_length

I64 = 7
BIG = 2**63 - 1


ENDS = [-BIG - 1, -(2**31), -9, -4, -3, -2, -1, 0, 1, 2, 3, 4, 9, 2**31 - 1, BIG]


def agreed_length(size: int, start: int, end: int, step: int) -> int | None:
    """Length of a slice in python, None if onnxruntime may give another one."""
    if step < 0 and (end in (2**31 - 1, BIG) or (start != -1 and start < -size)):
        return None
    return len(range(*slice(start, end, step).indices(size)))


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
def test_slice_length_is_python_slices(step: int) -> None:
    """Formulas on a symbol agree with python at every size."""
    for start, end in itertools.product(ENDS, ENDS):
        length = slice_length("a", start, end, step)
        expected = [agreed_length(size, start, end, step) for size in range(8)]
        assert (length is None) == (None in expected)
        for size, real in enumerate(expected):
            assert slice_length(size, start, end, step) == real
            if length is not None:
                assert evaluate(length, {"a": size}) == real, (start, end, step, size, length)


@pytest.mark.parametrize("step", [-2, -1, 1, 2])
@pytest.mark.parametrize("known", ["start", "end", "none"])
def test_slice_length_with_symbolic_ends(step: int, known: str) -> None:
    """Ends are symbols, or negative expressions."""
    for start, end in itertools.product(["s", "-s-1", 0, 2, -1], ["e", "-e-1", BIG, 3, -2]):
        if (known == "start") != isinstance(start, int) or (known == "end") != isinstance(end, int):
            continue
        length = slice_length("a", start, end, step)
        if step < 0 and (start == "-s-1" or end == BIG):
            assert length is None
            continue
        for a, s, e in itertools.product(range(4), repeat=3):
            sizes = {"a": a, "s": s, "e": e}
            first, last = evaluate(start, sizes), evaluate(end, sizes)
            expected = len(range(*slice(first, last, step).indices(a)))
            assert evaluate(length, sizes) == expected, (start, end, step, sizes, length)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("a", 0, BIG, 1), "a"),
        (("a", 0, 2**31 - 1, 1), "a"),
        (("a", -BIG, BIG, 1), "a"),
        (("a", -1, -BIG, -1), "a"),
        (("a", 0, "a", 1), "a"),
        (("a+b", "a", "a+b", 1), "b"),
        (("a", 0, "b", 1), "min(a,b)"),
        (("2*a", 0, "a", 1), "a"),
        (("2*a", "a", BIG, 1), "a"),
        (("a", 1, 1, 1), 0),
        (("a+3", 0, 3, 1), 3),
        (("a+3", -2, BIG, 1), 2),
        (("a+1", 0, -1, 1), "a"),
        (("a", 0, BIG, "b"), None),
        (("a", 0, BIG, 0), None),
        (("a", "b-1", BIG, 1), None),
        (("a", 0, "b-c", 1), None),
    ],
)
def test_slice_length(arguments: tuple, expected: Any) -> None:
    """Formulas are simple when they can be."""
    assert slice_length(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # before the first element: one element for onnxruntime, none for numpy
        ((1, -5, -BIG, -1), None),
        (("a", -3, -BIG, -1), None),
        (("a+3", -3, -BIG, -1), "a+1"),
        ((4, -4, -BIG, -1), 1),
        # the largest integers mean no end for onnxruntime
        ((3, 2, 2**31 - 1, -1), None),
        ((3, 2, 2**63 - 1, -1), None),
        ((3, 2, 2**31, -1), 0),
        ((0, -1, -BIG, -1), 0),
    ],
)
def test_slice_negative_steps_runtimes_disagree_on(arguments: tuple, expected: Any) -> None:
    """Nothing is said unless everybody agrees."""
    assert slice_length(*arguments) == expected
    dim, *bounds = arguments
    if isinstance(dim, int):
        parameters = [ints(v) for v in bounds]
        parameters.insert(2, ints(0))
        for reference in (False, True):
            check_runs("Slice", [In((dim,)), *parameters], [{}], reference=reference)
        content = ResultFacts(I64, (dim,), None, tuple(range(dim)))
        value = infer("Slice", [content, *parameters])[0].value
        assert (value is None) == (expected is None)


@pytest.mark.parametrize("opset", [1, 10, 13])
def test_slice_by_opset(opset: int) -> None:
    """Attributes, then inputs."""
    x = ResultFacts(1, ("a", "b", 6))
    if opset < 10:
        attributes = {"starts": [1, 0], "ends": [3, 4], "axes": [2, 0]}
        assert shape_of("Slice", [x], attributes=attributes, opset=opset) == ("min(4,a)", "b", 2)
    else:
        inputs = [x, ints(1, 0), ints(3, 4), ints(2, 0)]
        assert shape_of("Slice", inputs, opset=opset) == ("min(4,a)", "b", 2)


SLICES = [
    ([ints(1), ints(BIG)], {}),
    ([ints(1, 0), ints(BIG, 2), ints(1, 0)], {}),
    ([ints(-1), ints(-BIG), ints(-1), ints(-2)], {}),
    ([ints(0, 5), ints(-1, 0), ints(0, 2), ints(3, -1)], {}),
]


@pytest.mark.parametrize("parameters", [row[0] for row in SLICES])
def test_slice_runs(parameters: list) -> None:
    """Real runs."""
    sizes = [{"a": 2, "b": 3}, {"a": 5, "b": 4}]
    facts = check_runs("Slice", [In(("a", "b", 6)), *parameters], sizes)
    assert not any(is_fresh(d) for d in facts[0].shape)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ([ResultFacts(1), ints(0), ints(1)], None),
        ([ResultFacts(1, None, 2), ints(0), ints(1)], 2),
        ([ResultFacts(1, ("a", "b")), ResultFacts(I64, (1,)), ints(1)], "new b"),
        ([ResultFacts(1, ("a", "b")), ints(0), ints(1), ResultFacts(I64, (1,))], "new new"),
        ([ResultFacts(1, ("a", "b")), ints(0), ints(1), ints(5)], "invalid"),
        ([ResultFacts(1, ("a", "b")), ints(0, 0), ints(1), ints(0)], "invalid"),
        ([ResultFacts(1, ("a",)), ints(0), ints(1), ints(0), ints(0)], "new"),
    ],
)
def test_slice_unknown(inputs: list, expected: Any) -> None:
    """A missing input gives an unknown shape, nothing is raised."""
    facts = infer("Slice", inputs)[0]
    if expected == "invalid":
        assert facts == ResultFacts()
    elif isinstance(expected, str):
        assert " ".join("new" if is_fresh(d) else d for d in facts.shape) == expected
    else:
        assert (facts.type, facts.shape, facts.rank) == (1, None, expected)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ((ints(1), ints(3)), ("b", 3)),
        ((ints(0), ints(-1), ints(0), ints(1)), ("a", "b", 3)),
        ((ints(-1), ints(-BIG), ints(0), ints(-1)), (4, 3, "b", "a")),
        ((ints(-1), ints(-5), ints(0), ints(-2)), (4, "b")),
        ((content("s"), ints(3)), None),
    ],
)
def test_slice_content(parameters: tuple, expected: Any) -> None:
    """Slices of a followed vector."""
    assert value_of("Slice", [content("a", "b", 3, 4), *parameters]) == expected


@pytest.mark.parametrize(
    ("data", "indices", "axis", "expected"),
    [
        (("a", "b", 4), (), 0, ("b", 4)),
        (("a", "b", 4), (), -1, ("a", "b")),
        (("a", "b", 4), ("i", "j"), 1, ("a", "i", "j", 4)),
        (("a", "b"), (0,), 1, ("a", 0)),
        (("a",), ("n",), 0, ("n",)),
    ],
)
def test_gather(data: tuple, indices: tuple, axis: int, expected: tuple) -> None:
    """The axis gives way to the indices."""
    inputs = [In(data), In(indices, np.int64, 2)]
    sizes = [
        {"a": 2, "b": 3, "i": 1, "j": 2, "n": 3},
        {"a": 3, "b": 2, "i": 4, "j": 0, "n": 0},
    ]
    check_runs("Gather", inputs, sizes, [expected], attributes={"axis": axis})


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (np.array(1, dtype=np.int64), "b"),
        (np.array(-1, dtype=np.int64), 4),
        (ints(2), ("c",)),
        (ints(0, -1, 0), ("a", 4, "a")),
        (ints(), ()),
        (ints(7), None),
        (content("i"), None),
    ],
)
def test_gather_content(index: Any, expected: Any) -> None:
    """Elements of a followed vector."""
    assert value_of("Gather", [content("a", "b", "c", 4), index]) == expected


def test_gather_unknown() -> None:
    """Ranks add up."""
    facts = infer("Gather", [ResultFacts(1, None, 3), ResultFacts(I64, None, 2)])[0]
    assert (facts.type, facts.shape, facts.rank) == (1, None, 4)
    assert infer("Gather", [ResultFacts(1, ("a",)), ResultFacts(I64)])[0] == ResultFacts(1)
    invalid = infer("Gather", [ResultFacts(1, ("a",)), ints(0)], attributes={"axis": 3})[0]
    assert invalid == ResultFacts()


@pytest.mark.parametrize(
    ("data", "indices", "batch", "expected"),
    [
        (("a", "b", "c"), ("n", 2), 0, ("n", "c")),
        (("a", "b", "c"), ("n", "m", 3), 0, ("n", "m")),
        (("a", "b", "c"), ("a", "n", 1), 1, ("a", "n", "c")),
        (("a", 2, "c"), (1,), 0, (2, "c")),
    ],
)
def test_gather_nd(data: tuple, indices: tuple, batch: int, expected: tuple) -> None:
    """The last axis of the indices counts the indexed axes."""
    inputs = [In(data), In(indices, np.int64, 2)]
    sizes = [
        {"a": 2, "b": 3, "c": 4, "n": 3, "m": 2},
        {"a": 4, "b": 2, "c": 2, "n": 1, "m": 5},
    ]
    check_runs("GatherND", inputs, sizes, [expected], attributes={"batch_dims": batch})


@pytest.mark.parametrize("opset", [1, 4, 13])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(opset: int, axis: int) -> None:
    """Dimensions are added along the axis, the others are equal."""
    pieces = [["a", "b", 2], ["a", "b", 2], ["a", "b", 2]]
    for i, dim in enumerate(("n", 3, "m")):
        pieces[i][axis] = dim
    facts = infer(
        "Concat",
        [ResultFacts(1, tuple(p)) for p in pieces],
        attributes={"axis": axis},
        opset=opset,
    )[0]
    expected: list[Any] = ["a", "b", 2]
    expected[axis] = "m+n+3"
    assert facts.shape == tuple(expected)


def test_concat_unknown() -> None:
    """Partial knowledge is used."""
    known, rank = ResultFacts(1, ("a", 3)), ResultFacts(1, None, 2)
    at = {"attributes": {"axis": 0}}
    new, other = shape_of("Concat", [known, rank], **at)
    assert is_fresh(new) and other == 3
    new, other = shape_of("Concat", [known, ResultFacts()], **at)
    assert is_fresh(new) and other == 3
    assert infer("Concat", [rank, ResultFacts(1)], **at)[0] == ResultFacts(1, None, 2)
    assert infer("Concat", [ResultFacts(1), ResultFacts()], **at)[0] == ResultFacts(1)
    assert infer("Concat", [known, ResultFacts(1, ("a",))], **at)[0] == ResultFacts()
    assert shape_of("Concat", [known, ResultFacts(1, ("b", "c"))], **at) == ("a+b", 3)
    assert infer("Concat", [known, ResultFacts(1, ("b", 4))], **at)[0] == ResultFacts()


@pytest.mark.parametrize("swap", [False, True])
def test_concat_of_an_expression_and_a_symbol(swap: bool) -> None:
    """They are equal in a valid model: the symbol is what the next nodes read."""
    pieces = [ResultFacts(1, (2, "max(0,a-1)+1")), ResultFacts(1, (3, "a"))]
    at = {"attributes": {"axis": 0}}
    assert shape_of("Concat", pieces[::-1] if swap else pieces, **at) == (5, "a")


def test_concat_content() -> None:
    """Vectors are joined, up to a limit."""
    at = {"attributes": {"axis": 0}}
    assert value_of("Concat", [content("a", 2), ints(-1), content("b")], **at) == ("a", 2, -1, "b")
    assert value_of("Concat", [content("a"), ResultFacts(I64, (1,))], **at) is None
    assert value_of("Concat", [content(*range(40)), content(*range(40))], **at) is None


@pytest.mark.parametrize(
    ("opset", "attributes", "inputs", "expected"),
    [
        (2, {"split": [1, 3], "axis": 1}, [], [("a", 1), ("a", 3)]),
        (2, {"axis": 1}, [], [("a", 2), ("a", 2)]),
        (13, {"axis": 1}, [ints(4, 0)], [("a", 4), ("a", 0)]),
        (13, {"axis": 1}, [], [("a", 2), ("a", 2)]),
        (18, {"axis": 1, "num_outputs": 2}, [], [("a", 2), ("a", 2)]),
        (13, {"axis": 1}, [content("n", "m")], [("a", "n"), ("a", "m")]),
        (13, {"axis": 1}, [ints(3, 2)], [None, None]),
        (13, {"axis": 1}, [ints(4)], [None, None]),
        (13, {"axis": 2}, [ints(2, 2)], [None, None]),
    ],
)
def test_split(opset: int, attributes: dict, inputs: list, expected: list) -> None:
    """Sizes are an attribute, an input, or equal parts."""
    facts = infer(
        "Split", [ResultFacts(1, ("a", 4)), *inputs], 2, attributes=attributes, opset=opset
    )
    assert [f.shape for f in facts] == expected


@pytest.mark.parametrize("parts", [2, 3])
def test_split_symbolic(parts: int) -> None:
    """The last part is the smaller one since opset 18."""
    sizes = [{"a": 5}, {"a": 8}, {"a": 9}]
    attributes = {"num_outputs": parts}
    check_runs("Split", [In(("a", 2))], sizes, attributes=attributes, n_outputs=parts, opset=18)
    facts = infer("Split", [ResultFacts(1, (f"{parts}*a",))], parts, opset=18)
    assert [f.shape for f in facts] == [("a",)] * parts
    facts = infer("Split", [ResultFacts(1, ("a",))], parts, opset=13)
    assert [f.shape for f in facts] == [(f"a//{parts}",)] * parts


def test_split_content() -> None:
    """Parts of a followed vector."""
    facts = infer("Split", [content("a", "b", 3), ints(2, 1)], 2, opset=13)
    assert [f.value for f in facts] == [("a", "b"), (3,)]


@pytest.mark.parametrize("opset", [2, 11, 18])
def test_pad(opset: int) -> None:
    """Attributes, inputs, axes."""
    x = ResultFacts(1, ("a", 4))
    if opset == 2:
        assert shape_of("Pad", [x], attributes={"pads": [1, 0, 2, -1]}, opset=2) == ("a+3", 3)
        return
    assert shape_of("Pad", [x, ints(1, 0, 2, -1)], opset=opset) == ("a+3", 3)
    assert shape_of("Pad", [x, content("p", 0, "q", 1)], opset=opset) == ("a+p+q", 5)
    new = shape_of("Pad", [x, ResultFacts(I64, (4,))], opset=opset)
    assert all(is_fresh(d) for d in new)
    assert infer("Pad", [x, ints(0, 0, 0)], opset=opset)[0] == ResultFacts()
    assert infer("Pad", [x, ints(0, -9, 0, 0)], opset=opset)[0] == ResultFacts()


def test_pad_axes() -> None:
    """Axes of opset 18."""
    sizes = [{"a": 2}, {"a": 3}]
    inputs = [In(("a", 4)), ints(1, 2), None, ints(-1)]
    check_runs("Pad", inputs, sizes, [("a", 7)], opset=18)


def test_compress() -> None:
    """The number of elements is fresh, unless the condition is a constant."""
    x = ResultFacts(1, ("a", 4))
    condition = np.array([True, False, True])
    assert shape_of("Compress", [x, condition], attributes={"axis": 1}) == ("a", 2)
    assert shape_of("Compress", [ResultFacts(1, (2, 4)), condition]) == (2,)
    assert is_fresh(shape_of("Compress", [x, condition])[0])
    assert is_fresh(shape_of("Compress", [ResultFacts(1), condition])[0])
    first, last = shape_of("Compress", [x, ResultFacts(9, ("c",))], attributes={"axis": 1})
    assert first == "a" and is_fresh(last)


@pytest.mark.parametrize(
    ("dim", "condition", "expected"),
    [
        (2, [1, 0, 1], 1),
        (0, [1, 0, 1], 0),
        (5, [1, 0, 1], 2),
        ("a", [1, 0, 1], None),
        ("a", [0, 0, 0], 0),
        ("a+1", [1, 0, 0], 1),
        ("a+1", [1, 1, 0], None),
        ("a+2", [1, 1, 0], 2),
        ("a", [], 0),
    ],
)
def test_compress_with_a_long_condition(dim: Any, condition: list, expected: int | None) -> None:
    """The elements of the condition beyond the axis are ignored."""
    inputs = [In((dim, 3)), np.array(condition, dtype=bool)]
    sizes = [{"a": a} for a in (1, 2, 3, 6)]
    for axis in (0, -2):
        facts = check_runs("Compress", inputs, sizes, attributes={"axis": axis})
        first, last = facts[0].shape
        assert last == 3
        assert is_fresh(first) if expected is None else first == expected


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND", "Scatter", "TensorScatter"])
def test_scatter(op_type: str) -> None:
    """Always the shape of the data."""
    x = ResultFacts(1, ("a", 4))
    facts = infer(op_type, [x, ResultFacts(I64), ResultFacts(1)], opset=24)[0]
    assert facts == ResultFacts(1, ("a", 4))


def test_gather_elements() -> None:
    """The shape of the indices."""
    inputs = [In(("a", "b")), In(("n", "b"), np.int64, 2)]
    check_runs("GatherElements", inputs, [{"a": 2, "b": 3, "n": 4}], [("n", "b")])
    assert value_of("GatherElements", [content("a", "b"), ints(1, 1)]) == ("b", "b")
