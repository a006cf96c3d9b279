"""Conditions on sizes as text, in the words of the user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch.utils._sympy import functions

from .counterexamples import python_text

_UNTYPED: Any = functions
#: functions that round a float to an integer
_ROUNDED = (_UNTYPED.CeilToInt, _UNTYPED.FloorToInt, _UNTYPED.TruncToInt)
#: length of the longest text that is read
_LONGEST = 200


def readable_condition(condition: Any, names: Mapping[str, str]) -> str:
    """A condition as text. A model that divides sizes again and again, as one does that pads each
    convolution, has conditions that nobody reads: their quotients are merged, and what is still too
    long is not written.

    :param condition: a condition of sympy
    :param names: the names of the user, by symbol of torch

    >>> import sympy
    >>> from torch.utils._sympy.functions import CeilToInt, IntTrueDiv
    >>> n = sympy.Symbol("s0", integer=True, positive=True)
    >>> half = CeilToInt(1 + IntTrueDiv(n - 2, sympy.Integer(2)))
    >>> eighth = CeilToInt(IntTrueDiv(half, sympy.Integer(4)))
    >>> readable_condition(sympy.Lt(6, eighth), {"s0": "n"})
    '6 < math.ceil(n / 8)'
    """
    merged = _merged(condition)
    text = python_text(merged if merged.free_symbols else condition)
    text = text.replace("torch.sym_float", "float").replace("torch._sym_", "")
    symbols = {s.name: names.get(s.name, s.name) for s in condition.free_symbols}
    for symbol, name in symbols.items():
        text = re.sub(rf"\b{symbol}\b", name, text)
    text = re.sub(r"\d+\.\d+", lambda number: f"{float(number.group()):.6g}", text)
    return (
        text if len(text) <= _LONGEST else f"a condition on {', '.join(sorted(symbols.values()))}"
    )


def _merged(expr: Any) -> Any:
    """An expression where each quotient that is rounded is the quotient of a size by a number, when
    it was one of such a quotient: they are equal for real numbers."""
    if not expr.args:
        return expr
    expr = expr.func(*map(_merged, expr.args))
    quotient = _quotient(expr)
    if quotient is None:
        return expr
    base, divisor = quotient
    number, inner = _constant_and_term(base)
    inside = _quotient(inner)
    if inside and inner.func is expr.func and (not number or expr.func is not _UNTYPED.TruncToInt):
        base, divisor = inside[0] + number * inside[1], inside[1] * divisor
    return base if divisor == 1 else expr.func(_UNTYPED.IntTrueDiv(base, divisor))


def _quotient(expr: Any) -> tuple[Any, Any] | None:
    """The integer and the positive number that divides it in a quotient that is rounded."""
    if not isinstance(expr, _ROUNDED):
        return None
    number, term = _constant_and_term(expr.args[0])
    if not isinstance(term, _UNTYPED.IntTrueDiv) or number is None:
        return None
    base, divisor = term.args
    if not (divisor.is_Integer and divisor > 0 and base.is_integer):
        return None
    return base + number * divisor, divisor


def _constant_and_term(expr: Any) -> tuple[Any, Any]:
    """The integer that an expression adds to a term, None if it adds another number."""
    number, term = expr.as_coeff_Add()
    whole = float(number).is_integer()  # sympy tells 1.0 from 1
    return (_UNTYPED.sympy.Integer(int(number)) if whole else None), term
