"""A list whose items are made when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Deferred(Generic[T]):
    """An item that is made once, when a list that holds it is read.

    :param make: makes it
    :param stands_for: what is known of it before
    """

    __slots__ = ("_make", "made", "stands_for")

    def __init__(self, make: Callable[[], T], stands_for: Any = None):
        self._make = make
        self.stands_for = stands_for
        #: the item, None before it is made
        self.made: T | None = None

    def get(self) -> T:
        """The item."""
        if self.made is None:
            self.made = self._make()
        return self.made

    def known(self) -> Any:
        """The item if it is made, what is known of it otherwise."""
        return self.stands_for if self.made is None else self.made


class DeferredList(list[T]):
    """A list some items of which may be :class:`Deferred`. An item read by its place is made alone;
    anything else but the length of the list makes all of them.

    :param items: the items

    ::

        numbers = DeferredList([1, Deferred(lambda: 2)])
        numbers[1], numbers + [3]  # 2, [1, 2, 3]
    """

    #: the items when all of them were made, None before
    _made_of: tuple[T, ...] | None = None

    def __init__(self, items: Iterable[T | Deferred[T]] = ()):
        super().__init__(cast("Iterable[T]", items))

    def is_as_made(self) -> bool:
        """Whether the list still holds the items it was built with."""
        if self._made_of is None:
            return True
        items = list(super().__iter__())
        return len(items) == len(self._made_of) and all(map(_is, items, self._made_of))

    def part(self, places: Iterable[int]) -> DeferredList[T]:
        """The items at some places. A deferred one is made once for both lists."""
        slots: list[Any] = list(super().__iter__())
        return DeferredList(map(slots.__getitem__, places))

    def known(self) -> list[Any]:
        """The items that are made, and what is known of the others."""
        slots: Iterable[Any] = super().__iter__()
        return [s.known() if s.__class__ is Deferred else s for s in slots]

    def made(self) -> list[T]:
        """The items that are made."""
        slots: Iterable[Any] = super().__iter__()
        items = [s.made if s.__class__ is Deferred else s for s in slots]
        return [item for item in items if item is not None]

    def peek(self, place: int) -> T | None:
        """The item at a place, None if it is not made."""
        item: Any = super().__getitem__(place)
        return item.made if isinstance(item, Deferred) else item

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, int):
            self._make_all()
            return super().__getitem__(place)
        item: Any = list.__getitem__(self, place)
        if item.__class__ is Deferred:
            item = item.get()
            super().__setitem__(place, item)
        return item

    def __radd__(self, other: list[T]) -> list[T]:
        return [*other, *self]

    def _make_all(self) -> None:
        if self._made_of is None:
            slots: Iterable[Any] = super().__iter__()
            items = [s.get() if isinstance(s, Deferred) else s for s in slots]
            super().__setitem__(slice(None), items)
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


def _is(a: object, b: object) -> bool:
    return a is b


def _on_items(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of lists that makes every item before."""

    @wraps(method)
    def call(self: DeferredList[Any], *args: Any, **more: Any) -> Any:
        self._make_all()
        return method(self, *args, **more)

    return call


_LEFT = {"__class_getitem__", "__getattribute__", "__getitem__", "__init__", "__len__", "__new__"}
for _name, _method in vars(list).items():
    if callable(_method) and _name not in _LEFT:
        setattr(DeferredList, _name, _on_items(_method))
