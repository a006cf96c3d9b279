"""A list whose items are made when they are first read."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from xbuilder.support.deferred_list import Deferred, DeferredList, known, made, peek

FOUR = [4]


def two() -> int:
    return 2


def three() -> int:
    return 3


def numbers() -> DeferredList[int]:
    return DeferredList([1, Deferred(two, "two"), Deferred(three, "three")])


def test_an_item_is_made_alone() -> None:
    items = numbers()
    assert len(items) == 3 and bool(items) and known(items) == [1, "two", "three"]
    assert items[1] == 2 and items[-1] == 3 and items[0] == 1
    items = numbers()
    assert items[2] == 3 and known(items) == [1, "two", 3]
    assert peek(items, 1) is None and peek(items, 2) == 3 and items.is_as_made()
    assert known([1, 2]) == [1, 2] and peek([1, 2], 1) == 2


def test_a_part_shares_the_items() -> None:
    made = []
    items: DeferredList[str] = DeferredList([Deferred(lambda: made.append(1) or "made")])
    part = items.part([0, 0])
    assert part[0] == part[1] == items[0] == "made" and made == [1]
    assert part.known() == part.made() == ["made", "made"]


def test_lists_share_what_makes_their_items() -> None:
    slots = [Deferred(list, "empty"), Deferred(list, "other")]
    one: DeferredList[list[int]] = DeferredList(slots)
    other: DeferredList[list[int]] = DeferredList(slots)
    assert one.deferred() == other.deferred() == tuple(slots)
    assert one[0] == [] and one[0] is one[0] and one[0] is not other[0]
    assert one.deferred() is None and one.known() == [[], "other"]
    assert numbers().deferred() is None, "an item is given"


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (list, [1, 2, 3]),
        (tuple, (1, 2, 3)),
        (sorted, [1, 2, 3]),
        (repr, "[1, 2, 3]"),
        (lambda items: [*items], [1, 2, 3]),
        (lambda items: items[1:], [2, 3]),
        (lambda items: items + FOUR, [1, 2, 3, 4]),
        (lambda items: FOUR + items, [4, 1, 2, 3]),
        (lambda items: items * 2, [1, 2, 3, 1, 2, 3]),
        (lambda items: 3 in items, True),
        (lambda items: items == [1, 2, 3], True),
        (lambda items: items == numbers(), True),
        (lambda items: items != numbers(), False),
        (lambda items: items.index(3), 2),
        (lambda items: list(reversed(items)), [3, 2, 1]),
        (lambda items: items.pop(), 3),
        (lambda items: items.copy(), [1, 2, 3]),
        (copy.copy, [1, 2, 3]),
        (lambda items: pickle.loads(pickle.dumps(items)), [1, 2, 3]),
    ],
)
def test_anything_else_makes_all(use: Callable[[Any], Any], expected: Any) -> None:
    assert use(numbers()) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda items: items.append(4), [1, 2, 3, 4]),
        (lambda items: items.sort(key=lambda n: -n), [3, 2, 1]),
        (lambda items: items.remove(2), [1, 3]),
        (lambda items: items.__setitem__(1, 5), [1, 5, 3]),
        (lambda items: items.__delitem__(0), [2, 3]),
        (lambda items: items.clear(), []),
    ],
)
def test_a_change_is_seen(change: Callable[[Any], Any], expected: Any) -> None:
    items = numbers()
    assert list(items) == [1, 2, 3] and items.is_as_made()
    items = numbers()
    change(items)
    assert items == expected and not items.is_as_made()


def test_items_that_are_made() -> None:
    calls: list[int] = []
    items = DeferredList([1, Deferred(lambda: calls.append(2) or 2), 3])
    assert made(items) == [1, 3] and not calls
    assert items[1] == 2
    assert made(items) == [1, 2, 3] and made([1, 2]) == [1, 2]
