"""Files from strangers: a mutant is optimized as well as it was, or refused in clear words."""

from __future__ import annotations

import os
import sys
from collections import Counter

import pytest

if sys.platform == "win32":
    pytest.skip("mutants run in processes made by fork", allow_module_level=True)

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ut_xbuilder.graph_checks import parse
from ut_xoptim.whole_models import mutant_runs
from ut_xoptim.whole_models.mutant_runs import (
    CLEAN_ERROR,
    OK,
    judge,
    limited,
    mutant_of,
    names_something,
    warm_up,
)


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.integers(0, 2**32 - 1))
def test_a_mutant_is_optimized_or_refused(seed: int) -> None:
    warm_up()
    name, data, feeds = mutant_of(seed, real=0.0)
    verdict = judge(data, feeds)
    assert verdict.kind in (OK, CLEAN_ERROR), f"{seed} {name}: {verdict}"


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 3000, 200))
def test_many_mutants(start: int) -> None:
    """``python -m ut_xoptim.whole_models.mutant_runs --count 4000`` judges more of them."""
    found = list(mutant_runs.verdicts(range(start, start + 200)))
    wrong = [row for row in found if row[2].kind not in (OK, CLEAN_ERROR)]
    assert not wrong, wrong
    counts = Counter(verdict.kind for _, _, verdict in found)
    assert min(counts[OK], counts[CLEAN_ERROR]) > 20, counts
    assert sum(verdict.ran for _, _, verdict in found) > 10, "some of them run on both sides"


def test_the_same_mutant_for_the_same_seed() -> None:
    assert mutant_of(5)[:2] == mutant_of(5)[:2]
    assert len({mutant_of(seed)[1] for seed in range(20)}) > 15


# -- what judges is judged


def answer(value):
    """The value a process returns when it ends well."""
    return lambda: value


def test_limits() -> None:
    assert limited(answer(3)) == (True, 3)
    assert limited(lambda: bytearray(2**40)) == (False, "no answer")

    def hangs():
        while True:
            pass

    assert limited(hangs, seconds=1) == (False, "SIGKILL")


def test_a_batch_that_dies_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One mutant ends its process: the others have their verdict, and so has it."""
    warm_up()
    expected = {seed: row for seed, _, row in mutant_runs.verdicts(range(3))}
    kept, fatal = mutant_runs.optimize, mutant_of(1, 0.02)[1]

    def dies(data: bytes) -> tuple[str, bytes]:
        if data == fatal:
            os._exit(1)
        return kept(data)

    monkeypatch.setattr(mutant_runs, "optimize", dies)
    found = {seed: row for seed, _, row in mutant_runs.verdicts(range(3))}
    assert found[1].kind == "death"
    assert {**found, 1: expected[1]} == expected


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((CLEAN_ERROR, "InvalidModelError: Node 'n' has no input"), CLEAN_ERROR),
        ((CLEAN_ERROR, "InvalidModelError: it is wrong"), "vague error"),
        (("exception", "TypeError: unhashable type"), "exception"),
    ],
)
def test_classes_of_errors(answer, kind, monkeypatch) -> None:
    monkeypatch.setattr(mutant_runs, "optimize", lambda data: answer)
    assert judge(b"", {}).kind == kind


def wrong_operator(data: bytes) -> tuple[str, bytes]:
    """An optimizer that is wrong."""
    model = mutant_runs.ModelProto.FromString(data)
    for node in model.graph.node:
        if node.op_type in ("Relu", "Sigmoid", "Tanh", "Neg", "Abs"):
            node.op_type = "Exp"
    return OK, model.SerializeToString()


@pytest.mark.parametrize(
    ("optimizer", "kind"),
    [
        (lambda data: (OK, data), OK),
        (wrong_operator, "wrong result"),
        (lambda data: (OK, data[: len(data) // 2]), "worse"),
        (lambda data: 1 / 0, "death"),
    ],
)
def test_classes_of_models(optimizer, kind, monkeypatch) -> None:
    monkeypatch.setattr(mutant_runs, "optimize", optimizer)
    model = parse("agraph (float[2, 3] x) => (float[2, 3] y) { z = Neg(x) y = Relu(z) }")
    assert judge(model.SerializeToString(), {}).kind == kind


def test_messages_that_name_nothing() -> None:
    assert names_something("Node Add(x, y) -> z has no type")
    assert names_something("'/tmp/mutant.onnx' is empty")
    assert not names_something("it is not valid")
