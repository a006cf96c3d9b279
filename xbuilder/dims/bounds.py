"""Proves signs of forms, knowing only that symbols are integers >= 0.

Every answer True is a proof for all sizes at which the expression is defined; False means "not
proven", nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gcd

from .errors import TooLargeError
from .expr import Atom, Mono, Poly

Interval = tuple["int | None", "int | None"]
MAX_STEPS = 64
MAX_RELAXED = 6


def _scaled(bound: int | None, coef: int) -> int | None:
    return None if bound is None else bound * coef


def _plus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _mono_interval(mono: Mono) -> Interval:
    if len(mono) == 1:
        return atom_interval(mono[0])
    low = 1
    high: int | None = 1
    for atom in mono:
        left, right = atom_interval(atom)
        if left is None or left < 0:
            return None, None
        low *= left
        high = 0 if right == 0 or high == 0 else _scaled(right, high) if high is not None else None
    return low, high


@lru_cache(maxsize=1 << 14)
def interval(poly: Poly) -> Interval:
    """Returns a lower and an upper bound of a form, None when it is not known.

    Example: ``a+3`` gives ``(3, None)``, ``a%4`` gives ``(0, 3)``.
    """
    low: int | None = 0
    high: int | None = 0
    for mono, coef in poly.terms:
        left, right = _mono_interval(mono)
        if coef < 0:
            left, right = right, left
        low = _plus(low, _scaled(left, coef))
        high = _plus(high, _scaled(right, coef))
    return low, high


def _known(bounds: list[int | None]) -> list[int]:
    return [b for b in bounds if b is not None]


def _extremum_interval(atom: Atom) -> Interval:
    pairs = [interval(a) for a in atom.args]
    lows, highs = [p[0] for p in pairs], [p[1] for p in pairs]
    if atom.op == "max":
        high = None if None in highs else max(_known(highs))
        return max(_known(lows), default=None), high
    low = None if None in lows else min(_known(lows))
    return low, min(_known(highs), default=None)


def _division_interval(op: str, left: Poly, right: Poly) -> Interval:
    low, high = interval(left)
    divisor = right.constant
    if divisor is not None and divisor > 0:
        if op == "mod":
            return 0, divisor - 1
        shift = divisor - 1 if op == "ceildiv" else 0
        return (
            None if low is None else (low + shift) // divisor,
            None if high is None else (high + shift) // divisor,
        )
    d_low, d_high = interval(right)
    if d_low is None or d_low < 0:
        return None, None
    if op == "mod":
        return 0, None if d_high is None else max(d_high - 1, 0)
    # the divisor is >= 1 where the division is defined
    return (0, high) if low is not None and low >= 0 else (None, None)


def atom_interval(atom: Atom) -> Interval:
    """Returns a lower and an upper bound of an atom, None when it is not known."""
    if not atom.op:
        return 0, None
    if atom.op in ("max", "min"):
        return _extremum_interval(atom)
    if atom.op == "broadcast":
        highs = [interval(a)[1] for a in atom.args]
        return 0, None if None in highs else max(_known(highs))
    return _division_interval(atom.op, *atom.args)


def replace_atom(poly: Poly, atom: Atom, by: Poly) -> Poly:
    """Replaces an atom at the top level of a form, nothing is simplified inside operations."""
    result: dict[Mono, int] = {}
    extra = Poly(())
    for mono, coef in poly.terms:
        if atom not in mono:
            result[mono] = coef
            continue
        piece = Poly(((tuple(a for a in mono if a != atom), coef),))
        for _ in range(mono.count(atom)):
            piece = piece.mul(by)
        extra = extra.add(piece)
    return Poly.build(result).add(extra)


def _linear(poly: Poly, atom: Atom) -> int:
    """Returns the coefficient of an atom when it appears alone in one term only, 0 otherwise."""
    found = [(mono, coef) for mono, coef in poly.terms if atom in mono]
    return found[0][1] if len(found) == 1 and len(found[0][0]) == 1 else 0


def _floordiv_relaxed(poly: Poly, atom: Atom, coef: int) -> Iterator[Poly]:
    """Yields forms that are >= 0 only if ``poly`` is: (p-d+1)/d <= p//d <= p/d."""
    left, right = atom.args
    divisor = right.constant
    rest = replace_atom(poly, atom, Poly(()))
    if divisor is not None:
        if divisor > 0:
            bound = left if coef < 0 else left.sub(Poly.integer(divisor - 1))
            # poly is an integer: it is >= 0 as soon as divisor * poly > -divisor
            yield rest.scale(divisor).combine(coef, bound).add(Poly.integer(divisor - 1))
    elif coef < 0 and _is_nonneg(left) and _is_nonneg(right):
        yield rest.combine(coef, left)


