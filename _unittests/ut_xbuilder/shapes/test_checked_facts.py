"""Answers of the shape functions of users, checked and put in their plain form."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes import (
    get_shape_function,
    registered_operators,
    registry,
    trust_shape_functions,
)
from xbuilder.shapes.checked_facts import ShapeResultError, checked_facts
from xbuilder.shapes.registry import function_name, is_trusted


@pytest.mark.parametrize(
    ("answer", "n_outputs", "expected"),
    [
        (None, 3, None),
        (ResultFacts(1, ("a+a", 3)), 1, [ResultFacts(1, ("2*a", 3))]),
        ([ResultFacts(1), None], 2, [ResultFacts(1), None]),
        ((ResultFacts(1, None, 2),), 1, [ResultFacts(1, None, 2)]),
        (ResultFacts(np.int32(7), [np.int64(2)]), 1, [ResultFacts(7, (2,))]),
        (ResultFacts(7, (2,), 1, [1, "a-1"]), 1, [ResultFacts(7, (2,), 1, (1, "a-1"))]),
        (ResultFacts(7, (), None, np.int64(-1)), 1, [ResultFacts(7, (), None, -1)]),
        (ResultFacts(7, ("n",), None, (1, 2)), 1, [ResultFacts(7, ("n",), None, (1, 2))]),
        (
            ResultFacts(sequence=ResultFacts(1, [2])),
            1,
            [ResultFacts(sequence=ResultFacts(1, (2,)))],
        ),
    ],
)
def test_right_answers(answer: Any, n_outputs: int, expected: Any) -> None:
    """Lists and integers of numpy are accepted."""
    assert checked_facts(answer, n_outputs) == expected


@pytest.mark.parametrize(
    ("answer", "n_outputs", "reason"),
    [
        (ResultFacts(1), 2, "1 results"),
        ([], 1, "0 results"),
        ("float", 1, "not str"),
        (ResultFacts(1, (1.0,)), 1, r"1\.0"),
        (ResultFacts(-1), 1, "negative"),
        (ResultFacts(1, ("a-a-1",)), 1, "negative"),
        (ResultFacts(1, 3), 1, "a shape is a tuple"),
        (ResultFacts(1, (2,), 2), 1, "rank 2"),
        (ResultFacts(7, None, 2, 5), 1, "contradicts rank 2"),
        (ResultFacts(7, (3,), None, (1, 2)), 1, "contradicts shape"),
        (ResultFacts(optional=3), 1, "not int"),
    ],
)
def test_wrong_answers(answer: Any, n_outputs: int, reason: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(ShapeResultError, match=reason):
        checked_facts(answer, n_outputs)


def test_who_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of the package, their tests check them; a user says the same of others."""
    own = [get_shape_function(d, o, v) for d, o, v in registered_operators()]
    package = [f for f in own if f.__module__.startswith("xbuilder.")]
    assert len(package) > 300 and all(map(is_trusted, package))
    monkeypatch.setattr(registry, "_TRUSTED", dict(registry._TRUSTED))
    for mine in (lambda ctx: None, partial(max, 1)):
        assert not is_trusted(mine)
        trust_shape_functions([mine])
        assert is_trusted(mine)
    assert "<lambda>" in function_name(lambda ctx: None)
    assert "partial" in function_name(partial(max, 1))
