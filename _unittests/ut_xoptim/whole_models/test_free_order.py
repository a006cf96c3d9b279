"""The order of rewrites leaves some ties free: they are shuffled, the graphs are the same."""

from __future__ import annotations

import importlib
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto
from ut_xoptim.whole_models.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import InvalidModelError
from xoptim import get_pattern_list
from xoptim.catalogue import order, selection
from xoptim.engine import dispatch
from xoptim.testing import canonical_graph, model_from_text

ROOT = Path(__file__).resolve().parents[3]
#: the models of wheels, the ones of onnx
WHEELS = {p.stem: p for p in sorted((ROOT / ".models").rglob("*.onnx"))}
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
SEEDS = range(10)
#: numbers of nodes depend on it: rewrites that are slower there refuse
PROCESSOR = "CPU:amd-v4"
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)


def _example(*names: str) -> list[ModuleType]:
    folders = [str(ROOT / "_doc" / "examples"), str(ROOT / "_doc" / "extensions")]
    sys.path[:0] = folders
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        for folder in folders:
            sys.path.remove(folder)


(BENCH,) = _example("corpus.bench_models")


@pytest.fixture
def shuffle(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """A function: after a call with a seed, what no declaration decides is random; a negative one
    puts the declared order back."""
    key = order._key

    def shuffled(seed: int) -> None:
        def with_chance(rewrite: object) -> tuple:
            level, phase, whose, name = key(rewrite)
            return level, phase, whose, random.Random(f"{seed} {name}").random() if name else 0.0

        monkeypatch.setattr(order, "_key", key if seed < 0 else with_chance)
        _forget()

    yield shuffled
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    """Orders are remembered."""
    selection._classes_of.cache_clear()
    dispatch._DISPATCHES.clear()


def structure(model: ModelProto) -> list[str]:
    """A graph without the numbers in its weights: one more rounding is not another graph."""
    blank = ModelProto()
    blank.CopyFrom(model)
    for tensor in blank.graph.initializer:
        if tensor.data_type in FLOATS and np.prod(tensor.dims) > 1:
            size = len(onnx.numpy_helper.to_array(tensor).tobytes())
            tensor.ClearField("float_data")
            tensor.ClearField("double_data")
            tensor.ClearField("int32_data")
            tensor.raw_data = bytes(size)
    return canonical_graph(blank.graph)


def optimized(model: ModelProto, patterns: str = "default+onnxruntime") -> ModelProto:
    options = OptimizationOptions(patterns=patterns, processor=PROCESSOR)
    return GraphBuilder(model, infer_shapes_options=True, optimization_options=options).to_onnx()


def check_free(
    model: ModelProto, shuffle: Callable[[int], None], most: float = np.inf, seeds: range = SEEDS
) -> None:
    """The graph is the same whatever the order of the words, whatever the ties.

    :param model: a model
    :param shuffle: shuffles the ties
    :param most: number of nodes that are left, at most
    :param seeds: how many times
    """
    shuffle(-1)
    best = optimized(model)
    assert len(best.graph.node) <= most
    expected = structure(best)
    assert structure(optimized(model, "onnxruntime+default")) == expected
    types = Counter(n.op_type for n in best.graph.node)
    for seed in seeds:
        shuffle(seed)
        found = optimized(model)
        assert Counter(n.op_type for n in found.graph.node) == types, f"seed {seed}"
        assert structure(found) == expected, f"seed {seed}"


def test_ties_are_shuffled(shuffle: Callable[[int], None]) -> None:
    before = [p.name for p in get_pattern_list("default")]
    shuffle(0)
    after = [p.name for p in get_pattern_list("default")]
    assert after != before and sorted(after) == sorted(before)
    assert after.index("ConvAffine") < after.index("AffineConv")


@pytest.mark.parametrize("name", ["chain_model", "motif_chain"])
def test_chains(name: str, shuffle: Callable[[int], None]) -> None:
    most = {"chain_model": 16, "motif_chain": 7}[name]
    check_free(getattr(BENCH, name)(60), shuffle, most)


@pytest.mark.parametrize("seed", range(6))
def test_random_models(seed: int, shuffle: Callable[[int], None]) -> None:
    made = RandomModel(seed, 25)
    check_free(made.branching_model() if seed % 2 else made.model(), shuffle, seeds=range(4))


def test_moves_around_a_reshape(shuffle: Callable[[int], None]) -> None:
    """The bias of the windows of Swin, as torch.onnx.export writes it: the first Transpose moves
    nothing."""
    text = """g (float[49, 4] x) => (float[1, 4, 7, 7] y)
        <int64[3] s = {7, 7, -1}, int64[1] a = {0}> {
            i = Transpose<perm = [0, 1]>(x) r = Reshape(i, s)
            t = Transpose<perm = [2, 0, 1]>(r) y = Unsqueeze(t, a)
        }"""
    check_free(model_from_text(text), shuffle, 2)


@pytest.mark.parametrize(
    "body", ["f = Flatten<axis = 2>(r) y = Not(f)", "n = Not(r) y = Flatten<axis = 2>(n)"]
)
def test_a_move_that_moves_nothing(body: str, shuffle: Callable[[int], None]) -> None:
    """A mask, as torch.onnx.export(dynamo=False) writes it: the Reshape is removed, and not merged
    with Flatten, before or after Not goes past it."""
    text = f"""g (bool[a, b] x) => (bool[c, 1] y) <int64[2] s = {{0, -1}}> {{
        r = Reshape(x, s) {body}
    }}"""
    check_free(model_from_text(text), shuffle, 2)


def test_light_model(shuffle: Callable[[int], None]) -> None:
    check_free(onnx.load(LIGHT / "light_shufflenet.onnx"), shuffle, 109)


@pytest.mark.skipif(len(WHEELS) < 4, reason="the wheels are fetched by `make models`")
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("silero_vad_16k_op15", 26),
        ("silero_vad_16k_sequence", 21),
        ("ch_ppocr_mobile_v2.0_cls_infer", 119),
    ],
)
def test_models_of_wheels(name: str, most: int, shuffle: Callable[[int], None]) -> None:
    check_free(onnx.load(WHEELS[name]), shuffle, most)


