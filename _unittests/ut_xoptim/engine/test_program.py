"""The program of a selection is computed once, and again when the selection changes."""

from __future__ import annotations

import pytest
from ut_xoptim.toy_patterns import NegNeg, Silent

from xoptim import get_pattern_list
from xoptim.engine.program import program_of


def test_read_once() -> None:
    selection = get_pattern_list([Silent(priority=2), NegNeg()])
    program, same = program_of(selection)
    assert same == selection
    assert [p.name for p in program.patterns] == ["NegNeg", "Silent"]
    assert program_of(selection)[0] is program
    assert program.lookouts(18, False) is program.lookouts(18, False)


def test_read_again_after_a_change() -> None:
    first, second = Silent(), NegNeg()
    selection = get_pattern_list([first, second])
    program, _ = program_of(selection)
    first.priority = 5
    changed, _ = program_of(selection)
    assert changed is not program
    assert [p.name for p in changed.patterns] == ["NegNeg", "Silent"]
    first.after = ("Abs",)
    assert program_of(selection)[0] is not changed
    selection.remove(second)
    assert [p.name for p in program_of(selection)[0].patterns] == ["Silent"]
    selection[0] = Silent(priority=7)
    assert program_of(selection)[0].patterns == (selection[0],)
    assert program_of(selection)[0].patterns[0] is selection[0], "equal is not enough"
    selection.append("Identity")
    assert [p.name for p in program_of(selection)[0].patterns] == ["Identity", "Silent"]


def test_selections_declaring_the_same_share_where_they_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two, other = (get_pattern_list([Silent(priority=p), NegNeg()]) for p in (2, 2, 0))
    levels = [program_of(s)[0].lookouts(18, False).levels for s in (one, two, other)]
    assert levels[0] is levels[1] and levels[0] is not levels[2]
    patterns = [program_of(s)[0].lookouts(18, False).patterns for s in (one, two)]
    assert patterns[0] == patterns[1] and patterns[0][0] is not patterns[1][0]
    monkeypatch.setattr(NegNeg, "roots", ("Abs",))
    assert program_of(one)[0].lookouts(18, False).levels is not levels[0], "the class changed"


def test_lists_instead_of_tuples() -> None:
    pattern = Silent()
    pattern.roots = ["Neg"]
    program, _ = program_of([pattern])
    assert program.lookouts(18, False).patterns == [pattern]


def test_opset_and_preparation() -> None:
    late = Silent(min_opset=15)
    program, _ = program_of([NegNeg(), late, "FunctionAttention"])
    names = [p.name for p in program.lookouts(14, False).patterns]
    assert names == ["NegNeg"], "no pattern starts from what FunctionAttention prepares"
    kept = {p.name for p in program.lookouts(18, True).patterns}
    assert kept == {"NegNeg", "Silent", "FunctionAttention"}
