"""The nodes that patterns write run at every opset."""

from __future__ import annotations

import zlib
from collections import Counter

import pytest
from onnx import ModelProto
from ut_xoptim.whole_models.opset_matrix import (
    CANNOT_LOAD,
    OPSETS,
    SAME,
    SAME_GRAPH,
    UNCOMPARED,
    WRONG,
    Cell,
    Loaded,
    at_opset,
    cells,
    judge,
    judge_cell,
    judge_set,
    reason_of,
    written,
)

from xbuilder.operators.opsets import newest_opset
from xoptim.catalogue.registry import all_patterns
from xoptim.testing import model_from_text

#: one cell out of this number is judged by the usual tests
STEP = 1000
#: an attention the sets write with an operator where it has a kernel
ATTENTION = model_from_text(
    """g (float[b, 4, s, 8] q, float[b, 4, t, 8] k, float[b, 4, t, 8] v) => (float[b, 4, s, 8] y)
    <float scale = {0.25}> {
        kt = Transpose<perm = [0, 1, 3, 2]>(k) m = MatMul(q, kt) z = Mul(m, scale)
        w = Softmax<axis = -1>(z) y = MatMul(w, v)
    }""",
    18,
)


def judged(keys: list[tuple[str, tuple[int, str, int]]]) -> Counter[str]:
    """Judges cells, none is wrong."""
    found = [(name, key[-1], judge_cell(key)) for name, key in keys]
    assert [row for row in found if row[-1].kind == WRONG] == []
    return Counter(cell.kind for *_, cell in found)


def test_a_sample() -> None:
    """The same cells whatever the other patterns are."""
    keys = [c for c in cells(OPSETS) if not zlib.crc32(repr(c[1]).encode()) % STEP]
    counts = judged(keys)
    assert counts[SAME] > 30 and counts[SAME_GRAPH] > 5, counts


@pytest.mark.slow
def test_each_pattern() -> None:
    """Each pattern alone on each of its models, at the first opset where many kernels are missing."""
    counts = judged(list(cells([25], ())))
    assert counts[SAME] > 800, counts


@pytest.mark.long
@pytest.mark.parametrize("opset", OPSETS)
def test_everything(opset: int) -> None:
    judged(list(cells([opset])))


@pytest.mark.parametrize("opset", range(18, newest_opset() + 1))
@pytest.mark.parametrize("patterns", ["default", "default+onnxruntime"])
def test_attention(patterns: str, opset: int) -> None:
    assert judge_set(patterns, ATTENTION, opset)[:2] == Cell(SAME)[:2]


# -- the matrix sees what it looks for


def test_an_invalid_model_that_onnxruntime_loads() -> None:
    """It does not infer that the result of Transpose is a number."""
    model = model_from_text("g (float x) => (float y) { t = Transpose(x) y = Softmax(t) }", 11)
    assert Loaded(at_opset(model, 11)) and judge_set("default", model, 11).kind == CANNOT_LOAD


def test_positions_that_onnxruntime_refuses() -> None:
    text = """g (int64[a] i) => (float[a] y) <float[2] t = {1, 2}, float two = {2}>
        { g = Gather(t, i) y = Mul(g, two) }"""
    assert judge("GatherAffine", model_from_text(text, 18), 18).kind == SAME


def test_patterns_without_comparison() -> None:
    """The reasons are those of patterns that exist; a set compares its patterns."""
    names, modules = all_patterns(), {p.__module__ for p in all_patterns().values()}
    for key in UNCOMPARED:
        assert key in names or any(m.startswith(key) for m in modules), key
    assert reason_of("MissingType") and not reason_of("NotNot")
    assert (
        "TransposeTranspose"
        in judge_set("default", half_of("t = Transpose(x) y = Transpose(t)"), 18).applied
    )


def half_of(body: str) -> ModelProto:
    return model_from_text(f"g (float[a, 4] x) => (float[a, 4] y) {{ {body} }}", 24)


def test_more_nodes_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator without kernel: onnxruntime runs the nodes of its function."""
    before, after = half_of("s = Sigmoid(x) y = Mul(x, s)"), half_of("y = Swish(x)")
    rows = [{"pattern": "apply_any", "instances": 1}]
    monkeypatch.setattr(
        "ut_xoptim.whole_models.opset_matrix.optimize_with",
        lambda model, patterns: (at_opset(after, model.opset_import[0].version), rows, None),
    )
    assert "no kernel for [('', 'Swish')]" in judge("NotNot", before, 24).reason
    assert "does not load" in judge("NotNot", before, 25).reason
    after = half_of("s = Sigmoid(x) t = Mul(x, s) y = Add(t, s)")
    assert "values differ" in judge("NotNot", before, 24).reason


def test_operators_that_run() -> None:
    """Local functions and constants are not operators that a pattern writes."""
    loaded = Loaded(half_of("c = Constant<value_float = 2.0>() y = Mul(x, c)"))
    assert loaded.operators() == [("", "Mul")]
    assert written(half_of("s = Sigmoid(x) y = Mul(x, s)")) == {("", "Sigmoid"), ("", "Mul")}
