"""Prints a normal form. The text is deterministic, and parses back to the same form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol


class PrintedAtom(Protocol):
    """The part of an atom that printing reads, see :class:`.expr.Atom`."""

    @property
    def op(self) -> str:
        """Its operation."""

    @property
    def inner(self) -> str:
        """Its text in an expression."""


class PrintedForm(Protocol):
    """The part of a form that printing reads, see :class:`.expr.Poly`."""

    @property
    def terms(self) -> Sequence[tuple[Sequence[PrintedAtom], int]]:
        """Products of atoms, with their coefficients."""

    @property
    def inner(self) -> str:
        """Its text in an expression."""

    @property
    def constant(self) -> int | None:
        """Its value if it is an integer."""

    @property
    def atom(self) -> PrintedAtom | None:
        """Its only atom, if it is one."""


IDENTIFIER = re.compile(r"[^\W\d]\w*")
INFIX = {"floordiv": "//", "mod": "%"}


def quote(name: str) -> str:
    """Returns a symbol as it appears inside an expression: odd names are put between backticks."""
    if IDENTIFIER.fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def _numerator(poly: PrintedForm) -> str:
    """Prints the left side of ``//`` or ``%``: both associate to the left, as products do."""
    terms = poly.terms
    if not terms:
        return "0"
    if len(terms) > 1 or terms[0][1] < 0:
        return f"({poly.inner})"
    return poly.inner


def _denominator(poly: PrintedForm) -> str:
    value = poly.constant
    if value is not None:
        return str(value) if value >= 0 else f"({value})"
    symbol = poly.atom
    if symbol is not None and symbol.op not in INFIX:
        return symbol.inner
    return f"({poly.inner})"


def operation_text(op: str, args: Sequence[PrintedForm]) -> str:
    """Prints an operation: ``a//2``, ``(a+1)%b``, ``max(a,b)``."""
    sign = INFIX.get(op)
    if sign is None:
        return f"{op}({','.join(a.inner for a in args)})"
    return f"{_numerator(args[0])}{sign}{_denominator(args[1])}"


def _factor(atom: PrintedAtom) -> str:
    return f"({atom.inner})" if atom.op in INFIX else atom.inner


def _product(mono: Sequence[PrintedAtom], coef: int, leading: bool) -> str:
    """Prints one term without its sign; ``coef`` is positive, ``leading`` means after a ``-``
    which would bind to the first factor only."""
    if not mono:
        return str(coef)
    if coef == 1 and len(mono) == 1 and not leading:
        return mono[0].inner
    factors = [_factor(atom) for atom in mono]
    if coef != 1:
        factors.insert(0, str(coef))
    return "*".join(factors)


def inner_text(poly: PrintedForm) -> str:
    """Prints a form as part of an expression (odd symbols are quoted).

    Example: the form of ``-a+b`` is printed ``b-a``: a positive term comes first if there is one.
    """
    if not poly.terms:
        return "0"
    first = next((i for i, (_, coef) in enumerate(poly.terms) if coef > 0), 0)
    order = [poly.terms[first], *poly.terms[:first], *poly.terms[first + 1 :]]
    pieces: list[str] = []
    for mono, coef in order:
        leading = not pieces and coef < 0
        if coef < 0:
            pieces.append("-")
        elif pieces:
            pieces.append("+")
        pieces.append(_product(mono, abs(coef), leading))
    return "".join(pieces)
