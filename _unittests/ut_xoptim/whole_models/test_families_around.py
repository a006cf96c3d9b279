"""Around every family of patterns: models of its tests where something changes, any size, special
values. Whatever is done, the results stay the same."""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("the models run in processes made by fork", allow_module_level=True)

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto
from ut_xoptim.whole_models import families_around
from ut_xoptim.whole_models.around_changes import CHANGES
from ut_xoptim.whole_models.families_around import (
    FINITE,
    KERNELS,
    NOT_RUN,
    ON_CUDA,
    SELECTIONS,
    SIZES,
    Case,
    around,
    families,
    judge,
    judge_apart,
    warm_up,
)
from ut_xoptim.whole_models.mutant_runs import limited
from ut_xoptim.whole_models.near_misses import CANNOT_RUN, SAME, WRONG, Verdict

FAMILIES = sorted(set(families()) - set(NOT_RUN))
XOPTIM = Path(__file__).resolve().parents[3] / "xoptim"


@st.composite
def cases(draw: st.DrawFn, family: str) -> Case:
    """A model of the family, three changes at most, sizes, what optimizes."""
    models = families()[family][1]
    return Case(
        draw(st.integers(0, len(models) - 1)),
        tuple(draw(st.lists(st.sampled_from(list(CHANGES)), max_size=3))),
        draw(st.integers(0, 2**30)),
        draw(st.sampled_from(SELECTIONS)),
        tuple(draw(st.lists(st.sampled_from(SIZES), min_size=3, max_size=3))),
        draw(st.booleans()),
    )


def counted(family: str, count: int, judge: Any) -> Counter[str] | str:
    """Judges that many cases of a family. Returns the verdicts, or the case that fails."""
    counts: Counter[str] = Counter()

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(cases(family))
        verdict: Verdict = judge(family, case)
        counts[verdict.kind] += 1
        assert verdict.kind != WRONG, f"judge({family!r}, {case}): {verdict}"

    try:
        check()
    except AssertionError as error:
        return str(error)
    return counts


@lru_cache(maxsize=1)
def get_ready() -> None:
    """Fills the caches once in this process, so that its children do not."""
    warm_up()
    counted(FAMILIES[0], 4, lambda *_: Verdict(SAME))


def check_family(family: str, count: int) -> Counter[str]:
    """Judges many cases in one process; in one process each if onnxruntime dies, or never ends."""
    get_ready()
    answered, found = limited(lambda: counted(family, count, judge), 5 + count)
    found = found if answered else counted(family, count, judge_apart)
    assert not isinstance(found, str), found
    assert found[SAME] > 0, f"no case of {family} runs: {found}"
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_around_a_family(family: str) -> None:
    check_family(family, 6)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_further_around_a_family(family: str) -> None:
    """Thousands of cases; ``python -m ut_xoptim.whole_models.families_around --count 200`` judges others."""
    check_family(family, 32)


def test_every_family_has_models() -> None:
    """A new module of patterns needs models in the tables of its tests."""
    assert not [family for family, (_, models) in families().items() if not models]
    assert {*ON_CUDA, *KERNELS, *FINITE, *NOT_RUN} <= set(families())
    paths = [p.relative_to(XOPTIM).with_suffix("") for p in XOPTIM.glob("patterns*/**/*.py")]
    files = {".".join(p.parts) for p in paths if p.name != "__init__"}
    shared = {
        "patterns.products.weighted_product",
        "patterns_ort.kernels",
        "patterns_ort.lowering.definitions",
        "patterns_ort.lowering.missing",
        "patterns_cuda.cuda",
    }
    assert files - set(families()) == shared


# -- what judges is judged


def test_a_wrong_optimizer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes a Sub of every Add."""

    def wrong(model: ModelProto, *_: object) -> ModelProto:
        made = ModelProto.FromString(model.SerializeToString())
        for node in made.graph.node:
            node.op_type = {"Add": "Sub"}.get(node.op_type, node.op_type)
        return made

    monkeypatch.setattr(families_around, "_optimized", wrong)
    found = counted("patterns.elementwise.binary_order", 50, judge)
    assert isinstance(found, str) and "values differ" in found, found


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_every_change_runs(change: str) -> None:
    """A changed model runs for one of the first models at least, the same for the same seed."""
    kinds = []
    for family, example in product(
        ("patterns.elementwise.mul", "patterns.reductions.reduce"), range(12)
    ):
        case = Case(example, (change,), example, "family", (2, 5, 1), False)
        made = around(family, case)
        assert made.model == around(family, case).model
        kinds.append(made.changes and judge(family, case).kind)
    assert SAME in kinds, kinds


def test_a_process_that_dies_is_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the optimization; after it, it is wrong."""
    case = Case(0, (), 0, "family", (2, 1, 5), False)

    def dies(*_: object) -> None:
        os._exit(1)

    with monkeypatch.context() as patch:
        patch.setattr(families_around, "_optimized", dies)
        assert judge_apart("patterns.elementwise.clip", case).kind == WRONG
    monkeypatch.setattr(families_around, "_runs", dies)
    assert judge_apart("patterns.elementwise.clip", case).kind == CANNOT_RUN
