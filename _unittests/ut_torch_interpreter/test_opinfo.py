"""Operators of torch on its own samples: right, refused with an error of ours, or explained."""

from __future__ import annotations

from collections import Counter

import pytest
from ut_torch_interpreter.opinfo_samples import DTYPES, OPERATORS, full_name, outcome, samples
from ut_torch_interpreter.opinfo_tables import NOT_DETERMINED, TIES, WRONG

PARTS = 32
NAMES = {full_name(operator) for operator in OPERATORS}
# neither right, nor refused by us, nor by torch
CLEAR = ("right", "refused", "invalid")


def one_sample(position, operator):
    """One sample of an operator: types, shapes without dimension and empty ones take turns."""
    supported = [dtype for dtype in DTYPES if dtype in operator.dtypes]
    if not supported:
        return None
    found = list(samples(operator, supported[position % len(supported)], 2))
    return found[position // 2 % len(found)] if found else None


def test_one_sample_of_many_operators():
    chosen = [one_sample(i, operator) for i, operator in list(enumerate(OPERATORS))[::4]]
    results = {str(s): outcome(s) for s in chosen if s and full_name(s.operator) not in WRONG}
    wrong = {k: v for k, v in results.items() if v not in CLEAR}
    assert wrong == {}
    counts = Counter(results.values())
    assert counts["right"] > 80
    assert counts["right"] > counts["refused"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_all_operators(part):
    wrong = {}
    for operator in OPERATORS[part::PARTS]:
        name = full_name(operator)
        for sample in (s for dtype in DTYPES for s in samples(operator, dtype, 5)):
            found = outcome(sample)
            if found not in CLEAR and name not in WRONG:
                wrong[str(sample)] = found
    assert wrong == {}


def test_tables():
    for table in (NOT_DETERMINED, TIES, WRONG):
        assert set(table) <= NAMES
    assert all(reason.endswith(".") for reason in WRONG.values())
