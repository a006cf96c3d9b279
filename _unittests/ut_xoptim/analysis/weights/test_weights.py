"""Weights rewrites multiply: what is held, what they are called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array, to_array

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import LateCheckError
from xbuilder.files.blocks import block_sources
from xbuilder.files.blocks.block_sources import ArrayBlocks, TransposedBlocks
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.files.blocks.checked_blocks import CheckedProduct
from xbuilder.files.blocks.scaled_blocks import ScaledBlocks
from xbuilder.passes import constant_folding
from xbuilder.tensors.bits import data_type_of
from xoptim.analysis.weights import weights
from xoptim.testing import model_from_text, run_onnxruntime

SIZE = 48
#: a product or a convolution by W, of another file, with constants around it
BODIES = {
    "MatMul": ("float[a, N]", "c = MatMul(x, W) y = Mul(c, k)"),
    "a number": ("float[a, N]", "c = MatMul(x, W) y = Div(c, h)"),
    "MatMul before": ("float[a, N]", "c = Mul(x, k) y = MatMul(c, W)"),
    "MatMul after": ("float[N, a]", "c = MatMul(W, x) y = Mul(c, v)"),
    "Gemm, a sum": ("float[a, N]", "c = Add(x, k) y = Gemm(c, W)"),
    "a chain": ("float[a, N]", "c = Mul(x, k) d = MatMul(c, W) e = Mul(d, k) y = Div(e, h)"),
    "a transposed weight": ("float[a, N]", "T = Transpose(W) c = MatMul(x, T) y = Mul(c, k)"),
    "Conv": ("float[1, N, a]", "R = Reshape(W, s) c = Conv(x, R) y = Mul(c, v)"),
    "Conv before": ("float[1, N, a]", "R = Reshape(W, s) c = Sub(x, v) y = Conv(c, R)"),
    "BatchNormalization": (
        "float[1, N, a]",
        "R = Reshape(W, s) c = Conv(x, R) y = BatchNormalization(c, k, k, k, k)",
    ),
}


def saved(folder: Path, name: str, size: int = SIZE) -> Path:
    """One of the models, its weights in another file."""
    declared, body = BODIES[name]
    dims = declared.replace("N", str(size))
    model = model_from_text(f"g ({dims} x) => (float[] y) {{ {body} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    rng = np.random.default_rng(0)
    values = {
        "W": rng.random((size, size), dtype=np.float32),
        "k": rng.random(size, dtype=np.float32) + 1,
        "v": rng.random((size, 1), dtype=np.float32) + 1,
        "h": np.float32(3),
        "s": np.array([size, size, 1]),
    }
    read = {i for node in model.graph.node for i in node.input}
    model.graph.initializer.extend(from_array(v, k) for k, v in values.items() if k in read)
    path = folder / "model.onnx"
    onnx.save(
        model, path, save_as_external_data=True, location="w.data", size_threshold=4 * size + 1
    )
    return path


def optimized(path: Path) -> GraphBuilder:
    builder = GraphBuilder(
        str(path), optimization_options=OptimizationOptions(patterns="default-GemmTranspose")
    )
    builder.optimize()
    return builder


def blocks_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each block that is read from a file from now on."""
    held: list[int] = []
    read = block_sources.FileBlocks.block

    def recorded(self: block_sources.FileBlocks, bounds: block_sources.Bounds) -> np.ndarray:
        value = read(self, bounds)
        held.append(value.nbytes)
        return value

    monkeypatch.setattr(block_sources.FileBlocks, "block", recorded)
    return held


def results(path: Path, size: int) -> list[np.ndarray]:
    (given,) = onnx.load(path, load_external_data=False).graph.input
    dims = [d.dim_value or 3 for d in given.type.tensor_type.shape.dim]
    x = np.random.default_rng(1).random(dims, dtype=np.float32)
    return run_onnxruntime(onnx.load(path), {"x": x})


