"""Names that users of other builders know."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from ut_xbuilder.graph_checks import run_onnxruntime

from xbuilder import FactError, FunctionOptions, GraphBuilder, OptionError


def new() -> GraphBuilder:
    g = GraphBuilder(18)
    g.make_tensor_input("x", TensorProto.FLOAT, ("a", 8))
    return g


def test_constants() -> None:
    g = new()
    y = g.op.Unsqueeze("x", g.ZERO)
    assert g.get_shape(y) == (1, "a", 8)
    found = [v.tolist() for v in (g.ZERO, g.ONE, g.MINUS_ONE, g.ZERO_NO_DIM, g.ONE_NO_DIM)]
    assert found == [[0], [1], [-1], 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        g.ZERO[0] = 1


def test_questions() -> None:
    g = new()
    g.anyop.Mystery("x", outputs=["m"], domain="d")
    assert g.rank("x") == 2 and g.get_type_known("x") == TensorProto.FLOAT
    assert g.get_type_known("m") is None
    with pytest.raises(FactError):
        g.get_type_known("m", exc=True)
    with pytest.raises(FactError):
        g.rank("m")
    assert [g.is_dynamic_dimension(d) for d in (3, np.int64(3), "a", None)] == [
        False,
        False,
        True,
        True,
    ]


def test_what_is_known_of_another_result() -> None:
    g = new()
    for name in "mno":
        g.anyop.Mystery("x", outputs=[name], domain="d")
    g.set_device("x", -1)
    g.set_type_shape_or_rank("m", "x")
    assert g.get_shape("m") == ("a", 8) and g.get_type("m") == TensorProto.FLOAT
    assert g.get_device("m") == -1
    g.set_rank("n", 3)
    g.set_type_shape_or_rank("o", "n")
    assert g.get_rank("o") == 3 and not g.has_type("o") and not g.has_device("o")
    with pytest.raises(FactError):
        g.set_type_shape_or_rank("o", "x")


def test_a_shape_that_is_wrong_or_less_precise() -> None:
    g = new()
    g.set_shape("x", ("a", 9), exc=False)
    g.set_shape("x", (3, 8), set_if_more_precise=False)
    assert g.get_shape("x") == ("a", 8)
    with pytest.raises(FactError):
        g.set_shape("x", ("a", 9))
    g.set_shape("x", (3, 8), set_if_more_precise=True)
    assert g.get_shape("x") == (3, 8)


def test_a_shape_made_of_results() -> None:
    g = new()
    rows = g.op.Shape("x", start=0, end=1)
    four = g.op.Gather(g.op.Shape("x"), g.ONE_NO_DIM)
    shape = g.make_shape_from_results([rows, 1, four])
    g.op.Reshape("x", shape, outputs=["y"])
    g.op.Reshape("x", g.make_shape_from_results([-1, 4]), outputs=["z"])
    g.op.Reshape("y", g.make_shape_from_results([g.op.Size("x")]), outputs=["t"])
    g.make_tensor_output(["y", "z", "t"])
    assert g.get_shape("y") == ("a", 1, 8)
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    y, z, t = run_onnxruntime(g.to_onnx(), {"x": x})
    assert (y.shape, z.shape, t.shape) == ((2, 1, 8), (4, 4), (16,))
    for wrong in ("nobody", "x"):
        with pytest.raises(OptionError, match=f"results of one element, not '{wrong}'"):
            g.make_shape_from_results([wrong, 2])


def test_local_functions() -> None:
    g, inner = new(), new()
    inner.op.Neg("x", outputs=["v"])
    inner.make_tensor_output("v")
    assert not g.has_local_function("F")
    g.make_local_function(inner, FunctionOptions(name="F"))
    assert g.has_local_function("F") and g.has_local_function("F", g.graph.scope.local_domain)
    assert not g.has_local_function("F", "other")
