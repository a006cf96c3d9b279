"""First half of an iteration: every pattern visits its roots while the graph is frozen."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from onnx import NodeProto

from xbuilder.errors import InvalidModelError, PatternError, UnknownAttributeError
from xbuilder.nodes.record import NodeRecord

from ..authoring.patterns import MatchResult, PatternOptimization, matches_nothing
from ..authoring.roots import Roots
from .dispatch import candidate_roots
from .engine import Engine
from .guards.mutation_guard import call_guarded
from .outcomes import PatternRun, refusal_key

#: a pattern called on a root
Look: TypeAlias = Callable[[NodeRecord], "MatchResult | None"]


class Claims:
    """Nodes claimed by the matches of one iteration. Several matches may leave the same node,
    which is kept for its other readers."""

    def __init__(self) -> None:
        #: nodes removed by a match
        self.taken: set[NodeRecord] = set()
        #: nodes left by a match
        self.left: set[NodeRecord] = set()

    def accept(self, nodes: list[NodeRecord], stays: NodeRecord | None) -> bool:
        """Claims the nodes of a match, unless another match claimed one of them.

        :param nodes: nodes it removes
        :param stays: node it leaves
        :return: whether the match is accepted
        """
        taken, left = self.taken, self.left
        if not taken.isdisjoint(nodes) or (left and not left.isdisjoint(nodes)):
            return False
        if stays is not None:
            if stays in taken:
                return False
            left.add(stays)
        taken.update(nodes)
        return True


def match_pattern(
    engine: Engine,
    pattern: PatternOptimization,
    roots: Roots,
    claims: Claims,
    matched: list[MatchResult],
    is_guarded: bool = False,
) -> PatternRun:
    """Runs one pattern where it may match. The first match to claim a node keeps it.

    :param engine: the engine
    :param pattern: the pattern
    :param roots: the candidate roots
    :param claims: nodes of the matches found before, completed
    :param matched: these matches, completed
    :param is_guarded: checks after each call that nodes are not modified
    :return: statistics and matches
    """
    begin = time.perf_counter()
    records = candidate_roots(roots, pattern, engine.facts)
    run = PatternRun(pattern, len(records))
    look = _look_of(engine, pattern, matched, is_guarded) if records else matches_nothing
    if look is matches_nothing:
        run.time_in = time.perf_counter() - begin
        return run
    claimed = claims.taken
    for record in records:
        if record in claimed:
            continue
        try:
            result = look(record)
            if result is None:
                continue
            nodes = _records_of(engine, pattern, result)
        except UnknownAttributeError as e:
            pattern.none(engine.store.proto(record), None, str(e))
            continue
        except InvalidModelError:
            raise  # not the fault of the pattern
        except PatternError as e:
            run.failures += 1
            engine.on_failure(e, pattern)
            continue
        except Exception as e:
            run.failures += 1
            text = f"{type(e).__name__}: {e}. This is a bug of the pattern; "
            text = f"{text}remove it with '-{pattern.name}' to go on."
            engine.fail(
                pattern, f"Pattern {pattern.name} failed while looking at {record!r}: {text}", e
            )
            continue
        if engine.refused and refusal_key(result) in engine.refused:
            continue
        if claims.accept(nodes, None if result.stays is None else engine.record(result.stays)):
            matched.append(result)
            run.found.append(result)
    run.time_in = time.perf_counter() - begin
    return run


def _look_of(
    engine: Engine,
    pattern: PatternOptimization,
    matched: list[MatchResult],
    is_guarded: bool,
) -> Look:
    """The function called on each root."""
    look = pattern.matcher(engine, matched)
    if look is not matches_nothing and (engine.verifies or is_guarded):
        look = partial(_watched, engine, pattern, look)
    return look


def _watched(
    engine: Engine, pattern: PatternOptimization, look: Look, record: NodeRecord
) -> MatchResult | None:
    """Calls a pattern and checks that it does not modify nodes."""
    return call_guarded(pattern, _with_producers(engine, record), partial(look, record))


def _with_producers(engine: Engine, record: NodeRecord) -> list[NodeRecord]:
    """A node and its producers, the only nodes most patterns visit."""
    producers = engine.store.producers
    return [record, *{p: None for n in record.inputs if (p := producers.get(n)) is not None}]


def _records_of(
    engine: Engine, pattern: PatternOptimization, result: MatchResult
) -> list[NodeRecord]:
    if not isinstance(result, MatchResult):
        raise PatternError(
            f"Method match of pattern {pattern.name} must return a MatchResult or None, "
            f"not {result!r}."
        )
    if result.records is not None:
        return result.records
    index = engine.store.index
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
