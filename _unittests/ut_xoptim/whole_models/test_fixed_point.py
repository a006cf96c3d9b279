"""Optimizing what was optimized changes nothing."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto
from onnx.numpy_helper import from_array
from ut_xoptim.whole_models.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import model_from_text

ROOT = Path(__file__).resolve().parents[3]
LIGHT = sorted((Path(onnx.backend.test.__file__).parent / "data" / "light").glob("*.onnx"))
WHEELS = sorted((ROOT / ".models").glob("*/*/*.onnx"))
SELECTION = "default+onnxruntime"


def optimized(model: ModelProto | Path) -> ModelProto:
    """The model after one run."""
    options = OptimizationOptions(patterns=SELECTION)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    return builder.to_onnx(optimize=True)


def check_fixed_point(model: ModelProto | Path) -> None:
    """A second run gives the same model, byte by byte."""
    once = optimized(model)
    again = optimized(once)
    before = [onnx.printer.to_text(n) for n in once.graph.node]
    assert [onnx.printer.to_text(n) for n in again.graph.node] == before
    names = [i.name for i in once.graph.initializer]
    assert [i.name for i in again.graph.initializer] == names
    assert again.SerializeToString() == once.SerializeToString()


@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
def test_models_of_the_onnx_package(path: Path) -> None:
    check_fixed_point(path)


@pytest.mark.skipif(not WHEELS, reason="the wheels are fetched by `make test` or `make models`")
@pytest.mark.parametrize("path", WHEELS, ids=lambda p: p.stem)
def test_models_of_wheels(path: Path) -> None:
    check_fixed_point(path)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(5, 40), st.booleans())
def test_random_models(seed: int, n_nodes: int, branching: bool) -> None:
    model = RandomModel(seed, n_nodes)
    check_fixed_point(model.branching_model() if branching else model.model())


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(5, 60), st.booleans())
def test_many_random_models(seed: int, n_nodes: int, branching: bool) -> None:
    model = RandomModel(seed, n_nodes)
    check_fixed_point(model.branching_model() if branching else model.model())


@pytest.mark.parametrize("size", [100, 200, 1000])
def test_a_folded_weight_is_one_of_the_model(size: int) -> None:
    """The first run does everything a second run does to a folded weight, for any size."""
    text = f"g (float[a, {size}] x) => (float[a, 200] y) {{ m = MatMul(x, w) s = Add(m, b) y = Mul(s, c) }}"
    model = model_from_text(text)
    rng = np.random.default_rng(0)
    for name, shape in {"w": (size, 200), "b": (200,), "c": (200,)}.items():
        weight = from_array(rng.standard_normal(shape).astype(np.float32), name)
        model.graph.initializer.append(weight)
    assert [n.op_type for n in optimized(model).graph.node] == ["Gemm"]
    check_fixed_point(model)


def exported(name: str, exporter: str) -> ModelProto:
    """A transformer with random weights, as an exporter writes it."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    examples = runpy.run_path(str(ROOT / "_doc" / "examples" / "corpus" / "transformer_models.py"))
    torch.manual_seed(0)
    module, args, shapes = examples["MODELS"][name]()
    if exporter == "to_onnx":
        from torch_interpreter import to_onnx

        return to_onnx(module, args, dynamic_shapes=(shapes,), optimize=False)
    pytest.importorskip("onnxscript")
    dynamic = tuple(dict.fromkeys(s, torch.export.Dim.DYNAMIC) for s in shapes)
    program = torch.onnx.export(
        module, args, dynamic_shapes={"args": dynamic}, dynamo=True, optimize=False, verbose=False
    )
    return program.model_proto


@pytest.mark.slow
@pytest.mark.parametrize("exporter", ["to_onnx", "torch.onnx.export"])
@pytest.mark.parametrize("name", ["llama", "bert", "whisper_encoder", "vit"])
def test_exported_transformers(name: str, exporter: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = exported(name, exporter)
    check_fixed_point(model)
