"""Families of transformers: their attentions are found, the results are those of the model."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.trust.sessions.session_child import open_session

EXAMPLES = Path(__file__).resolve().parents[2] / "_doc" / "examples"
#: family, how attention is exported, opset
ROWS = [
    ("bert", "sdpa", 18),
    ("gpt2, cache", "eager", 18),
    ("bart decoder, cache", "sdpa", 18),
    ("t5 decoder", "eager", 18),
    ("whisper decoder, cache", "eager", 23),
    ("swin", "sdpa", 18),
    ("segformer", "eager", 23),
    ("segformer", "eager", 18),
    ("bart", "eager", 18),
    ("hubert", "eager", 18),
    ("layoutlm", "eager", 18),
    ("trocr", "eager", 18),
    ("led decoder, cache", "eager", 18),
    ("bloom", "eager", 18),
    ("gptneo", "eager", 18),
    ("codegen, cache", "eager", 18),
    ("mpt", "eager", 18),
    ("xglm", "eager", 18),
]
#: patterns that write an operator for an attention another one recognized
OPERATORS = (
    "apply_Attention3D",
    "apply_AttentionGQA",
    "apply_GroupQueryAttention3D",
    "apply_MultiHeadAttention3D",
    "apply_SharedHeadsAttention",
)
ATTENTIONS = ("Attention", "MultiHeadAttention", "GroupQueryAttention")


@pytest.fixture(scope="module")
def families() -> Iterator[dict]:
    pytest.importorskip("torch")
    sys.path.insert(0, str(EXAMPLES))  # one imports the other
    try:
        first, more = map(
            importlib.import_module, ("corpus.transformer_families", "corpus.more_families")
        )
        yield {"FAMILIES": {**first.FAMILIES, **more.MORE}, "export": first.export}
    finally:
        sys.path.remove(str(EXAMPLES))


def shorter(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One sequence, the last elements of what is 64 long."""
    return {
        name: value[:1, -9:] if value.ndim in (2, 3) and value.shape[1] == 64 else value[:1]
        for name, value in feeds.items()
    }


@pytest.mark.parametrize(("name", "attention", "opset"), ROWS)
def test_attentions_are_found(families: dict, name: str, attention: str, opset: int) -> None:
    family = families["FAMILIES"][name]
    proto, feeds = families["export"](family, "ours", attention, opset)
    options = OptimizationOptions(patterns="default+onnxruntime")
    builder = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options)
    rows = [(row["pattern"], row["changed"]) for row in builder.optimize()]
    products = sum(n for name, n in rows if name == "apply_FunctionAttention")
    products -= sum(n for name, n in rows if name in OPERATORS)
    made = builder.to_onnx(optimize=False)
    types = [node.op_type for node in made.graph.node]
    assert sum(map(types.count, ATTENTIONS)) + products == family.expected
    assert types.count("Softmax") == products
    before, after = (open_session(m.SerializeToString(), []) for m in (proto, made))
    for given in (feeds, shorter(feeds)):
        for expected, got in zip(before.run(None, given), after.run(None, given), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
