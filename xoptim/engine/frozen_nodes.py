"""Catches a pattern that changes a node instead of making another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import AttributeProto, NodeProto

from xbuilder.errors import PatternError

from ..api.patterns import PatternOptimization

#: modules whose patterns are tested for this, all others are watched
_OWN = ("xoptim.patterns.", "xoptim.patterns_ort.", "xoptim.patterns_ml.")
#: attributes that may be big, their content is not compared
_BIG = frozenset(
    {
        AttributeProto.GRAPH,
        AttributeProto.GRAPHS,
        AttributeProto.TENSOR,
        AttributeProto.TENSORS,
        AttributeProto.SPARSE_TENSOR,
        AttributeProto.SPARSE_TENSORS,
    }
)

Snapshot = tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[bytes, ...]]


def is_watched(pattern: PatternOptimization) -> bool:
    """Tells if a pattern comes from a user of this package."""
    return not type(pattern).__module__.startswith(_OWN)


def snapshot(node: NodeProto) -> Snapshot:
    """What a node is: operator, inputs, outputs, attributes but tensors and graphs."""
    small = tuple(a.SerializeToString() for a in node.attribute if a.type not in _BIG)
    return node.op_type, node.domain, tuple(node.input), tuple(node.output), small


def restore(node: NodeProto, before: Snapshot) -> None:
    """Makes a node what it was."""
    op_type, domain, inputs, outputs, small = before
    now = snapshot(node)
    if now[0] != op_type:
        node.op_type = op_type
    if now[1] != domain:
        node.domain = domain
    for field, old, new in ((node.input, inputs, now[2]), (node.output, outputs, now[3])):
        if old != new:
            del field[:]
            field.extend(old)
    if now[4] != small:
        big = [a for a in node.attribute if a.type in _BIG]
        kept = [AttributeProto.FromString(a) for a in small]
        kept.extend(AttributeProto.FromString(a.SerializeToString()) for a in big)
        del node.attribute[:]
        node.attribute.extend(kept)


def call_watched(
    pattern: PatternOptimization, nodes: Sequence[NodeProto | None], call: Callable[[], Any]
) -> Any:
    """Calls a method of a pattern, checks that it leaves nodes as they are.

    The model a user gave shares its nodes with the graph: a change would reach it too.

    :param pattern: the pattern
    :param nodes: nodes it looks at
    :param call: the method, without argument
    :return: what it returns
    :raises PatternError: it changed a node, which is restored
    """
    before = [(n, snapshot(n)) for n in nodes if isinstance(n, NodeProto)]
    result = call()
    changed = [(n, old) for n, old in before if snapshot(n) != old]
    for node, old in changed:
        restore(node, old)
    if changed:
        raise PatternError(
            f"Pattern {pattern.name} changes node {changed[0][0].op_type} "
            f"({changed[0][0].name!r}) in place; method apply must return new nodes, "
            "g.make_node makes them."
        )
    return result
