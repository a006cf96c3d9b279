"""Normal form of a dimension: a polynomial with integer coefficients over atoms.

An atom is a symbol or an operation that polynomials cannot absorb (``//``, ``%``, ``max``, ``min``,
``ceildiv``, ``broadcast``) whose arguments are normal forms. Two forms are equal if and only if
their terms are equal, so that equality and hash are the ones of a tuple.

sympy could do it, it is the oracle of the tests, but shape inference computes the same small sums
millions of times and sympy is too slow. Microseconds per call, first time with empty caches then
once cached (python 3.11, sympy 1.14, one core, ``_unittests/ut_xbuilder/dims/measure_sympy.py``)::

    operation                            sympy: first   cached    ours: first   cached
    add(seq, 1)                                  15.8      1.4           14.2     0.14
    normalize 2*seq-seq (a text)                  467      370           30.1     0.12
    mul(a+1, b+2)                                 591     12.2           44.0     0.33
    floordiv(4*a+2, 2)                           2196      5.5           43.5     0.13
    prove_equal((a-1)//2+1, (a+1)//2)           36370    16582            111     0.16
    prove_ge(a+b, a)                             87.7      9.8           31.6     0.34

Importing sympy costs 316 ms, importing this package 24 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from .errors import DimensionError, TooLargeError
from .text import inner_text, operation_text, quote

MAX_SIZE = 256
MAX_DEPTH = 16
MAX_COEFFICIENT = 1 << 128


class Atom:
    """A symbol (``op == ""``) or an opaque operation on normal forms. Immutable.

    :param op: ``""`` for a symbol or the name of the operation
    :param key: the name of the symbol, or the text of the operation; atoms are sorted by it
    :param args: arguments of the operation

    Raises :class:`TooLargeError` when the operation passes the bounds on size and depth.
    """

    __slots__ = ("args", "depth", "inner", "key", "op", "size")

    def __init__(self, op: str, key: str, args: tuple[Poly, ...] = ()):
        self.op = op
        self.key = key
        self.args = args
        self.inner = key if op else quote(key)
        self.size: int = 1 + sum(a.size for a in args)
        self.depth = 1 + max((a.depth for a in args), default=0)
        if self.size > MAX_SIZE or self.depth > MAX_DEPTH:
            raise TooLargeError(op)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Atom) and self.key == other.key and self.op == other.op
        )

    def __lt__(self, other: Atom) -> bool:
        return (self.key, self.op) < (other.key, other.op)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Atom({self.inner!r})"


Mono = tuple[Atom, ...]


def _term_order(term: tuple[Mono, int]) -> tuple[int, Mono]:
    # graded lexicographic order, compatible with products, as the division requires
    return -len(term[0]), term[0]


class Poly:
    """A polynomial: sorted pairs (product of sorted atoms, non null coefficient). Immutable.

    Example::

        >>> a = Poly.symbol("a")
        >>> (a.add(a)).terms
        (((Atom('a'),), 2),)
    """

    def __init__(self, terms: tuple[tuple[Mono, int], ...]):
        self.terms = terms
        self._hash = hash(terms)
        #: number of terms and atoms, those inside the arguments included
        self.size: int = len(terms) + sum([atom.size for mono, _ in terms for atom in mono])

    @staticmethod
    def build(coefs: Mapping[Mono, int]) -> Poly:
        """Builds the form from the coefficient of every product, zeros are dropped.

        Raises :class:`TooLargeError` when the form passes the bounds.
        """
        terms = [row for row in coefs.items() if row[1]]
        if len(terms) > 1:
            terms.sort(key=_term_order)
        poly = Poly(tuple(terms))
        if poly.size > MAX_SIZE or max(map(abs, coefs.values()), default=0) > MAX_COEFFICIENT:
            raise TooLargeError(len(poly.terms))
        return poly

    @staticmethod
    def integer(value: int) -> Poly:
        """Returns the constant form ``value``."""
        return Poly((((), value),) if value else ())

    @staticmethod
    def symbol(name: str) -> Poly:
        """Returns the form of a symbol, the name is taken as is."""
        return Poly.of(Atom("", name))

    @staticmethod
    def operation(op: str, *args: Poly) -> Poly:
        """Returns the form made of one opaque operation, nothing is simplified."""
        return Poly.of(Atom(op, operation_text(op, args), args))

    @staticmethod
    def of(atom: Atom) -> Poly:
        """Returns the form reduced to one atom."""
        return Poly((((atom,), 1),))

    @property
    def is_symbol(self) -> bool:
        """Whether the form is one symbol, any integer from 0."""
        if len(self.terms) != 1:
            return False
        ((atoms, factor),) = self.terms
        return factor == 1 and len(atoms) == 1 and not atoms[0].op

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Poly) and self._hash == other._hash and self.terms == other.terms
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Poly({self.inner!r})"

    @cached_property
    def depth(self) -> int:
        """Depth of nested operations."""
        return max((atom.depth for mono, _ in self.terms for atom in mono), default=0)

    @cached_property
    def constant(self) -> int | None:
        """The integer when the form is one, None otherwise."""
        if not self.terms:
            return 0
        mono, coef = self.terms[0]
        return None if mono else coef

    @property
    def offset(self) -> int:
        """The constant term."""
        return self.terms[-1][1] if self.terms and not self.terms[-1][0] else 0

    @property
    def atom(self) -> Atom | None:
        """The atom when the form is one atom alone, None otherwise."""
        if len(self.terms) != 1:
            return None
        mono, coef = self.terms[0]
        return mono[0] if coef == 1 and len(mono) == 1 else None

    @cached_property
    def operations(self) -> tuple[Atom, ...]:
        """The opaque operations at the top level, sorted, without duplicates."""
        return tuple(sorted({a for mono, _ in self.terms for a in mono if a.op}))

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of all symbols, those inside operations included."""
        names: set[str] = set()
        for mono, _ in self.terms:
            for atom in mono:
                if atom.op:
                    names.update(*(a.symbols for a in atom.args))
                else:
                    names.add(atom.key)
        return frozenset(names)

    @cached_property
    def inner(self) -> str:
        """The text of the form as a part of an expression: odd symbols are quoted."""
        return inner_text(self)

    @cached_property
    def dim(self) -> int | str:
        """The dimension as the rest of the library sees it: an integer or a text."""
        value = self.constant
        if value is not None:
            return value
        atom = self.atom
        return atom.key if atom is not None else self.inner

    def add(self, other: Poly) -> Poly:
        """Returns the sum."""
        return self.combine(1, other)

    def sub(self, other: Poly) -> Poly:
        """Returns the difference."""
        return self.combine(-1, other)

    def combine(self, factor: int, other: Poly) -> Poly:
        """Returns ``self + factor * other``."""
        if not other.terms:
            return self
        total = Sum(self)
        total.add(factor, other)
        return total.form()

    def scale(self, factor: int) -> Poly:
        """Returns the product by an integer."""
        return Poly.build({m: c * factor for m, c in self.terms})

    def mul(self, other: Poly) -> Poly:
        """Returns the product. Raises :class:`TooLargeError` when it would be too large."""
        if len(self.terms) * len(other.terms) > MAX_SIZE:
            raise TooLargeError("mul")
        coefs: dict[Mono, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                mono = tuple(sorted(m1 + m2))
                coefs[mono] = coefs.get(mono, 0) + c1 * c2
        return Poly.build(coefs)

    def exact_div(self, other: Poly) -> Poly | None:
        """Returns ``q`` such that ``q * other == self`` as polynomials, None if there is none."""
        if not other.terms:
            return None
        lead, lead_coef = other.terms[0]
        rest = self
        quotient: dict[Mono, int] = {}
        while rest.terms:
            mono, coef = rest.terms[0]
            factor = divide_mono(mono, lead)
            if factor is None or coef % lead_coef or len(quotient) > MAX_SIZE:
                return None
            quotient[factor] = coef // lead_coef
            rest = rest.sub(Poly(((factor, coef // lead_coef),)).mul(other))
        return Poly.build(quotient)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Computes the value. Raises :class:`DimensionError` if a size is missing, a divisor is 0
        or a broadcast is impossible."""
        total = 0
        for mono, coef in self.terms:
            for atom in mono:
                coef *= _evaluate_atom(atom, sizes)
            total += coef
        return total


class Sum:
    """A sum of forms, made term by term: the terms are sorted once, not after each addition.

    :param first: the first form
    """

    __slots__ = ("_coefs", "_size")

    def __init__(self, first: Poly):
        self._coefs = dict(first.terms)
        self._size = first.size

    def add(self, factor: int, other: Poly) -> None:
        """Adds ``factor * other``. Cost: O(terms of *other*).

        Raises :class:`TooLargeError` when the form of the sum passes the bounds.
        """
        coefs = self._coefs
        for mono, coef in other.terms:
            before = coefs.get(mono, 0)
            coefs[mono] = after = before + factor * coef
            if not before or not after:
                size = 1 + sum([atom.size for atom in mono])
                self._size += (bool(after) - bool(before)) * size
            if abs(after) > MAX_COEFFICIENT:
                raise TooLargeError(len(coefs))
        if self._size > MAX_SIZE:
            raise TooLargeError(len(coefs))

    def form(self) -> Poly:
        """The form of the sum."""
        return Poly.build(self._coefs)


def divide_mono(mono: Mono, divisor: Mono) -> Mono | None:
    """Divides a product of atoms by another one, returns None when it is not a multiple."""
    left = list(mono)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _evaluate_atom(atom: Atom, sizes: Mapping[str, int]) -> int:
    if atom.op:
        return compute(atom.op, [a.evaluate(sizes) for a in atom.args])
    try:
        return int(sizes[atom.key])
    except KeyError:
        raise DimensionError(
            f"no size is given for dimension {atom.key!r}, known: {sorted(sizes)}"
        ) from None


def _broadcast(values: Iterable[int]) -> int:
    left = set(values) - {1}
    if len(left) > 1:
        raise DimensionError(f"sizes {sorted(left)} cannot be broadcast together")
    return left.pop() if left else 1


def compute(op: str, values: list[int]) -> int:
    """Computes an operation on integers. Divisions round like the ones of python.

    Raises :class:`DimensionError` if it is not defined.
    """
    if op in ("max", "min"):
        return max(values) if op == "max" else min(values)
    if op == "broadcast":
        return _broadcast(values)
    left, right = values
    if right == 0:
        raise DimensionError(f"division by zero in {op}({left}, {right})")
    if op == "floordiv":
        return left // right
    return left % right if op == "mod" else -(-left // right)
