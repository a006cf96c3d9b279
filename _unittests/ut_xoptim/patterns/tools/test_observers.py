"""Patterns to look at a model, or at the engine, with."""

from __future__ import annotations

import pytest

from xoptim.catalogue.registry import all_patterns
from xoptim.testing import (
    check_no_match,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

_ADD = "g (float[a, 1] x, float[b] z) => (float[a, b] y) { y = Add(x, z) }"
_POW = "g (float[a] x) => (float[a] y) <float[1] c = {2}> { y = Pow(x, c) }"
#: a pattern that only looks leaves the model as it is
MODELS = {
    "BinaryInvestigation": (_ADD, _ADD),
    "AlmostDoNothing": {
        "one dimension": (_POW, _POW.replace("float[1] c", "float c")),
        "integers": (
            _POW.replace("float", "int64"),
            _POW.replace("float", "int64").replace("int64[1] c", "int64 c"),
        ),
    },
}
REFUSED = {
    "AlmostDoNothing": {
        "done already": (_POW.replace("float[1] c", "float c"), "not a constant of one element"),
        "several": (
            _POW.replace("float[1] c = {2}", "float[2] c = {2, 3}").replace("[a]", "[2]"),
            "not a constant of one element",
        ),
        "the shape would change": (
            _POW.replace("[1] c", "[1, 1] c").replace("[a] y", "[1, a] y"),
            "not a constant of one element",
        ),
    },
}

test_rewrites = rewrite_tests({"AlmostDoNothing": MODELS["AlmostDoNothing"]})
test_refuses = refusal_tests(REFUSED)


def test_shapes_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = MODELS["BinaryInvestigation"]
    result, rows, _ = optimize_with(model_from_text(before), "BinaryInvestigation")
    assert [n.op_type for n in result.graph.node] == ["Add"]
    assert not any(row.get("instances") for row in rows)
    printed = "[BinaryInvestigation] Add x:1('a', 1), z:1('b',), y:1('a', 'b')"
    assert printed in capsys.readouterr().out
    check_no_match(after, "BinaryInvestigation", "it only looks")


def test_sets() -> None:
    assert all_patterns()["BinaryInvestigation"].tags == ("investigation", "exact")
    assert all_patterns()["AlmostDoNothing"].tags == ("exact",)
