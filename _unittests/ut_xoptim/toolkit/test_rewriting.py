"""A graph rewritten in one call."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of, op_types

from xbuilder import OptionError
from xoptim.testing import model_from_text
from xoptim.toolkit import PatternNodeRewriter, rewrite_graph

TEXT = """g (float[a, b] x) => (float[a, b] y) <float one = {1}, float two = {2}> {
    t = Transpose<perm = [1, 0]>(x) u = Transpose<perm = [1, 0]>(t)
    n = Abs(u) m = Abs(n) c = Add(one, two) y = Mul(m, c) }"""
ABS = PatternNodeRewriter(("Abs", ("Abs", "x")), ("Abs", "x"), name="abs_abs")
NEG = PatternNodeRewriter(("Abs", "x"), ("Abs", ("Neg", "x")), name="abs_neg", min_opset=99)
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({"include": ()}, ["Transpose", "Transpose", "Abs", "Abs", "Add", "Mul"]),
    "custom": (
        {"include": (), "custom_rewrite": ABS},
        ["Transpose", "Transpose", "Abs", "Add", "Mul"],
    ),
    "several": (
        {"include": (), "custom_rewrite": [NEG, ABS, "TransposeTranspose"]},
        ["Abs", "Add", "Mul"],
    ),
    "a tag": ({"include": "canonicalize", "custom_rewrite": ABS}, ["Abs", "Add", "Mul"]),
    "exclude": (
        {
            "include": ["TransposeTranspose", "CastCast"],
            "exclude": ["TransposeTranspose"],
            "custom_rewrite": (ABS,),
        },
        ["Transpose", "Transpose", "Abs", "Add", "Mul"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rewrite_graph(case: str) -> None:
    """Constants are not folded, the model stays as it is; a builder is changed."""
    parameters, expected = CASES[case]
    model = model_from_text(TEXT)
    before = model.SerializeToString()
    assert [n.op_type for n in rewrite_graph(model, **parameters).graph.node] == expected
    assert model.SerializeToString() == before
    builder = builder_of(TEXT)
    assert rewrite_graph(builder, **parameters) is builder
    assert op_types(builder) == expected


def test_unknown_words() -> None:
    with pytest.raises(OptionError, match="Did you mean TransposeTranspose"):
        rewrite_graph(model_from_text(TEXT), "TransposeTranspos")
