"""Tools shared by the families."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xbuilder.shapes.shape_cases import make_context

from xbuilder import GraphBuilder
from xbuilder.dims import Constraints, prove_equal
from xbuilder.facts.facts import MAX_RANK, ResultFacts
from xbuilder.shapes import UNKNOWN
from xbuilder.shapes import common as C


def test_contents() -> None:
    """Contents come from facts, or from constants that are too long to be followed."""
    long = np.arange(100, dtype=np.int64)
    inputs = [long, ResultFacts(7, (1,), None, ("a",)), np.zeros((2, 2), np.int64), ResultFacts(7)]
    ctx = make_context("Op", [*inputs, np.array([0.5], np.float32), np.array(3, np.int64)])
    assert C.content(ctx, 0) == tuple(range(100))
    assert C.content(ctx, 1) == ("a",) and C.int_content(ctx, 1) is None
    assert C.content(ctx, 2) is None and C.content(ctx, 3) is None
    assert C.content(ctx, 4) is None and C.content(ctx, 5) == (3,)
    assert C.float_content(ctx, 4).tolist() == [0.5]
    assert C.content(ctx, 17) is None


def test_arguments() -> None:
    """An attribute, an input, or nothing."""
    ctx = make_context("Op", [None, ResultFacts(7, (1,))], {"axes": [1, 2], "axis": 3})
    assert C.argument(ctx, 0, "axes") == (True, (1, 2))
    assert C.argument(ctx, 0, "axis") == (True, (3,))
    assert C.argument(ctx, 0, "none") == (False, None)
    assert C.argument(ctx, 1, "none") == (True, None)
    assert C.length(ctx, 1) == 1


def test_merge() -> None:
    """Equal in a valid model: the most precise one, with a constraint."""
    constraints = Constraints()
    ctx = make_context("Op", [], constraints=constraints)
    assert C.merge_dim(ctx, "a", 3) == 3 and C.merge_dim(ctx, 3, "b") == 3
    assert C.merge_dim(ctx, 3, 4) is None and C.merge_dim(ctx, "c", "c") == "c"
    assert prove_equal("a", "b", constraints) is True
    assert C.merge_shapes(ctx, [("x", 2), None, (5, "y")]) == (5, 2)
    assert C.merge_shapes(ctx, [("x",), (5, "y")]) is None
    assert C.merge_shapes(ctx, [(2, 2), (2, 3)]) is None
    assert C.merge_shapes(ctx, [None]) is None


def test_context() -> None:
    """The view on a node."""
    facts = ResultFacts(1, ("a", 3))
    ctx = make_context("Op", [facts, None], {"alpha": 1.5}, opset=3, domain="d", n_outputs=2)
    assert (ctx.op_type, ctx.domain, ctx.opset, ctx.n_inputs, ctx.n_outputs) == ("Op", "d", 3, 2, 2)
    assert ctx.has_input(0) and not ctx.has_input(1) and not ctx.has_input(2)
    assert ctx.facts(1) is UNKNOWN and ctx.type(1) == 0 and ctx.rank(1) is None
    assert ctx.shape(0) == ("a", 3) and ctx.rank(0) == 2 and ctx.value(0) is None
    assert ctx.attr("alpha") == 1.5 and ctx.attr("beta", 2) == 2
    assert ctx.new_dim("x") != ctx.new_dim("x")
    assert ctx.constant(0) is None and ctx.constant(5) is None


@pytest.mark.parametrize("size", [2**40, 2**63 - 1, 65])
@pytest.mark.parametrize("op_type", ["ConstantOfShape", "Reshape", "Expand", "Tile", "Unsqueeze"])
def test_a_content_too_long_to_be_dimensions(op_type: str, size: int) -> None:
    """A file of 100 bytes declares a shape of 2^40 elements: no dimension is made for them."""
    inputs = ["s"] if op_type == "ConstantOfShape" else ["x", "s"]
    node = oh.make_node(op_type, inputs, ["y"])
    rows = [
        oh.make_tensor_value_info("x", TensorProto.FLOAT, ["a"]),
        oh.make_tensor_value_info("s", TensorProto.INT64, [size]),
    ]
    y = oh.make_tensor_value_info("y", TensorProto.FLOAT, None)
    opsets = [oh.make_opsetid("", 18)]
    model = oh.make_model(oh.make_graph([node], "g", rows, [y]), opset_imports=opsets)
    builder = GraphBuilder(model, infer_shapes_options=True)
    rank = builder.get_rank("y") if builder.has_rank("y") else 0
    assert rank <= MAX_RANK and builder.get_type("y") == TensorProto.FLOAT


def test_a_constant_too_long_to_be_dimensions() -> None:
    """A constant of 65 elements makes no dimension, one of 64 does."""
    for size, expected in ((64, True), (65, False)):
        builder = GraphBuilder(18)
        builder.make_tensor_input("x", TensorProto.FLOAT, (1,))
        builder.op.Reshape("x", np.ones(size, np.int64), outputs=["y"])
        assert builder.has_rank("y") is expected
    assert C.content(make_context("Op", [np.ones(C.MAX_CONTENT + 1, np.int64)]), 0) is None
