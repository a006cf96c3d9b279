"""Constraints a graph puts on its dimensions: equal ones, and pairs equal unless one is 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from .api import Dim, form, normalize
from .bounds import never_zero, nonneg, primitive
from .build import BUILDERS, ONE, rebuild
from .errors import DimensionError, TooLargeError
from .expr import Atom, Poly
from .minimums import least_values, raised
from .prove import compared, equal_forms, ge_forms

Item = tuple[str, Dim, Dim, str]
Pair = tuple[Poly, Poly]


class Constraints:
    """Equalities between dimensions, solved to compare and simplify other dimensions.

    Invariants: a solved symbol has one value, a form without any solved symbol; integers are
    preferred to the names of the user, and those to generated names. Adding a constraint costs
    O(number of solved symbols and pairs it touches), a query costs O(size of the expression), once.

    :param generated: names of symbols the user did not choose, see :meth:`add_generated`

    Example::

        >>> known = Constraints(generated=["_d0"])
        >>> known.add_equal("_d0", "seq+1", "node Add_3")
        >>> known.canonical("2*_d0")
        '2*seq+2'
    """

    def __init__(self, generated: Iterable[str] = ()):
        self._generated = set(generated)
        self._seen: dict[str, int] = {}
        self._items: dict[tuple[str, Dim, Dim], str] = {}
        self._solved: dict[str, Poly] = {}
        self._origins: dict[str, tuple[str, ...]] = {}
        self._names: dict[Poly, str] = {}
        self._relations: dict[Poly, tuple[str, ...]] = {}
        self._either: dict[Pair, tuple[Poly, Poly, str]] = {}
        # symbol -> the solved symbols, relations and pairs that mention it
        self._mentions: dict[str, tuple[str | Poly | Pair, ...]] = {}
        # symbol -> its least value, when it is not 0
        self._least: dict[str, int] = {}
        # form of several symbols -> an integer it is not below
        self._bounds: dict[Poly, int] = {}
        self._canonical: dict[Dim, Dim] = {}
        self._proofs: dict[tuple[str, Dim, Dim], bool | None] = {}

    def __len__(self) -> int:
        return len(self._items)

    def copy(self) -> Constraints:
        """Returns an independent copy, for constraints that are tried and dropped."""
        other = Constraints(self._generated)
        for name, value in vars(self).items():
            setattr(other, name, value.copy())
        return other

    def restore(self, other: Constraints) -> None:
        """Restores the constraints held by a copy."""
        vars(self).update(vars(other.copy()))

    def add_generated(self, name: str) -> None:
        """Declares a symbol the user did not choose. Other names are preferred to it."""
        self._generated.add(name)

    def is_generated(self, name: str) -> bool:
        """Whether a symbol was declared as generated."""
        return name in self._generated

    def items(self) -> Iterator[Item]:
        """Yields the constraints in the order they were added: ``(kind, a, b, origin)`` where kind
        is ``"equal"`` or ``"equal_or_one"``, with the first origin."""
        for (kind, a, b), origin in self._items.items():
            yield kind, a, b, origin

    def add_equal(self, a: Dim, b: Dim, origin: str = "") -> None:
        """Declares that two dimensions are equal.

        :param a: a dimension
        :param b: the other one
        :param origin: where the equality comes from, quoted if it is contradicted
        :raises DimensionError: it contradicts known constraints, the message names both origins
        """
        item = ("equal", a, b)
        if item in self._items:
            return
        self._add(self._equate, item, origin)

    def add_equal_or_one(self, a: Dim, b: Dim, origin: str = "") -> None:
        """Declares that two dimensions are broadcast together: equal, or one of them is 1.

        :raises DimensionError: it contradicts known constraints, the message names both origins
        """
        item = ("equal_or_one", a, b)
        if item in self._items:
            return
        self._add(self._pair, item, origin)

    def add_at_least(self, dim: Dim, least: int) -> None:
        """Declares that a dimension is not below an integer. The bound becomes that of each symbol
        if it reduces to one, see :func:`.minimums.least_values`.

        :param dim: a dimension, or the difference of two
        :param least: an integer
        """
        self._note_least(self.resolve(form(dim)), least)

    def _note_least(self, poly: Poly, least: int) -> None:
        reduced = False
        for name, value in least_values(poly, least):
            reduced = True
            if value > self._least.get(name, 0):
                self._least[name] = value
                self._proofs.clear()
        if not reduced and poly.symbols and self._bounds.get(poly, least - 1) < least:
            self._bounds[poly] = least
            self._proofs.clear()

    @property
    def minimums(self) -> Mapping[str, int]:
        """The least values of symbols, those that are not 0."""
        return self._least

    def lower_bounds(self) -> Iterator[tuple[Dim, int]]:
        """Yields the dimensions known not to be below an integer, and this integer."""
        yield from self._least.items()
        for poly, least in self._bounds.items():
            yield poly.dim, least

    def canonical(self, dim: Dim) -> Dim:
        """Returns the preferred dimension among those known equal to this one: an integer, then a
        name of the user, then an expression, in terms of names of the user if possible."""
        if not self._solved:
            return normalize(dim)
        found = self._canonical.get(dim)
        if found is None:
            resolved = self.resolve(form(dim))
            found = self._canonical[dim] = self._names.get(resolved) or resolved.dim
        return found

    def resolve(self, poly: Poly) -> Poly:
        """Replaces the solved symbols of a form by their values."""
        if poly.symbols.isdisjoint(self._solved):
            return poly
        try:
            return rebuild(poly, self._leaf, BUILDERS)
        except (TooLargeError, DimensionError):
            return poly

    def prove_equal(self, a: Dim, b: Dim) -> bool | None:
        """Compares two dimensions: True, False, None when it is not known."""
        if not self._items and not self._least:
            return compared(a, b)
        key = ("equal", a, b)
        if key not in self._proofs:
            self._proofs[key] = self._equal(self.resolve(form(a)), self.resolve(form(b)))
        return self._proofs[key]

    def prove_ge(self, a: Dim, b: Dim) -> bool | None:
        """Whether ``a >= b``: True, False, or None when it is not known."""
        key = ("ge", a, b)
        if key not in self._proofs:
            left, right = self.resolve(form(a)), self.resolve(form(b))
            proof = True if self._related(left, right) else ge_forms(left, right)
            if proof is None and self._least:
                proof = ge_forms(raised(left, self._least), raised(right, self._least))
            if proof is None and self._is_bounded(left, right):
                proof = True
            self._proofs[key] = proof
        return self._proofs[key]

    def _is_bounded(self, left: Poly, right: Poly) -> bool:
        """Whether a form is above another one by more than a form is above its bound."""
        diff = _difference(left, right) if self._bounds else None
        if diff is None:
            return False
        bounds = ((self.resolve(poly), least) for poly, least in self._bounds.items())
        return any(ge_forms(diff, poly.add(Poly.integer(-least))) for poly, least in bounds)

    def _add(self, function: Callable[..., None], item: tuple[str, Dim, Dim], origin: str) -> None:
        left, right = form(item[1]), form(item[2])
        for poly in (left, right):
            for name in sorted(poly.symbols):
                self._seen.setdefault(name, len(self._seen))
        function(left, right, origin)
        self._items[item] = origin

    def _leaf(self, atom: Atom) -> Poly:
        value = self._solved.get(atom.key)
        return Poly.of(atom) if value is None else value

    def _related(self, left: Poly, right: Poly) -> bool:
        if not self._relations:
            return False
        diff = _difference(left, right)
        return diff is not None and primitive(diff) in self._relations

    def _equal(self, left: Poly, right: Poly) -> bool | None:
        answer = equal_forms(left, right)
        if answer is None and self._least:
            answer = equal_forms(raised(left, self._least), raised(right, self._least))
        if answer is not None:
            return answer
        if self._related(left, right):
            return True
        for dim, other in ((left, right), (right, left)):
            for value in self._only_one_or(dim):
                if equal_forms(value, other) is False and equal_forms(ONE, other) is False:
                    return False
        return None

    def _only_one_or(self, poly: Poly) -> Iterator[Poly]:
        """Yields the values such that the form is known to be 1 or this value."""
        for left, right in self._either:
            if left == poly and _not_one(right):
                yield right
            elif right == poly and _not_one(left):
                yield left

    def _why(self, *polys: Poly) -> tuple[str, ...]:
        """The origins of the values of the symbols of some forms."""
        names = sorted(set().union(*(p.symbols for p in polys)))
        found = (origin for name in names for origin in self._origins.get(name, ()))
        return tuple(dict.fromkeys(found))

    def _why_either(self, *polys: Poly) -> Iterator[str]:
        """Yields the origins of the pairs some forms belong to."""
        for pair, (a, b, origin) in self._either.items():
            if not set(pair).isdisjoint(polys):
                yield from (origin, *self._why(a, b))

    def _equate(self, a: Poly, b: Poly, origin: str, earlier: tuple[str, ...] = ()) -> None:
        left, right = self.resolve(a), self.resolve(b)
        origins = tuple(dict.fromkeys((origin, *earlier, *self._why(a, b))))
        verdict = self._equal(left, right)
        if verdict is False or equal_forms(a, b) is False:
            reasons = dict.fromkeys((*origins[1:], *self._why_either(left, right)))
            known = ", ".join(filter(None, reasons)) or "the dimensions themselves"
            raise DimensionError(
                f"dimensions {a.dim} and {b.dim} cannot be equal, as {origin or 'a constraint'} "
                f"requires: {left.dim} differs from {right.dim} according to {known}"
            )
        diff = _difference(left, right) if verdict is None else None
        if diff is not None:
            self._canonical.clear()
            self._proofs.clear()
            self._solve_or_note(diff, origins)

    def _solve_or_note(self, diff: Poly, origins: tuple[str, ...]) -> None:
        """Adds ``diff == 0``: solves one symbol, or keeps the relation."""
        diff = primitive(diff)
        solutions = [(self._cost(name, value), name, value) for name, value in _solutions(diff)]
        if solutions:
            _, name, value = min(solutions, key=lambda s: s[:2])
            self._solve(name, value, origins)
        else:
            self._relations[diff] = origins
            self._mention(diff.symbols, diff)

    def _cost(self, name: str, value: Poly) -> tuple[bool, bool, int]:
        # the symbol to eliminate: generated, with a value that cannot be negative, seen last
        return name not in self._generated, not nonneg(value), -self._seen.get(name, 0)

    def _mention(self, names: Iterable[str], what: str | Poly | Pair) -> None:
        for name in names:
            self._mentions[name] = (*self._mentions.get(name, ()), what)

    def _solve(self, name: str, value: Poly, origins: tuple[str, ...]) -> None:
        mentions = dict.fromkeys(self._mentions.get(name, ()))
        pending = [
            m
            for m in mentions
            if not isinstance(m, str) and (m in self._relations or m in self._either)
        ]
        # a pending constraint may raise, and nothing must remain of one that is refused
        saved = self.copy() if pending else self
        try:
            self._set(name, value, origins)
            for other in mentions:
                if isinstance(other, str) and name in self._solved[other].symbols:
                    resolved = self.resolve(self._solved[other])
                    self._set(other, resolved, (*self._origins[other], *origins))
            self._canonical.clear()
            self._proofs.clear()
            self._revisit(pending)
        except DimensionError:
            vars(self).update(vars(saved))
            raise

    def _set(self, name: str, value: Poly, origins: tuple[str, ...]) -> None:
        if name in self._least:
            self._note_least(value, self._least[name])
        old = self._solved.get(name)
        if old is not None and self._names.get(old) == name:
            del self._names[old]
        self._solved[name] = value
        self._origins[name] = tuple(dict.fromkeys(origins))
        self._mention(value.symbols, name)
        if name not in self._generated and self._is_worth_a_name(value):
            other = self._names.setdefault(value, name)
            self._names[value] = min(name, other, key=lambda n: self._seen.get(n, 0))

    def _is_worth_a_name(self, poly: Poly) -> bool:
        atom = poly.atom
        if poly.constant is not None:
            return False
        return atom is None or bool(atom.op) or atom.key in self._generated

    def _revisit(self, pending: list[Poly | Pair]) -> None:
        """Adds again the relations and pairs that mention a symbol that got a value."""
        for what in pending:
            if isinstance(what, Poly):
                if what in self._relations:
                    origin, *earlier = self._relations.pop(what)
                    self._equate(what, Poly(()), origin, tuple(earlier))
            elif what in self._either:
                self._pair(*self._either.pop(what))

    def _pair(self, a: Poly, b: Poly, origin: str) -> None:
        left, right = self.resolve(a), self.resolve(b)
        verdict = self._equal(left, right)
        if verdict is True or ONE in (left, right):
            return
        fixed_left, fixed_right = _not_one(left), _not_one(right)
        if (fixed_left and fixed_right) or _cuts(left, right) or _cuts(right, left):
            self._equate(a, b, origin)
        elif fixed_left and verdict is False:
            self._equate(b, ONE, origin, self._why(a))
        elif fixed_right and verdict is False:
            self._equate(a, ONE, origin, self._why(b))
        else:
            self._canonical.clear()
            self._proofs.clear()
            self._either.setdefault((left, right), (a, b, origin))
            self._mention(left.symbols | right.symbols, (left, right))


def _difference(left: Poly, right: Poly) -> Poly | None:
    """``left - right``, None if it is too large for the normal form and so unknown."""
    try:
        return left.sub(right)
    except TooLargeError:
        return None


def _not_one(poly: Poly) -> bool:
    diff = _difference(poly, ONE)
    return diff is not None and never_zero(diff)


def _cuts(short: Poly, long: Poly) -> bool:
    """Whether a form is ``min(k, long)``, k > 1, so that it is 1 if and only if *long* is."""
    atom = short.atom
    if atom is None or atom.op != "min" or len(atom.args) != 2 or long not in atom.args:
        return False
    other = next((arg.constant for arg in atom.args if arg != long), None)
    return other is not None and other > 1


def _solutions(diff: Poly) -> Iterator[tuple[str, Poly]]:
    """Yields the symbols ``diff == 0`` can be solved for, with their values."""
    for mono, coef in diff.terms:
        if len(mono) == 1 and not mono[0].op and abs(coef) == 1:
            value = Poly.of(mono[0]).combine(-coef, diff)
            if mono[0].key not in value.symbols:
                yield mono[0].key, value
