"""Calls in other processes: results, errors, deaths, delays, memory."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from xoptim.tasks.many.processes import LostProcess, default_memory, run_in_processes


def work(what):
    """Runs in another process."""
    name, value = what
    if name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "wait":
        time.sleep(value)
    if name == "fail":
        raise ValueError(value)
    return len(bytes(value)) if name == "fill" else (os.getpid(), value)


def outcomes(calls, **kwargs):
    return dict(run_in_processes(work, calls, **{"processes": 1, **kwargs}))


def test_results_and_errors():
    found = outcomes([("give", 3), ("fail", "why"), ("give", 4)])
    assert [found[i][1] for i in (0, 2)] == [3, 4]
    assert isinstance(found[1], ValueError) and str(found[1]) == "why"
    assert found[0][0] == found[2][0] != os.getpid(), "one process is enough"


def test_nothing_to_do():
    assert outcomes([]) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_death_is_the_failure_of_one_call():
    found = outcomes([("give", 1), ("die", 0), ("give", 2)])
    assert (found[0][1], found[2][1]) == (1, 2) and found[0][0] != found[2][0]
    assert isinstance(found[1], LostProcess) and "SIGKILL" in str(found[1])


def test_a_call_that_takes_too_long():
    begin = time.perf_counter()
    found = outcomes([("wait", 100), ("give", 2)], timeout=1)
    assert isinstance(found[0], LostProcess) and "more than 1 s" in str(found[0])
    assert found[1][1] == 2 and time.perf_counter() - begin < 60


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit allocations")
def test_memory_is_bounded():
    found = outcomes([("fill", 2**20), ("fill", 2**31)], memory=2**30)
    assert found[0] == 2**20 and isinstance(found[1], MemoryError)


def test_the_processes_end_with_the_iteration():
    """Who stops reading does not wait for the calls that are left."""
    begin = time.perf_counter()
    running = run_in_processes(work, [("give", 1), ("wait", 100), ("wait", 100)], 1)
    place, (process, _) = next(running)
    running.close()
    assert place == 0 and time.perf_counter() - begin < 60
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(process, 0)
            time.sleep(0.1)


def test_memory_of_the_machine():
    assert default_memory(2) == default_memory(1) // 2 >= 0
