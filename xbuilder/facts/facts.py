"""Facts about results (type, shape, rank, content), and their table. Facts only refine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ..dims import Constraints, Dim, DimensionError, Shape, is_static, prove_equal
from ..errors import FactError
from ..tensors.bits import pretty_type

#: content of an integer tensor: scalar for rank 0, tuple for rank 1, None when unknown
Value = int | str | tuple[Dim, ...] | None

#: contents longer than this are not tracked symbolically
MAX_TRACKED = 64

#: beyond this number of dimensions, none is recorded: numpy has no tensor of that rank,
#: and a file of 100 bytes may declare that a shape has 2^40 elements
MAX_RANK = 64


@dataclass(slots=True)
class ResultFacts:
    """Facts about one result; the default value of every field means *unknown*.

    :param type: element type, a `TensorProto.DataType`, 0 if unknown
    :param shape: tuple of int or expressions
    :param rank: number of dimensions, implied by the shape when there is one
    :param value: content of a small integer or boolean tensor
    :param sequence: facts of the elements when the result is a sequence
    :param optional: facts of the element when the result is an optional
    :param parts: facts of each element of a sequence made of parts of known lengths
    """

    type: int = 0
    shape: Shape | None = None
    rank: int | None = None
    value: Value = None
    sequence: ResultFacts | None = None
    optional: ResultFacts | None = None
    parts: tuple[ResultFacts, ...] = ()

    def known_rank(self) -> int | None:
        """Rank, from the shape if there is one."""
        return len(self.shape) if self.shape is not None else self.rank


UNKNOWN = ResultFacts()

#: origin of the facts a file gives about a result that can be inferred: the inference wins over
#: them
DECLARED = "what the model declares"


def _same_dims(a: Shape, b: Shape, constraints: Constraints) -> bool:
    """Whether no pair of dimensions of two shapes of the same rank is proven different."""
    return all(
        x == y or prove_equal(x, y, constraints) is not False for x, y in zip(a, b, strict=True)
    )


def _merge_values(old: Value, new: Value) -> Value:
    """The more precise of two contents: integers rather than symbols."""
    if old is None or new is None:
        return new if old is None else old
    items = new if isinstance(new, tuple) else (new,)
    return new if is_static(items) else old


def _adds_nothing(old: ResultFacts, new: ResultFacts) -> bool:
    """Whether new facts repeat the old ones, found quickly: the usual case after a rewrite."""
    return (
        old.type == new.type
        and old.shape is not None
        and old.shape == new.shape
        and (new.value is None or new.value == old.value)
    )


class ResultChanges(Protocol):
    """The part of a change of the graph that a table of results needs."""

    @property
    def lost(self) -> Sequence[str]:
        """Results no node produces any more."""

    @property
    def renamed(self) -> tuple[str, str] | None:
        """Old and new name of a result."""


class HasResults(Protocol):
    """The part of a node the table of facts reads: its outputs."""

    @property
    def outputs(self) -> Sequence[str]:
        """Names of its results, empty for a missing one."""


#: name of a result, its facts or None, their origin, its device
SavedFacts = tuple[str, ResultFacts | None, str | None, Any]


class FactTable(dict[str, ResultFacts]):
    """Facts of the results of one graph; a name of the outer graph is looked up in `parent`.

    `facts[name]` reads them: nothing is known about a name the table does not hold. :meth:`refine`
    adds to them. The table subscribes to the store: the facts of a result are removed with the
    result, and follow it when it is renamed. It is a dictionary because facts are read many times
    for each node.

    Invariants: a :class:`ResultFacts` in the table is never changed, it is replaced by a more
    precise one; a type is set once; a dimension goes from unknown to a symbol to an integer.
    Reading is O(1). `devices` holds the devices of the results for which it is known, `types` every
    element type that a result has or had.

    :param constraints: constraints on dimensions, a copy of the parent's for a body
    :param is_generated: whether a symbol was made by the builder; any other symbol replaces it
    :param parent: facts of the outer graph
    :param tell: called with a name and a reason when an inferred fact replaces a declared one
    :param giver: returns the producer of a result, which the error names when facts without a
        recorded origin are contradicted

    Example::

        >>> facts = FactTable(Constraints(), is_generated=lambda symbol: False)
        >>> facts.refine("x", ResultFacts(type=1, shape=("batch", 4)))
        >>> facts["x"].shape, facts["y"].shape
        (('batch', 4), None)
    """

    __slots__ = (
        "_giver",
        "_is_generated",
        "_origins",
        "_tell",
        "constraints",
        "devices",
        "parent",
        "refined",
        "types",
    )

    def __init__(
        self,
        constraints: Constraints,
        is_generated: Callable[[str], bool],
        parent: FactTable | None = None,
        tell: Callable[[str, str], None] | None = None,
        giver: Callable[[str], object] | None = None,
    ):
        super().__init__()
        self.constraints = constraints
        self._is_generated = is_generated
        self._tell = tell
        self._giver = giver
        self.parent = parent
        # origins that are words; a node is not recorded, the store knows which one gives the result
        self._origins: dict[str, str] = {}
        self.devices: dict[str, Any] = {}
        self.types: set[int] = set()
        #: number of times something was added to known facts
        self.refined = 0

    def __missing__(self, name: str) -> ResultFacts:
        return UNKNOWN if self.parent is None else self.parent[name]

    def __contains__(self, name: object) -> bool:
        return self.is_local(name) or (self.parent is not None and name in self.parent)

    @property
    def origins(self) -> Mapping[str, str]:
        """The origins of facts no node gave, by name of result."""
        return self._origins

    def all_types(self) -> set[int]:
        """The element types that the results of this graph and of the outer ones have or had, 0 if
        one is unknown. Cost: the number of types."""
        return self.types if self.parent is None else self.types | self.parent.all_types()

    # -- results that are removed or renamed

    def store_changed(self, event: ResultChanges) -> None:
        """Forgets the results that were removed, follows the one that was renamed."""
        origins, devices = self._origins, self.devices
        for name in event.lost:
            self.pop(name, None)
            if name in origins:
                del origins[name]
            if name in devices:
                del devices[name]
        if event.renamed is not None:
            self._rename(*event.renamed)

    def forget(self, name: str) -> None:
        """Removes the facts about a name of this graph that does not exist any more."""
        self.pop(name, None)
        if name in self._origins:
            del self._origins[name]
        if name in self.devices:
            del self.devices[name]

    def _rename(self, old: str, new: str) -> None:
        """Moves the facts about a result to its new name, where they complete the existing ones."""
        if old in self.devices:
            self.devices.setdefault(new, self.devices.pop(old))
        known, origin = self.pop(old, None), self._origins.pop(old, None)
        if known is None:
            return
        here = self.get(new)
        if here is None:
            self[new] = known
            if origin is not None:
                self._origins[new] = origin
        elif not _adds_nothing(here, known) and not self.contradicts(new, known):
            self.refine(new, known, "an Identity")

    def restart(self, names: Iterable[str]) -> dict[str, ResultFacts]:
        """Forgets the facts of results that are about to be inferred again from nothing.

        :return: the facts they had
        """
        before = {name: self[name] for name in names if name}
        for name in before:
            self.pop(name, None)
            self._origins.pop(name, None)
        return before

    def saved(self, records: Iterable[HasResults]) -> list[SavedFacts]:
        """A copy of the facts of the results of some nodes, for :meth:`restore`.

        :param records: the nodes
        """
        facts, origin, device = self.get, self._origins.get, self.devices.get
        return [(n, facts(n), origin(n), device(n)) for r in records for n in r.outputs if n]

    def restore(self, saved: Iterable[SavedFacts]) -> None:
        """Restores the facts of results that exist again."""
        for name, facts, origin, device in saved:
            self.forget(name)
            if facts is not None:
                self[name] = facts
            if origin is not None:
                self._origins[name] = origin
            if device is not None:
                self.devices[name] = device

    def tables(self) -> tuple[dict[str, Any], ...]:
        """Copies of the tables, for :meth:`restore_all`. Cost: O(results), nothing is read."""
        return self.copy(), self._origins.copy(), self.devices.copy()

    def restore_all(self, tables: tuple[dict[str, Any], ...]) -> None:
        """Restores the tables as they were when they were copied."""
        own: tuple[dict[str, Any], ...] = (self, self._origins, self.devices)
        for mine, saved in zip(own, tables, strict=True):
            mine.clear()
            mine.update(saved)

    @contextmanager
    def recalled(self, saved: Iterable[SavedFacts]) -> Iterator[None]:
        """Restores, for a moment, the facts of results that are not in the graph any more.

        :param saved: the facts before a change
        """
        gone = [row for row in saved if not self.is_local(row[0])]
        self.restore(gone)
        try:
            yield
        finally:
            for row in gone:
                self.forget(row[0])

    # -- reading and refining facts

    def is_local(self, name: object) -> bool:
        """Whether a name has facts in this graph, not only in an outer one."""
        return super().__contains__(name)

    def refine(self, name: str, new: ResultFacts, origin: object = "") -> None:
        """Refines the facts of a result.

        :param name: name of the result
        :param new: new facts
        :param origin: where they come from, shown when two facts contradict each other
        :raises FactError: the new facts contradict the known ones
        """
        old = self.get(name)
        if old is None or old is UNKNOWN:
            self[name] = new
            self.types.add(new.type)
            if origin.__class__ is str:
                self._origins[name] = origin
            return
        if old is new or _adds_nothing(old, new):
            return
        merged = self[name] = self._merge(name, old, new, origin)
        self.refined += 1
        self.types.add(merged.type)
        if origin == DECLARED:
            self._origins[name] = DECLARED

    def contradicts(self, name: str, new: ResultFacts) -> str:
        """The contradiction between some facts and the known ones, empty if there is none."""
        old = self.get(name)
        if old is None:
            return ""
        if old.type and new.type and old.type != new.type:
            return f"type {pretty_type(old.type)} against {pretty_type(new.type)}"
        before, after = old.shape, new.shape
        if before is not None and before == after:
            return ""
        a = old.rank if before is None else len(before)
        b = new.rank if after is None else len(after)
        if a is not None and b is not None and a != b:
            return f"rank {a} (shape {old.shape}) against {b} (shape {new.shape})"
        if before is None or after is None or _same_dims(before, after, self.constraints):
            return ""
        return f"shape {before} against {after}"

    def _merge(self, name: str, old: ResultFacts, new: ResultFacts, origin: object) -> ResultFacts:
        reason = self.contradicts(name, new)
        if reason and self._tell is not None and self._origins.get(name) == DECLARED:
            self._tell(name, f"{reason}, the first one is declared")
            self._origins[name] = str(origin)
            return new
        if reason:
            raise FactError(
                f"Contradiction on result {name!r}: {reason}; the first comes from "
                f"{self._origin(name)!s}, the second from {origin!s}."
            )
        try:
            shape = self._merge_shapes(old.shape, new.shape)
        except DimensionError as error:
            raise FactError(
                f"Contradiction on result {name!r}, from {origin!s}: {error}"
            ) from error
        return ResultFacts(
            old.type or new.type,
            shape,
            old.rank if old.rank is not None else new.rank,
            _merge_values(old.value, new.value),
            old.sequence or new.sequence,
            old.optional or new.optional,
            old.parts or new.parts,
        )

    def _origin(self, name: str) -> object:
        known = self._origins.get(name)
        return known if known is not None or self._giver is None else self._giver(name)

    def _merge_shapes(self, old: Shape | None, new: Shape | None) -> Shape | None:
        if old is None or new is None or old == new:
            return new if old is None else old
        return tuple(self._merge_dims(a, b) for a, b in zip(old, new, strict=True))

    def _merge_dims(self, old: Dim, new: Dim) -> Dim:
        if old == new or isinstance(old, int):
            return old
        self.constraints.add_equal(old, new, origin="two inferences of one shape")
        if isinstance(new, int) or self._is_generated(old):
            return new
        return old
