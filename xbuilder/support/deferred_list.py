"""A list whose items are made when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from operator import is_
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Deferred(Generic[T]):
    """A placeholder of an item that a list makes when it is read. Several lists may hold it, each
    of them makes its own item.

    :param make: makes an item
    :param stands_for: what is known of the item before
    """

    __slots__ = ("make", "stands_for")

    def __init__(self, make: Callable[[], T], stands_for: Any = None):
        self.make = make
        self.stands_for = stands_for


class DeferredList(list[T]):
    """A list some items of which may be :class:`Deferred`. An item read by its place is made alone;
    anything else but the length of the list makes all of them.

    :param items: the items
    :param made: the deferred items that are made, shared with the list this one is a part of

    ::

        numbers = DeferredList([1, Deferred(lambda: 2)])
        numbers[1], numbers + [3]  # 2, [1, 2, 3]
    """

    #: the items when all of them were made, None before
    _made_of: tuple[T, ...] | None = None

    def __init__(
        self, items: Iterable[T | Deferred[T]] = (), made: dict[Deferred[T], T] | None = None
    ):
        super().__init__(cast("Iterable[T]", items))
        self._made: dict[Deferred[T], T] = {} if made is None else made

    def is_as_made(self) -> bool:
        """Whether the list still holds the items it was built with."""
        if self._made_of is None:
            return True
        items = list(super().__iter__())
        return len(items) == len(self._made_of) and all(map(is_, items, self._made_of))

    def part(self, places: Iterable[int]) -> DeferredList[T]:
        """The items at some places. A deferred one is made once for both lists."""
        slots: list[Any] = list(super().__iter__())
        return DeferredList(map(slots.__getitem__, places), self._made)

    def known(self) -> list[Any]:
        """The items that are made, and what is known of the others."""
        slots: Iterable[Any] = super().__iter__()
        made = self._made
        return [made.get(s, s.stands_for) if s.__class__ is Deferred else s for s in slots]

    def deferred(self) -> tuple[Deferred[T], ...] | None:
        """The items, if all are deferred and none is made yet; None otherwise."""
        slots: tuple[Any, ...] = tuple(super().__iter__())
        return slots if not self._made and set(map(type, slots)) == {Deferred} else None

    def made(self) -> list[T]:
        """The items that are made."""
        slots: Iterable[Any] = super().__iter__()
        items = [self._made.get(s) if s.__class__ is Deferred else s for s in slots]
        return [item for item in items if item is not None]

    def peek(self, place: int) -> T | None:
        """The item at a place, None if it is not made."""
        item: Any = super().__getitem__(place)
        return self._made.get(item) if isinstance(item, Deferred) else item

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, int):
            self._make_all()
            return super().__getitem__(place)
        item: Any = list.__getitem__(self, place)
        if item.__class__ is Deferred:
            item = self._make(item)
            super().__setitem__(place, item)
        return item

    def _make(self, deferred: Deferred[T]) -> T:
        if deferred not in self._made:
            self._made[deferred] = deferred.make()
        return self._made[deferred]

    def __radd__(self, other: list[T]) -> list[T]:
        return [*other, *self]

    def _make_all(self) -> None:
        if self._made_of is None:
            slots: Iterable[Any] = super().__iter__()
            items = [self._make(s) if isinstance(s, Deferred) else s for s in slots]
            super().__setitem__(slice(None), items)
            self._made = {}  # what makes them is not copied with the list
            self._made_of = tuple(items)


def known(items: Sequence[Any]) -> list[Any]:
    """See :meth:`DeferredList.known`, for any list."""
    return items.known() if isinstance(items, DeferredList) else list(items)


def made(items: Sequence[T]) -> Sequence[T]:
    """See :meth:`DeferredList.made`, for any list."""
    return items.made() if isinstance(items, DeferredList) else items


def peek(items: Sequence[T], place: int) -> T | None:
    """See :meth:`DeferredList.peek`, for any list."""
    return items.peek(place) if isinstance(items, DeferredList) else items[place]


def _on_items(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of lists that makes every item before, and those of the lists it is given."""

    @wraps(method)
    def call(self: DeferredList[Any], *args: Any, **more: Any) -> Any:
        for items in (self, *args):
            if isinstance(items, DeferredList):
                items._make_all()
        return method(self, *args, **more)

    return call


_LEFT = {"__class_getitem__", "__getattribute__", "__getitem__", "__init__", "__len__", "__new__"}
for _name, _method in vars(list).items():
    if callable(_method) and _name not in _LEFT:
        setattr(DeferredList, _name, _on_items(_method))
