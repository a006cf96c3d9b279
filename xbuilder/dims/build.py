"""Builds the operations polynomials cannot absorb (`//`, `%`, max, min, broadcast), normalized.

Divisions round towards minus infinity, as python does, whatever the signs. A division by a symbol
is not defined when the symbol is null: ``(a*b)//b`` is ``a`` only if ``b`` is proven not null, but
``(a*b+c)//b`` is ``a+c//b`` because both are undefined for the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from .bounds import common_divisor, interval, never_zero, nonneg, replace_atom
from .errors import DimensionError, TooLargeError
from .expr import Atom, Mono, Poly, Sum, divide_mono

ZERO, ONE = Poly.integer(0), Poly.integer(1)
MAX_ARGUMENTS = 16


def _operation(op: str, *args: Poly) -> Poly:
    """Makes an operation once nothing else applies, unless its arguments get shorter first."""
    short = tuple(map(shrink, args))
    return Poly.operation(op, *args) if short == args else BUILDERS[op](*short)


def _split(poly: Poly, divisor: Poly) -> tuple[Poly, Poly]:
    """Returns ``q, r`` with ``poly == q * divisor + r``; the divisor has one term and is positive,
    the coefficients of ``r`` in front of its multiples are in [0, coefficient)."""
    ((lead, lead_coef),) = divisor.terms
    quotient: dict[Mono, int] = {}
    rest: dict[Mono, int] = {}
    for mono, coef in poly.terms:
        factor = divide_mono(mono, lead)
        if factor is None:
            rest[mono] = coef
        else:
            quotient[factor], rest[mono] = divmod(coef, lead_coef)
    return Poly.build(quotient), Poly.build(rest)


def _oriented(left: Poly, right: Poly) -> tuple[Poly, Poly, bool]:
    """Makes the leading coefficient of the divisor positive."""
    if not right.terms:
        raise DimensionError(f"division by zero: {left.dim} by 0")
    if right.terms[0][1] > 0:
        return left, right, False
    return left.scale(-1), right.scale(-1), True


def _reduced(left: Poly, right: Poly) -> tuple[Poly, Poly, int]:
    """Divides both sides by their common integer factor."""
    common = gcd(*(coef for p in (left, right) for _, coef in p.terms))
    if common == 1:
        return left, right, 1
    factor = Poly.integer(common)
    a, b = left.exact_div(factor), right.exact_div(factor)
    if a is None or b is None:  # never: the factor divides every coefficient
        return left, right, 1
    return a, b, common


def _merge_floordiv(poly: Poly, divisor: int) -> Poly | None:
    """Returns ``(x+a*r)//(a*divisor)`` for ``poly`` being ``x//a+r``, None for anything else."""
    inner = [
        atom
        for atom in poly.operations
        if atom.op == "floordiv"
        and (atom.args[1].constant or 0) > 0
        and dict(poly.terms).get((atom,)) == 1
    ]
    if len(inner) != 1 or sum(inner[0] in mono for mono, _ in poly.terms) != 1:
        return None
    left, right = inner[0].args
    rest = replace_atom(poly, inner[0], ZERO).mul(right)
    return floordiv(left.add(rest), right.scale(divisor))


