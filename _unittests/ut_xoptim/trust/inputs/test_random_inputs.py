"""Random inputs: shapes, types, sizes, errors."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx.helper as oh
import onnx.parser
import pytest
from onnx import TensorProto

from xbuilder.errors import OptionError, XoptimError
from xoptim.testing import model_from_text
from xoptim.trust.inputs.random_inputs import (
    candidate_sizes,
    complete_sizes,
    open_dimensions,
    optional_inputs,
    random_inputs,
    required_inputs,
)


def model_with(inputs: str):
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => (float[] y) '
        "{ y = Constant<value_float: float = 1.0>() }"
    )


def test_shapes_follow_the_declared_dimensions():
    model = model_with("float[batch, 3] x, float[batch, seq] z, float[] s")
    assert open_dimensions(model) == ["batch", "seq"]
    feeds = random_inputs(model, {"batch": 7})
    assert feeds["x"].shape == (7, 3)
    assert feeds["z"].shape[0] == 7
    assert feeds["s"].shape == ()
    assert feeds["z"].shape[1] == complete_sizes(model, {"batch": 7})["seq"]


def test_unnamed_dimension_is_called_after_its_position():
    model = model_with("float[?, 3] x")
    assert open_dimensions(model) == ["x[0]"]
    assert random_inputs(model, {"x[0]": 6})["x"].shape == (6, 3)


def test_unknown_dimensions_written_in_other_ways():
    model = model_with("float[?, ?, 3] x")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "?"
    assert open_dimensions(model) == ["x[0]", "x[1]"]
    assert random_inputs(model, {"x[0]": 6, "x[1]": 7})["x"].shape == (6, 7, 3)


def test_dimension_written_as_an_expression():
    model = oh.make_model(
        oh.make_graph(
            [oh.make_node("Identity", ["x"], ["y"])],
            "g",
            [oh.make_tensor_value_info("x", TensorProto.FLOAT, ["2*n", "n+1"])],
            [oh.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        )
    )
    assert open_dimensions(model) == ["n"]
    assert random_inputs(model, {"n": 5})["x"].shape == (10, 6)


@pytest.mark.parametrize(
    "kind,dtype",
    [
        ("float", np.float32),
        ("double", np.float64),
        ("float16", np.float16),
        ("int64", np.int64),
        ("uint8", np.uint8),
        ("int8", np.int8),
        ("bool", np.bool_),
        ("string", object),
        ("bfloat16", ml_dtypes.bfloat16),
        ("float8e5m2", ml_dtypes.float8_e5m2),
        ("float4e2m1", ml_dtypes.float4_e2m1fn),
        ("complex64", np.complex64),
    ],
)
def test_types(kind, dtype):
    value = random_inputs(model_with(f"{kind}[100] x"))["x"]
    assert value.dtype == dtype
    assert value.shape == (100,)
    assert len(set(value.tolist())) > 1


def test_integer_bounds():
    value = random_inputs(model_with("int64[1000] x"), integer_high=4)["x"]
    assert set(value.tolist()) == {0, 1, 2, 3}
    wide = random_inputs(model_with("int8[5000] x"))["x"]
    assert wide.min() == -128 and wide.max() == 127
    for kind, values in {"int4": range(-8, 8), "uint2": range(4)}.items():
        small = random_inputs(model_with(f"{kind}[500] x"))["x"]
        assert small.dtype.name == kind and set(small.astype(int).tolist()) == set(values)


def test_seed():
    model = model_with("float[8] x")
    first, same, other = (random_inputs(model, seed=s)["x"] for s in (1, 1, 2))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_an_input_with_a_default_value_is_not_fed():
    model = model_with("float[2] x, float[2] w")
    model.graph.initializer.append(oh.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0]))
    assert [i.name for i in required_inputs(model)] == ["x"]
    assert set(random_inputs(model)) == {"x"}


def test_sequence_and_optional():
    tensor = oh.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    model = model_with("float[2] x")
    model.graph.input.append(oh.make_value_info("s", oh.make_sequence_type_proto(tensor)))
    model.graph.input.append(oh.make_value_info("o", oh.make_optional_type_proto(tensor)))
    model.graph.input.append(
        oh.make_value_info("p", oh.make_optional_type_proto(model.graph.input[1].type))
    )
    feeds = random_inputs(model, {"n": 6}, empty=["p"])
    assert [a.shape for a in feeds["s"]] == [(6,), (6,)]
    assert optional_inputs(model) == ["o", "p"]
    assert feeds["o"].shape == (6,) and feeds["p"] is None
    assert [a.shape for a in random_inputs(model, {"n": 6})["p"]] == [(6,), (6,)]


def test_unknown_dimension_is_refused():
    with pytest.raises(OptionError, match="no dimension 'bacth'.*batch"):
        random_inputs(model_with("float[batch] x"), {"bacth": 3})


def test_negative_size_is_refused():
    with pytest.raises(OptionError, match="negative"):
        random_inputs(model_with("float[batch] x"), {"batch": -3})


@pytest.mark.parametrize("declared", ["float[2147483648, N]", "int64[N, 4611686018427387904]"])
def test_an_input_too_large_for_the_memory_is_refused(declared):
    model = model_with(f"{declared} x")
    with pytest.raises(XoptimError, match=r"'x' would have shape \(.*more than 268435456 numbers"):
        random_inputs(model)
    with pytest.raises(XoptimError, match="give other sizes or real inputs"):
        random_inputs(model, {"N": 0})


def test_unsupported_type_is_named():
    model = model_with("float[2] x")
    model.graph.input[0].type.tensor_type.elem_type = 255
    with pytest.raises(XoptimError, match="'x' has type 255"):
        random_inputs(model)


def test_dimensions_without_a_name_may_be_equal():
    """The batch of the input is the batch of the state of a voice detector."""
    model = model_with("float[?, 512] x, float[2, ?, 128] state")
    sizes = [chosen for chosen, _ in candidate_sizes(model, {"x[0]": 3})]
    assert {"x[0]": 3, "state[1]": 3} in sizes and {"x[0]": 3, "state[1]": 1} in sizes
    assert all(chosen["x[0]"] == 3 for chosen in sizes)


@pytest.mark.parametrize(
    "others, batch", [("", 2), (", float[b] m", 224), (", float[b, k] m", 224)]
)
def test_large_images_come_in_a_small_batch(others, batch):
    """Unless the dimension is one of something else too."""
    text = f"agraph (float[b, 3, h, w] x{others}) => (float[1] y) {{ y = ReduceSum(x) }}"
    found = [chosen for chosen, _ in candidate_sizes(model_from_text(text), None)]
    first = next(chosen for chosen in found if chosen["h"] == 224)
    assert first["w"] == 224 and first["b"] == batch
    assert any(chosen["b"] == chosen["h"] == 224 for chosen in found), "nothing else may fit"


def test_no_sum_of_too_many_dimensions():
    dims = "abcdefg"
    for text, sums in ((dims[:6], True), (dims, False)):
        model = model_with(f"float[{', '.join(text)}] x")
        found = [chosen for chosen, _ in candidate_sizes(model, None)]
        assert any(c["a"] == c["b"] + c["c"] for c in found) is sums


def test_values_of_a_pool():
    model = model_with("int64[100] x, bool[50] b, float z")
    pools = {"x": range(50, 60), "b": [1], "z": [0.5]}
    feeds = random_inputs(model, pools=pools)
    assert set(feeds["x"].tolist()) == set(range(50, 60)) and feeds["x"].dtype == np.int64
    assert feeds["b"].all() and feeds["b"].dtype == np.bool_ and feeds["z"] == 0.5
    assert np.abs(random_inputs(model, scale=0.0)["z"]) == 0