#: family, exporter, attention, opset -> nodes that are left
FAMILIES = {
    ("gpt2", "script", "eager", 18): 37,
    ("gptneo", "script", "eager", 18): 64,
    ("llama, cache", "ours", "sdpa", 18): 74,
    ("gpt2, cache", "ours", "sdpa", 18): 60,
    ("codegen, cache", "ours", "eager", 18): 62,
    ("blipvision", "ours", "eager", 18): 32,
}
MORE_FAMILIES = {
    ("gpt2, cache", "script", "eager", 18): 57,
    ("gemma, cache", "ours", "sdpa", 23): 69,
    ("phi3, cache", "ours", "sdpa", 23): 68,
    ("t5 decoder, cache", "ours", "sdpa", 18): 77,
    ("bart decoder, cache", "ours", "sdpa", 18): 89,
    ("detr", "ours", "sdpa", 18): 129,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "most"),
    [
        *FAMILIES.items(),
        *(pytest.param(*row, marks=pytest.mark.long) for row in MORE_FAMILIES.items()),
    ],
)
def test_families(
    row: tuple[str, str, str, int], most: int, shuffle: Callable[[int], None]
) -> None:
    pytest.importorskip("torch")
    name, exporter, attention, opset = row
    first, more = _example("corpus.transformer_families", "corpus.more_families")
    family = {**first.FAMILIES, **more.MORE}[name]
    model, _ = first.export(family, exporter, attention, opset)
    check_free(model, shuffle, most)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.long)])
def test_examples(count: int, shuffle: Callable[[int], None]) -> None:
    """The example of each rewrite, with all the others."""
    (examples,) = _example("pattern_models")
    for name, (model, _) in examples.collect_examples().items():
        try:
            check_free(model, shuffle, seeds=range(count))
        except InvalidModelError:
            continue  # it is the example of an older opset
        except AssertionError as error:
            raise AssertionError(f"the example of {name}: {error}") from error
