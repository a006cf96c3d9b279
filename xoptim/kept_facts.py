"""What a rewrite must keep: the type, the rank and the shape of the results that stay."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import product

from xbuilder import GraphBuilder
from xbuilder.dims import Constraints, Dim, DimensionError, evaluate, prove_equal, symbols
from xbuilder.facts import ResultFacts
from xbuilder.graph_store import NodeRecord

#: sizes given to the dimensions of the inputs, one after the other
_SIZES = (29, 7, 61, 13, 101, 3, 41, 17)
#: what these sizes are multiplied by: a window may be larger than the small ones
_SCALES = (1, 50)
#: operators that only run for some sizes, which their results state: a target of Reshape says how
#: many elements there are
_RESTRICTING = frozenset({"CenterCropPad", "Expand", "Reshape", "Split", "Squeeze"})


def restricts_sizes(records: Iterable[NodeRecord]) -> bool:
    """Tells if some nodes only run for some sizes of their inputs, without any constraint on
    dimensions saying so."""
    return any(r.op_type in _RESTRICTING or r.domain for r in records)


def always_equal(a: Dim, b: Dim, free: frozenset[str], constraints: Constraints) -> bool:
    """Tells if two dimensions may be equal whatever the sizes of the inputs are.

    :param a: a dimension
    :param b: a dimension
    :param free: names that stand for any integer: the dimensions of the inputs
    :param constraints: what is known on dimensions
    :return: False if inputs exist for which they differ and none is negative; a dimension made of
        other names than *free* says nothing, neither does one the graph restricts
    """
    if a == b or prove_equal(a, b, constraints) is True:
        return True
    names = symbols(a) | symbols(b)
    if not names <= free:
        return True
    if any(not names.isdisjoint(symbols(x) | symbols(y)) for _, x, y, _ in constraints.items()):
        return True
    for scale, shift in product(_SCALES, range(3)):
        sizes = {n: _SIZES[(i + shift) % len(_SIZES)] * scale for i, n in enumerate(sorted(names))}
        try:
            x, y = evaluate(a, sizes), evaluate(b, sizes)
        except DimensionError:
            continue
        if x != y and x >= 0 and y >= 0:
            return False
    return True


class KeptFacts:
    """Compares what a rewrite gives with what was known before.

    :param builder: holds the graph
    """

    def __init__(self, builder: GraphBuilder):
        self.builder = builder

    @cached_property
    def free_names(self) -> frozenset[str]:
        """Dimensions of the inputs of the model: any size is possible."""
        root = self.builder
        while root.parent is not None:
            root = root.parent
        return frozenset(root.dynamic_objects)

    def contradiction(self, name: str, new: ResultFacts) -> str:
        """Says what is proven different, an empty string if nothing is. Cost: O(rank)."""
        return self.builder.facts.contradicts(name, new)

    def unproven(self, name: str, new: ResultFacts) -> str:
        """Says which dimension is another function of the inputs than before.

        Two facts that only agree for some sizes do not contradict each other, a rewrite giving
        the second one is nevertheless wrong for all other sizes.
        """
        old = self.builder.facts.get(name)
        if old.shape is None or new.shape is None or old.shape == new.shape:
            return ""
        constraints = self.builder.facts.constraints
        for axis, (a, b) in enumerate(zip(old.shape, new.shape, strict=True)):
            if not always_equal(a, b, self.free_names, constraints):
                return f"dimension {axis} of {name!r} would be {b} instead of {a}"
        return ""
