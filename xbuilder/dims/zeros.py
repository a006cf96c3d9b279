"""Lists which dimensions may be null together, for all sizes at once.

A product is null when one factor is, a sum of terms that are not negative when they all are. So
only the null factors matter, and there are few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from .api import CACHE_SIZE, Dim, form
from .bounds import atom_interval, never_zero, primitive
from .expr import Atom, Mono, Poly, divide_mono

#: maximum number of factors, the list of cases is too long with more
MAX_FACTORS = 8

Factor = Atom | Poly
#: terms, each one is a set of factors; the dimension is null when every term has a null factor
Terms = tuple[frozenset[Factor], ...]


def _is_nonneg(atom: Atom) -> bool:
    low = atom_interval(atom)[0]
    return low is not None and low >= 0


def _terms(poly: Poly) -> Terms:
    """Splits a form; no term means always null, a term without factor never null."""
    if never_zero(poly):
        return (frozenset(),)
    adds_up = all(coef > 0 and all(map(_is_nonneg, mono)) for mono, coef in poly.terms)
    if len(poly.terms) > 1 and not adds_up:
        common = _common_factors(poly)
        rest = poly.exact_div(Poly(((common, 1),))) or poly
        return (_doubtful(common) | {primitive(rest)},)
    return tuple(_doubtful(mono) for mono, _ in poly.terms)


def _doubtful(mono: Mono) -> frozenset[Factor]:
    """Factors that may be null."""
    return frozenset(atom for atom in mono if not never_zero(Poly.of(atom)))


def _common_factors(poly: Poly) -> Mono:
    """Product of the atoms that divide every term."""
    common: Mono = ()
    for atom in poly.terms[0][0]:
        wider = tuple(sorted((*common, atom)))
        if all(divide_mono(mono, wider) is not None for mono, _ in poly.terms):
            common = wider
    return common


@lru_cache(maxsize=CACHE_SIZE)
def _cases(dims: tuple[Dim, ...]) -> tuple[tuple[bool, ...], ...] | None:
    split = [_terms(form(dim)) for dim in dims]
    factors = {factor for terms in split for term in terms for factor in term}
    if len(factors) > MAX_FACTORS:
        return None
    found: set[tuple[bool, ...]] = set()
    for choice in product((False, True), repeat=len(factors)):
        null = {factor for factor, is_null in zip(factors, choice, strict=True) if is_null}
        found.add(tuple(all(not term.isdisjoint(null) for term in terms) for terms in split))
    return tuple(sorted(found))


def zero_cases(dims: Sequence[Dim]) -> tuple[tuple[bool, ...], ...] | None:
    """Lists the ways some dimensions may be 0.

    :param dims: dimensions
    :returns: distinct tuples of booleans, one for each dimension, True if it is 0; whatever the
        sizes are, one of them is true (some may be impossible). None if there are too many.

    Example::

        >>> zero_cases(["a", "2*a*b", 3])
        ((False, False, False), (False, True, False), (True, True, False))
    """
    return _cases(tuple(dims))


@lru_cache(maxsize=CACHE_SIZE)
def is_plain(dim: Dim) -> bool:
    """Whether a dimension is a sum of products of symbols, without difference nor rounding.

    Example: ``2*a*b+1`` is, ``a-b`` and ``a//2`` are not.
    """
    poly = form(dim)
    return not poly.operations and all(coef > 0 for _, coef in poly.terms)
