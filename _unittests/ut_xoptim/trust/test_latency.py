"""Comparing times, with a clock that is told what each run takes."""

from __future__ import annotations

import pytest

from xoptim.testing import model_from_text
from xoptim.trust.latency import compare_runs, fast_session


class Machine:
    """A clock, and runs that move it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def clock(self) -> float:
        return self.now

    def run(self, name: str, *seconds: float):
        """A run that takes these times, one after the other, and again."""
        counts = iter(range(10**9))

        def call() -> None:
            self.calls.append(name)
            self.now += seconds[next(counts) % len(seconds)]

        return call


def test_ratio():
    machine = Machine()
    found = compare_runs(machine.run("a", 2.0), machine.run("b", 1.0), 3, 0.1, machine.clock)
    assert found.before == 2.0 and found.ratio == 0.5


def test_disturbed_runs_do_not_count():
    machine = Machine()
    runs = machine.run("a", 1.0, 9.0), machine.run("b", 1.0, 1.0, 7.0)
    found = compare_runs(*runs, 5, 0.1, machine.clock)
    assert found.ratio == 1.0


def test_in_turns():
    """One block begins with the first one, the next with the second one."""
    machine = Machine()
    compare_runs(machine.run("a", 1.0), machine.run("b", 1.0), 2, 0.1, machine.clock)
    text = "".join(machine.calls)
    assert text == "ab" + "ab" * 3 + "ba" * 3


def test_short_runs_are_repeated():
    machine = Machine()
    compare_runs(machine.run("a", 1e-3), machine.run("b", 1e-3), 1, 0.0, machine.clock)
    assert "".join(machine.calls) == "ab" + "aabb" * 3


def test_a_clock_that_sees_nothing():
    machine = Machine()
    found = compare_runs(machine.run("a", 0.0), machine.run("b", 0.0), 1, 0.0, machine.clock)
    assert found.ratio == 1.0


@pytest.mark.parametrize(
    ("spins", "entry", "value"),
    [(False, "intra_op.allow_spinning", "0"), (True, "force_spinning_stop", "1")],
)
def test_threads_that_wait(spins: bool, entry: str, value: str):
    proto = model_from_text("g (float[a] x) => (float[a] y) { y = Neg(x) }")
    options = fast_session(proto.SerializeToString(), 2, spins).get_session_options()
    assert options.intra_op_num_threads == 2
    assert options.get_session_config_entry(f"session.{entry}") == value
