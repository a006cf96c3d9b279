"""The small graph of a rule: operations whose operands are variables, numbers, results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from xbuilder.nodes.record import Key
from xbuilder.operators.op_traits import BROADCASTING, COMMUTATIVE

#: largest number of inputs whose permutations are tried
MAX_PERMUTED = 4


@dataclass(eq=False, slots=True)
class Variable:
    """Any result, the same one at each occurrence.

    :param name: its name in the rule
    :param type: element type it must have, 0 for any
    :param optional: it may be missing
    :param scalar: it must be a finite scalar constant; the rule reads its value
    """

    name: str
    type: int = 0
    optional: bool = False
    scalar: bool = False


@dataclass(eq=False, slots=True)
class Number:
    """A constant filled with one value, which leaves the shape of the other operands
    unchanged."""

    value: float


@dataclass(eq=False, slots=True)
class Tensor:
    """A constant with this type, this shape and this content, up to the precision of its type."""

    name: str
    value: np.ndarray


@dataclass(eq=False, slots=True)
class Power:
    """`base ** degree` among the factors of a product: Pow nodes or repeated factors."""

    base: Variable
    degree: int


@dataclass(eq=False, slots=True)
class Bound:
    """An attribute whose value is bound to a name."""

    name: str


@dataclass(eq=False, slots=True)
class Operation:
    """One operator.

    :param op_type: operator type
    :param operands: its inputs, None for one that must be missing
    :param domain: domain
    :param attributes: expected values, or :class:`Bound`; None ignores them
    :param any_attributes: the attributes that are not listed may have any value
    :param rest: name given to the inputs after the operands, empty if there must be none
    :param outputs: names of its results, an empty string for one that has none
    :param exact_outputs: other results must be missing
    """

    op_type: str
    operands: Sequence[Operand] = ()
    domain: str = ""
    attributes: dict[str, Any] | None = field(default_factory=dict)
    any_attributes: str | None = None
    rest: str = ""
    outputs: tuple[str, ...] = ("",)
    exact_outputs: bool = False

    @property
    def key(self) -> Key:
        """Key of its bucket in the store."""
        return self.domain, self.op_type

    @property
    def commutes(self) -> bool:
        """Whether its operands may be exchanged."""
        few = 1 < len(self.operands) <= MAX_PERMUTED and not self.rest
        return few and not self.domain and self.op_type in COMMUTATIVE

    @property
    def same_operands(self) -> bool:
        """Whether every order of the operands is the same one."""
        first = self.operands[0]
        if isinstance(first, ResultTerm):
            return all(same_result(o, first) for o in self.operands)
        return all(o is first for o in self.operands)

    @property
    def broadcasts(self) -> bool:
        """Whether its operands are broadcast together."""
        return not self.domain and self.op_type in BROADCASTING

    @property
    def root(self) -> str:
        """Its type as `roots` spells it, with its domain if it is not the main one."""
        return f"{self.domain}::{self.op_type}" if self.domain else self.op_type


@dataclass(eq=False, slots=True)
class Product:
    """A tree of Mul, and of Div by constants: factors in any order, grouped in any way.

    :param factors: numbers, variables, powers, results
    """

    factors: Sequence[Operand]


@dataclass(eq=False, slots=True)
class ResultTerm:
    """One result of an operation or of a product, which stands for one node or one tree.

    :param source: the operation or the product
    :param index: which of its results
    """

    source: Operation | Product
    index: int = 0

    @property
    def label(self) -> str:
        """Its name in a reason."""
        if isinstance(self.source, Product):
            return "a product"
        names = self.source.outputs
        name = names[self.index] if self.index < len(names) else ""
        return name or f"a {self.source.op_type}"


Operand: TypeAlias = "Variable | Number | Tensor | Power | ResultTerm | None"


@dataclass(eq=False, slots=True)
class SmallGraph:
    """The graph a rule matches.

    :param results: the replaced results
    :param beside: operations the results do not depend on
    :param start: where the search begins, the source of the first result by default
    """

    results: Sequence[ResultTerm]
    beside: Sequence[Operation] = ()
    start: Operation | None = None

    @property
    def root(self) -> Operation | Product:
        """The operation the search starts from."""
        return self.results[0].source if self.start is None else self.start

    def sources(self) -> list[Operation | Product]:
        """Every operation and product once, operands first."""
        rows: dict[int, Operation | Product] = {}

        def visit(result: ResultTerm) -> None:
            if id(result.source) not in rows:
                for operand in operands_of(result.source):
                    if isinstance(operand, ResultTerm):
                        visit(operand)
                rows[id(result.source)] = result.source

        for result in (*self.results, *map(ResultTerm, self.beside)):
            visit(result)
        return list(rows.values())

    def operations(self) -> list[Operation]:
        """Every operation once, operands first."""
        return [s for s in self.sources() if isinstance(s, Operation)]

    def names(self) -> set[str]:
        """All its names: variables, attributes, other inputs, results."""
        found: set[str] = set()
        for source in self.sources():
            operands = [o.base if isinstance(o, Power) else o for o in operands_of(source)]
            found.update(o.name for o in operands if isinstance(o, Variable))
            if isinstance(source, Operation):
                bound = [v.name for v in (source.attributes or {}).values() if isinstance(v, Bound)]
                found.update([*bound, *source.outputs, source.any_attributes or "", source.rest])
        return found - {"", "_"}

    def uses(self, result: ResultTerm) -> int:
        """Number of times the graph reads a result."""
        return sum(same_result(o, result) for s in self.sources() for o in operands_of(s))


def operands_of(source: Operation | Product) -> Iterator[Operand]:
    """The operands of an operation or of a product."""
    return iter(source.operands if isinstance(source, Operation) else source.factors)


def same_result(operand: Operand, result: ResultTerm) -> bool:
    """Whether an operand is a given result."""
    return (
        isinstance(operand, ResultTerm)
        and operand.source is result.source
        and operand.index == result.index
    )
