"""Checks the facts the shape functions of users return, none of which is trusted."""

from __future__ import annotations

import operator
from typing import Any

from ..dims import Dim, DimensionError, Shape, normalize
from ..facts.facts import ResultFacts, Value


class ShapeResultError(ValueError):
    """A shape function returns something that cannot be facts, shown in the message."""


def checked_facts(found: Any, n_outputs: int) -> list[ResultFacts | None] | None:
    """The facts of every output, in their plain form.

    :param found: value the function returned: facts, a list of facts (one for each output), None
    :param n_outputs: number of outputs of the node
    :raises ShapeResultError: it is something else, or the facts contradict themselves

    Example: ``checked_facts(ResultFacts(1, [numpy.int64(2)]), 1)`` is
    ``[ResultFacts(1, (2,))]``.
    """
    if found is None:
        return None
    rows = found if isinstance(found, (list, tuple)) else [found]
    if len(rows) != n_outputs:
        raise ShapeResultError(
            f"{len(rows)} results are returned, the node has {n_outputs} outputs"
        )
    return [None if facts is None else _checked(facts) for facts in rows]


def _checked(facts: Any) -> ResultFacts:
    if not isinstance(facts, ResultFacts):
        raise ShapeResultError(f"ResultFacts is expected, not {type(facts).__name__}")
    shape = None if facts.shape is None else _shape(facts.shape)
    rank = None if facts.rank is None else _integer(facts.rank, "the rank")
    if shape is not None and rank is not None and rank != len(shape):
        raise ShapeResultError(f"rank {rank} contradicts shape {shape}")
    sequence, optional = (
        None if f is None else _checked(f) for f in (facts.sequence, facts.optional)
    )
    value = _value(facts.value, shape, rank)
    return ResultFacts(_integer(facts.type, "the type"), shape, rank, value, sequence, optional)


def _integer(value: Any, what: str) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        raise ShapeResultError(f"{what} is an integer, not {value!r}") from None
    if found < 0:
        raise ShapeResultError(f"{what} cannot be negative: {value!r}")
    return found


def _dim(dim: Any, what: str) -> Dim:
    if not isinstance(dim, str):
        try:
            return operator.index(dim)
        except TypeError:
            raise ShapeResultError(f"{what} is an integer or a text, not {dim!r}") from None
    try:
        return normalize(dim)
    except DimensionError as error:
        raise ShapeResultError(str(error)) from error


def _shape(shape: Any) -> Shape:
    if not isinstance(shape, (list, tuple)):
        raise ShapeResultError(f"a shape is a tuple, not {shape!r}")
    dims = tuple(_dim(dim, "a dimension") for dim in shape)
    if any(isinstance(dim, int) and dim < 0 for dim in dims):
        raise ShapeResultError(f"a dimension is negative in {dims}")
    return dims


def _value(value: Any, shape: Shape | None, rank: int | None) -> Value:
    """Content: a scalar for rank 0, a tuple for rank 1."""
    if value is None:
        return None
    many = isinstance(value, (list, tuple))
    items = tuple(_dim(item, "an element") for item in (value if many else (value,)))
    if shape is not None:
        rank = len(shape)
    if rank is not None and rank != int(many):
        raise ShapeResultError(f"content {value!r} contradicts rank {rank}")
    if many and shape and isinstance(shape[0], int) and shape[0] != len(items):
        raise ShapeResultError(f"content {value!r} contradicts shape {shape}")
    return items if many else items[0]