def _floordiv_int(poly: Poly, divisor: int) -> Poly:
    if divisor == 1:
        return poly
    quotient, rest = _split(poly, Poly.integer(divisor))
    low, high = interval(rest)
    if low is not None and high is not None and low // divisor == high // divisor:
        return quotient.add(Poly.integer(low // divisor))
    # floor((g*r + c) / (g*d)) == floor((r + c//g) / d)
    common = gcd(common_divisor(rest), divisor)
    if common > 1:
        rest, divisor = _split(rest, Poly.integer(common))[0], divisor // common
        return quotient.add(_floordiv_int(rest, divisor))
    merged = _merge_floordiv(rest, divisor)
    if merged is None:
        merged = _operation("floordiv", rest, Poly.integer(divisor))
    return quotient.add(merged)


def _extract(op: Callable[[Poly, Poly], Poly], left: Poly, right: Poly) -> Poly | None:
    """Takes the multiples of a symbolic divisor out of a division, None if there is none."""
    if never_zero(right):
        exact = left.exact_div(right)
        if exact is not None:
            return exact
    if len(right.terms) == 1:
        quotient, rest = _split(left, right)
        if quotient.terms and rest.terms:
            return quotient.add(op(rest, right))
    return None


def _is_below(left: Poly, right: Poly) -> bool:
    return nonneg(left) and nonneg(right.sub(left).sub(ONE))


def floordiv(left: Poly, right: Poly) -> Poly:
    """Returns ``left // right``. Raises :class:`DimensionError` if the divisor is 0."""
    left, right, _ = _oriented(left, right)
    divisor = right.constant
    if divisor is not None:
        return _floordiv_int(left, divisor)
    left, right, _ = _reduced(left, right)
    if right.constant is not None:
        return _floordiv_int(left, right.constant)
    if _is_below(left, right):
        return ZERO
    extracted = _extract(floordiv, left, right)
    return _operation("floordiv", left, right) if extracted is None else extracted


def ceildiv(left: Poly, right: Poly) -> Poly:
    """Returns the quotient rounded up; with an integer divisor it becomes a ``//``.

    Raises :class:`DimensionError` if the divisor is 0.
    """
    left, right, _ = _oriented(left, right)
    divisor = right.constant
    if divisor is not None:
        return _floordiv_int(left.add(Poly.integer(divisor - 1)), divisor)
    left, right, _ = _reduced(left, right)
    if nonneg(left.sub(ONE)) and nonneg(right.sub(left)):
        return ONE
    extracted = _extract(ceildiv, left, right)
    return _operation("ceildiv", left, right) if extracted is None else extracted


def _unwrap_mod(poly: Poly, divisor: int) -> Poly:
    """Replaces ``x % m`` by ``x`` when it is to be taken modulo a divisor of ``m``."""
    for atom in poly.operations:
        if atom.op == "mod":
            inner = atom.args[1].constant
            if inner is not None and inner % divisor == 0:
                return _unwrap_mod(replace_atom(poly, atom, atom.args[0]), divisor)
    return poly


def _mod_int(poly: Poly, divisor: int) -> Poly:
    low, high = interval(poly)
    if low is not None and high is not None and low // divisor == high // divisor:
        return poly.sub(Poly.integer(low // divisor * divisor))
    rest = _split(_unwrap_mod(poly, divisor), Poly.integer(divisor))[1]
    low, high = interval(rest)
    if low is not None and high is not None and low // divisor == high // divisor:
        return rest.sub(Poly.integer(low // divisor * divisor))
    # (g*r + c) % (g*d) == g*((r + c//g) % d) + c%g
    common = gcd(common_divisor(rest), divisor)
    if common > 1:
        inner = _mod_int(_split(rest, Poly.integer(common))[0], divisor // common)
        return inner.scale(common).add(Poly.integer(rest.offset % common))
    return _operation("mod", rest, Poly.integer(divisor))


def mod(left: Poly, right: Poly) -> Poly:
    """Returns ``left % right``, of the sign of the divisor. Raises :class:`DimensionError` if the
    divisor is 0."""
    left, right, negated = _oriented(left, right)
    result = _mod_positive(left, right)
    return result.scale(-1) if negated else result


def _mod_positive(left: Poly, right: Poly) -> Poly:
    divisor = right.constant
    if divisor is not None:
        return ZERO if divisor == 1 else _mod_int(left, divisor)
    left, right, common = _reduced(left, right)
    if common > 1:
        return mod(left, right).scale(common)
    if _is_below(left, right):
        return left
    if never_zero(right) and left.exact_div(right) is not None:
        return ZERO
    if len(right.terms) == 1:
        quotient, rest = _split(left, right)
        if quotient.terms and rest.terms:
            return mod(rest, right)
    return _operation("mod", left, right)


def _flatten(op: str, args: tuple[Poly, ...]) -> list[Poly]:
    flat: dict[Poly, None] = {}
    for arg in args:
        atom = arg.atom
        nested = atom.args if atom is not None and atom.op == op else (arg,)
        flat.update(dict.fromkeys(nested))
    if len(flat) > MAX_ARGUMENTS:
        raise TooLargeError(op)
    return sorted(flat, key=lambda p: str(p.dim))


def _extremum(op: str, args: tuple[Poly, ...]) -> Poly:
    flat = _flatten(op, args)
    sign = 1 if op == "max" else -1
    candidates: list[Poly] = []
    for i, arg in enumerate(flat):
        if not any(nonneg(o.sub(arg).scale(sign)) for o in candidates + flat[i + 1 :]):
            candidates.append(arg)
    if len(candidates) == 1:
        return candidates[0]
    offset = candidates[0].offset
    if offset and all(arg.offset == offset for arg in candidates):
        shift = Poly.integer(offset)
        return _extremum(op, tuple(arg.sub(shift) for arg in candidates)).add(shift)
    return _operation(op, *candidates)


def dim_max(*args: Poly) -> Poly:
    """Returns the greatest argument; those proven below another one are dropped."""
    return _extremum("max", args)


def dim_min(*args: Poly) -> Poly:
    """Returns the smallest argument; those proven above another one are dropped."""
    return _extremum("min", args)


def _smallest_of(arg: Poly) -> list[Poly]:
    """The arguments of `min(a, b...)`, which may be written `c - max(c - a, c - b...)`; empty if
    the dimension is something else."""
    atom = arg.atom
    if atom is not None:
        return list(atom.args) if atom.op == "min" else []
    largest = [
        (mono[0], coef) for mono, coef in arg.terms if len(mono) == 1 and mono[0].op == "max"
    ]
    if len(largest) != 1 or largest[0][1] != -1:
        return []
    rest = arg.add(Poly.of(largest[0][0]))
    return [rest.sub(a) for a in largest[0][0].args]


def _is_neutral(arg: Poly, others: list[Poly]) -> bool:
    """Whether a dimension is `min(a, b...)` where *a* is among the others and every other bound is
    at least 1. It is then neutral: it is *a*, or 1, or *a* is 1 and so is it."""
    smallest = _smallest_of(arg)
    bounds = [a for a in smallest if a not in others]
    return len(bounds) < len(smallest) and all(nonneg(b.sub(ONE)) for b in bounds)


def broadcast(*args: Poly) -> Poly:
    """Returns the dimension numpy gives to broadcast dimensions: 1 is neutral, an argument proven
    different from 1 wins, `min(3, a)` is neutral beside *a*. Raises :class:`DimensionError` if two
    arguments are incompatible."""
    flat = [arg for arg in _flatten("broadcast", args) if arg != ONE]
    flat = [arg for arg in flat if not _is_neutral(arg, [o for o in flat if o is not arg])]
    if len(flat) < 2:
        return flat[0] if flat else ONE
    winners = [arg for arg in flat if never_zero(arg.sub(ONE))]
    for i, first in enumerate(winners):
        for second in winners[:i]:
            if never_zero(first.sub(second)):
                raise DimensionError(
                    f"dimensions {second.dim} and {first.dim} cannot be broadcast together"
                )
    if not winners:
        return _operation("broadcast", *flat)
    return next((arg for arg in winners if arg.constant is not None), winners[0])


BUILDERS: dict[str, Callable[..., Poly]] = {
    "floordiv": floordiv,
    "mod": mod,
    "ceildiv": ceildiv,
    "max": dim_max,
    "min": dim_min,
    "broadcast": broadcast,
}


def rebuild(
    poly: Poly, leaf: Callable[[Atom], Poly], builders: Mapping[str, Callable[..., Poly]]
) -> Poly:
    """Rebuilds a form from its symbols up: ``leaf`` gives the form of each symbol, ``builders``
    the form of each operation."""
    result = Sum(ZERO)
    for mono, coef in poly.terms:
        piece = ONE
        for atom in mono:
            if atom.op:
                factor = builders[atom.op](*[rebuild(arg, leaf, builders) for arg in atom.args])
            else:
                factor = leaf(atom)
            piece = factor if piece is ONE else piece.mul(factor)
        result.add(coef, piece)
    return shrink(result.form())


def add(left: Poly, right: Poly) -> Poly:
    """Returns the sum; ``a%2+2*(a//2)`` becomes ``a``."""
    return shrink(left.add(right))


def total(*forms: Poly) -> Poly:
    """Returns the sum of several forms, shortened once. Cost: O(terms), but for their sort."""
    first, *others = forms
    result = Sum(first)
    for other in others:
        result.add(1, other)
    return shrink(result.form())


def shrink(poly: Poly) -> Poly:
    """Returns the same form with ``x%y`` written ``x-y*(x//y)`` where it makes it shorter.

    The result depends on the other terms: a sum is complete before it is shortened, otherwise
    its text would be read into another form.
    """
    for atom in poly.operations:
        if atom.op == "mod":
            shorter = replace_atom(poly, atom, expanded_mod(*atom.args))
            if len(shorter.terms) < len(poly.terms):
                return shrink(shorter)
    return poly


def expanded_mod(left: Poly, right: Poly) -> Poly:
    """Returns ``left % right`` written with a floor division."""
    return left.sub(right.mul(floordiv(left, right)))


def expanded_ceildiv(left: Poly, right: Poly) -> Poly:
    """Returns the division rounded up, written with a floor division."""
    return floordiv(left.scale(-1), right).scale(-1)
