"""Tests of xbuilder.files.writing.prefetch."""

from __future__ import annotations

import threading

import pytest

from xbuilder.files.writing.prefetch import prefetched


def test_values_come_in_order_from_another_thread():
    found = list(prefetched(lambda i: (i, threading.get_ident()), range(20), 3))
    assert [i for i, _ in found] == list(range(20))
    assert len({thread for _, thread in found}) == 1
    assert found[0][1] != threading.get_ident()
    assert not list(prefetched(abs, [], 3))


def test_few_values_wait():
    taken = []

    def items():
        for i in range(100):
            taken.append(i)
            yield i

    values = prefetched(abs, items(), 2)
    assert [next(values), next(values)] == [0, 1]
    assert taken == [0, 1, 2, 3]
    values.close()
    assert taken == [0, 1, 2, 3]


def test_a_failure_is_raised_where_the_value_is_used():
    done = []

    def invert(x):
        done.append(x)
        return 1 / x

    values = prefetched(invert, [1, 2, 0, 4, 5, 6, 7, 8], 1)
    assert [next(values), next(values)] == [1, 0.5]
    with pytest.raises(ZeroDivisionError):
        next(values)
    assert 8 not in done
    assert "ThreadPoolExecutor" not in " ".join(t.name for t in threading.enumerate())