@pytest.mark.parametrize("name", BODIES)
def test_a_weight_of_another_file_is_computed_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, limit = saved(tmp_path, name), 4 * SIZE * 8
    for module in (weights, constant_folding):
        monkeypatch.setattr(module, "DEFERRED_BYTES", 1000)
    monkeypatch.setattr(block_sources.split, "__defaults__", (limit,))
    for size in ("BLOCK", "SMALL_BLOCK", "_EVALUATED"):
        monkeypatch.setattr(block_sources, size, limit)
    held = blocks_read(monkeypatch)
    builder = optimized(path)
    assert len(builder.nodes) == 1
    values = [v for v in builder.initializers_dict.values() if isinstance(v, BlockTensor)]
    assert len(values) == (name != "Gemm, a sum"), "it waits, unless it is as it was"
    assert "W" in builder.initializers_dict, "it is still the weight"
    folder = tmp_path / "out"
    folder.mkdir()
    builder.to_onnx(optimize=False, large_model=True).save(folder / "model.onnx")
    assert held and max(held) <= limit, "a block at a time"
    monkeypatch.undo()
    for a, b in zip(results(path, SIZE), results(folder / "model.onnx", SIZE), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


#: the weight is transposed, then multiplied along an axis, or by one number
MOVED = {
    "columns": ("float[b, a, N]", "T = Transpose(W) c = MatMul(x, T) y = Mul(c, k)"),
    "rows": ("float[b, a, N]", "T = Transpose(W) c = Mul(x, k) y = MatMul(c, T)"),
    "a number": ("float[b, a, N]", "T = Transpose(W) c = MatMul(x, T) y = Mul(c, h)"),
    "a chain": ("float[b, a, N]", "T = Transpose(W) c = MatMul(x, T) d = Mul(c, k) y = Div(d, h)"),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_transpose_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Runtimes compute it once: the weight is read and written in the order of its file."""
    size = 160
    monkeypatch.setitem(BODIES, name, MOVED[name])
    path = saved(tmp_path, name, size)
    monkeypatch.setattr(
        block_sources.TransposedBlocks, "block", lambda *args: pytest.fail("it was moved")
    )
    builder = optimized(path)
    assert [n.op_type for n in builder.nodes] == ["Transpose", "MatMul"]
    (value,) = [v for v in builder.initializers_dict.values() if isinstance(v, BlockTensor)]
    assert isinstance(value.blocks, ScaledBlocks)
    folder = tmp_path / "out"
    folder.mkdir()
    builder.to_onnx(optimize=False, large_model=True).save(folder / "model.onnx")
    for a, b in zip(results(path, size), results(folder / "model.onnx", size), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


def test_a_small_weight_is_computed_at_once(tmp_path: Path) -> None:
    builder = optimized(saved(tmp_path, "a chain"))
    ((name, value),) = builder.initializers_dict.items()
    assert name == "W" and isinstance(value, np.ndarray)


def test_names() -> None:
    """The weight and the bias keep their names; another weight made of the same has a close one."""
    model = model_from_text(
        """g (float[a, 2, b] x) => (float[a, 2, b] y, float[a, 2, b] z, float[a, 2, b] t)
        <float[2, 2, 1] weight = {1, 2, 3, 4}, float[2] bias = {1, 2}, float[2, 1] k = {2, 3},
         float[2, 2, 1] other = {2, 3, 4, 5}, float[2, 1] shift = {7, 8}>
        { c = Conv(x, weight, bias) y = Mul(c, k) z = Conv(x, weight, bias)
          d = Conv(x, other) e = Mul(d, k) t = Add(e, shift) }"""
    )
    options = OptimizationOptions(patterns="ConvAffine")
    got = GraphBuilder(model, optimization_options=options).to_onnx()
    assert [list(n.input) for n in got.graph.node] == [
        ["x", "weight1", "bias1"],
        ["x", "weight", "bias"],
        ["x", "other", "shift"],
    ]
    (other,) = [to_array(i) for i in got.graph.initializer if i.name == "other"]
    np.testing.assert_array_equal(other.ravel(), [4, 6, 12, 15])


_SCRIPT = """
import resource, sys
from xbuilder import GraphBuilder, OptimizationOptions
import onnxruntime, xoptim.engine.optimizer, xoptim.patterns.products.fold_into_conv
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
GraphBuilder(18)
before = peak()
builder = GraphBuilder(sys.argv[1], optimization_options=OptimizationOptions(patterns="default"))
container = builder.to_onnx(large_model=True)
assert len(container.proto.graph.node) == 1
container.save(sys.argv[2])
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MatMul", "Gemm, a sum", "a chain", "BatchNormalization"])
def test_memory(tmp_path: Path, name: str) -> None:
    """A weight of 324 MB is never held: anonymous and mapped memory together."""
    path = saved(tmp_path, name, 9000)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(path), str(tmp_path / "out.onnx")],
        capture_output=True,
        text=True,
        check=True,
    )
    scale = 1024 if sys.platform == "darwin" else 1
    assert int(done.stdout) < 250_000 * scale


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
@pytest.mark.parametrize("perm", [(0, 1), (1, 0)])
def test_largest_numbers_are_found_block_after_block(
    monkeypatch: pytest.MonkeyPatch, axes: tuple[int, ...], perm: tuple[int, ...]
) -> None:
    for size in ("BLOCK", "SMALL_BLOCK"):
        monkeypatch.setattr(block_sources, size, 1000)
    value = np.random.default_rng(0).standard_normal((60, 50), dtype=np.float32)
    blocks = TransposedBlocks(ArrayBlocks(value, data_type_of("float32")), perm)
    expected = np.abs(value.transpose(perm)).max(axis=axes, keepdims=True)
    np.testing.assert_array_equal(weights._amplitude(blocks, axes), expected)
    assert weights.largest(blocks) == np.abs(value).max()


