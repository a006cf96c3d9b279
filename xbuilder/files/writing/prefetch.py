"""Prefetches the values of a function: other threads compute them while earlier ones are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Value = TypeVar("Value")


def prefetched(
    function: Callable[[Item], Value], items: Iterable[Item], ahead: int, threads: int = 1
) -> Iterator[Value]:
    """Yields the values of a function, in order, prefetched by other threads.

    It is worth it for a function that releases the GIL: reading, writing, numpy.

    :param function: the function
    :param items: its arguments
    :param ahead: maximum number of values computed in advance
    :param threads: number of threads, each computes one value at a time

    >>> list(prefetched(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    from concurrent.futures import ThreadPoolExecutor  # most models need none

    waiting: deque[Future[Value]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
