"""Constants, shapes, ranges, random tensors, one-hot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh, shape_of, value_of

from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes.moving.creation import array_facts, type_of_array

SIZES = [{"a": 2, "b": 3}, {"a": 4, "b": 1}]
X = ResultFacts(1, ("a", "b", 4))


def scalar(value: Any, dtype: Any = np.int64) -> np.ndarray:
    """A constant scalar."""
    return np.array(value, dtype=dtype)


def followed(*values: Any) -> ResultFacts:
    """A vector of int64 whose content is followed."""
    return ResultFacts(7, (len(values),), None, tuple(values))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value": np.zeros((2, 3), np.float32)}, ResultFacts(1, (2, 3))),
        ({"value": np.array([1, 2], np.int64)}, ResultFacts(7, (2,), None, (1, 2))),
        ({"value": np.array(True)}, ResultFacts(9, (), None, 1)),
        ({"value": np.array([300], np.uint16)}, ResultFacts(4, (1,))),
        ({"value_int": 5}, ResultFacts(7, (), None, 5)),
        ({"value_ints": [5, 6]}, ResultFacts(7, (2,), None, (5, 6))),
        ({"value_float": 5.0}, ResultFacts(1, ())),
        ({"value_floats": [5.0, 1.0, 2.0]}, ResultFacts(1, (3,))),
        ({"value_string": "s"}, ResultFacts(8, ())),
        ({"value_strings": ["s", "t"]}, ResultFacts(8, (2,))),
        ({}, ResultFacts()),
    ],
)
def test_constant(attributes: dict, expected: ResultFacts) -> None:
    """Every attribute of Constant."""
    assert infer("Constant", [], attributes=attributes)[0] == expected


def test_sparse_constant() -> None:
    """The dimensions are in the sparse tensor."""
    values = helper.make_tensor("v", TensorProto.FLOAT, [1], [3.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [2])
    sparse = helper.make_sparse_tensor(values, indices, [4, 5])
    found = infer("Constant", [], attributes={"sparse_value": sparse})[0]
    assert found == ResultFacts(1, (4, 5))


@pytest.mark.parametrize(
    "name", ["FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT4E2M1", "INT4", "UINT4", "BFLOAT16", "COMPLEX64"]
)
def test_types_of_arrays(name: str) -> None:
    """Types numpy does not have."""
    elem_type = TensorProto.DataType.Value(name)
    array = np.zeros((3,), dtype=helper.tensor_dtype_to_np_dtype(elem_type))
    assert type_of_array(array) == elem_type
    assert array_facts(array) == ResultFacts(elem_type, (3,))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ("a", "b", 4)),
        ({"start": 1}, ("b", 4)),
        ({"end": -1}, ("a", "b")),
        ({"start": -2, "end": 2}, ("b",)),
        ({"start": 2, "end": 1}, ()),
        ({"start": -9, "end": 9}, ("a", "b", 4)),
    ],
)
def test_shape(attributes: dict, expected: tuple) -> None:
    """The content is the shape."""
    inputs = [In(("a", "b", 4))]
    facts = check_runs("Shape", inputs, SIZES, [(len(expected),)], attributes=attributes)[0]
    assert facts == ResultFacts(7, (len(expected),), None, expected)


def test_shape_unknown() -> None:
    """The rank gives the length."""
    assert infer("Shape", [ResultFacts(1, None, 3)])[0] == ResultFacts(7, (3,))
    assert infer("Shape", [ResultFacts(1)])[0] == ResultFacts(7, None, 1)
    assert infer("Shape", [ResultFacts(1, ())])[0] == ResultFacts(7, (0,), None, ())


def test_size() -> None:
    """The product of the dimensions."""
    facts = check_runs("Size", [In(("a", "b", 4))], SIZES, [()])[0]
    assert facts.value == "4*a*b"
    assert infer("Size", [ResultFacts(1, None, 3)])[0] == ResultFacts(7, ())


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        (None, followed("a", 3), ResultFacts(1, ("a", 3))),
        (np.array([1], np.int64), followed(3), ResultFacts(7, (3,), None, (1, 1, 1))),
        (np.array([1], np.int64), followed("a"), ResultFacts(7, ("a",))),
        (np.array([1], np.int64), followed(), ResultFacts(7, (), None, 1)),
        (np.array([True]), followed(2), ResultFacts(9, (2,), None, (1, 1))),
        (np.array([1], np.int64), followed(10**12), ResultFacts(7, (10**12,))),
        (np.array([1], np.float16), followed(2, "b"), ResultFacts(10, (2, "b"))),
        (None, followed(-1), ResultFacts()),
        (None, ResultFacts(7), ResultFacts(1)),
    ],
)
def test_constant_of_shape(value: Any, shape: ResultFacts, expected: ResultFacts) -> None:
    """The shape is a content, nothing is allocated."""
    attributes = {} if value is None else {"value": value}
    assert infer("ConstantOfShape", [shape], attributes=attributes)[0] == expected


def test_constant_of_unknown_shape() -> None:
    """Fresh symbols for what is unknown; a valid model has no negative dimension."""
    found = shape_of("ConstantOfShape", [ResultFacts(7, (2,))])
    assert len(found) == 2 and all(is_fresh(d) for d in found)
    assert shape_of("ConstantOfShape", [followed("a-b", 2)]) == ("a-b", 2)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((0, "n", 1), "n"),
        ((0, "2*n", 2), "n"),
        (("n", "n+m", 1), "m"),
        (("n", 0, -1), "n"),
        ((0, 10, 3), 4),
        ((10, 0, 3), 0),
        ((0, "n", 2), "(n+1)//2"),
        ((0, "n-1", 1), "max(0,n-1)"),
    ],
)
def test_range(bounds: tuple, expected: Any) -> None:
    """The number of elements."""
    inputs = [ResultFacts(7, (), None, bound) for bound in bounds]
    assert shape_of("Range", inputs) == (expected,)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((0.0, 1.0, 0.25), 4),
        ((1.0, 0.0, -0.3), 4),
        ((0.0, 1.0, 0.1), None),
        ((0.0, 1.0, 0.0), None),
        ((0.0, np.inf, 1.0), None),
    ],
)
def test_float_range(bounds: tuple, expected: Any) -> None:
    """Unknown as soon as rounding matters."""
    dim = shape_of("Range", [scalar(b, np.float32) for b in bounds])[0]
    assert is_fresh(dim) if expected is None else dim == expected


def test_range_unknown() -> None:
    """A fresh length."""
    bound = ResultFacts(7, ())
    assert is_fresh(shape_of("Range", [bound, bound, scalar(1)])[0])
    step = ResultFacts(7, (), None, "s")
    assert is_fresh(shape_of("Range", [scalar(0), scalar(9), step])[0])
    assert value_of("Range", [scalar(0), scalar(1000), scalar(1)]) is None


@pytest.mark.parametrize(
    "op_type", ["EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli"]
)
def test_like(op_type: str) -> None:
    """Same shape, possibly another type."""
    facts = ResultFacts(1, ("a", "b"))
    assert infer(op_type, [facts])[0] == facts
    assert infer(op_type, [facts], attributes={"dtype": 11})[0] == ResultFacts(11, ("a", "b"))


@pytest.mark.parametrize("op_type", ["RandomNormal", "RandomUniform"])
def test_random(op_type: str) -> None:
    """A given shape."""
    assert infer(op_type, [], attributes={"shape": [2, 3]})[0] == ResultFacts(1, (2, 3))
    given = {"attributes": {"shape": [2], "dtype": 11}}
    assert infer(op_type, [], **given)[0] == ResultFacts(11, (2,))


def test_multinomial() -> None:
    """Batch and sample size."""
    given = {"attributes": {"sample_size": 5}}
    assert infer("Multinomial", [ResultFacts(1, ("a", 3))], **given)[0] == ResultFacts(6, ("a", 5))


@pytest.mark.parametrize(
    ("axis", "expected"), [(-1, ("a", "b", 6)), (0, (6, "a", "b")), (1, ("a", 6, "b"))]
)
def test_one_hot(axis: int, expected: tuple) -> None:
    """One more axis."""
    inputs = [In(("a", "b"), np.int64), np.array(6, np.int64), np.array([0, 1], np.float32)]
    check_runs("OneHot", inputs, SIZES, [expected], attributes={"axis": axis})


def test_one_hot_unknown() -> None:
    """The depth may be followed, a float, or unknown."""
    indices, values = ResultFacts(7, ("a",)), ResultFacts(1, (2,))
    depth = ResultFacts(7, (), None, "d")
    assert shape_of("OneHot", [indices, depth, values]) == ("a", "d")
    assert shape_of("OneHot", [indices, scalar(4.0, np.float32), values]) == ("a", 4)
    assert is_fresh(shape_of("OneHot", [indices, ResultFacts(7, ()), values])[1])
    assert infer("OneHot", [ResultFacts(7, None, 2), depth, values])[0] == ResultFacts(1, None, 3)
