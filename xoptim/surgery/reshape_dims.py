"""The dimensions a Reshape gives when sizes its model fixed are no longer fixed."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from xbuilder.dims import Dim, exact_div, prod, prove_equal, symbols

#: combinations of dimensions tried for one group
_MOST = 200


def reshaped_dims(
    source: Sequence[Dim],
    before: Sequence[Dim],
    after: Sequence[Dim],
    known: Mapping[int, Collection[Dim]],
    rows: Collection[str],
) -> list[Dim] | str:
    """The dimensions of a Reshape, each new symbol at the place of the size it replaces.

    Dimensions are paired in groups that hold the same number of elements. In a group, a new symbol
    goes where the size it had was, if there is only one such place. A symbol that was 1 is the
    first dimension of its group: rows would be mixed otherwise.

    :param source: the dimensions of the input, with the new symbols
    :param before: those it had
    :param after: the dimensions of the result when sizes are fixed
    :param known: size -> dimensions of other results that had this size
    :param rows: symbols that were 1
    :return: the dimensions, or why they are not known

    >>> reshaped_dims(["b", 4, 6], [1, 4, 6], [1, 24], {}, {"b"})
    ['b', 24]
    """
    found: list[Dim] = []
    for mine, theirs in _groups(before, after):
        dims = [source[i] for i in mine]
        wanted = [after[j] for j in theirs]
        if all(d == before[i] for i, d in zip(mine, dims, strict=True)):
            found += wanted
            continue
        placed = _placed(dims, wanted, known, rows)
        if isinstance(placed, str):
            return placed
        found += placed
    return found


def _groups(before: Sequence[Dim], after: Sequence[Dim]) -> list[tuple[list[int], list[int]]]:
    """Positions in both shapes of groups with the same number of elements, the shortest ones."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        mine, theirs = [i], [j]
        i, j = i + 1, j + 1
        while True:
            left, right = prod(before[k] for k in mine), prod(after[k] for k in theirs)
            if left == right:
                break
            shorter = isinstance(left, int) and isinstance(right, int) and left < right
            if i < len(before) and (shorter or j >= len(after)):
                mine.append(i)
                i += 1
            elif j < len(after):
                theirs.append(j)
                j += 1
            else:
                break
        groups.append((mine, theirs))
    rest = list(range(i, len(before))), list(range(j, len(after)))
    if groups:
        groups[-1][0].extend(rest[0])
        groups[-1][1].extend(rest[1])
    elif rest[0] or rest[1]:
        groups.append(rest)
    return groups


def _placed(
    dims: Sequence[Dim],
    wanted: Sequence[Dim],
    known: Mapping[int, Collection[Dim]],
    rows: Collection[str],
) -> list[Dim] | str:
    """The dimensions of one group of the result."""
    total = prod(dims)
    moved = symbols(total) & set(rows)
    if moved and not _leads(dims, moved):
        return f"it moves {', '.join(sorted(moved))} inside a dimension"
    found: list[list[Dim]] = []
    for one in _candidates(total, wanted, known):
        if not any(one == other for other in found) and prove_equal(prod(one), total) is True:
            found.append(one)
    if not found:
        return f"it makes {list(wanted)} of {list(dims)}"
    if moved:  # the outermost place
        found.sort(key=lambda one: _place(one, moved))
        if not _leads(found[0], moved):
            return f"it moves {', '.join(sorted(moved))} inside a dimension"
    elif len(found) > 1:
        return f"it makes {list(wanted)} of {list(dims)}, which may be {found[0]} or {found[1]}"
    return found[0]


def _leads(dims: Sequence[Dim], moved: Collection[str]) -> bool:
    """Whether the first dimension that is not 1 holds some symbols, and no other does."""
    holders = [i for i, d in enumerate(dims) if not symbols(d).isdisjoint(moved)]
    return len(holders) == 1 and all(d == 1 for d in dims[: holders[0]])


def _place(dims: Sequence[Dim], moved: Collection[str]) -> tuple[int, int]:
    """The place of the symbols, and the number of symbols beside them."""
    holders = [i for i, d in enumerate(dims) if not symbols(d).isdisjoint(moved)]
    return holders[0], len(holders)


def _candidates(
    total: Dim, wanted: Sequence[Dim], known: Mapping[int, Collection[Dim]]
) -> Iterator[list[Dim]]:
    """Dimensions that may replace the sizes of a group."""
    for j in range(len(wanted)):
        quotient = exact_div(total, prod(d for i, d in enumerate(wanted) if i != j))
        if quotient is not None:
            yield [quotient if i == j else d for i, d in enumerate(wanted)]
    choices = [[d, *(known.get(d, ()) if isinstance(d, int) else ())] for d in wanted]
    for one in itertools.islice(itertools.product(*choices), _MOST):
        yield list(one)