#: W is multiplied by k
LATE = {
    "after": ("float[a, N]", "c = MatMul(x, W) y = Mul(c, k)"),
    "before": ("float[a, N]", "c = Mul(x, k) y = MatMul(c, W)"),
    "a number": ("float[a, N]", "c = MatMul(x, W) y = Div(c, h)"),
    "transposed": ("float[a, N]", "T = Transpose(W) c = MatMul(x, T) y = Mul(c, k)"),
}


def late(path: Path, late_checks: bool = True) -> GraphBuilder:
    options = OptimizationOptions(patterns="default-GemmTranspose", late_checks=late_checks)
    builder = GraphBuilder(str(path), optimization_options=options)
    builder.optimize()
    return builder


def changed(path: Path, index: int, number: float) -> None:
    """Writes another element in the weight of a model."""
    with open(path.parent / "w.data", "r+b") as file:
        file.seek(4 * index)
        file.write(np.float32(number).tobytes())


@pytest.fixture
def late_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request) -> Path:
    """A model with a weight of 400 x 400 floats, computed when it is written."""
    monkeypatch.setitem(BODIES, "late", LATE[request.param])
    for size in ("DEFERRED_BYTES", "_LATE_BYTES"):
        monkeypatch.setattr(weights, size, 1000)
    return saved(tmp_path, "late", 400)


@pytest.mark.parametrize("late_model", LATE, indirect=True)
def test_a_weight_checked_late_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_model: Path
) -> None:
    plain = late(late_model, late_checks=False)
    read = blocks_read(monkeypatch)
    builder = late(late_model)
    assert not read
    assert [n.op_type for n in builder.nodes] == [n.op_type for n in plain.nodes]
    written = []
    for name, each in (("late", builder), ("plain", plain)):
        folder = tmp_path / name
        folder.mkdir()
        each.to_onnx(optimize=False, large_model=True).save(folder / "model.onnx")
        written.append({p.name: p.read_bytes() for p in folder.iterdir()})
    assert written[0] == written[1]


