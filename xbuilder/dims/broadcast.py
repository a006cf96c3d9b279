"""Broadcasting of dimensions and shapes, comparison of shapes."""

from __future__ import annotations

from functools import lru_cache

from . import build
from .api import CACHE_SIZE, Dim, Shape, normalize
from .api import apply as apply_dims
from .constraints import Constraints
from .errors import DimensionError
from .prove import prove_equal


@lru_cache(maxsize=CACHE_SIZE)
def _broadcast(a: Dim, b: Dim) -> Dim:
    return apply_dims("broadcast", build.broadcast, True, a, b)


def broadcast_dim(
    a: Dim, b: Dim, constraints: Constraints | None = None, origin: str = "a broadcast"
) -> Dim:
    """Returns the dimension two dimensions are broadcast to.

    :param a: a dimension
    :param b: the other one
    :param constraints: known constraints, to which those the broadcast requires are added
    :param origin: origin of these constraints
    :returns: the dimension; two symbols give ``"broadcast(a,b)"``, the maximum would be wrong as
        0 and 1 give 0; an integer other than 1 wins over a symbol
    :raises DimensionError: they are proven incompatible

    Example::

        >>> broadcast_dim("a", 1), broadcast_dim("a", 4), broadcast_dim("b", "a")
        ('a', 4, 'broadcast(a,b)')
    """
    if a == b or b == 1:
        return normalize(a)
    if a == 1:
        return normalize(b)
    if constraints is None:
        return _broadcast(a, b)
    constraints.add_equal_or_one(a, b, origin)
    left, right = constraints.canonical(a), constraints.canonical(b)
    return _broadcast(left, right) if prove_equal(left, right, constraints) is not True else left


def broadcast_shapes(
    *shapes: Shape, constraints: Constraints | None = None, origin: str = "a broadcast"
) -> Shape:
    """Returns the shape numpy gives to broadcast shapes, of any rank.

    Raises :class:`DimensionError` if they are proven incompatible.

    Example: ``broadcast_shapes(("a", 1, 3), ("b", 3))`` is ``("a", "b", 3)``.
    """
    rank = max(map(len, shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        shift = rank - len(shape)
        for i, dim in enumerate(shape, shift):
            known = result[i]
            if dim.__class__ is int and known in (1, dim):  # most of the time
                result[i] = dim
                continue
            if dim == 1 and known.__class__ is int:
                continue
            try:
                result[i] = broadcast_dim(result[i], dim, constraints, origin)
            except DimensionError as error:
                raise DimensionError(f"shapes {shapes} cannot be broadcast: {error}") from error
    return tuple(result)


def same_shape(
    s1: Shape | None, s2: Shape | None, constraints: Constraints | None = None
) -> bool | None:
    """Compares two shapes.

    :returns: True if all dimensions are proven equal, False if the ranks or one dimension are
        proven different, None if it is not known or if a shape is None

    Example: ``same_shape(("a", 2), ("a", 2))`` is True, ``same_shape(("a",), ("b",))`` is None.
    """
    if s1 is None or s2 is None:
        return None
    if len(s1) != len(s2):
        return False
    answer: bool | None = True
    for a, b in zip(s1, s2, strict=True):
        same = prove_equal(a, b, constraints)
        if same is False:
            return False
        if same is None:
            answer = None
    return answer
