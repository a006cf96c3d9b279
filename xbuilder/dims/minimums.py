"""Least values of symbols, deduced from forms that are not negative in a valid model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .build import BUILDERS, rebuild
from .errors import DimensionError, TooLargeError
from .expr import Atom, Poly


def least_values(poly: Poly, least: int) -> Iterator[tuple[str, int]]:
    """Yields the symbol of a form that is at least some integer and the least value it may have;
    nothing if the form has several terms with symbols, or operations other than ``//``. The symbols
    of a positive product are at least 1.

    Example: ``a//5-1 >= 8`` gives ``("a", 45)``, ``a*b >= 1`` gives ``("a", 1)`` and ``("b", 1)``.

    :param poly: the form
    :param least: an integer it is not below
    """
    terms = [(mono, coef) for mono, coef in poly.terms if mono]
    if len(terms) != 1 or terms[0][1] <= 0:
        return
    (atoms, coef) = terms[0]
    bound = -((poly.offset - least) // coef)
    if len(atoms) > 1:
        if bound > 0 and not any(atom.op for atom in atoms):
            yield from ((atom.key, 1) for atom in atoms)
        return
    (atom,) = atoms
    if not atom.op:
        yield atom.key, bound
    elif atom.op == "floordiv":
        divisor = atom.args[1].constant
        if divisor is not None and divisor > 0:
            yield from least_values(atom.args[0], bound * divisor)


def raised(poly: Poly, minimums: Mapping[str, int]) -> Poly:
    """The form with ``symbol + least`` for each symbol known to be at least that, since signs are
    proven for symbols that are not negative.

    :param poly: the form
    :param minimums: symbol -> its least value
    """

    def leaf(atom: Atom) -> Poly:
        least = minimums.get(atom.key, 0)
        return Poly.of(atom).add(Poly.integer(least)) if least else Poly.of(atom)

    if poly.symbols.isdisjoint(minimums):
        return poly
    try:
        return rebuild(poly, leaf, BUILDERS)
    except (TooLargeError, DimensionError):
        return poly