@pytest.mark.parametrize("number", [3e38, np.inf, np.nan])
@pytest.mark.parametrize("late_model", ["after", "before", "transposed"], indirect=True)
def test_a_weight_that_overflows_is_not_written(
    tmp_path: Path, late_model: Path, number: float
) -> None:
    changed(late_model, 400 * 400 - 1, number)
    check_refused(late_model, tmp_path / "out", "is not finite")


@pytest.mark.parametrize("late_model", ["a number"], indirect=True)
def test_a_weight_that_loses_digits_is_not_written(tmp_path: Path, late_model: Path) -> None:
    (tmp_path / "w.data").write_bytes(np.full(400 * 400, 2e-38, np.float32).tobytes())
    check_refused(late_model, tmp_path / "out", "is too small for its type")


def check_refused(path: Path, folder: Path, reason: str) -> None:
    """The product is found to be wrong when it is written, and refused before without the option:
    no file is left, then the operator is."""
    builder = late(path)
    assert not {"Mul", "Div"} & {n.op_type for n in builder.nodes}
    folder.mkdir()
    with pytest.raises(LateCheckError, match=f"{reason}.*optimize the model again without it"):
        builder.to_onnx(optimize=False, large_model=True).save(folder / "model.onnx")
    assert not list(folder.iterdir())
    assert {"Mul", "Div"} & {n.op_type for n in late(path, late_checks=False).nodes}


@pytest.mark.parametrize("late_model", ["after"], indirect=True)
def test_checks_are_early_unless_asked_otherwise(
    monkeypatch: pytest.MonkeyPatch, late_model: Path
) -> None:
    read = blocks_read(monkeypatch)
    assert len(optimized(late_model).nodes) == 1
    assert sum(read) >= 400 * 400 * 4


def test_a_small_weight_is_checked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "DEFERRED_BYTES", 1000)
    path = saved(tmp_path, "MatMul")
    changed(path, SIZE * SIZE - 1, 3e38)
    assert [n.op_type for n in late(path).nodes] == ["MatMul", "Mul"]


@pytest.mark.parametrize("number", [0.5, 3e38])
def test_the_product_of_two_vectors_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: float
) -> None:
    """It is rounded once, the factors are multiplied together: what each of them gives alone is not
    looked at."""
    for size in ("DEFERRED_BYTES", "_LATE_BYTES"):
        monkeypatch.setattr(weights, size, 1000)
    body = "c = Mul(x, k) d = MatMul(c, W) y = Mul(d, k)"
    monkeypatch.setitem(BODIES, "chain", ("float[a, N]", body))
    path = saved(tmp_path, "chain", 400)
    changed(path, 400 * 400 - 1, number)
    read = blocks_read(monkeypatch)
    builder = late(path)
    assert len(builder.nodes) == 1 and not read
    (value,) = [v for v in builder.initializers_dict.values() if isinstance(v, BlockTensor)]
    assert isinstance(value.blocks, CheckedProduct) and len(value.blocks.product.factors) == 2
    if number > 1:
        with pytest.raises(LateCheckError, match="is not finite"):
            value.array()
    else:
        assert np.isfinite(value.array()).all()


def test_factors_that_are_not_finite_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in ("DEFERRED_BYTES", "_LATE_BYTES"):
        monkeypatch.setattr(weights, size, 1000)
    body = "n = Sqrt(m) c = MatMul(x, W) y = Mul(c, n)"
    monkeypatch.setitem(BODIES, "nan", ("float[a, N]", body))
    path = saved(tmp_path, "nan")
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer.append(from_array(np.full(SIZE, -1, np.float32), "m"))
    path.write_bytes(model.SerializeToString())
    assert [n.op_type for n in late(path).nodes] == ["MatMul", "Mul"]
