"""Dropout: gone in inference, kept in training."""

from __future__ import annotations

import pytest

from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

F = "g (float[a, b] x) => (float[a, b] y)"
RELU = f"{F} {{ y = Relu(x) }}"

MODELS = {
    "Dropout": {
        "no training mode": (f"{F} {{ d = Dropout(x) y = Relu(d) }}", RELU),
        "ratio": (f"{F} <float r = {{0.5}}> {{ d = Dropout(x, r) y = Relu(d) }}", RELU),
        "training mode is false": (
            f"{F} <float r = {{0.5}}, bool t = {{0}}> {{ d = Dropout(x, r, t) y = Relu(d) }}",
            RELU,
        ),
        "no ratio": (f"{F} <bool t = {{0}}> {{ d = Dropout(x, , t) y = Relu(d) }}", RELU),
        "unused mask": (f"{F} {{ d, m = Dropout(x) y = Relu(d) }}", RELU),
    },
}

NEAR_MISSES = {
    "training": (
        f"{F} <float r = {{0.5}}, bool t = {{1}}> {{ y = Dropout(x, r, t) }}",
        "it may be training",
    ),
    "training mode is an input": (
        "g (float[a] x, bool t) => (float[a] y) <float r = {0.5}> { y = Dropout(x, r, t) }",
        "it may be training",
    ),
    "training mode may be overridden": (
        "g (float[a] x, bool t) => (float[a] y) <float r = {0.5}, bool t = {0}>"
        "{ y = Dropout(x, r, t) }",
        "it may be training",
    ),
    "the mask is an output": (
        "g (float[a] x) => (float[a] y, bool[a] m) { y, m = Dropout(x) }",
        "another result of Dropout is used",
    ),
    "the mask is read": (
        "g (float[a] x) => (float[a] y, bool[a] z) { y, m = Dropout(x) z = Not(m) }",
        "another result of Dropout is used",
    ),
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests({"Dropout": NEAR_MISSES})


@pytest.mark.parametrize("opset", [7, 10, 12, 13, 22])
def test_opsets(opset: int):
    text, after = MODELS["Dropout"]["no training mode"]
    check_pattern(text, after, "Dropout", opset=opset)
    check_pattern(text.replace("d =", "d, m ="), after, "Dropout", opset=opset)


def test_opset_6():
    text = f"{F} {{ d = Dropout(x) y = Relu(d) }}"
    check_no_match(text, "Dropout", "it is training", opset=6)
    model = model_from_text(text.replace("Dropout(x)", "Dropout<is_test=1>(x)"), opset=6)
    result, _, _ = optimize_with(model, "Dropout")
    assert [n.op_type for n in result.graph.node] == ["Relu"]
