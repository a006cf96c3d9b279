"""The sizes given to the symbolic dimensions of a window: several, those the facts allow."""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from xbuilder.dims import Constraints, Dim, evaluate, symbols
from xbuilder.dims.errors import DimensionError
from xbuilder.facts.facts import ResultFacts

Sizes = dict[str, int]

#: different sizes, one after the other
_DISTINCT = (2, 3, 5, 4, 7, 6)
#: other sizes, all equal, for windows that refuse different ones
_EQUAL = (4, 8, 16, 32)
#: one of them, at which nodes around have to agree too: a bucket or a mask may start late
_WIDE = 32
#: larger ones, for whole models
_LARGE = (64, 224)
#: number of symbols that are 0, then 1, alone
_ALONE = 3
#: largest size that is looked for when the symbols depend on each other
_SEARCHED = 12
#: sizes above are not tried
_MOST = 1 << 16
#: values of expressions that are remembered
_EVALUATED = 1 << 14
#: ranks tried when a rank is not known
RANKS = (2, 3, 4, 1, 0)


def axis_names(rank: int) -> list[str]:
    """The symbols that stand for the sizes of an input whose shape is not known, the same ones for
    all of them.
    """
    return [f"axis_{i}" for i in range(rank)]


def symbols_of(facts: Iterable[ResultFacts], constraints: Constraints) -> list[str]:
    """The symbols the shapes and the contents of some results are made of, in order.

    :param facts: facts of the results
    :param constraints: what is known of the dimensions
    """
    found: dict[str, None] = {}
    for fact in facts:
        for dim in (*(fact.shape or ()), *_content(fact)):
            dim = constraints.canonical(dim)
            if not isinstance(dim, int):
                found.update(dict.fromkeys(sorted(symbols(dim)) or [dim]))
    return list(found)


def _content(facts: ResultFacts) -> tuple[Dim, ...]:
    value = facts.value
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def assignments(
    names: Sequence[str],
    constraints: Constraints,
    large: bool = False,
    wide: bool = False,
    shown: Mapping[str, int] = MappingProxyType({}),
    read: Sequence[int] = (),
) -> Iterator[tuple[Sizes, bool]]:
    """Sizes to try, the most telling first, and whether they only serve when none was accepted.

    :param names: symbols
    :param constraints: what is known of the dimensions; sizes that break it are left out
    :param large: sizes of images are tried as well
    :param wide: a size of 32 is tried even when smaller ones were accepted
    :param shown: sizes that show a difference in a smaller window, by symbol
    :param read: sizes that one of the symbols may need
    """
    n = len(names)
    distinct = [_DISTINCT[i % len(_DISTINCT)] for i in range(n)]
    first = tuple(shown.get(name, size) for name, size in zip(names, distinct, strict=True))
    is_allowed = allowed(dict(zip(names, first, strict=True)), constraints)
    if is_allowed and all(first):  # it is often enough: the others wait
        yield dict(zip(names, first, strict=True)), False
    rows: list[tuple[list[int], bool]] = [(distinct, False)]
    for k, i in itertools.product(read, range(n)):
        rows.append(([k if i == j else d for j, d in enumerate(distinct)], True))
    if n:
        rows += [([1] * n, False), ([0] * n, False), ([d + 1 for d in distinct], True)]
        rows += [([k] * n, not wide or k != _WIDE) for k in _EQUAL]
        rows += [([k] * n, True) for k in (_LARGE if large else ())]
    if n > 1:
        for value in (1, 0):
            for i in range(min(n, _ALONE)):
                rows.append(([value if k == i else d for k, d in enumerate(distinct)], False))
        rows += [([4] * n, False)] if n < 4 else []
    kept: dict[tuple[int, ...], bool] = {}
    for row, spare in rows:
        if tuple(row) not in kept and allowed(dict(zip(names, row, strict=True)), constraints):
            kept[tuple(row)] = spare
    # the symbols depend on each other, or have bounds
    if n and not any(all(row) and not spare for row, spare in kept.items()):
        found = _dependent(names, constraints) or _above_bounds(names, constraints)
        kept = {**dict.fromkeys(found, False), **kept}
    if is_allowed and not all(first):  # nothing differs where there is nothing
        kept = dict(itertools.islice(kept.items(), 1)) | {first: False} | kept
    for values, spare in kept.items():
        if values != first or not all(first):
            yield dict(zip(names, values, strict=True)), spare and values != first


