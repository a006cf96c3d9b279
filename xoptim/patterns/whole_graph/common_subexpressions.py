"""Common subexpressions: nodes computing the same results are merged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain, islice

from onnx import FunctionProto, NodeProto

from xbuilder.nodes.determinism import is_deterministic
from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.operators.domains import main_domain
from xbuilder.operators.opsets import opsets_of
from xbuilder.passes.equal_nodes import EqualNodes
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.placement import by_order
from xbuilder.store.readers import Readers

from ...authoring import GraphQueries, Rewrite, RewriteContext
from ...catalogue import register_pattern

#: operators that the shape of their result tells from others on the same data
_SIZED = frozenset({"Expand", "Reshape"})
#: visiting every name of the graph is cheaper than those of more than one node out of so many
_SWEEP = 4


def is_repeatable(g: GraphQueries, node: NodeProto) -> bool:
    """Whether a node returns the same results each time it runs on the same inputs.

    It is False for a node with a subgraph, which is not inspected. A call to a local function is
    repeatable if every node of the function is.
    """
    return _is_repeatable(node, g.main_opset, g.graph.functions, ())


def _is_repeatable(
    node: NodeProto,
    opset: int,
    functions: dict[tuple[str, str], FunctionProto],
    calls: tuple[tuple[str, str], ...],
) -> bool:
    key = domain, op_type = main_domain(node.domain), node.op_type
    if any(subgraphs_of(node)) or not is_deterministic(node, op_type, domain, opset):
        return False
    function = functions.get(key)
    if function is None:
        return True
    opsets = opsets_of(function)
    return key not in calls and all(
        _is_repeatable(n, opsets.get("", opset), functions, (*calls, key)) for n in function.node
    )


def may_have_twins(readers: Readers) -> bool:
    """Whether two readers of a result have the same operator type. Cost: O(readers)."""
    if len(readers) == 2:  # most of the time
        one, other = readers
        return one.op_type == other.op_type
    return len(readers) > 1 and len({r.op_type for r in readers}) < len(readers)


def have_twins(readers: Readers) -> bool:
    """Whether two readers of a result have the same operator type and read the same results, in any
    order, as common subexpressions do. The target of a Reshape or an Expand does not count. Cost:
    O(readers)."""
    if len(readers) == 2:  # most of the time
        one, other = readers
        if one.op_type != other.op_type:
            return False
    elif not may_have_twins(readers):
        return False
    kinds = {
        (r.op_type, frozenset(r.inputs[:1] if r.op_type in _SIZED else r.inputs)) for r in readers
    }
    return len(kinds) < len(readers)


def names_read_twice(store: GraphStore, records: list[NodeRecord]) -> list[str]:
    """Names that several nodes read, among the edges of some records when there are few of them.
    Cost: one step a name for a sweep, else O(edges of the records).

    :param store: the graph
    :param records: every node, or a few of them
    """
    if len(records) * _SWEEP > len(store):
        return list(store.read_twice)
    names = dict.fromkeys(chain.from_iterable([(*r.outputs, *r.inputs) for r in records]))
    return list(filter(store.read_twice.__contains__, names))


def among(records: list[NodeRecord], found: set[NodeRecord]) -> list[NodeRecord]:
    """The records among those found, in graph order."""
    return sorted(found.intersection(records), key=by_order)


class TwinSearch:
    """Finds common subexpressions among the readers of some results, and among their own readers.

    Two nodes compute the same thing when they have the same operator, domain, attributes (a missing
    one has its default value), and inputs once equal results are identified; or they are two
    Reshape, or two Expand, of the same data, to shapes proven equal. Each reader is hashed once:
    O(readers of the given results and of the merged results).
    """

    def __init__(self, g: GraphQueries):
        self.g = g
        self.twin_of: dict[NodeRecord, NodeRecord] = {}
        self.alias: dict[str, str] = {}
        self._same: dict[str, list[str]] = {}

    def search(self, names: Iterable[str]) -> None:
        """Hashes the readers of some results, then the readers of every result found equal to
        another one."""
        pending = dict.fromkeys(names)
        while pending:
            name, _ = pending.popitem()
            for first, second in list(self._twins(self._root(name))):
                self.twin_of[second] = first
                for a, b in zip(first.outputs, second.outputs, strict=True):
                    if a and b:
                        self.alias[b] = a
                        self._same.setdefault(a, [a]).extend(self._same.pop(b, [b]))
                        pending[a] = None

    def _root(self, name: str) -> str:
        while name in self.alias:
            name = self.alias[name]
        return name

    def _readers(self, name: str) -> list[NodeRecord]:
        readers = {
            r: None
            for same in self._same.get(name, (name,))
            for r in self.g.store.readers(same)
            if r not in self.twin_of and not r.captured
        }
        return sorted(readers, key=lambda r: r.order) if len(readers) > 1 else []

    def _twins(self, name: str) -> Iterator[tuple[NodeRecord, NodeRecord]]:
        equal, sized = EqualNodes(self.g.graph, self._root), dict[Hashable, NodeRecord]()
        for record in self._readers(name):
            if record.op_type != "Identity" or record.domain:
                size = self._size(record)
                first = sized.setdefault(size, record) if size else equal.first_like(record)
                if first is not record and is_repeatable(self.g, self.g.store.proto(record)):
                    yield first, record

    def _size(self, record: NodeRecord) -> Hashable:
        """The data of a Reshape or an Expand and the shape of its result, None for other nodes."""
        (result, *_), g = record.outputs, self.g
        if record.domain or record.op_type not in _SIZED or g.shape_or_none(result) is None:
            return None
        return record.op_type, self._root(record.inputs[0]), g.get_shape_renamed(result)


def merged(g: RewriteContext, twin_of: Mapping[NodeRecord, NodeRecord]) -> dict[str, str]:
    """The replacement of each result of the removed nodes.

    :param twin_of: for each node to remove, an earlier one computing the same results
    """
    names: dict[str, str] = {}
    for record, twin in twin_of.items():
        while twin in twin_of:
            twin = twin_of[twin]
        g.look_at(g.store.proto(record))
        pairs = zip(record.outputs, twin.outputs, strict=True)
        names.update((old, new) for old, new in pairs if old and new)
    return names


def merged_readers(g: RewriteContext, names: Iterable[str]) -> dict[str, str]:
    """Merges common subexpressions among the readers of some results, and those that follow."""
    search = TwinSearch(g)
    search.search(names)
    g.require(search.twin_of, "no two consumers do the same")
    return merged(g, search.twin_of)


@register_pattern(
    "default",
    "merge",
    roots=("*",),
    priority="first",
    aliases=("SameChildrenFromInput", "ShapeBasedSameChildren"),
)
class SameChildrenPattern(Rewrite):
    """op(X), op(X) -> op(X), Identity: consumers of one result doing the same thing are merged.

    1. The consumers of a result of the root with the same operator, domain, attributes, inputs
       and number of results: the first one is kept. The operands of Add, Mul... may be swapped.
    2. The readers of two merged nodes are merged the same way, so that equal chains are merged at
       once.
    3. X is an input of the graph, or a result of the outer graph when this one is a subgraph: its
       first reader is the root, O(consumers) for each input, not for each consumer.
    4. Two Reshape, or two Expand, of one result, or of a constant that nothing reads before, give
       shapes proven equal, in terms of the dimensions of the inputs.

    Random operators, training Dropout, functions holding them, and nodes with a subgraph are kept.
    O(1) when no result has two consumers, O(consumers) otherwise; only merged nodes are followed.
    """

    @staticmethod
    def candidate_roots(store: GraphStore, records: list[NodeRecord]) -> list[NodeRecord]:
        """Nodes with a result that several nodes of one type read, with the same other inputs; the
        first reader of an input or an outer result. A node whose subgraph reads it does not
        count."""
        producers, readers = store.producers, store.consumers
        names = names_read_twice(store, records)
        twice = [name for name in names if have_twins(readers[name])]
        found = {producers[name] for name in twice if name in producers}
        outer = [name for name in twice if name not in producers]
        known = set(records if outer else ())
        for name in outer:
            found.update(islice((r for r in readers[name] if r in known and name in r.inputs), 1))
        return among(records, found)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, str]:
        """See :class:`Rewrite`."""
        record, store = g.record(node), g.store
        outer = [name for name in record.inputs if name not in store.producers]
        data = record.inputs[0] if record.op_type in _SIZED else None
        given = [name for name in outer if name == data or self._is_input(g, name)]
        names = [name for name in (*record.outputs, *given) if may_have_twins(store.readers(name))]
        g.require(names, "no result has two consumers of one type")
        return merged_readers(g, names)

    @staticmethod
    def _is_input(g: RewriteContext, name: str) -> bool:
        constants = g.graph.constants
        return name not in constants.initializers or name in constants.overridable
