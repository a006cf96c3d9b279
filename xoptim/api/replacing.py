"""Results to replace, nodes that must go: what rewriters say of a rewrite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import NodeProto

from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord

from .context import RewriteContext
from .members import Member
from .patterns import MatchResult
from .right_side import Replacement

#: what must go: a node, or one of its results
Removed = NodeProto | str


def match_replacing(
    context: RewriteContext,
    member: Member,
    replacements: Mapping[str, Replacement],
    remove: Iterable[Removed] = (),
) -> MatchResult | str:
    """A match that replaces results, or the reason why there is none.

    :param context: the graph; the nodes it looked at may go as well
    :param member: who replaces
    :param replacements: what replaces each result
    :param remove: nodes that must go
    :raises PatternError: no node gives one of these results
    """
    kept = {k: v for k, v in replacements.items() if not isinstance(v, str) or v != k}
    if not kept:
        return "every result is replaced by itself"
    replaced = [_producer(context, member, name) for name in kept]
    gone = [
        _producer(context, member, r) if isinstance(r, str) else context.record(r) for r in remove
    ]
    context.looked_at.extend((*replaced, *gone))
    found = context.conclude(member, replaced[0], kept, False)
    if isinstance(found, MatchResult):
        for record in gone:
            if found.records is None or record not in found.records:
                return f"{record.op_type} must go and one of its results is used"
    return found


def _producer(context: RewriteContext, member: Member, name: str) -> NodeRecord:
    record = context.store.producers.get(name)
    if record is None:
        raise PatternError(f"{member.name} names {name!r}, which no node of the graph gives.")
    return record
