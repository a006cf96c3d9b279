"""An operator instead of another one, or nothing."""

from __future__ import annotations

import pytest
from ut_xoptim.toolkit.rewriter_runs import op_types, optimized

from xbuilder.errors import PatternError
from xoptim.testing import check_no_match, check_pattern
from xoptim.toolkit import RemovalNodeRewriter, SubstitutionNodeRewriter

HEAD = "g (float[a, b] x, float[a, b] y) => (float[a, b] z)"


def test_substitution() -> None:
    before, after = f"{HEAD} {{ z = Sum(x, y) }}", f"{HEAD} {{ z = Add(x, y) }}"
    check_pattern(before, after, [SubstitutionNodeRewriter("Sum", "Add")])
    assert SubstitutionNodeRewriter("Sum", "Add").name == "Sum_to_Add"


def test_substitution_of_a_domain_keeps_attributes_and_results() -> None:
    text = "g (float[4] x) => (float[2] y) { y, z = my.domain.Halves<num_outputs = 2>(x) }"
    domain = SubstitutionNodeRewriter("my.domain::Halves", "Split", name="halves")
    builder = optimized(text.replace("=> (float[2] y)", "=> (float[2] y, float[2] z)"), domain)
    (node,) = builder.nodes
    assert (node.op_type, node.domain, list(node.output)) == ("Split", "", ["y", "z"])
    assert [a.name for a in node.attribute] == ["num_outputs"]
    assert domain.name == "halves"


def test_substitution_must_be_valid() -> None:
    with pytest.raises(PatternError, match="Relu_to_Softplus2"):
        optimized(
            "g (float[a] x) => (float[a] y) { y = Relu(x) }",
            SubstitutionNodeRewriter("Relu", "Softplus2"),
        )


def test_removal() -> None:
    remove = RemovalNodeRewriter("Dropout")
    text = f"{HEAD} {{ d = Dropout(x) z = Add(d, y) }}"
    check_pattern(text, f"{HEAD} {{ z = Add(x, y) }}", [remove])
    assert remove.name == "remove_Dropout"


REFUSALS = {
    "a result has no input": (
        "Dropout",
        "d, m = Dropout(x) w = Where(m, d, y) z = Relu(w)",
        "no input takes the place of a result",
    ),
    "another shape": (
        "Transpose",
        "t = Transpose(x) z = MatMul(t, y)",
        "an input has another type or shape",
    ),
    "another type": (
        "Cast",
        "t = Cast<to = 11>(x) u = Exp(t) z = Cast<to = 1>(u)",
        "an input has another type or shape",
    ),
    "unknown shape": (
        "Unknown",
        "t = my.domain.Unknown(x) z = Add(t, y)",
        "Unknown is not a root",
    ),
}


@pytest.mark.parametrize("name", ["a result has no input", "another shape", "another type"])
def test_removal_refuses(name: str) -> None:
    op, text, reason = REFUSALS[name]
    check_no_match(f"{HEAD} {{ {text} }}", RemovalNodeRewriter(op), reason)


def test_removal_of_what_is_not_known() -> None:
    text = f"{HEAD} {{ t = my.domain.Unknown(x) z = Add(t, y) }}"
    remove = RemovalNodeRewriter("my.domain::Unknown")
    check_no_match(text, remove, "an input has another type or shape")
    assert op_types(optimized(text, remove)) == ["Unknown", "Add"]
