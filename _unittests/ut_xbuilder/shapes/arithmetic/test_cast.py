"""Cast, CastLike, BitCast; contents are in test_values."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from ut_xbuilder.shapes.shape_cases import infer

from xbuilder import GraphBuilder
from xbuilder.facts.facts import ResultFacts

X = ResultFacts(1, ("a", 3))


@pytest.mark.parametrize("to", [v for v in TensorProto.DataType.values() if v])
def test_every_type(to: int) -> None:
    """Any type, float8, 4 bits, 2 bits and complex included."""
    assert infer("Cast", [X], attributes={"to": to})[0] == ResultFacts(to, ("a", 3))
    assert infer("CastLike", [X, ResultFacts(to)])[0] == ResultFacts(to, ("a", 3))
    assert infer("BitCast", [X], attributes={"to": to}, opset=26)[0] == ResultFacts(to, ("a", 3))


def test_first_opset() -> None:
    """The type is a string in opset 1."""
    assert infer("Cast", [X], attributes={"to": "INT64"}, opset=1)[0].type == 7
    assert infer("Cast", [X], attributes={"to": "FLOAT16"}, opset=1)[0].type == 10


def test_bit_cast_hides_the_content() -> None:
    """Same bits, other numbers."""
    facts = ResultFacts(7, (1,), None, ("a",))
    assert infer("BitCast", [facts], attributes={"to": 11}, opset=26)[0].value is None
    assert infer("BitCast", [facts], attributes={"to": 7}, opset=26)[0].value is None


def test_unknown() -> None:
    """Rank only, type only."""
    assert infer("Cast", [ResultFacts(1, None, 2)], attributes={"to": 7})[0] == ResultFacts(
        7, None, 2
    )
    assert infer("CastLike", [X, ResultFacts()])[0] == ResultFacts(0, ("a", 3))


@pytest.mark.parametrize(
    ("array", "to", "value"),
    [
        (np.array(2, np.float32), TensorProto.INT64, 2),
        (np.array([0, -3], np.float16), TensorProto.INT32, (0, -3)),
        (np.array([0.0, 5.0]), TensorProto.BOOL, (0, 1)),
        (np.array(2.5, np.float32), TensorProto.INT64, None),
        (np.array(np.inf, np.float32), TensorProto.INT64, None),
        (np.array(1e19), TensorProto.INT64, None),
        (np.array([[2]], np.float32), TensorProto.INT64, None),
        (np.array(2, np.float32), TensorProto.DOUBLE, None),
    ],
)
def test_content_of_a_constant_made_like_a_result(array, to, value) -> None:
    """As exporters write arange: the bounds are constants, the type is the one of a size."""
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", to, ("a",))
    builder.op.CastLike(array, "x", outputs=["y"])
    assert builder.value_as_shape("y") == value
