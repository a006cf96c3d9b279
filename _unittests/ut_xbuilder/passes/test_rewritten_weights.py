"""Tests of xbuilder.passes.rewritten_weights: what a runtime computes once is not written again."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto
from onnx.external_data_helper import convert_model_to_external_data
from onnx.numpy_helper import from_array

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.constants.deferred import FileBlocks
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.passes.rewritten_weights import COMPUTED_ONCE, HELD

ROWS, COLUMNS = 320, 128
SIZE = ROWS * COLUMNS * 4


def saved(folder, body, external=True, elem_type="float"):
    """A model whose weight W is in another file."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g ({elem_type}[a, b, c] X) => ({elem_type} Y) {{ {body} }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    dtype = ml_dtypes.bfloat16 if elem_type == "bfloat16" else np.float32
    w = from_array(np.random.default_rng(0).random((ROWS, COLUMNS)).astype(dtype), "W")
    small = np.linspace(1, 2, COLUMNS, dtype=np.float32)[None]
    shape = np.array([COLUMNS // 2, 2 * ROWS])
    model.graph.initializer.extend((w, from_array(small, "small"), from_array(shape, "shape")))
    if external:
        convert_model_to_external_data(model, location="w.data", size_threshold=1 << 12)
    path = str(folder / "model.onnx")
    onnx.save(model, path)
    return path


def optimized(path, **options):
    """Types of the nodes that are left, initializers, why some were not folded."""
    builder = GraphBuilder(path, optimization_options=OptimizationOptions(**options))
    reasons = {
        row["pattern"].removeprefix("constant_folding: ")
        for row in builder.optimize()
        if row.get("skipped")
    }
    return [n.op_type for n in builder.nodes], builder.initializers_dict, reasons


NODES = {
    "Transpose": "T = Transpose <perm = [1, 0]> (W)",
    "Mul": "T = Mul (W, small)",
    "Cast Cast": "H = Cast <to = 10> (W) T = Cast <to = 1> (H)",
    "Mul Transpose": "M = Mul (W, small) T = Transpose (M)",
    "Sin": "T = Sin (W)",
    "Concat": "T = Concat <axis = 0> (W, small)",
    "Transpose Reshape": "R = Transpose (W) T = Reshape (R, shape)",
}


@pytest.mark.parametrize("name", NODES)
def test_a_weight_stays_in_its_file(tmp_path, monkeypatch, name):
    """It is not even read; onnxruntime has no node left when it has loaded the model."""
    path = saved(tmp_path, f"{NODES[name]} Y = MatMul (X, T)")
    monkeypatch.setattr(FileBlocks, "block", lambda *args: pytest.fail("the weight was read"))
    nodes, values, reasons = optimized(path)
    assert nodes == [*name.split(), "MatMul"]
    assert reasons == {COMPUTED_ONCE}
    assert values["W"].data_location == TensorProto.EXTERNAL
    session = onnxruntime.SessionOptions()
    session.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    session.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    onnxruntime.InferenceSession(path, session, providers=["CPUExecutionProvider"])
    loaded = onnx.load(tmp_path / "loaded.onnx", load_external_data=False)
    assert [n.op_type for n in loaded.graph.node] == ["MatMul"]


def test_a_weight_of_the_model_itself_is_folded(tmp_path):
    path = saved(tmp_path, "T = Transpose (W) Y = MatMul (X, T)", external=False)
    nodes, values, reasons = optimized(path)
    assert nodes == ["MatMul"] and not reasons
    assert values["W"].shape == (COLUMNS, ROWS)


def test_the_same_bytes_have_another_shape(tmp_path):
    path = saved(tmp_path, "F = Flatten <axis = 0> (W) T = Reshape (F, shape) Y = MatMul (X, T)")
    nodes, values, reasons = optimized(path)
    assert nodes == ["MatMul"] and not reasons & {COMPUTED_ONCE, HELD}
    assert isinstance(values["W"], BlockTensor) and values["W"].dims == (COLUMNS // 2, 2 * ROWS)


def test_a_small_result_is_folded(tmp_path):
    path = saved(tmp_path, "T = ReduceMax <keepdims = 0> (W) Y = Mul (X, T)")
    nodes, values, reasons = optimized(path)
    assert nodes == ["Mul"] and not reasons
    assert [v.shape for v in values.values()] == [()]


@pytest.mark.parametrize("limit", [SIZE - 1, SIZE])
def test_the_option_says_what_is_small(tmp_path, limit):
    path = saved(tmp_path, "T = Transpose (W) Y = MatMul (X, T)")
    nodes, values, reasons = optimized(path, constant_size=limit)
    folded = limit == SIZE
    assert nodes == ["MatMul"] if folded else ["Transpose", "MatMul"]
    assert isinstance(values["W"], BlockTensor) == folded
    assert (COMPUTED_ONCE in reasons) != folded


def test_without_a_kernel_the_node_would_run_each_time(tmp_path):
    """onnxruntime has none for products of bfloat16: they are computed when they are written, what
    moves the result stays; the others would be held."""
    body = "P = Mul (W, W) T = Transpose (P) Y = MatMul (X, T)"
    nodes, values, reasons = optimized(saved(tmp_path, body, elem_type="bfloat16"))
    assert nodes == ["Transpose", "MatMul"] and COMPUTED_ONCE in reasons
    assert isinstance(values["W"], BlockTensor)
    body = "T = Sin (W) Y = MatMul (X, T)"
    nodes, values, reasons = optimized(saved(tmp_path, body, elem_type="bfloat16"))
    assert nodes == ["Sin", "MatMul"] and reasons == {HELD}


def test_in_a_body(tmp_path):
    """The weight belongs to the graph around it."""
    body = """S = Shape (X) R = Size (S) L = Cast <to = 9> (R)
        Y = If (L) <then_branch = t () => (float[d, e, f] A)
                { T = Transpose (W) A = MatMul (X, T) },
            else_branch = o () => (float[d, e, f] B) { B = Relu (X) }>"""
    path = saved(tmp_path, body.replace("Size (S)", "ReduceMax <keepdims = 0> (S)"))
    builder = GraphBuilder(path, optimization_options=OptimizationOptions(patterns=""))
    builder.optimize()
    (node,) = [n for n in builder.nodes if n.op_type == "If"]
    branch = next(a.g for a in node.attribute if a.name == "then_branch")
    assert [n.op_type for n in branch.node] == ["Transpose", "MatMul"]
    assert builder.initializers_dict["W"].data_location == TensorProto.EXTERNAL


def test_a_weight_one_piece_of_which_stays_is_not_cut(tmp_path):
    """The second piece is left to the runtime, so the weight stays and the first one is a copy."""
    body = """
        a = Constant<value_ints = [0]>() b = Constant<value_ints = [80]>()
        c = Constant<value_ints = [320]>() T = Slice(W, a, b) U = Slice(W, b, c)
        V = Add(T, X) R = ReduceSum<keepdims = 0>(V) Z = Add(U, X) S = ReduceSum<keepdims = 0>(Z)
        Y = Add(R, S)
    """
    path = saved(tmp_path, body)
    types, initializers, reasons = optimized(path, patterns=None, constant_size=1000)
    assert types.count("Slice") == 2 and "W" in initializers and COMPUTED_ONCE in reasons
