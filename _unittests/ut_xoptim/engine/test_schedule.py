"""Which patterns look where, iteration after iteration."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xoptim.toy_patterns import Silent, toy_optimizer

from xoptim.engine.dispatch import Dispatch
from xoptim.engine.schedule import SWEEP_SHARE, Schedule
from xoptim.engine.worklist import Worklist


def _schedule(g: Any, *priorities: int, near: Any = None) -> Schedule:
    patterns = [Silent(priority=p) for p in priorities]
    return Schedule(g.store, Dispatch(patterns, g.main_opset, False), patterns, near)


def _looking(schedule: Schedule) -> list[tuple[int, bool]]:
    """Priority of what looks somewhere, and whether it looks everywhere."""
    return [(p.priority, roots is not schedule.near) for p, roots in schedule.looking()]


@pytest.fixture
def g() -> Any:
    return toy_optimizer()


def test_higher_priorities_wait(g: Any) -> None:
    schedule = _schedule(g, 0, 2)
    assert _looking(schedule) == [(0, True)]
    assert schedule.found_nothing()
    assert schedule.priority == 2
    assert _looking(schedule) == [(2, True)], "those before have seen everything"
    assert not schedule.found_nothing()
    assert _looking(schedule) == []


def test_the_whole_graph_once_after_the_last_priority(g: Any) -> None:
    schedule = _schedule(g, 0, 2)
    schedule.found()
    schedule.changed(0, _one_change(g))
    assert _looking(schedule) == [(0, False)]
    assert schedule.found_nothing()
    assert _looking(schedule) == [(2, True)], "those of priority 0 looked near the change"
    assert schedule.found_nothing()
    assert _looking(schedule) == [(0, True)], "then everywhere, once the others found nothing"
    assert not schedule.found_nothing()


def test_near_a_few_changes_then_everywhere(g: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xoptim.engine.schedule.SWEEP_SHARE", 0)
    schedule = _schedule(g, 1)
    worklist = Worklist(g.store)
    negs = g.store.bucket("", "Neg")
    with worklist:
        g.store.replace(negs[:1], [g.store.proto(negs[0])])
    schedule.found()
    schedule.changed(1, worklist)
    assert _looking(schedule) == [(1, False)]
    assert schedule.records() == schedule.near.records
    assert schedule.found_nothing()
    assert _looking(schedule) == [(1, True)], "the whole graph confirms the fixed point"
    assert not schedule.found_nothing()


def test_many_changes_are_a_sweep(g: Any) -> None:
    schedule = _schedule(g, 1)
    schedule.found()
    assert _looking(schedule) == []
    schedule.changed(len(g.store) // SWEEP_SHARE + 1, Worklist(g.store))
    assert _looking(schedule) == [(1, True)]
    assert schedule.records() is g.store.nodes


def test_restart(g: Any) -> None:
    schedule = _schedule(g, 1, near=g.store.nodes[:0])
    assert _looking(schedule) == [], "nothing changed since the fixed point"
    schedule.restart()
    assert _looking(schedule) == [(1, True)]


def _one_change(g: Any) -> Worklist:
    negs = g.store.bucket("", "Neg")
    with Worklist(g.store) as worklist:
        g.store.replace(negs[:1], [g.store.proto(negs[0])])
    return worklist


def test_near_what_rewriters_changed_then_everywhere(
    g: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any number of times near, the whole graph once, when it is asked for."""
    monkeypatch.setattr("xoptim.engine.schedule.SWEEP_SHARE", 0)
    schedule = _schedule(g, 0, 2)
    while schedule.found_nothing():
        pass
    assert not schedule.confirm(), "it is a fixed point"
    for _ in range(2):
        schedule.resume(_one_change(g))
        assert _looking(schedule) == [(0, False), (2, False)]
        schedule.found()
        schedule.changed(1, _one_change(g))
        assert _looking(schedule) == [(0, False), (2, False)]
        assert not schedule.found_nothing() and not schedule.is_confirmed
    assert schedule.confirm() and schedule.is_confirmed
    assert _looking(schedule) == [(0, True), (2, True)]
    assert not schedule.found_nothing() and schedule.is_confirmed
    assert not schedule.confirm()
    schedule.found()
    assert not schedule.is_confirmed, "something is left to do"
    assert schedule.found_nothing(), "and is confirmed by a sweep as usual"


def test_many_changes_of_rewriters_are_a_sweep(g: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xoptim.engine.schedule.SWEEP_SHARE", len(g.store) + 1)
    schedule = _schedule(g, 1)
    assert not schedule.found_nothing()
    schedule.resume(_one_change(g))
    assert _looking(schedule) == [(1, True)] and not schedule.confirm()


def test_near_and_nowhere_else(g: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule that starts from a fixed point is not confirmed, rewriters or not."""
    monkeypatch.setattr("xoptim.engine.schedule.SWEEP_SHARE", 0)
    schedule = _schedule(g, 1, near=g.store.nodes[:1])
    assert not schedule.found_nothing()
    schedule.resume(_one_change(g))
    assert _looking(schedule) == [(1, False)]
    assert not schedule.found_nothing() and not schedule.confirm()
