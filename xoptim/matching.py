"""First half of an iteration: the graph is frozen, every pattern looks at its roots."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from onnx import NodeProto

from xbuilder.errors import InvalidModelError, PatternError, UnknownAttributeError
from xbuilder.graph_store import GraphStore, Key, NodeRecord, by_order

from .frozen_nodes import call_watched, is_watched
from .patterns_api import MatchResult, PatternOptimization

if TYPE_CHECKING:
    from .graph_builder_optim import GraphBuilderPatternOptimization


#: a match that was refused: the pattern and what the nodes give
RefusalKey = tuple[PatternOptimization, tuple[str, ...]]


def parse_root(root: str) -> Key:
    """`"Transpose"` or `"com.microsoft::FusedMatMul"` as a key of the store."""
    domain, _, op_type = root.rpartition("::")
    return domain, op_type


def root_records(store: GraphStore, roots: Iterable[str]) -> list[NodeRecord]:
    """Live nodes whose type is one of the roots, in graph order.

    A root may end with `*` (`"intermediate::LocalAttention*"`), `"*"` is every node.
    Cost: O(1) for one type, the list is the one of the store and must stay as it is; O(size of the
    buckets) for several.
    """
    filled: list[list[NodeRecord]] = []
    for root in roots:
        if root == "*":
            return store.nodes
        domain, op_type = parse_root(root)
        if op_type.endswith("*"):
            keys = [
                k for k in store.bucket_keys() if k[0] == domain and k[1].startswith(op_type[:-1])
            ]
        else:
            keys = [(domain, op_type)]
        for key in keys:
            bucket = store.bucket(*key)
            if bucket:
                filled.append(bucket)
    if len(filled) < 2:
        return filled[0] if filled else []
    return sorted(chain.from_iterable(filled), key=by_order)


class Candidates:
    """Nodes near the last changes, by type. Cost: O(number of these nodes)."""

    def __init__(self, records: Iterable[NodeRecord]):
        self.records = sorted((r for r in records if r.alive), key=by_order)
        self._by_key: dict[Key, list[NodeRecord]] = {}
        for r in self.records:
            self._by_key.setdefault((r.domain, r.op_type), []).append(r)

    def of(self, roots: Iterable[str]) -> list[NodeRecord]:
        """Those whose type is one of the roots, in graph order."""
        rows: list[NodeRecord] = []
        filled = 0
        for root in roots:
            if root == "*":
                return self.records
            domain, op_type = parse_root(root)
            for key in self._keys(domain, op_type):
                found = self._by_key.get(key)
                if found:
                    rows.extend(found)
                    filled += 1
        if filled > 1:
            rows.sort(key=by_order)
        return rows

    def _keys(self, domain: str, op_type: str) -> list[Key]:
        if not op_type.endswith("*"):
            return [(domain, op_type)]
        return [k for k in self._by_key if k[0] == domain and k[1].startswith(op_type[:-1])]


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
    records: list[NodeRecord],
    claimed: set[NodeRecord],
    matched: list[MatchResult],
) -> PatternRun:
    """Runs one pattern on some nodes. The first match to claim a node keeps it.

    :param optimizer: the optimizer
    :param pattern: the pattern
    :param records: nodes whose type is a root of the pattern
    :param claimed: nodes of the matches found before, completed
    :param matched: these matches, completed
    :return: what happened
    """
    store = optimizer.store
    run = PatternRun(pattern, len(records))
    begin = time.perf_counter()
    watched = is_watched(pattern)
    for record in _possible_roots(store, pattern, records):
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
        if claimed.isdisjoint(nodes):
            claimed.update(nodes)
            result.records = nodes
            matched.append(result)
            run.found.append(result)
    run.time_in = time.perf_counter() - begin
    return run


def _possible_roots(
    store: GraphStore, pattern: PatternOptimization, records: list[NodeRecord]
) -> list[NodeRecord]:
    """Roots that are not refused at once; all of them when somebody wants to know the reasons."""
    if pattern.listener is not None:
        return records
    if pattern.possible_roots is not None:
        records = pattern.possible_roots(store, records)
    if not pattern.after:
        return records
    rows: list[NodeRecord] = []
    producers, after = store.producers, pattern.after
    for record in records:
        before = producers.get(record.inputs[0]) if record.inputs else None
        if before is not None and before.op_type in after and not before.domain:
            rows.append(record)
    return rows


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
