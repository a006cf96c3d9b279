"""Compares dimensions: proven, disproven, unknown. Symbols are integers >= 0, null included."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from .api import CACHE_SIZE, Dim, form
from .bounds import never_zero, nonneg
from .build import BUILDERS, ONE, expanded_ceildiv, expanded_mod, rebuild
from .errors import DimensionError, TooLargeError
from .expr import Poly


class Knowledge(Protocol):
    """What is known of symbols: :class:`.constraints.Constraints`."""

    def prove_equal(self, a: Dim, b: Dim) -> bool | None:
        """Compares two dimensions."""

    def prove_ge(self, a: Dim, b: Dim) -> bool | None:
        """Tells if the first dimension is not below the second one."""


_EXPANDED = {**BUILDERS, "mod": expanded_mod, "ceildiv": expanded_ceildiv}


@lru_cache(maxsize=CACHE_SIZE)
def _expand(poly: Poly) -> Poly:
    """Writes all ``%`` and ``ceildiv`` with ``//``: more forms become the same."""
    return rebuild(poly, Poly.of, _EXPANDED)


def equal_forms(left: Poly, right: Poly) -> bool | None:
    """Compares two forms: True, False, or None when it is not known."""
    if left == right:
        return True
    try:
        diff = left.sub(right)
        if never_zero(diff):
            return False
        if not diff.operations:
            return None
        diff = _expand(diff)
        if never_zero(diff):
            return False
        return True if nonneg(diff) and nonneg(diff.scale(-1)) else None
    except (DimensionError, TooLargeError):
        return None


def ge_forms(left: Poly, right: Poly) -> bool | None:
    """Tells if a form is greater than or equal to another one: True, False, None when not known."""
    try:
        diff = left.sub(right)
        below = diff.scale(-1).sub(ONE)
        if nonneg(diff):
            return True
        if nonneg(below):
            return False
        if not diff.operations:
            return None
        if nonneg(_expand(diff)):
            return True
        return False if nonneg(_expand(below)) else None
    except (DimensionError, TooLargeError):
        return None


@lru_cache(maxsize=CACHE_SIZE)
def _equal(a: Dim, b: Dim) -> bool | None:
    return equal_forms(form(a), form(b))


@lru_cache(maxsize=CACHE_SIZE)
def _ge(a: Dim, b: Dim) -> bool | None:
    return ge_forms(form(a), form(b))


def prove_equal(a: Dim, b: Dim, constraints: Knowledge | None = None) -> bool | None:
    """Compares two dimensions.

    :param a: a dimension
    :param b: the other one
    :param constraints: what is known about the symbols, optional
    :returns: True if they are equal for all sizes, False if they differ for all sizes, None if it
        is not known

    Example::

        >>> prove_equal("2*a", "a+a"), prove_equal("a", "a+1"), prove_equal("a", "b")
        (True, False, None)
    """
    if a.__class__ is int and b.__class__ is int:
        return a == b
    answer = True if a == b else _equal(a, b)
    if answer is None and constraints is not None:
        return constraints.prove_equal(a, b)
    return answer


def prove_ge(a: Dim, b: Dim, constraints: Knowledge | None = None) -> bool | None:
    """Tells if ``a >= b``.

    :param a: a dimension
    :param b: the other one
    :param constraints: what is known about the symbols, optional
    :returns: True if it is so for all sizes, False if ``a < b`` for all sizes, None otherwise

    Example::

        >>> prove_ge("a+b", "a"), prove_ge("a", "a+1"), prove_ge("a", 1)
        (True, False, None)
    """
    if a.__class__ is int and b.__class__ is int:
        return a >= b
    answer = _ge(a, b)
    if answer is None and constraints is not None:
        return constraints.prove_ge(a, b)
    return answer
