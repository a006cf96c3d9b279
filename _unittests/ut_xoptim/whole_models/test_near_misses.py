"""Near-misses of a pattern give the same results after it as before."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

if sys.platform == "win32":
    pytest.skip("near-misses run in processes made by fork", allow_module_level=True)

from onnx import ModelProto
from ut_xoptim.whole_models import near_misses
from ut_xoptim.whole_models.near_misses import (
    CANNOT_RUN,
    SAME,
    UNDEFINED,
    WRONG,
    NearMiss,
    judge,
    verdicts,
)

from xoptim.testing import model_from_text

MODEL = model_from_text(
    """g (float[a, 2] x) => (float[a, 2] z) <float[2] c = {1, 2}> {
        y = Add(x, c) t = Transpose<perm = [1, 0]>(y) z = Transpose<perm = [1, 0]>(t)
    }""",
    18,
)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 4000, 500))
def test_many_near_misses(start: int) -> None:
    """``python -m ut_xoptim.whole_models.near_misses --count 20000`` judges more of them."""
    found = list(verdicts(range(start, start + 500)))
    assert not [row for row in found if row[1].kind == WRONG]
    counts = Counter(verdict.kind for _, verdict in found)
    assert counts[SAME] > 250, counts


@pytest.fixture
def one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near-misses of one model."""
    monkeypatch.setattr(near_misses, "sources", lambda: [("TransposeTranspose", MODEL)])


@pytest.mark.usefixtures("one_source")
def test_the_same_for_the_same_seed() -> None:
    made = []
    for seed in (*range(20), *range(20)):
        copy = ModelProto()
        copy.CopyFrom(MODEL)
        near = NearMiss(seed, copy)
        near.change()
        assert near.changes or copy == MODEL
        made.append(copy.SerializeToString())
    assert made[:20] == made[20:]
    assert len(set(made)) > 10


@pytest.mark.usefixtures("one_source")
def test_kinds() -> None:
    counts = Counter(judge(seed).kind for seed in range(40))
    assert set(counts) == {SAME, CANNOT_RUN}, counts


@pytest.mark.usefixtures("one_source")
def test_a_wrong_optimizer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes a Sub of every Add."""

    class Wrong(near_misses.GraphBuilder):
        def to_onnx(self) -> ModelProto:
            made = super().to_onnx()
            for node in made.graph.node:
                node.op_type = {"Add": "Sub"}.get(node.op_type, node.op_type)
            return made

    monkeypatch.setattr(near_misses, "GraphBuilder", Wrong)
    verdict = next(v for v in map(judge, range(40)) if v.kind == WRONG)
    assert verdict.changes[0] == "TransposeTranspose"
    assert "values differ" in verdict.reason


@pytest.mark.usefixtures("one_source")
def test_what_the_reference_refuses_is_undefined(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*args: object) -> None:
        raise ValueError("refused")

    monkeypatch.setattr(near_misses, "assert_same_outputs", refuses)
    assert UNDEFINED in {judge(seed).kind for seed in range(10)}


@pytest.mark.usefixtures("one_source")
def test_a_process_that_dies_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its near-misses are judged one by one."""

    def dies(seed: int) -> near_misses.Verdict:
        if seed == 3:
            raise SystemExit(1)
        return near_misses.Verdict(SAME)

    monkeypatch.setattr(near_misses, "judge", dies)
    kinds = [verdict.kind for _, verdict in verdicts(range(5))]
    assert kinds == [SAME, SAME, SAME, CANNOT_RUN, SAME]
