"""Parameters of a pattern written in a selection."""

from __future__ import annotations

import pytest

from xbuilder.errors import OptionError
from xoptim import get_pattern_list


def test_parameters_of_a_pattern() -> None:
    (pattern,) = get_pattern_list("MatMulAdd(allow_reshape=True)")
    assert pattern.allow_reshape
    patterns = get_pattern_list("default+MatMulAdd(allow_reshape=True)")
    assert [p.allow_reshape for p in patterns if p.name == "MatMulAdd"] == [True]
    assert len(patterns) == len(get_pattern_list("default"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("MatMulAdd(unknown=1)", "does not accept"),
        ("MatMulAdd(1)", "expected Name"),
        ("MatMulAdd(allow_reshape=x y)", "expected Name"),
        ("MatMulAdd(allow_reshape=True, allow_reshape=False)", "expected Name"),
        ("MatMulAdd(**{})", "expected Name"),
        ("default(a=1)", "is a set of patterns"),
        ("Nothing(a=1)", "Unknown pattern"),
    ],
)
def test_wrong_parameters_are_refused(text: str, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        get_pattern_list(text)
