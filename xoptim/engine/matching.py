"""First half of an iteration: the graph is frozen, every pattern looks at its roots."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from onnx import NodeProto

from xbuilder.errors import InvalidModelError, PatternError, UnknownAttributeError
from xbuilder.store.graph_store import NodeRecord

from ..api.patterns import MatchResult, PatternOptimization
from .frozen_nodes import call_watched, is_watched
from .roots import Roots

if TYPE_CHECKING:
    from .optimizer import GraphBuilderPatternOptimization


#: a match that was refused: the pattern and what the nodes give
RefusalKey = tuple[PatternOptimization, tuple[str, ...]]


@dataclass
class PatternRun:
    """What one pattern did while matching."""

    pattern: PatternOptimization
    visited: int = 0
    time_in: float = 0.0
    found: list[MatchResult] = field(default_factory=list)


def match_pattern(
    optimizer: GraphBuilderPatternOptimization,
    pattern: PatternOptimization,
    roots: Roots,
    claimed: set[NodeRecord],
    matched: list[MatchResult],
) -> PatternRun:
    """Runs one pattern where it may match. The first match to claim a node keeps it.

    :param optimizer: the optimizer
    :param pattern: the pattern
    :param roots: the nodes to look at
    :param claimed: nodes of the matches found before, completed
    :param matched: these matches, completed
    :return: what happened
    """
    store = optimizer.store
    begin = time.perf_counter()
    run = PatternRun(pattern, len(roots.of(pattern.roots)))
    watched = is_watched(pattern)
    for record in roots.possible(pattern):
        if record in claimed:
            continue
        try:
            node = store.proto(record) if record.stale else record._proto
            if watched:
                match = partial(pattern.match, optimizer, node, matched)
                result = call_watched(pattern, [node], match)
            else:
                result = pattern.match(optimizer, node, matched)
        except UnknownAttributeError as e:
            result = pattern.none(store.proto(record), None, str(e))
        except (InvalidModelError, PatternError):
            raise  # said already, or not the fault of the pattern
        except Exception as e:
            raise PatternError(
                f"Pattern {pattern.name} failed while looking at {record!r}: "
                f"{type(e).__name__}: {e}. This is a bug of the pattern; "
                f"remove it with '-{pattern.name}' to go on."
            ) from e
        if result is None:
            continue
        nodes = _records_of(optimizer, pattern, result)
        if optimizer.refused and refusal_key(result) in optimizer.refused:
            continue
        if result.stays is not None:
            nodes.append(optimizer.record(result.stays))
        if claimed.isdisjoint(nodes):
            claimed.update(nodes)
            matched.append(result)
            run.found.append(result)
    run.time_in = time.perf_counter() - begin
    return run


def _records_of(
    optimizer: GraphBuilderPatternOptimization, pattern: PatternOptimization, result: MatchResult
) -> list[NodeRecord]:
    if not isinstance(result, MatchResult):
        raise PatternError(
            f"Method match of pattern {pattern.name} must return a MatchResult or None, "
            f"not {result!r}."
        )
    index = optimizer.store.index
    records: list[NodeRecord] = []
    for node in result.nodes:
        if node is not None:
            record = index.get(id(node))
            if record is None:
                raise _unknown_node(pattern, node, "matched")
            records.append(record)
    if result.insert_at is not None and id(result.insert_at) not in index:
        raise _unknown_node(pattern, result.insert_at, "wants to insert at")
    if not records:
        raise PatternError(f"Pattern {pattern.name} returned a match without any node.")
    if len(records) > 1 and len(set(records)) < len(records):
        raise PatternError(f"Pattern {pattern.name} gives the same node twice: {result!r}.")
    return records


def _unknown_node(pattern: PatternOptimization, node: Any, verb: str) -> PatternError:
    what = f"{node.op_type} ({node.name!r})" if isinstance(node, NodeProto) else repr(node)
    return PatternError(
        f"Pattern {pattern.name} {verb} {what} which is not a node of the graph; "
        "take nodes from g, do not make or copy them."
    )


def refusal_key(match: MatchResult) -> RefusalKey:
    """What makes a match the same one in a later iteration."""
    return match.pattern, tuple(n.output[0] for n in match.nodes if n is not None and n.output)
