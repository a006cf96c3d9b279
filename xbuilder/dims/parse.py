"""Reads the text of a dimension into its normal form. Nothing is ever evaluated by python.

Any text is accepted. One that is not an expression, or is too long, is one opaque symbol of that
name. The parser knows the names sympy and torch give to operations (``FloorDiv``, ``Mod``,
``CeilToInt``, ...).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from .bounds import never_zero
from .build import broadcast, ceildiv, dim_max, dim_min, floordiv, mod, shrink
from .errors import DimensionError, TooLargeError
from .expr import Poly, Sum

MAX_TOKENS = 2048
MAX_NESTING = 64
MAX_DIGITS = 40
MAX_POWER = 8

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+)|(?P<name>[^\W\d]\w*)|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<sign>//|\*\*|[-+*/%(),]))"
)


class NotAnExpressionError(Exception):
    """Internal: the text is not an expression."""


class Ratio(NamedTuple):
    """A true division, accepted only where it is rounded at once: ``floor(a/2)``."""

    left: Poly
    right: Poly


def _ratio(left: Poly, right: Poly) -> Poly | Ratio:
    exact = left.exact_div(right) if never_zero(right) else None
    return Ratio(left, right) if exact is None else exact


def _power(base: Poly, exponent: Poly) -> Poly:
    value = exponent.constant
    if value is None or not 0 <= value <= MAX_POWER:
        raise NotAnExpressionError(f"power {exponent.dim}")
    result = Poly.integer(1)
    for _ in range(value):
        result = result.mul(base)
    return result


def _modular_indexing(base: Poly, divisor: Poly, modulus: Poly) -> Poly:
    return mod(floordiv(base, divisor), modulus)


_ROUNDED: dict[str, Callable[[Poly, Poly], Poly]] = {
    "floor": floordiv,
    "FloorToInt": floordiv,
    "ceil": ceildiv,
    "ceiling": ceildiv,
    "CeilToInt": ceildiv,
}
_BINARY: dict[str, Callable[[Poly, Poly], Poly | Ratio]] = {
    "floordiv": floordiv,
    "FloorDiv": floordiv,
    "CleanDiv": floordiv,
    "ceildiv": ceildiv,
    "CeilDiv": ceildiv,
    "mod": mod,
    "Mod": mod,
    "PythonMod": mod,
    "IntTrueDiv": _ratio,
    "PowByNatural": _power,
}
_VARIADIC: dict[str, Callable[..., Poly]] = {
    "max": dim_max,
    "Max": dim_max,
    "min": dim_min,
    "Min": dim_min,
    "broadcast": broadcast,
}
_OTHER: dict[str, tuple[int, Callable[..., Poly]]] = {
    "ModularIndexing": (3, _modular_indexing),
    "Identity": (1, lambda value: value),
}
_PRODUCTS: dict[str, Callable[[Poly, Poly], Poly | Ratio]] = {
    "*": Poly.mul,
    "//": floordiv,
    "%": mod,
    "/": _ratio,
}


def _call(name: str, args: list[Poly | Ratio]) -> Poly | Ratio:
    """Applies a known function. Raises :class:`NotAnExpressionError` for any other one."""
    if name in _ROUNDED and len(args) == 1:
        value = args[0]
        return _ROUNDED[name](*value) if isinstance(value, Ratio) else value
    forms = [_integral(a) for a in args]
    if name in _BINARY and len(forms) == 2:
        return _BINARY[name](*forms)
    if name in _VARIADIC and forms:
        return _VARIADIC[name](*forms)
    if name in _OTHER and len(forms) == _OTHER[name][0]:
        return _OTHER[name][1](*forms)
    raise NotAnExpressionError(f"{name} with {len(args)} arguments")


def _shortest(value: Poly | Ratio) -> Poly | Ratio:
    return value if isinstance(value, Ratio) else shrink(value)


def _integral(value: Poly | Ratio) -> Poly:
    if isinstance(value, Ratio):
        raise NotAnExpressionError("a true division is not rounded")
    return value


def _tokenize(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(tokens) >= MAX_TOKENS:
            raise NotAnExpressionError(text)
        tokens.append((match.lastgroup or "", match.group(match.lastgroup or 0)))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent on the tokens, with the precedences of python."""

    def __init__(self, text: str, nesting: int):
        self.tokens = _tokenize(text)
        self.position = 0
        self.nesting = nesting

    def peek(self) -> str:
        """Returns the next sign, ``""`` for a name, a number or the end."""
        if self.position >= len(self.tokens):
            return ""
        kind, text = self.tokens[self.position]
        return text if kind == "sign" else ""

    def next(self) -> tuple[str, str]:
        """Consumes one token."""
        if self.position >= len(self.tokens):
            raise NotAnExpressionError("unexpected end")
        self.position += 1
        return self.tokens[self.position - 1]

    def expect(self, sign: str) -> None:
        """Consumes a sign."""
        if self.next() != ("sign", sign):
            raise NotAnExpressionError(f"{sign} is missing")

    def parse(self) -> Poly:
        """Reads the whole text."""
        value = _integral(self.sum())
        if self.position != len(self.tokens):
            raise NotAnExpressionError("something follows the expression")
        return value

    def sum(self) -> Poly | Ratio:
        """Reads ``term + term - term``."""
        value = self.product()
        if self.peek() not in ("+", "-"):
            return value
        total = Sum(_integral(value))
        while self.peek() in ("+", "-"):
            _, sign = self.next()
            total.add(1 if sign == "+" else -1, _integral(self.product()))
        return shrink(total.form())

    def product(self) -> Poly | Ratio:
        """Reads ``factor * factor // factor % factor``."""
        value = self.unary()
        while self.peek() in _PRODUCTS:
            _, sign = self.next()
            right = _integral(self.unary())
            value = _shortest(_PRODUCTS[sign](_integral(value), right))
        return value

    def unary(self) -> Poly | Ratio:
        """Reads ``-factor`` or ``factor ** number``."""
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise TooLargeError("nesting")
        if self.peek() in ("+", "-"):
            _, sign = self.next()
            value = self.unary()
            if sign == "-":
                value = _integral(value).scale(-1)
        else:
            value = self.primary()
            if self.peek() == "**":
                self.next()
                value = _power(_integral(value), _integral(self.unary()))
        self.nesting -= 1
        return value

    def primary(self) -> Poly | Ratio:
        """Reads a number, a symbol, a call or a parenthesis."""
        kind, text = self.next()
        if kind == "number":
            if len(text) > MAX_DIGITS:
                raise NotAnExpressionError(text)
            return Poly.integer(int(text))
        if kind == "quoted":
            return parse(text[1:-1].replace("``", "`"), self.nesting)
        if kind == "name":
            is_call = self.peek() == "("
            return _shortest(_call(text, self.arguments())) if is_call else Poly.symbol(text)
        if text != "(":
            raise NotAnExpressionError(text)
        value = self.sum()
        self.expect(")")
        return value

    def arguments(self) -> list[Poly | Ratio]:
        """Reads ``(expr, expr)``."""
        self.expect("(")
        args = [self.sum()]
        while self.peek() == ",":
            self.next()
            args.append(self.sum())
        self.expect(")")
        return args


@lru_cache(maxsize=1 << 16)
def parse(text: str, nesting: int = 0) -> Poly:
    """Reads the text of a dimension. Any text is accepted.

    :param text: an expression, or anything else which is then one opaque symbol
    :param nesting: levels of parentheses already used, it is bounded
    :returns: the normal form

    Raises :class:`DimensionError` for an empty text: in ONNX it means the dimension is unknown, it
    needs a name of its own first.

    Example: ``parse("2*seq-seq")`` is the form of ``seq``, ``parse("batch size")`` is a symbol.
    """
    if not text:
        raise DimensionError("an empty name is not a dimension: give a name to the unknown one")
    if text != text.strip() or (text[0] == "`" and _is_one_quoted(text)):
        return Poly.symbol(text)
    try:
        return _Parser(text, nesting).parse()
    except (NotAnExpressionError, TooLargeError, DimensionError):
        return Poly.symbol(text)


def _is_one_quoted(text: str) -> bool:
    match = _TOKEN.fullmatch(text)
    return match is not None and match.lastgroup == "quoted"
