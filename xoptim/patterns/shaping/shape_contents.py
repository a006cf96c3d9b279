"""Merges results that hold the same dimensions, whatever nodes compute them."""

from __future__ import annotations

from itertools import chain
from typing import TypeAlias

from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.placement import by_order

from ...analysis.reshapes import moved_shape
from ...authoring import Refusal, Rewrite, RewriteContext
from ...authoring.queries import until_change
from ...catalogue import register_pattern

#: operators that take dimensions from a shape and put them together, or divide their product
_MOVED = ("Concat", "Div", "Gather", "Slice", "Squeeze", "Unsqueeze")
#: operators that compute with dimensions
_COMPUTED = ("Add", "Mul", "Sub")
#: operators that return dimensions when nothing computes with them
_GIVING = ("Shape", *_MOVED)
_ROOTS = (*_GIVING, *_COMPUTED)
#: type, shape and content of a result
Content: TypeAlias = tuple[object, ...]


@register_pattern("default", "merge", roots=_ROOTS)
class ShapeBasedSameContentPattern(Rewrite):
    """Concat(n, 4, m), Concat(p, 4, q) -> Concat(n, 4, m) when n = p and m = q for every input.

    The results of Shape, Concat, Div, Gather, Slice, Squeeze, Unsqueeze, Add, Mul and Sub that are
    known in terms of the dimensions of the inputs; the first one is kept, all the others are
    removed at once. The result of a Reshape must be known for every size, null ones included.
    """

    @staticmethod
    def candidate_roots(store: GraphStore, records: list[NodeRecord]) -> list[NodeRecord]:
        """The Shape nodes, and the nodes that read one of these operators."""
        dimensions = {n for op in _GIVING for r in store.bucket("", op) for n in r.outputs}
        return [r for r in records if r.op_type == "Shape" or not dimensions.isdisjoint(r.inputs)]

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, str] | Refusal:
        """See :class:`Rewrite`."""
        content = _content(g, g.record(node))
        if content is None:
            return g.no("the content is not known, or it is constant")
        alike = _nodes_by_content(g).get(content, [])
        if len(alike) < 2:
            return g.no("no other result has this content")
        certain = [r for r in alike if _is_certain(g, r)]
        g.require(len(certain) > 1, "a shape is not known for every size")
        first, *others = certain
        others = [r for r in others if not g.is_output(r.outputs[0])]
        g.require(others, "the other result is an output")
        g.look_at(g.store.proto(first), *map(g.store.proto, others))
        return {r.outputs[0]: first.outputs[0] for r in others}


class _Alike(dict[Content, list[NodeRecord]]):
    """The nodes computing each content, in graph order."""


def _content(g: RewriteContext, record: NodeRecord) -> Content | None:
    """The key of equal results, None if a dimension is unknown or if all of them are constant."""
    facts = g.facts[record.outputs[0]]
    value = facts.value
    if value is None:  # most sums and products
        return None
    dims = value if isinstance(value, tuple) else (value,)
    if None in dims or str not in map(type, dims):
        return None
    return facts.type, facts.shape, tuple(map(g.facts.constraints.canonical, dims))


def _nodes_by_content(g: RewriteContext) -> _Alike:
    """The nodes computing each content. Cost: O(nodes of these operators) after each change."""
    alike = until_change(g, _Alike)
    if not alike:
        nodes = chain.from_iterable([g.store.bucket("", op) for op in _ROOTS])
        facts = g.facts
        # most sums and products are those of floats: the others are sorted
        valued = [r for r in nodes if facts[r.outputs[0]].value is not None]
        for record in sorted(valued, key=by_order):
            content = _content(g, record)
            if content is not None:
                alike.setdefault(content, []).append(record)
    return alike


def _is_certain(g: RewriteContext, record: NodeRecord) -> bool:
    """Whether the shapes a content is computed from hold for every size."""
    pending, seen = [record], {record}
    while pending:
        found = pending.pop()
        if found.op_type == "Shape" and moved_shape(g, found.inputs[0]) is None:
            return False
        names = () if found.op_type not in _MOVED else found.inputs
        for name in names:
            producer = g.store.producers.get(name)
            if producer is not None and producer not in seen:
                seen.add(producer)
                pending.append(producer)
    return True
