"""Matches made of replaced results and removed nodes, for rewriters of graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import NodeProto

from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord

from .conclusion import conclude
from .context import RewriteContext
from .patterns import MatchResult
from .rewriters import Member
from .right_side import Replacement

#: a node to remove, or one of its results
Removed = NodeProto | str


def match_of_replacements(
    context: RewriteContext,
    member: Member,
    replacements: Mapping[str, Replacement],
    remove: Iterable[Removed] = (),
) -> MatchResult | str:
    """A match that replaces results, or the reason for refusing it.

    :param context: the graph; the nodes it visited may be removed as well
    :param member: the rewriter
    :param replacements: replacement of each result
    :param remove: nodes that must be removed
    :raises PatternError: no node produces one of these results

    If other results of a node are live, a copy of the node produces them, and nothing reads the
    replaced results of the copy. The match is refused when nothing read them in the first place.
    """
    changed = {k: v for k, v in replacements.items() if not isinstance(v, str) or v != k}
    if not changed:
        return "every result is replaced by itself"
    replaced = [_producer(context, member, name) for name in changed]
    gone = [
        _producer(context, member, r) if isinstance(r, str) else context.record(r) for r in remove
    ]
    context.visited.extend((*replaced, *gone))
    match = conclude(context, member, replaced[0], changed, False)
    if isinstance(match, str):  # a node has other live results
        staying = [record for record in replaced if record not in gone]
        copies = _copies(context, staying, changed)
        if isinstance(copies, str):
            return copies
        match = conclude(context, member, replaced[0], {**changed, **copies}, False)
    for record in gone:
        if isinstance(match, str) or match.records is None or record not in match.records:
            return f"{record.op_type} must go and one of its results is used"
    return match


def _copies(
    context: RewriteContext, replaced: Iterable[NodeRecord], changed: Mapping[str, Replacement]
) -> dict[str, Replacement] | str:
    """Replacements of the other live results of some nodes, produced by copies of these nodes.

    :param context: the graph
    :param replaced: nodes one of whose results is replaced
    :param changed: replacement of each result
    :return: the replacements, or the reason why there is none
    """
    copies: dict[str, Replacement] = {}
    for record in dict.fromkeys(replaced):
        others = [o for o in record.outputs if o and o not in changed and context.is_used(o)]
        if not others:
            continue
        if not any(o in changed and context.is_used(o) for o in record.outputs):
            return f"nothing reads the result of {record.op_type} that is replaced"
        node = context.store.proto(record)
        copy = context.like(node, *record.inputs)
        copies.update((name, copy[record.outputs.index(name)]) for name in others)
    return copies


def _producer(context: RewriteContext, member: Member, name: str) -> NodeRecord:
    record = context.store.producers.get(name)
    if record is None:
        raise PatternError(f"{member.name} names {name!r}, which no node of the graph gives.")
    return record