def _dependent(names: Sequence[str], constraints: Constraints) -> list[tuple[int, ...]]:
    """A few sizes that are not 0 and that the constraints allow, found one by one."""
    every = itertools.product(range(1, _SEARCHED + 1), repeat=min(len(names), 3))
    rest = (1,) * max(len(names) - 3, 0)
    found = (row + rest for row in every)
    right = (r for r in found if allowed(dict(zip(names, r, strict=True)), constraints))
    return list(itertools.islice(right, 3))


def _above_bounds(names: Sequence[str], constraints: Constraints) -> list[tuple[int, ...]]:
    """A few multiples of the least sizes the constraints allow: a signal of `n >= 160` samples has
    `n//160 - 1` frames."""
    least = [_least_size(name, constraints) for name in names]
    rows = (tuple(k * size for size in least) for k in (2, 3, 5))
    return [r for r in rows if allowed(dict(zip(names, r, strict=True)), constraints)]


def _least_size(name: str, constraints: Constraints) -> int:
    """The least size of a symbol that keeps the bounds of its own, :data:`_MOST` if it is larger.
    They are those of formulas that grow with the symbol, otherwise the size is only one to try."""
    return bisect_left(range(_MOST), True, lo=1, key=lambda n: allowed({name: n}, constraints))


def allowed(sizes: Mapping[str, int], constraints: Constraints) -> bool:
    """Whether sizes keep the constraints that only mention them.

    :param sizes: sizes by symbol
    :param constraints: what is known of the dimensions
    """
    for dim, least in constraints.lower_bounds():
        size = size_of(dim, sizes, constraints)
        if size is not None and size < least:
            return False
    for kind, a, b, _ in constraints.items():
        x, y = (size_of(d, sizes, constraints) for d in (a, b))
        if x is None or y is None or x == y:
            continue
        if kind == "equal" or 1 not in (x, y):
            return False
    return True


def size_of(dim: Dim, sizes: Mapping[str, int], constraints: Constraints) -> int | None:
    """The value of a dimension, None if it is not known.

    :param dim: a dimension
    :param sizes: sizes by symbol
    :param constraints: what is known of the dimensions
    """
    dim = constraints.canonical(dim)
    if isinstance(dim, int):
        return dim
    if dim in sizes:
        return sizes[dim]
    try:
        values = tuple(sizes[name] for name in _ordered_symbols(dim))
    except KeyError:
        return None
    return _evaluated(dim, values)


@functools.lru_cache(_EVALUATED)
def _ordered_symbols(dim: Dim) -> tuple[str, ...]:
    return tuple(sorted(symbols(dim)))


@functools.lru_cache(_EVALUATED)
def _evaluated(dim: Dim, values: tuple[int, ...]) -> int | None:
    """The value of an expression, given those of its symbols: the same windows come again with the
    same sizes."""
    try:
        return evaluate(dim, dict(zip(_ordered_symbols(dim), values, strict=True)))
    except (DimensionError, KeyError, ZeroDivisionError):
        return None


def keeps_facts(facts: ResultFacts, value: Any, sizes: Sizes, constraints: Constraints) -> bool:
    """Whether a computed result has the rank and the shape the facts give it.

    The symbols that only this result has take their sizes from it.

    :param facts: facts of the result
    :param value: the result
    :param sizes: sizes by symbol, completed
    :param constraints: what is known of the dimensions
    """
    if not isinstance(value, np.ndarray):
        return True
    rank = facts.known_rank()
    if rank is not None and rank != value.ndim:
        return False
    for dim, size in zip(facts.shape or (), value.shape, strict=False):
        expected = size_of(dim, sizes, constraints)
        if expected is None:
            name = constraints.canonical(dim)
            if isinstance(name, str) and symbols(name) <= {name}:
                sizes[name] = size
        elif expected != size:
            return False
    return allowed(sizes, constraints)
