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

    A node whose other results are needed stays for them: a copy of it is written, whose replaced
    results nothing reads. It is refused when nothing reads them already.
    """
    changed = {k: v for k, v in replacements.items() if not isinstance(v, str) or v != k}
    if not changed:
        return "every result is replaced by itself"
    replaced = [_producer(context, member, name) for name in changed]
    gone = [
        _producer(context, member, r) if isinstance(r, str) else context.record(r) for r in remove
    ]
    context.looked_at.extend((*replaced, *gone))
    found = context.conclude(member, replaced[0], changed, False)
    if isinstance(found, str):  # a node gives results that something else needs
        staying = [record for record in replaced if record not in gone]
        copies = _copies(context, staying, changed)
        if isinstance(copies, str):
            return copies
        found = context.conclude(member, replaced[0], {**changed, **copies}, False)
    for record in gone:
        if isinstance(found, str) or found.records is None or record not in found.records:
            return f"{record.op_type} must go and one of its results is used"
    return found


def _copies(
    context: RewriteContext, replaced: Iterable[NodeRecord], changed: Mapping[str, Replacement]
) -> dict[str, Replacement] | str:
    """What replaces the other results of nodes that stay for them: those of a copy.

    :param context: the graph
    :param replaced: nodes one of whose results is replaced
    :param changed: what replaces each result
    :return: the replacements, or why there is none
    """
    rows: dict[str, Replacement] = {}
    for record in dict.fromkeys(replaced):
        others = [o for o in record.outputs if o and o not in changed and context.is_used(o)]
        if not others:
            continue
        if not any(o in changed and context.is_used(o) for o in record.outputs):
            return f"nothing reads the result of {record.op_type} that is replaced"
        node = context.store.proto(record)
        copy = context.like(node, *record.inputs)
        rows.update((name, copy[record.outputs.index(name)]) for name in others)
    return rows


def _producer(context: RewriteContext, member: Member, name: str) -> NodeRecord:
    record = context.store.producers.get(name)
    if record is None:
        raise PatternError(f"{member.name} names {name!r}, which no node of the graph gives.")
    return record
