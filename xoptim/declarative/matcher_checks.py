"""Tests called by the compiled function of a rule: inputs, constants, products."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.placement import by_order
from xbuilder.store.readers import Readers

from ..analysis.constants import is_number, same_numbers
from ..analysis.shapes import keeps_shape
from ..analysis.weights.products import Factors, product
from ..authoring.queries import GraphQueries, until_change

Names = tuple[str, ...]
#: longest chain of products that is followed
_MAX_ABOVE = 6


# -- inputs and outputs


def resized(inputs: Names, count: int) -> Names | None:
    """Inputs of a node, padded or cut to *count*, None if one is given after the last expected
    one."""
    if len(inputs) < count:
        return (*inputs, *[""] * (count - len(inputs)))
    return None if any(inputs[count:]) else inputs[:count]


def output_at(record: NodeRecord, index: int) -> str:
    """Name of a result, an empty string if it is missing."""
    return record.outputs[index] if index < len(record.outputs) else ""


def producer_text(record: NodeRecord | None, name: str) -> str:
    """The producer of a result, as text for a reason."""
    if record is None:
        return f"{name!r}, which is not the result of a node,"
    return f"{record.domain}::{record.op_type}" if record.domain else record.op_type


def readers_in_order(readers: Readers) -> Iterable[NodeRecord]:
    """The readers of a result, in graph order."""
    return readers if len(readers) < 2 else sorted(readers, key=by_order)


def is_convex(store: GraphStore, records: Iterable[NodeRecord]) -> bool:
    """Whether some nodes are convex: no path leaves them and comes back.

    Replacing a set that is not convex would make a cycle.

    Cost: O(number of nodes between the first and the last of them).
    """
    inside = set(records)
    last = max(r.order for r in inside)
    stack = list(inside)
    seen: set[NodeRecord] = set()
    while stack:
        record = stack.pop()
        outside = record not in inside
        for reader in [r for name in record.outputs for r in store.readers(name)]:
            if reader in inside:
                if outside:
                    return False
            elif reader not in seen and reader.order < last:
                seen.add(reader)
                stack.append(reader)
    return True


# -- constants


class NumberCheck:
    """A constant filled with one number, which leaves the shape of the other operands unchanged.

    :param value: the number; one that float16 represents exactly must be equal, another one may
        have been rounded, see :func:`xoptim.analysis.constants.same_numbers`
    """

    def __init__(self, value: float):
        self._value = value
        with np.errstate(over="ignore"):
            self._rounds = float(np.float16(value)) != value

    def accepts(self, g: GraphQueries, name: str, others: Names) -> bool:
        """Whether a result is this constant, next to other operands."""
        found = g.graph.constants.uniform_value(name)
        if found is None or not self._is_value(found):
            return False
        return is_shape_neutral(g, name, others)

    def _is_value(self, found: Any) -> bool:
        if found == self._value:
            return True
        rounds = self._rounds and np.asarray(found).dtype.kind not in "iub"
        return rounds and same_numbers(np.asarray(found), self._value)

    def multiplies(self, tree: Factors) -> bool:
        """Whether this number is the only scalar factor of a product, or its inverse divides it."""
        if len(tree.scalars) != 1 or tree.divisors:
            return False
        value, divides = tree.scalars[0]
        found = value.ravel()[0]
        if not divides:
            return self._is_value(found)
        return bool(found == 1 / self._value) or same_numbers(value, 1 / self._value)

    def refusal(self, g: GraphQueries, name: str, others: Names) -> str:
        """The reason why :meth:`accepts` refused."""
        shown = f"{self._value:.8g}" if isinstance(self._value, float) else str(self._value)
        if not g.is_constant(name):
            return f"{name!r} cannot be {shown}, it is not a constant"
        found = g.graph.constants.uniform_value(name)
        if found is None or not self._is_value(found):
            return f"{name!r} cannot be the constant {shown}"
        return f"the constant {name!r} may change the shape"


@lru_cache(maxsize=4096, typed=True)
def number_check(value: float) -> NumberCheck:
    """The check of a number, created once."""
    return NumberCheck(value)


def is_shape_neutral(g: GraphQueries, name: str, others: Names) -> bool:
    """Whether a constant leaves the shape of the operand it is combined with unchanged."""
    shape = g.shape_or_none(name)
    return not shape or any(keeps_shape(g, other, shape) for other in others)


def constant_number(g: GraphQueries, name: str, others: Names) -> float | None:
    """Value of a finite constant of one element that keeps the shape of the other operands."""
    found = g.graph.constants.uniform_value(name)  # cached
    shape = g.shape_or_none(name)
    if found is None or found.dtype.kind == "c" or shape is None:
        return None
    if shape and (any(d != 1 for d in shape) or not is_shape_neutral(g, name, others)):
        return None
    number = float(found)
    return number if math.isfinite(number) else None


def scalar_refusal(g: GraphQueries, name: str, others: Names, variable: str) -> str:
    """The reason why :func:`constant_number` returned None."""
    shape = g.get_constant_shape(name)
    if shape is None or any(d != 1 for d in shape) or not is_shape_neutral(g, name, others):
        return f"{variable} is not a scalar constant or may change the shape"
    return f"{variable} is not finite"


def is_tensor(g: GraphQueries, name: str, value: np.ndarray, others: Names = ()) -> bool:
    """Whether a result is a constant of a given type, equal up to the precision of this type.

    Another float type is refused, because the constants of the replacement have the expected type.

    :param name: the result
    :param value: the expected value
    :param others: the operands it is broadcast with; next to one that is no scalar, a constant of
        one element may have rank 0 or 1
    """
    shape = g.get_constant_shape(name)
    if shape is None:
        return False
    if shape != value.shape:
        small = value.shape in ((), (1,)) and shape in ((), (1,))
        if not small or not any(g.rank_or_none(o) for o in others):
            return False
    found = g.constant_or_none(name)
    if found is None or found.dtype != value.dtype:
        return False
    if found.dtype.kind in "iubSUO":
        return bool((found.ravel() == value.ravel()).all())
    return same_numbers(found, value)


def array_text(value: np.ndarray) -> str:
    """A constant as text."""
    return f"{value.dtype}{list(value.shape)} {value.ravel()[:4].tolist()}"


# -- products


class _Products(dict[NodeRecord, Factors]):
    """Cache of the products read since the graph changed; several rules read the same ones."""


def read_product(g: GraphQueries, record: NodeRecord) -> Factors:
    """The factors of a Mul or a Div. Cost: O(1) if it was read since the graph changed."""
    known = until_change(g, _Products)
    found = known.get(record)
    if found is None:
        found = known[record] = product(g, g.store.proto(record))
    return found


def products_above(store: GraphStore, name: str) -> list[NodeRecord]:
    """The nodes that may be the last one of a product with a given factor."""
    found = []
    for record in readers_in_order(store.readers(name)):
        for _ in range(_MAX_ABOVE):
            if record.domain or record.op_type not in ("Mul", "Div"):
                break
            found.append(record)
            readers = store.readers(record.outputs[0])
            if len(readers) != 1 or store.is_used_more_than_once(record.outputs[0]):
                break
            (record,) = readers
    return found


def tree_records(g: GraphQueries, tree: Factors) -> list[NodeRecord]:
    """The nodes of a product."""
    return [g.record(n) for n in tree.nodes]


def without_power(
    g: GraphQueries, names: Sequence[str], base: str, degree: int
) -> tuple[list[str], list[NodeRecord]] | None:
    """Takes a power out of the factors of a product.

    :param names: factors
    :param base: the result raised to the power
    :param degree: the power
    :return: the other factors, the Pow nodes; None if the factors give another power
    """
    rank = g.rank_or_none(base)
    total, others, nodes = 0, [], []
    for name in names:
        record = g.store.producers.get(name)
        if name == base:
            total += 1
        elif record is not None and record.op_type == "Pow" and record.inputs[0] == base:
            found = _exponent(g, record.inputs[1], degree, rank)
            if not found:
                return None
            total += found
            nodes.append(record)
        else:
            others.append(name)
    return (others, nodes) if total == degree else None


def _exponent(g: GraphQueries, name: str, most: int, rank: int | None) -> int:
    exponents: Iterable[int] = range(2, most + 1)
    return next((e for e in exponents if is_number(g, name, e, rank)), 0)


def keeps_shape_of_factor(g: GraphQueries, tree: Factors) -> bool:
    """Whether the constants of a product leave the shape of a factor unchanged."""
    ranks = [g.rank_or_none(name) for name in tree.names]
    return any(tree.keeps_shape(rank) for rank in ranks)


def constant_factor(tree: Factors) -> float | None:
    """The value of the only constant factor, None if there is none, several or a division by 0."""
    return None if factor_refusal(tree) else _factor(tree)


def _factor(tree: Factors) -> float:
    value, divides = tree.scalars[0]
    return 1 / float(value.item()) if divides else float(value.item())


def factor_refusal(tree: Factors) -> str:
    """The reason why :func:`constant_factor` returned None."""
    if len(tree.scalars) != 1 or tree.divisors:
        return "the product does not have one scalar factor"
    value, divides = tree.scalars[0]
    return "division by zero" if divides and not value.all() else ""


__all__ = [
    "array_text",
    "constant_factor",
    "constant_number",
    "factor_refusal",
    "is_convex",
    "is_tensor",
    "keeps_shape_of_factor",
    "output_at",
    "producer_text",
    "products_above",
    "read_product",
    "readers_in_order",
    "resized",
    "scalar_refusal",
    "tree_records",
    "without_power",
]
