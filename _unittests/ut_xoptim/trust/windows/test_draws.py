"""Values drawn for the inputs of a window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from xbuilder.dims import Constraints
from xbuilder.facts.facts import ResultFacts
from xoptim.trust.windows.draws import (
    APART,
    SPECIAL,
    TIES,
    USUAL,
    WHOLE,
    Draw,
    draw_window_inputs,
    smallest,
)
from xoptim.trust.windows.roles import Role
from xoptim.trust.windows.sessions import CannotRunError


def drawn(facts: ResultFacts, role: Role = Role.ANY, **options: Any) -> Any:
    sizes = {"n": 4, "m": 0, "axis_0": 5, "axis_1": 2, "axis_2": 3}
    draw = Draw(**options)
    return draw_window_inputs({"x": facts}, {"x": role}, sizes, Constraints(), draw)["x"]


def test_floats() -> None:
    facts = ResultFacts(TensorProto.FLOAT, ("n", 8))
    usual = drawn(facts)
    assert usual.shape == (4, 8) and usual.dtype == np.float32
    assert (usual < 0).any() and (np.abs(usual) > 3).any()
    assert np.abs(usual[-1]).max() < 0.1  # an epsilon counts
    ties = drawn(facts, kind=TIES)
    assert set(np.unique(ties)) <= set(range(-3, 4)) and len(np.unique(ties)) < ties.size
    one = drawn(ResultFacts(TensorProto.FLOAT, (1, 4)), kind=TIES)
    assert (one == one.max()).sum() > 1 and (one == one.min()).sum() > 1
    special = drawn(facts, kind=SPECIAL)
    assert np.isnan(special).any() and np.isposinf(special).any() and np.isneginf(special).any()
    assert (np.signbit(special) & (special == 0)).any()
    assert ((special != 0) & (np.abs(special) < 1e-40)).any()
    whole = drawn(facts, kind=WHOLE, bits=3)
    assert np.abs(whole).max() <= 8 and (whole == np.round(whole)).all()
    assert drawn(ResultFacts(TensorProto.FLOAT, ("n", "m"))).shape == (4, 0)
    assert drawn(ResultFacts(TensorProto.BFLOAT16, (2,))).dtype.name == "bfloat16"
    assert smallest(TensorProto.INT64) == 0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8])
def test_ties(elem_type: int, seed: int) -> None:
    """The largest and the least number of each line along the last axis are there twice."""
    values = drawn(ResultFacts(elem_type, ("n", 1, "axis_0")), kind=TIES, seed=seed)
    for row in values.reshape(-1, 5):
        assert (row == row.max()).sum() > 1 and (row == row.min()).sum() > 1
    assert len(np.unique(values)) > 2
    assert drawn(ResultFacts(elem_type, (3, "m")), kind=TIES).shape == (3, 0)
    assert drawn(ResultFacts(elem_type, ()), kind=TIES).shape == ()


def test_floats_that_differ() -> None:
    """Those of all the inputs, but not the integers, which are positions."""
    floats = ResultFacts(TensorProto.FLOAT, ("n", 8))
    facts = {"x": floats, "y": floats, "i": ResultFacts(TensorProto.INT64, (64,))}
    found = draw_window_inputs(
        facts, {"i": Role.INDEX}, {"n": 4}, Constraints(), Draw(APART, high=5)
    )
    numbers = np.concatenate([found["x"].ravel(), found["y"].ravel()])
    assert numbers.dtype == np.float32 and len(np.unique(numbers)) == 64
    assert found["i"].max() < 5


def test_large_inputs_repeat_a_block() -> None:
    first, second = (drawn(ResultFacts(1, (100_000,)), seed=s) for s in range(2))
    assert first.shape == (100_000,) and not np.array_equal(first, second)
    assert len(np.unique(first)) > 60_000 and np.array_equal(first[:9], first[65521:65530])


def test_integers() -> None:
    facts = ResultFacts(TensorProto.INT64, (64,))
    assert drawn(facts).min() < 0 < drawn(facts).max()
    extremes = np.iinfo(np.int64)
    assert {extremes.min, extremes.max} <= set(drawn(facts, kind=SPECIAL).tolist())
    places = drawn(facts, Role.INDEX, high=5)
    assert places.min() == 0 and places.max() == 4
    assert drawn(facts, Role.INDEX, high=5, low=-5, kind=TIES).min() < 0
    assert drawn(facts, Role.LENGTH).max() < 5
    assert drawn(facts, Role.DIVISOR).min() > 0
    few = drawn(ResultFacts(TensorProto.INT64, (5,)), Role.DISTINCT, high=9)
    assert len(set(few.tolist())) == 5
    assert drawn(ResultFacts(TensorProto.UINT8, (500,))).max() > 200


def test_booleans_and_words() -> None:
    scalars = [drawn(ResultFacts(TensorProto.BOOL, ()), seed=s).item() for s in range(2)]
    assert sorted(scalars) == [False, True]  # both branches
    rows = drawn(ResultFacts(TensorProto.BOOL, (3, 4)), kind=SPECIAL)
    assert not rows[0].any() and rows[-1].all()
    assert isinstance(drawn(ResultFacts(TensorProto.STRING, (2,)))[0], str)


def test_known_contents_and_sequences() -> None:
    known = ResultFacts(TensorProto.INT64, (2,), value=("n", 7))
    assert drawn(known).tolist() == [4, 7]
    assert drawn(ResultFacts(TensorProto.INT64, (), value="n")).shape == ()
    inner = ResultFacts(TensorProto.FLOAT, ("n",))
    assert [v.shape for v in drawn(ResultFacts(sequence=inner))] == [(4,), (4,)]


def test_unknown_rank() -> None:
    assert drawn(ResultFacts(TensorProto.FLOAT), rank=3).shape == (5, 2, 3)
    assert drawn(ResultFacts(TensorProto.FLOAT, rank=1), rank=3).shape == (5,)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (ResultFacts(), "type of 'x' is not known"),
        (ResultFacts(1, ("other",)), "has no size"),
        (ResultFacts(1, (1 << 20, 1 << 20)), "would have shape"),
        (ResultFacts(1, ("n-9",)), "has no size"),
    ],
)
def test_refusals(facts: ResultFacts, reason: str) -> None:
    with pytest.raises(CannotRunError, match=reason):
        drawn(facts, kind=USUAL)