def _relaxed(poly: Poly, atom: Atom) -> Iterator[tuple[Poly, ...]]:
    """Yields groups of forms: if all the forms of one group are >= 0, so is ``poly``."""
    if atom.op == "broadcast":
        # the result is always one of the arguments
        yield tuple(replace_atom(poly, atom, arg) for arg in atom.args)
        return
    coef = _linear(poly, atom)
    if not coef:
        return
    if atom.op in ("max", "min"):
        cases = tuple(replace_atom(poly, atom, arg) for arg in atom.args)
        if (atom.op == "max") == (coef > 0):
            yield from ((case,) for case in cases)
        else:
            yield cases
    elif atom.op == "floordiv":
        yield from ((form,) for form in _floordiv_relaxed(poly, atom, coef))
    elif atom.op == "mod" and coef < 0 and all(_is_nonneg(a) for a in atom.args):
        left, right = atom.args
        yield (replace_atom(poly, atom, left),)
        yield (replace_atom(poly, atom, right.sub(Poly.integer(1))),)


def _is_nonneg(poly: Poly) -> bool:
    low = interval(poly)[0]
    return low is not None and low >= 0


def _search(poly: Poly, relaxed: int, steps: list[int]) -> bool:
    steps[0] -= 1
    if _is_nonneg(poly):
        return True
    if not relaxed or steps[0] < 0:
        return False
    return any(
        all(_search(form, relaxed - 1, steps) for form in group)
        for atom in poly.operations
        for group in _relaxed(poly, atom)
    )


@lru_cache(maxsize=1 << 15)
def nonneg(poly: Poly) -> bool:
    """Whether a form is proven >= 0, the search is bounded by ``MAX_STEPS``.

    Example: ``a-a//2`` and ``max(a,b)-b`` are, ``a-b`` and ``a-1`` are not.
    """
    try:
        return _search(poly, MAX_RELAXED, [MAX_STEPS])
    except TooLargeError:
        return False


def common_divisor(poly: Poly) -> int:
    """Returns the greatest common divisor of the coefficients, the constant term left out."""
    return gcd(*(coef for mono, coef in poly.terms if mono))


def primitive(poly: Poly) -> Poly:
    """Divides a form by its content and makes its leading coefficient positive: the result is null
    for the same sizes.

    Example: ``4-2*a`` gives ``a-2``; ``2*a+1``, whose content does not divide it, is left as is.
    """
    common = common_divisor(poly) or 1
    if poly.terms and poly.terms[0][1] < 0:
        common = -common
    exact = poly.exact_div(Poly.integer(common))
    return poly if exact is None else exact


@lru_cache(maxsize=1 << 15)
def never_zero(poly: Poly) -> bool:
    """Whether a form is proven different from 0 for all sizes.

    Example: ``a+1`` and ``2*a-3`` (odd) are, ``a`` and ``a-b`` are not.
    """
    common = common_divisor(poly)
    if not common:
        return poly.constant != 0
    if poly.offset % common:
        return True
    one = Poly.integer(1)
    return nonneg(poly.sub(one)) or nonneg(poly.scale(-1).sub(one))
