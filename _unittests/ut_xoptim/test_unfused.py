"""Tests of xoptim.unfused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from xbuilder.errors import OptionError
from xoptim.testing import model_from_text, run_onnxruntime
from xoptim.unfused import unfused_nodes

TEXT = """agraph (float[a, 4] X, float[4] B) => (float[a, 4] Y, float[a, 4] Z) <float[1] two = {2.0}>
{
    S = Add(X, B)
    M = Mul(S, two)
    Y = Relu(M)
    Z = Exp(S)
}"""


def test_nodes_between_two_results() -> None:
    nodes = unfused_nodes(model_from_text(TEXT), ["S"], ["Y"])
    assert [n.op_type for n in nodes] == ["Mul", "Relu"]


def test_a_model_that_runs() -> None:
    model = unfused_nodes(model_from_text(TEXT), ["S"], ["Y"], as_proto=True)
    onnx.checker.check_model(model)
    assert [i.name for i in model.graph.initializer] == ["two"]
    dims = model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["a", 4]
    x = np.array([[-1, 2, 3, -4]], dtype=np.float32)
    (got,) = run_onnxruntime(model, {"S": x})
    np.testing.assert_array_equal(got, np.maximum(x * 2, 0))


def test_a_missing_input_is_named() -> None:
    with pytest.raises(OptionError, match="depend on input 'B'"):
        unfused_nodes(model_from_text(TEXT), ["X"], ["Y"])


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(OptionError, match="'nothing' is not a result"):
        unfused_nodes(model_from_text(TEXT), ["X"], ["nothing"])


def test_one_name_instead_of_several() -> None:
    model = model_from_text("g (float[a] x) => (float[a] y) { y = Neg(x) }")
    with pytest.raises(OptionError, match="input_names expects several names, \\['x'\\] for one"):
        unfused_nodes(model, "x", ["y"])
    with pytest.raises(OptionError, match="output_names expects several names"):
        unfused_nodes(model, ["x"], None)
