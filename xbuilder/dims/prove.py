"""Compares dimensions. The answer is proven, disproven or unknown. Symbols are integers >= 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from .api import CACHE_SIZE, Dim, form
from .bounds import never_zero, nonneg
from .build import BUILDERS, ONE, ZERO, expanded_ceildiv, expanded_mod, rebuild
from .errors import DimensionError, TooLargeError
from .expr import Atom, Poly


class Knowledge(Protocol):
    """Known constraints on symbols, as :class:`.constraints.Constraints` answers about them."""

    def prove_equal(self, a: Dim, b: Dim) -> bool | None:
        """Compares two dimensions."""

    def prove_ge(self, a: Dim, b: Dim) -> bool | None:
        """Whether the first dimension is not below the second one, None when it is not known."""


#: a comparison of two forms: True, False, or None when it is not known
Compare = Callable[[Poly, Poly], bool | None]
#: maximum number of symbols tried null and not null in one comparison
_CASES = 2
_EXPANDED = {**BUILDERS, "mod": expanded_mod, "ceildiv": expanded_ceildiv}


@lru_cache(maxsize=CACHE_SIZE)
def _expand(poly: Poly) -> Poly:
    """Writes all ``%`` and ``ceildiv`` with ``//``, so that more forms become equal."""
    return rebuild(poly, Poly.of, _EXPANDED)


def equal_forms(left: Poly, right: Poly) -> bool | None:
    """Compares two forms: True, False, or None when it is not known."""
    if left.is_symbol and right.is_symbol:
        return True if left == right else None
    return _by_cases(_equal_forms, left, right)


def ge_forms(left: Poly, right: Poly) -> bool | None:
    """Whether a form is at least another one: True, False, or None when it is not known."""
    return _by_cases(_ge_forms, left, right)


def _equal_forms(left: Poly, right: Poly) -> bool | None:
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


def _ge_forms(left: Poly, right: Poly) -> bool | None:
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


def _by_cases(compare: Compare, left: Poly, right: Poly, depth: int = _CASES) -> bool | None:
    """Compares two forms by cases, a symbol being null or not: `min(1,a)` is 0, then 1. The answer
    is the one of all cases, None if they differ."""
    answer = compare(left, right)
    if answer is not None or not depth:
        return answer
    for symbol in sorted(_compared_with_one(left) | _compared_with_one(right)):
        try:
            cases = [
                _by_cases(
                    compare, _with(left, symbol, value), _with(right, symbol, value), depth - 1
                )
                for value in (ZERO, Poly.of(symbol).add(ONE))
            ]
        except (DimensionError, TooLargeError):
            continue
        if cases[0] is not None and cases[0] == cases[1]:
            return cases[0]
    return None


def _compared_with_one(poly: Poly) -> set[Atom]:
    """Symbols of the terms `min(1,symbol)` and `max(1,symbol)` of a form, at any depth."""
    found: set[Atom] = set()
    for atom in poly.operations:
        if atom.op in ("max", "min") and ONE in atom.args:
            found.update(a for arg in atom.args if (a := _symbol(arg)) is not None)
        for arg in atom.args:
            found |= _compared_with_one(arg)
    return found


def _symbol(poly: Poly) -> Atom | None:
    """The symbol a form consists of, None if it is something else."""
    if len(poly.terms) != 1 or poly.terms[0][1] != 1 or len(poly.terms[0][0]) != 1:
        return None
    (atom,) = poly.terms[0][0]
    return None if atom.op else atom


def _with(poly: Poly, symbol: Atom, value: Poly) -> Poly:
    return rebuild(poly, lambda atom: value if atom == symbol else Poly.of(atom), BUILDERS)


@lru_cache(maxsize=CACHE_SIZE)
def compared(a: Dim, b: Dim) -> bool | None:
    """Compares two dimensions as :func:`prove_equal` does without constraints. Cost: O(1) after the
    first time."""
    return equal_forms(form(a), form(b))


@lru_cache(maxsize=CACHE_SIZE)
def _ge(a: Dim, b: Dim) -> bool | None:
    return ge_forms(form(a), form(b))


def prove_equal(a: Dim, b: Dim, constraints: Knowledge | None = None) -> bool | None:
    """Compares two dimensions.

    :param a: a dimension
    :param b: the other one
    :param constraints: constraints on the symbols, optional
    :returns: True if they are equal for all sizes, False if they differ for all sizes, None if it
        is not known

    Example::

        >>> prove_equal("2*a", "a+a"), prove_equal("a", "a+1"), prove_equal("a", "b")
        (True, False, None)
    """
    if a.__class__ is int and b.__class__ is int:
        return a == b
    answer = True if a == b else compared(a, b)
    if answer is None and constraints is not None:
        return constraints.prove_equal(a, b)
    return answer


def prove_ge(a: Dim, b: Dim, constraints: Knowledge | None = None) -> bool | None:
    """Whether ``a >= b``.

    :param a: a dimension
    :param b: the other one
    :param constraints: constraints on the symbols, optional
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
