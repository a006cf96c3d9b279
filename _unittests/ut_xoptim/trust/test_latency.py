"""Comparing times, with a clock that is told what each run takes."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from xbuilder.errors import OptionError
from xoptim.testing import model_from_text
from xoptim.trust import latency
from xoptim.trust.latency import bound_run, clock_of, compare_runs, compare_sessions, fast_session


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


class BoundSession:
    """A session on CUDA, which notes what it binds."""

    def __init__(self, providers: list[str]):
        self.providers, self.inputs, self.outputs, self.calls = providers, {}, [], []

    def get_providers(self) -> list[str]:
        return self.providers

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="y", type="tensor(float)")]

    def get_inputs(self) -> list[SimpleNamespace]:
        return []

    def get_overridable_initializers(self) -> list[SimpleNamespace]:
        return []

    def io_binding(self) -> SimpleNamespace:
        return SimpleNamespace(
            bind_ortvalue_input=lambda name, value: self.inputs.update({name: value}),
            bind_output=lambda name, device: self.outputs.append((name, device)),
        )

    def run_with_iobinding(self, binding: Any) -> None:
        self.calls.append("bound")

    def run(self, names: Any, feeds: Any, options: Any = None) -> None:
        self.calls.append("run")


def test_runs_on_cuda_are_bound(monkeypatch):
    """The time is that of the model, without the copies of its inputs."""
    made = SimpleNamespace(ortvalue_from_numpy=lambda value, device, number: (device, value.shape))
    monkeypatch.setattr(onnxruntime, "OrtValue", made)
    session = BoundSession(["CUDAExecutionProvider", "CPUExecutionProvider"])
    bound_run(session, {"x": np.zeros((2, 3), np.float32)})()
    assert session.inputs == {"x": ("cuda", (2, 3))} and session.outputs == [("y", "cuda")]
    assert session.calls == ["bound"]


def test_first_runs_on_cuda_are_not_measured(monkeypatch):
    """They load kernels; a turn begins with a run that may build a plan."""
    made = SimpleNamespace(ortvalue_from_numpy=lambda value, device, number: (device, value.shape))
    monkeypatch.setattr(onnxruntime, "OrtValue", made)
    calls: list[str] = []
    first, second = (BoundSession(["CUDAExecutionProvider"]) for _ in range(2))
    first.run_with_iobinding = lambda binding: calls.append("first")
    second.run_with_iobinding = lambda binding: calls.append("second")
    before: list[int] = []

    def clock() -> float:
        before.append(len(calls))
        return float(len(before))

    compare_sessions(first, second, {"x": np.zeros(2, np.float32)}, 1, 1.0, clock)
    assert before[0] == 40 and calls[:40] == ["first", "second"] * 20
    # the clock is read twice around the runs that tell how long one is, then around each turn
    assert calls[42:46] == ["first"] * 2 + ["second"] * 2
    assert before[2:4] == [43, 44]


@pytest.mark.parametrize("value", [np.array(["a"], object), [np.zeros(2)]])
def test_strings_and_sequences_are_not_bound(value: Any):
    session = BoundSession(["CUDAExecutionProvider", "CPUExecutionProvider"])
    bound_run(session, {"x": value})()
    assert session.calls == ["run"]


def test_runs_on_cpu_are_not_bound():
    session = BoundSession(["CPUExecutionProvider"])
    bound_run(session, {"x": np.zeros(2, np.float32)})()
    assert session.calls == ["run"]


def test_clocks():
    assert clock_of("CPU") is time.process_time and clock_of("CUDA") is time.perf_counter


def test_a_provider_that_does_not_start(monkeypatch):
    """onnxruntime then runs the model on CPU, without a word but its log."""
    monkeypatch.setattr(
        latency, "providers_of", lambda processor: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    )
    proto = model_from_text("g (float[a] x) => (float[a] y) { y = Neg(x) }")
    with (
        pytest.warns(UserWarning, match="CUDAExecutionProvider"),
        pytest.raises(OptionError, match="cannot use it"),
    ):
        fast_session(proto.SerializeToString(), 1, processor="CUDA")
