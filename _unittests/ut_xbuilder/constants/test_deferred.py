"""Tests of xbuilder.constants.deferred: weights of other files, folded when they are written."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.external_data_helper import convert_model_to_external_data
from onnx.numpy_helper import from_array
from onnx.reference import ReferenceEvaluator

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.constants import deferred
from xbuilder.constants.deferred import deferred_tensor
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.passes.duplicates import remove_duplicated_initializer

ROWS, COLUMNS = 160, 128


def saved(folder, body, **weights):
    """A model whose weights are in another file: W, and *weights* in the model itself."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]>
        g (float[a, b, c] X) => (float Y) {{ {body} }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    w = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    model.graph.initializer.append(from_array(w, "W"))
    model.graph.initializer.extend(from_array(v, k) for k, v in weights.items())
    convert_model_to_external_data(model, location="w.data", size_threshold=1 << 12)
    path = str(folder / "model.onnx")
    onnx.save(model, path)
    return path


def optimized(path):
    """The model once it is optimized; a fold of the weight may take its room again."""
    builder = GraphBuilder(
        path,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(constant_size=1 << 17),
    )
    builder.optimize()
    return builder


def check_same(path, builder, folder, columns):
    """The optimized model is saved, and gives what the original gives."""
    target = folder / "out"
    target.mkdir()
    builder.to_onnx(optimize=False, large_model=True).save(target / "model.onnx")
    x = np.random.default_rng(1).standard_normal((2, 3, columns), dtype=np.float32)
    expected, found = (
        ReferenceEvaluator(onnx.load(p)).run(None, {"X": x})[0]
        for p in (path, target / "model.onnx")
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    in_memory = ReferenceEvaluator(builder.to_onnx(optimize=False)).run(None, {"X": x})[0]
    np.testing.assert_array_equal(in_memory, found)


CHAINS = {
    "transposed": ("T = Transpose<perm=[1, 0]>(W)", COLUMNS, {}),
    "default permutation": ("T = Transpose(W)", COLUMNS, {}),
    "scaled": ("S = Mul(W, K) T = Transpose(S)", COLUMNS, {"K": np.float32(0.5)}),
    "scaled by column": (
        "S = Div(W, K) T = Transpose(S)",
        COLUMNS,
        {"K": np.arange(1, COLUMNS + 1, dtype=np.float32)},
    ),
    "shifted and cast": (
        "A = Add(W, K) N = Neg(A) D = Cast<to=11>(N) E = Sub(D, D2) T = Cast<to=1>(E)",
        ROWS,
        {"K": np.float32([[2]]), "D2": np.float64(0.25)},
    ),
    "reshaped": (
        "R = Reshape(W, S) T = Transpose<perm=[1, 0]>(R)",
        COLUMNS // 2,
        {"S": np.int64([2 * ROWS, COLUMNS // 2])},
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_over_a_weight_of_another_file(tmp_path, monkeypatch, name):
    body, columns, weights = CHAINS[name]
    path = saved(tmp_path, f"{body} Y = MatMul(X, T)", **weights)
    monkeypatch.setattr(
        deferred.FileBlocks, "block", lambda *args: pytest.fail("a weight was read")
    ) if name not in ("scaled", "scaled by column", "shifted and cast") else None
    builder = optimized(path)
    monkeypatch.undo()
    assert [n.op_type for n in builder.nodes] == ["MatMul"]
    (value,) = [v for v in builder.initializers_dict.values() if isinstance(v, BlockTensor)]
    assert value.nbytes == ROWS * COLUMNS * 4
    check_same(path, builder, tmp_path, columns)


def test_an_operator_that_absorbs_the_transpose_leaves_the_weight_alone(tmp_path):
    path = saved(
        tmp_path,
        "F = Flatten<axis=2>(X) T = Transpose<perm=[1, 0]>(W) M = MatMul(F, T) Y = Relu(M)",
    )
    builder = optimized(path)
    (gemm,) = [n for n in builder.nodes if n.op_type == "Gemm"]
    assert [(a.name, a.i) for a in gemm.attribute] == [("transB", 1)]
    assert not any(isinstance(v, BlockTensor) for v in builder.initializers_dict.values())
    check_same(path, builder, tmp_path, COLUMNS)


def test_equal_results_are_merged_without_reading(tmp_path, monkeypatch):
    builder = GraphBuilder(saved(tmp_path, "T = Transpose(W) Y = MatMul(X, T)"))
    for name in ("V", "V2"):
        builder.constants.add_initializer(name, deferred_tensor(builder.constants, "T"))
        builder.make_node("MatMul", ["X", name], [f"M{name}"])
    monkeypatch.setattr(deferred.FileBlocks, "block", lambda *args: pytest.fail("it was read"))
    assert remove_duplicated_initializer(builder.graph) == 1
    assert [n.input[1] for n in builder.nodes if n.op_type == "MatMul"] == ["T", "V", "V"]


def test_saved_over_the_model_it_comes_from(tmp_path):
    path = saved(tmp_path, "T = Transpose<perm=[1, 0]>(W) Y = MatMul(X, T)")
    expected = onnx.load(path)
    w = onnx.numpy_helper.to_array(expected.graph.initializer[0])
    container = optimized(path).to_onnx(optimize=False, large_model=True)
    container.save(path)
    (tensor,) = onnx.load(path).graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), w.T)
    (kept,) = container.proto.graph.initializer
    np.testing.assert_array_equal(container.array(kept), w.T)


COMPUTED_AT_ONCE = {
    "another operator": ("T = Sin(W)", {}),
    "no weight of another file": ("T = Transpose(K)", {"K": np.zeros((4, 4), np.float32)}),
    "integers": ("C = Cast<to=7>(W) T = Mul(C, C)", {}),
    "not a permutation": ("T = Transpose<perm=[0, 0]>(W)", {}),
}


@pytest.mark.parametrize("reason", COMPUTED_AT_ONCE)
def test_what_is_not_deferred(tmp_path, reason):
    body, weights = COMPUTED_AT_ONCE[reason]
    path = saved(tmp_path, f"{body} A = Cast<to=1>(T) Y = Add(X, A)", **weights)
    builder = GraphBuilder(path, infer_shapes_options=False)
    assert deferred_tensor(builder.constants, "T") is None


def test_an_input_is_not_a_constant(tmp_path):
    builder = GraphBuilder(saved(tmp_path, "Y = Relu(X)"))
    assert deferred_tensor(builder.constants, "X") is None
    assert deferred_tensor(builder.constants, "Y") is None
