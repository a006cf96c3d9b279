"""Arithmetic on dimensions as the rest of the library holds them: integers and texts.

Every function is cached from text to text, because shape inference repeats the same calls.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import TypeGuard

from . import build
from .errors import DimensionError, TooLargeError
from .expr import Atom, Poly
from .parse import parse

Dim = int | str
Shape = tuple[Dim, ...]

CACHE_SIZE = 1 << 16
MAX_TEXT = 4096


def form(dim: Dim) -> Poly:
    """Returns the normal form of a dimension. Raises :class:`DimensionError` for another type."""
    if isinstance(dim, str):
        return parse(dim)
    try:
        return Poly.integer(operator.index(dim))
    except TypeError:
        raise DimensionError(
            f"a dimension is an int or a str, not {type(dim).__name__}: {dim!r}"
        ) from None


def bounded(text: str) -> str:
    """Returns a text used as an opaque symbol, replaced by a stable short name if it is long."""
    if len(text) <= MAX_TEXT:
        return text
    import hashlib  # loads a library that few models need

    return "expr_" + hashlib.sha1(text.encode("utf-8", "backslashreplace")).hexdigest()[:20]


def _opaque(sign: str, forms: list[Poly], commutative: bool) -> str:
    """Names the result of an operation that is too large for a normal form. The name is not an
    expression the parser accepts (it is too large for it too), so it remains one symbol."""
    texts = [f.inner for f in forms]
    if commutative:
        texts.sort()
    if len(sign) < 3:
        return bounded(sign.join(f"({t})" for t in texts))
    return bounded(f"{sign}({','.join(texts)})")


def apply(sign: str, function: Callable[..., Poly], commutative: bool, *dims: Dim) -> Dim:
    """Applies a builder of forms to dimensions.

    :param sign: name of the operation, for the symbol of a result too large for a normal form
    :param function: the operation on normal forms
    :param commutative: whether that name should ignore the order of the arguments
    :param dims: the operands
    """
    forms = [form(d) for d in dims]
    try:
        result = build.shrink(function(*forms))
    except TooLargeError:
        return _opaque(sign, forms, commutative)
    return _dim(result)


def _dim(result: Poly) -> Dim:
    dim = result.dim
    return bounded(dim) if isinstance(dim, str) else dim


@lru_cache(maxsize=CACHE_SIZE)
def _normalize(expr: Dim) -> Dim:
    return form(expr).dim


def _cached(sign: str, function: Callable[..., Poly], commutative: bool) -> Callable[..., Dim]:
    return lru_cache(maxsize=CACHE_SIZE)(partial(apply, sign, function, commutative))


_add, _mul = _cached("+", build.add, True), _cached("*", Poly.mul, True)
_total = _cached("+", build.total, True)
_sub, _mod = _cached("-", Poly.sub, False), _cached("%", build.mod, False)
_floordiv = _cached("//", build.floordiv, False)
_ceildiv = _cached("ceildiv", build.ceildiv, False)
_max, _min = _cached("max", build.dim_max, True), _cached("min", build.dim_min, True)


@lru_cache(maxsize=CACHE_SIZE)
def _exact_div(a: Dim, b: Dim) -> Dim | None:
    try:
        result = form(a).exact_div(form(b))
    except TooLargeError:
        return None
    return None if result is None else _dim(result)


def normalize(expr: Dim) -> Dim:
    """Returns the normal form of an expression.

    :param expr: an integer or any text; a text which is not an expression is one opaque symbol
    :returns: an integer, or a text which is the same for all expressions of the same form

    Example::

        >>> normalize("2*seq - seq"), normalize("a*(b//1)"), normalize("3-1")
        ('seq', 'a*b', 2)
    """
    return expr if expr.__class__ is int else _normalize(expr)


def add(a: Dim, b: Dim) -> Dim:
    """Returns the sum, ``add("seq", 1)`` is ``"seq+1"``."""
    if a.__class__ is int and b.__class__ is int:
        return a + b
    return _add(a, b)


def sub(a: Dim, b: Dim) -> Dim:
    """Returns the difference, ``sub("a+b", "b")`` is ``"a"``."""
    if a.__class__ is int and b.__class__ is int:
        return a - b
    return _sub(a, b)


def neg(a: Dim) -> Dim:
    """Returns the opposite, ``neg("a-b")`` is ``"b-a"``."""
    return sub(0, a)


def mul(a: Dim, b: Dim) -> Dim:
    """Returns the product, ``mul("a+1", 2)`` is ``"2*a+2"``."""
    if a.__class__ is int and b.__class__ is int:
        return a * b
    return _mul(a, b)


def floordiv(a: Dim, b: Dim) -> Dim:
    """Returns the quotient rounded down as python does (not as ONNX ``Div`` does for a negative
    dividend), ``floordiv("4*a+2", 2)`` is ``"2*a+1"``.

    ``floordiv("a*b", "b")`` remains ``"a*b//b"`` because ``b`` may be 0, see :func:`exact_div`.
    Raises :class:`DimensionError` if the divisor is 0.
    """
    if b and a.__class__ is int and b.__class__ is int:
        return a // b
    return _floordiv(a, b)


def ceildiv(a: Dim, b: Dim) -> Dim:
    """Returns the quotient rounded up, ``ceildiv("a", 2)`` is ``"(a+1)//2"``.

    Raises :class:`DimensionError` if the divisor is 0.
    """
    if b and a.__class__ is int and b.__class__ is int:
        return -(-a // b)
    return _ceildiv(a, b)


def mod(a: Dim, b: Dim) -> Dim:
    """Returns the remainder, which has the sign of the divisor: ``mod("4*a+3", 2)`` is 1.

    Raises :class:`DimensionError` if the divisor is 0.
    """
    if b and a.__class__ is int and b.__class__ is int:
        return a % b
    return _mod(a, b)


def dim_max(a: Dim, b: Dim) -> Dim:
    """Returns the maximum, ``dim_max("a", "a+1")`` is ``"a+1"``."""
    if a.__class__ is int and b.__class__ is int:
        return a if a >= b else b
    return _max(a, b)


def dim_min(a: Dim, b: Dim) -> Dim:
    """Returns the minimum, ``dim_min("a", "a+1")`` is ``"a"``."""
    if a.__class__ is int and b.__class__ is int:
        return a if a <= b else b
    return _min(a, b)


def exact_div(a: Dim, b: Dim) -> Dim | None:
    """Returns ``q`` such that ``q * b`` is ``a`` whatever the sizes, None if there is none.

    The caller knows that ``b`` is not 0, or accepts the answer for the other sizes only. A
    Reshape to ``(b, -1)`` of ``a * b`` elements has ``exact_div("a*b", "b")``, which is ``"a"``.
    """
    return _exact_div(a, b)


def is_static(dims: Iterable[Dim]) -> TypeGuard[tuple[int, ...]]:
    """Whether every dimension of a tuple is an integer.

    >>> is_static((2, 3)), is_static(("a", 3))
    (True, False)
    """
    for dim in dims:  # noqa: SIM110 (half the time of all())
        if not isinstance(dim, int):
            return False
    return True


def total(dims: Iterable[Dim]) -> Dim:
    """Returns the sum of dimensions, 0 if there is none: ``total(("a", 2, "a"))`` is ``"2*a+2"``.

    One form is made for all, unlike repeated calls of :func:`add`. One dimension alone is
    returned as it is written.
    """
    terms = tuple(dims)
    if is_static(terms):
        return sum(terms)
    return terms[0] if len(terms) == 1 else _total(*terms)


def prod(dims: Iterable[Dim]) -> Dim:
    """Returns the product of dimensions, 1 if there is none: ``prod(("a", 2, 3))`` is ``"6*a"``."""
    result: Dim = 1
    for dim in dims:
        result = mul(result, dim)
    return result


def symbols(expr: Dim) -> frozenset[str]:
    """Returns the names of the symbols of an expression: ``symbols("a+max(b,1)")`` is {a, b}."""
    return frozenset() if expr.__class__ is int else form(expr).symbols


def evaluate(expr: Dim, sizes: Mapping[str, int]) -> int:
    """Computes an expression on real sizes.

    :param expr: an integer or an expression
    :param sizes: the size of every symbol of the expression
    :raises DimensionError: a size is missing, a divisor is 0, sizes cannot be broadcast

    Example::

        >>> evaluate("a+max(b,1)", {"a": 2, "b": 0})
        3
    """
    if isinstance(expr, int):
        return expr
    # a name such as "batch-size" reads as a difference, so its own size comes first
    return int(sizes[expr]) if expr in sizes else form(expr).evaluate(sizes)


def substitute(expr: Dim, mapping: Mapping[str, Dim]) -> Dim:
    """Replaces symbols by dimensions, all at once: ``substitute("a+b", {"a": "b", "b": 1})`` is
    ``"b+1"``. Symbols are >= 0, so are the dimensions they are replaced by.

    Raises :class:`DimensionError` if a divisor becomes 0 or a broadcast impossible.
    """
    source = form(expr)
    if source.symbols.isdisjoint(mapping):
        return source.dim
    forms = {name: form(mapping[name]) for name in source.symbols if name in mapping}

    def leaf(atom: Atom) -> Poly:
        value = forms.get(atom.key)
        return Poly.of(atom) if value is None else value

    try:
        return _dim(build.rebuild(source, leaf, build.BUILDERS))
    except TooLargeError:
        pairs = sorted((name, value.dim) for name, value in forms.items())
        return bounded(f"substitute {source.inner} {pairs}")
