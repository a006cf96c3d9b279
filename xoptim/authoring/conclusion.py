"""The answer of a rewrite becomes a match, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import TensorProto

from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord

from .context import RewriteContext, RewriteResult
from .deduction import deduce
from .patterns import MatchResult
from .rewriters import Member
from .right_side import NewNode, NewResult, Replacement, RightSide
from .roots import order_of

_ONE = (str, NewNode, NewResult, np.ndarray, TensorProto)


def conclude(
    context: RewriteContext,
    pattern: Member,
    root: NodeRecord,
    answer: RewriteResult,
    sole_use: bool,
) -> MatchResult | str:
    """Turns the answer of a rewrite into a match, or returns the reason for refusing it.

    :param context: the nodes the rewrite visited
    :param pattern: the rewrite
    :param root: the node whose results are replaced, unless the answer says otherwise
    :param answer: the value the rewrite returned
    :param sole_use: refuses when an inner result is used elsewhere
    :raises PatternError: the answer is not a valid one
    """
    store, visited = context.store, context.visited
    replacements = _as_replacements(pattern, root.outputs, answer)
    others = [name for name in replacements if name not in root.outputs]
    known = set(visited) if others else ()  # a rewrite may replace thousands of results
    for name in others:
        if store.producers.get(name) not in known:
            raise PatternError(
                f"Pattern {pattern.name} replaces {name!r}, which is not a result of a "
                "node it looked at; g.before, g.after and g.look_at tell the engine."
            )
    removed, live, refusal = deduce(store, visited, replacements, store.pinned)
    if sole_use and live is not None:
        return "an inner result is used elsewhere"
    if refusal:
        return refusal
    nodes = [store.proto(r) if r.stale else r._proto for r in removed]
    stays = None if live is None else store.proto(live)
    right = RightSide(replacements)
    return MatchResult(pattern, nodes, right, None, None, stays, removed)


def conclude_whole(
    context: RewriteContext, pattern: Member, root: NodeRecord, value: Replacement
) -> MatchResult | str:
    """Same as :func:`conclude`, when every visited node is removed: each has one result, the
    next node is its only reader, and the right-hand side reads none of them.

    :param context: the nodes the rewrite visited
    :param pattern: the rewrite
    :param root: the node whose result is replaced
    :param value: its replacement
    """
    store, visited = context.store, context.visited
    result = root.outputs[0]
    if store.pinned or not _replaces(result, value):
        return conclude(context, pattern, root, value, True)
    removed = sorted(visited, key=order_of)
    nodes = []
    for record in removed:
        if len(record.outputs) != 1:
            return conclude(context, pattern, root, value, True)
        nodes.append(store.proto(record) if record.stale else record._proto)
    return MatchResult(pattern, nodes, RightSide({result: value}), None, None, None, removed)


def _as_replacements(
    pattern: Member, results: tuple[str, ...], answer: RewriteResult
) -> Mapping[str, Replacement]:
    """The answer of a rewrite in one form: a replacement for each result of its root."""
    if type(answer) is NewNode and answer.outputs == 1:
        return {results[0]: answer}
    if isinstance(answer, str) and answer and answer != results[0]:
        return {results[0]: answer}
    if type(answer) is dict and answer and all(map(_replaces, answer, answer.values())):
        return answer
    if isinstance(answer, NewNode) and answer.outputs > 1:
        answer = list(answer)[: len(results)]
    if isinstance(answer, _ONE) and _replaces(results[0], answer):
        return {results[0]: answer}
    replacements: dict[str, Replacement] = {}
    if isinstance(answer, Mapping):
        replacements.update(answer)
    elif isinstance(answer, (list, tuple)) and len(answer) <= len(results):
        pairs = zip(results, answer, strict=False)
        replacements.update((name, value) for name, value in pairs if name and value is not None)
    if not replacements or not all(_replaces(name, value) for name, value in replacements.items()):
        raise PatternError(
            f"Pattern {pattern.name} must return what replaces the results of its root: a name, "
            f"g.op.Operator(...), a list of them (one for each of its {len(results)} results) "
            f"or a dictionary by result, not {answer!r}; a result cannot be replaced by itself, "
            "and a number has no type nor shape: use g.filled(1.0, like=name)."
        )
    return replacements


def _replaces(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return value not in ("", name)
    return isinstance(value, _ONE)
