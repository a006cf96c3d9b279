"""Checks a window: runs both sides on several sizes and values, compares the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.facts.facts import ResultFacts
from xbuilder.operators.op_traits import FLOATS, HALF_FLOATS, is_random

from ...authoring.rewriters import Member
from .differences import Difference, nan_count
from .draws import APART, MOST_APART, SMALL, SPECIAL, TIES, USUAL, Draw, draw_window_inputs
from .judging import FAILS, Judge
from .polynomials import moves_inputs, only_moves
from .roles import Role, roles_of
from .runs import EITHER, REFERENCE, RUNTIME, Runner, run_both, runners_of
from .sessions import CannotRunError
from .sizes import RANKS, Sizes, assignments, axis_names, keeps_facts, symbols_of
from .wholes import Proof, prove_at_integers
from .window import Window, input_facts, names_read

#: elements of the inputs and of the results of one run, times the nodes, above which a window gets
#: no proof at integers, no other size, and no other draw: a count, because what is checked must not
#: depend on the load
_NO_PROOF, _ENOUGH, _TOO_MUCH = 1 << 20, 1 << 22, 1 << 25
#: types of floats with enough integers to number the elements of a window
_COUNTED = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE})
#: number of sizes of constants that are tried, and the largest one
_FEW, _LARGEST = 3, 1 << 12
#: bounds of the integers that are positions
_HIGHS = (10, 3, 2, 1)

Feeds = dict[str, Any]
#: sizes and a draw
_Point: TypeAlias = "tuple[tuple[tuple[str, int], ...], Draw]"


@dataclass
class Outcome:
    """The outcome of the check of a window.

    :param status: `right`, `rounds` (right, but not to the last bit), `differs` or `blocked`
    :param methods: how it was run and compared
    :param sizes: sizes that both sides were run with
    :param draws: number of draws
    :param max_abs: largest absolute difference
    :param max_rel: largest relative difference
    :param chance: bound of the probability that two different polynomials went unnoticed, 0 if
        elements that all differ went to the same places, None if the window is neither
    :param reason: why it is blocked
    :param found: the difference
    :param feeds: the inputs that show it
    :param noise: the difference of the kernels of the runtime, when the reference has none
    """

    status: str = "blocked"
    methods: dict[str, None] = field(default_factory=dict)
    sizes: list[Sizes] = field(default_factory=list)
    draws: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    chance: float | None = None
    reason: str = ""
    found: Difference | None = None
    feeds: Mapping[str, Any] = field(default_factory=dict)
    noise: str = ""


def check_window(
    window: Window,
    member: Member,
    large: bool = False,
    brief: bool = False,
    hasty: bool = False,
    shown: Mapping[str, int] = MappingProxyType({}),
) -> Outcome:
    """Checks that both sides of a window compute the same.

    :param window: the window
    :param member: the rewrite, which declares its precision
    :param large: sizes of images are tried as well
    :param brief: one size and one draw are enough, the window is right with other weights or sizes
    :param hasty: the reference evaluator does not judge the differences of the runtime
    :param shown: sizes that show a difference in a smaller window
    :return: the outcome, blocked if no size nor value runs
    """
    check = _Check(window, member, large, False, brief, hasty, shown)
    outcome = check.run_and_close()
    if outcome.status == "blocked" and window.fed_constants():
        other = _Check(window, member, large, True, brief, hasty, shown, check.refused_at)
        again = other.run_and_close()
        outcome = outcome if again.status == "blocked" else again
    return outcome


class _Check:
    """One check, with the big constants as inputs or embedded in the models."""

    def __init__(
        self,
        window: Window,
        member: Member,
        large: bool,
        embed: bool,
        brief: bool,
        hasty: bool,
        shown: Mapping[str, int],
        refused_before: Mapping[_Point, str] = MappingProxyType({}),
    ):
        self.window, self.member, self.large, self.brief = window, member, large, brief
        self.hasty, self.shown = hasty, shown
        self.facts = input_facts(window)
        self.constraints = window.graph.facts.constraints
        self.constants = window.fed_constants(embed)
        self.embed = embed
        self.outcome = Outcome()
        self.cost = 0
        self.refusals: dict[str, None] = {}
        #: the reasons of the last size, those of the size before by rank, ranks that are given up
        self.reasons: set[str] = set()
        self.refused: dict[int, set[str]] = {}
        self.hopeless: set[int] = set()
        #: the messages of the points that do not run, those with the constants as inputs
        self.refused_at: dict[_Point, str] = {}
        self.refused_before = refused_before
        #: kinds of messages that neither embedded constants nor smaller positions change
        self.lasting: set[str] = set()
        self.unbounded: set[str] = set()

    @cached_property
    def roles(self) -> dict[str, Role]:
        found: dict[str, Role] = {}
        if all(f.type in FLOATS for f in self._relevant()):
            return found
        for side in self.window.sides():
            for name, role in roles_of(side).items():
                found[name] = min(found.get(name, Role.ANY), role)
        return found

    @cached_property
    def nodes(self) -> int:
        return max(len(side) for side in self.window.sides())

    @cached_property
    def runners(self) -> tuple[Runner, Runner]:
        return runners_of(self.window, self.embed, self.constants)

    def run_and_close(self) -> Outcome:
        """Runs the check, then frees the sessions."""
        try:
            return self.run()
        finally:
            if "runners" in self.__dict__:
                for runner in self.runners:
                    runner.close()

    def run(self) -> Outcome:
        """Runs every size and every draw, until one shows a difference."""
        outcome = self.outcome
        if not self.window.results:
            outcome.status, outcome.methods = "right", {"unused": None}
            return outcome
        outcome.reason = self._obstacle()
        if outcome.reason:
            return outcome
        judge = Judge(
            *self.runners,
            self.member.precision,
            self.member.tolerance,
            self.window.results,
            self._types(),
            self.hasty,
        )
        way = next(filter(self._loads, self._ways()), None)
        if way is None:
            outcome.reason = self._load_error()
            return outcome
        self.way = way
        for sizes, feeds, expected in self._points():
            if self._one(judge, sizes, feeds, expected):
                outcome.status = "differs"
                return outcome
        if outcome.draws:
            outcome.status = "rounds" if judge.rounds else "right"
            outcome.methods.update(judge.methods)
            outcome.noise = outcome.noise or judge.noise
            if not self.brief:
                self._prove()
        else:
            outcome.reason = "; ".join(list(self.refusals)[:2]) or "no size is allowed"
        return outcome

    def _obstacle(self) -> str:
        """The reason why the window cannot be checked at all, empty if it may."""
        if any(map(_makes_a_cycle, self.window.sides())):
            return "its nodes make a cycle"
        if is_random([*self.window.before, *self.window.after]):
            return "its nodes are random"
        for name, facts in self.facts.items():
            if not facts.type and facts.sequence is None:
                return f"the type of {name!r} is not known"
        return ""

    def _ways(self) -> tuple[str, str, str]:
        """The ways to run both sides, the best first. onnxruntime computes halves with floats."""
        halves = self.member.precision == "exact" and not HALF_FLOATS.isdisjoint(self._types())
        return (REFERENCE, RUNTIME, EITHER) if halves else (RUNTIME, REFERENCE, EITHER)

    def _loads(self, way: str) -> bool:
        return all(r.loads(way) for r in self.runners)

    def _load_error(self) -> str:
        which = 0 if not self.runners[0].loads(RUNTIME) else 1
        name = ("removed", "written")[which]
        return f"the {name} nodes do not load: {self.runners[which].error(RUNTIME)}"

    def _types(self) -> set[int]:
        """The types of floats the window computes with."""
        names = [*self.facts, *self.window.results, *self.window.known]
        found = {self.window.facts_of(n).type for n in names}
        for value in self.window.constants.values():
            if value.dtype == np.float32:
                found.add(int(TensorProto.FLOAT))
        return found

    # -- sizes and values

    def _points(self) -> Iterator[tuple[Sizes, Feeds, list[Any]]]:
        """The sizes, the draws and the results of the removed nodes, while there is time."""
        # readers may only show the difference at other sizes
        enough = _TOO_MUCH if self.window.readers else _ENOUGH
        for sizes, rank, spare in self._sizes():
            if spare and self.outcome.draws:
                continue
            if self.outcome.draws and (self.brief or self.cost > enough):
                return
            if rank in self.hopeless:
                continue
            yield from self._draws(sizes, rank)
            if self._has_free_rank:
                self._give_up(rank, spare)

    def _sizes(self) -> Iterator[tuple[Sizes, int, bool]]:
        """Sizes to try, those of inputs without a shape included, the rank of inputs without one,
        and whether the sizes only serve when none was accepted."""
        known = max((f.known_rank() or 0 for f in self._shapeless()), default=0)
        ranks = RANKS if self._has_free_rank else RANKS[:1]
        used = {r: axis_names(max(known, r if self._has_free_rank else 0)) for r in ranks}
        # so many halves that are divided by almost nothing differ more than any tolerance
        wide = self.large and HALF_FLOATS.isdisjoint(self._types())
        symbols = symbols_of(self._relevant(), self.constraints)
        names = list(dict.fromkeys([*symbols, *max(used.values(), key=len)]))
        tried = set()
        read = self._constant_sizes() if max(used.values(), key=len) else ()
        rows = assignments(names, self.constraints, self.large, wide, self.shown, read)
        for sizes, spare in rows:
            for rank in ranks:
                kept = {n: sizes[n] for n in (*symbols, *used[rank])}
                key = rank, *kept.values()
                if key not in tried:
                    tried.add(key)
                    yield kept, rank, spare

    def _constant_sizes(self) -> list[int]:
        """The least sizes of the constants, which inputs without a shape may need."""
        sizes = {d for value in self.window.constants.values() for d in value.shape}
        return sorted(d for d in sizes if 1 < d <= _LARGEST)[:_FEW]

    def _give_up(self, rank: int, spare: bool) -> None:
        """Gives up a rank that two sizes in a row are refused with for the same reasons. Those that
        only serve when none was accepted may be one size of a constant."""
        reasons, self.reasons = self.reasons, set()
        if spare:
            return
        if reasons and reasons == self.refused.get(rank):
            self.hopeless.add(rank)
        self.refused[rank] = reasons

    def _draws(self, sizes: Sizes, rank: int) -> Iterator[tuple[Sizes, Feeds, list[Any]]]:
        first, seed = not self.outcome.draws, len(self.outcome.sizes)
        kind = APART if self._shows_places else SMALL if seed % 2 else USUAL
        accepted = self._accepted(sizes, Draw(kind, seed, rank=rank))
        if accepted is None:
            return
        self.outcome.sizes.append(dict(sizes))
        yield sizes, *accepted[1:]
        high = accepted[0].high
        # no kernel tells how ties and NaN are ordered if the reference evaluator is alone
        is_first = first and not self.brief and self.facts and self._loads(RUNTIME)
        others: tuple[str, ...] = (TIES, SPECIAL) if is_first and not self._only_moves() else ()
        if others and not sizes and any(f.type in FLOATS for f in self._relevant()):
            others = (*others, SMALL)  # no other size is near zero
        for i, kind in enumerate(others, 1):
            if self.cost < _TOO_MUCH and not (kind == SPECIAL and self._is_approximate()):
                draw = Draw(kind, seed + i, high, -high if kind == TIES else 0, rank)
                found = self._attempt(sizes, draw)
                if found is not None:
                    yield sizes, *found[1:]

    def _only_moves(self) -> bool:
        """Whether both sides move elements to places that do not depend on the values drawn: one
        draw tells as much as several."""
        is_float = (f.type in FLOATS or f.value is not None for f in self.facts.values())
        return all(map(only_moves, self.window.sides())) and all(is_float)

    @cached_property
    def _shows_places(self) -> bool:
        """Whether both sides move elements of inputs and no other one: when all of them differ, a
        run shows where each goes, and is a proof for its sizes."""
        drawn = [f for f in self.facts.values() if f.value is None]
        return (
            bool(drawn)
            and all(f.sequence is None and f.type in _COUNTED for f in drawn)
            and not any(v.dtype.kind not in "iu" for v in self.window.constants.values())
            and all(map(moves_inputs, self.window.sides()))
            and self._only_moves()
        )

    def _is_approximate(self) -> bool:
        return self.member.precision == "approximate"

    @cached_property
    def _has_free_rank(self) -> bool:
        """Whether an input has no known rank."""
        return any(f.known_rank() is None for f in self._shapeless())

    def _shapeless(self) -> list[ResultFacts]:
        """The facts of the inputs whose sizes nothing gives."""
        return [f for f in self._relevant() if f.shape is None and f.value is None]

    def _relevant(self) -> list[ResultFacts]:
        return [f if f.sequence is None else f.sequence for f in self.facts.values()]

    def _accepted(self, sizes: Sizes, draw: Draw) -> tuple[Draw, Feeds, list[Any]] | None:
        """The first bound of the positions with which the removed nodes run, None without any."""
        roles = {self.roles.get(n, Role.ANY) for n in self.facts}
        highs = _HIGHS if roles & {Role.INDEX, Role.DISTINCT, Role.LENGTH} else _HIGHS[:1]
        kinds: list[str] = []
        for high in highs:
            tried = Draw(draw.kind, draw.seed, high, rank=draw.rank)
            found = self._attempt(sizes, tried)
            if found is not None:
                return found
            kinds.append(_kind(self.refused_at.get(_point(sizes, tried), "")))
            if kinds[0] in self.unbounded:
                return None
        if kinds[0] and len(set(kinds)) == 1:
            self.unbounded.add(kinds[0])
        return None

    def _attempt(self, sizes: Sizes, draw: Draw) -> tuple[Draw, Feeds, list[Any]] | None:
        """Runs the removed nodes. Returns None if they do not run, or break the facts."""
        feeds: Feeds = {}
        point = _point(sizes, draw)
        before = self.refused_before.get(point, "")
        if _kind(before) in self.lasting:
            self.reasons.add(before)
            return None
        try:
            drawn = draw_window_inputs(self.facts, self.roles, sizes, self.constraints, draw)
            feeds = {**drawn, **self.constants}
            expected = run_both(*self.runners, self.way, feeds)
        except CannotRunError as e:
            self.refusals[str(e)] = None
            self.reasons.add(str(e) if feeds else repr(sizes))
            if feeds:
                self.refused_at[point] = str(e)
                if _kind(before) == _kind(str(e)):
                    self.lasting.add(_kind(before))
            return None
        self.cost = max(self.cost, _elements([*feeds.values(), *expected]) * self.nodes)
        known = dict(sizes)
        for name, value in zip(self.window.results, expected, strict=True):
            if not keeps_facts(self.window.facts_of(name), value, known, self.constraints):
                self.refusals["no size keeps the facts of its results"] = None
                self.reasons.add(repr(sizes))
                return None
        if self.window.around and not self.outcome.draws and _hides_differences(expected):
            self.refusals["its results are empty, or most of them NaN, which hides differences"] = (
                None
            )
            self.reasons.add(repr(sizes))
            return None
        return draw, feeds, expected

    def _one(self, judge: Judge, sizes: Sizes, feeds: Feeds, expected: list[Any]) -> bool:
        """Compares both sides on one draw. Returns True if they differ. Kernels that refuse an
        empty tensor are only noted."""
        outcome = self.outcome
        found = judge.judge(self.way, feeds, expected)
        if self.way == EITHER and found and found.reason.startswith(FAILS):
            self.refusals[found.reason] = None  # the other runtime may take other types
            return False
        outcome.draws += 1
        outcome.max_abs = max(outcome.max_abs, judge.max_abs)
        outcome.max_rel = max(outcome.max_rel, judge.max_rel)
        if not found:
            return False
        if 0 in sizes.values() and found.reason.startswith(FAILS):
            outcome.noise = f"with {sizes}, {found.reason}"
            return False
        outcome.found, outcome.feeds = found, feeds
        outcome.methods.update(judge.methods)
        return True

    def _prove(self) -> None:
        """Adds a proof to the outcome, when the window has one: it moves elements that all differ,
        or it is a polynomial and takes random integers."""
        if self._shows_places:
            if self.cost <= MOST_APART * self.nodes:
                self.outcome.chance = 0.0
                self.outcome.methods["integers"] = None
            return
        if self.cost > _NO_PROOF:
            return
        proof: Proof | None = prove_at_integers(
            self.window, self.facts, self.roles, self.outcome.sizes[0], self.embed
        )
        if proof is not None:
            self.outcome.chance = proof.chance
            self.outcome.methods["integers"] = None


def _makes_a_cycle(nodes: Sequence[NodeProto]) -> bool:
    """Whether a node reads a result that no node before it gives, of those that a node gives."""
    left = {o for n in nodes for o in n.output if o}
    for node in nodes:
        if any(name in left for name in names_read([node])):
            return True
        left.difference_update(node.output)
    return False


def _point(sizes: Sizes, draw: Draw) -> _Point:
    return tuple(sizes.items()), draw


def _kind(message: str) -> str:
    """The message of a refusal without its numbers."""
    return re.sub(r"\d+", "", message)


def _elements(values: Iterable[Any]) -> int:
    """The number of elements of some values."""
    return sum(v.size if isinstance(v, np.ndarray) else 1 for v in values)


def _hides_differences(values: Sequence[Any]) -> bool:
    """Whether some values are empty, or most floats among them NaN."""
    floats = [v for v in values if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    return not _elements(values) or 2 * sum(map(nan_count, floats)) > _elements(floats)
