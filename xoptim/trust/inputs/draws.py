"""Draws the inputs of a model: those it accepts, in as many sets as its branches need."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from xbuilder.dims import Dim
from xbuilder.errors import OptionError, XoptimError

from ...reports.model_summary import iterate_nodes
from ..sessions.runtime import (
    Model,
    Opener,
    Session,
    StillRunningError,
    VerificationError,
    structure_of,
)
from .coverage import Body, Coverage, bodies_of
from .decisive_values import Decisive, decisive_values
from .random_inputs import (
    candidate_sizes,
    dimensions_of,
    elem_type_of,
    open_dimensions,
    optional_inputs,
    random_inputs,
    required_inputs,
)

#: number of sets tried for the values the model decides upon, then at random
_FIRST, _RANDOM = 12, 16
#: tables with more rows are not read row by row
_ROWS = 16
#: number of sets kept for a model without branches
_WITHOUT_BRANCH = 6
#: no more sets are tried after this time
_SECONDS = 30.0
#: a loop that runs longer than this on random inputs may never end; then others have less
_LONGEST, _LESS = 60.0, 5.0
#: factors of the floats of the random sets
_SCALES = (1.0, 100.0, 0.01, 0.0)
_INTEGERS = {
    TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64,
}  # fmt: skip


@dataclass
class InputSet:
    """Inputs a model accepts, and its outputs.

    :param feeds: inputs by name
    :param expected: outputs, in order
    :param sizes: size of each dimension the model leaves open
    """

    feeds: dict[str, Any]
    expected: list[Any]
    sizes: dict[str, int]


@dataclass
class Draws:
    """The inputs models are compared on.

    :param sets: at least one
    :param never_ran: the bodies that none of them runs
    :param is_random: whether some of the inputs were drawn
    :param ran: the bodies that ran
    :param longest: another model that runs longer on these inputs may never end, 0 for no limit
    """

    sets: list[InputSet]
    never_ran: list[Body] = field(default_factory=list)
    is_random: bool = True
    ran: list[Body] = field(default_factory=list)
    longest: float = 0.0


@dataclass(frozen=True)
class _Plan:
    """A set to try: values of some inputs, sizes of some dimensions, factor of the floats, optional
    inputs that hold nothing."""

    pools: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    scale: float = 1.0
    empty: frozenset[str] = frozenset()


def draw_inputs(
    opener: Opener,
    session: Session,
    model: Model,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    given: Sequence[Mapping[str, Any]] = ({},),
) -> Draws:
    """Draws sets of inputs until every branch that can run ran.

    The first set is plain: small integers, normal floats. The others take the values the model
    compares its inputs with, the sizes it compares their dimensions with, a few numbers of steps
    for a loop. A set is kept if a body runs that did not run before. Where the model refuses
    inputs, smaller integers and other sizes are tried.

    :param opener: opens the sessions that measure what runs
    :param session: runs the model
    :param model: the model
    :param sizes: sizes for the dimensions the model leaves open
    :param seed: seed of the random inputs
    :param given: inputs that are not drawn, one mapping by set
    :raises VerificationError: the model refuses the inputs
    """
    drawer = _Drawer(session, structure_of(model), sizes, seed)
    coverage = Coverage(opener, model) if bodies_of(drawer.model) else None
    kept: list[InputSet] = []
    is_random = False
    for fixed in given or ({},):
        is_random = is_random or not drawer.is_complete(fixed)
        first = drawer.first(fixed)
        kept.append(first)
        if coverage is not None:
            coverage.measure([first.feeds])
    for fixed in given or ({},):
        kept += drawer.more(fixed, coverage)
    if coverage is None:
        return Draws(kept, is_random=is_random)
    ran = [body for body in coverage.bodies if body.number in coverage.ran]
    longest = 2 * _LONGEST if is_random and drawer.longest else 0.0
    return Draws(kept, coverage.never_ran(), is_random, ran, longest)


def accepted_inputs(
    model: Model,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Sets of inputs that a model accepts, which run every branch that can run.

    :param model: the model, onnxruntime runs it in another process
    :param inputs: see :func:`xoptim.trust.verification.verify_models`
    :param sizes: sizes for the dimensions the model leaves open
    :param seed: seed of the random inputs
    :raises VerificationError: the model refuses the inputs

    Example::

        >>> from xoptim.testing import model_from_text
        >>> model = model_from_text("agraph (float[n, 3] x) => (float[n, 3] y) { y = Abs(x) }")
        >>> (feeds,) = accepted_inputs(model, sizes={"n": 5})
        >>> feeds["x"].shape
        (5, 3)
    """
    return [one.feeds for one in accepted_draws(model, inputs, sizes, seed).sets]


def accepted_draws(
    model: Model,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Draws:
    """Same as :func:`accepted_inputs`, with the bodies that never run.

    :param model: likewise
    :param inputs: likewise
    :param sizes: likewise
    :param seed: likewise
    """
    given = [inputs] if isinstance(inputs, Mapping) else list(inputs or [{}])
    with ExitStack() as files:
        opener = Opener(files, isolated=True)
        return draw_inputs(opener, opener.open(model, "first"), model, sizes, seed, given)


class _Drawer:
    """Makes sets of inputs and runs the model on them."""

    def __init__(
        self, session: Session, model: ModelProto, sizes: Mapping[str, int] | None, seed: int
    ):
        self.session, self.model, self.seed = session, model, seed
        self.sizes = dict(sizes or {})
        self.decisive: Decisive = decisive_values(model)
        self.open = set(open_dimensions(model))
        inputs = required_inputs(model)
        self.types = {v.name: elem_type_of(v) for v in inputs}
        self.scalars = {
            v.name
            for v in inputs
            if math.prod(d if isinstance(d, int) else 0 for d in dimensions_of(v)) == 1
        }
        self.end = time.perf_counter() + _SECONDS
        loops = any(node.op_type == "Loop" for node in iterate_nodes(model))
        #: a run is stopped after this time, 0 for never
        self.longest = _LONGEST if loops else 0.0

    def is_complete(self, fixed: Mapping[str, Any]) -> bool:
        """Whether nothing is left to draw."""
        return all(v.name in fixed for v in required_inputs(self.model))

    def first(self, fixed: Mapping[str, Any]) -> InputSet:
        """The plain set, or the first one that the model accepts.

        :raises VerificationError: it accepts none, the reason is that of the plain set
        """
        found = self.accepted(_Plan(), fixed)
        if isinstance(found, InputSet):
            return found
        plans = [] if self.is_complete(fixed) else list(self._plans(fixed))
        for one in self._try(plans[:_FIRST], fixed):
            return one
        raise found

    def accepted(self, plan: _Plan, fixed: Mapping[str, Any]) -> InputSet | VerificationError:
        """A set the model accepts, or the first error."""
        given = {**sizes_of(self.model, fixed), **self.sizes}
        free = {n: s for n, s in plan.sizes.items() if n in self.open and n not in given}
        error: VerificationError | None = None
        if self.is_complete(fixed):
            try:
                return InputSet(dict(fixed), self.session.run(fixed), {})
            except VerificationError as e:
                return e
        for chosen, high in self._candidates({**free, **given}):
            try:
                pools = {**self._pools(high), **plan.pools}
                made = random_inputs(
                    self.model, chosen, self.seed, high, pools, plan.scale, plan.empty
                )
                feeds = {**made, **fixed}
                return InputSet(feeds, self.session.run(feeds, seconds=self.longest), chosen)
            except VerificationError as e:
                error = error or e
                if isinstance(e, StillRunningError):
                    self.longest = _LESS
        dims = open_dimensions(self.model)
        sizes = f"sizes to the dimensions {dims} (--dim NAME=SIZE on the command line) or "
        return VerificationError(
            f"{error}; give {sizes if dims else ''}real inputs (--input NAME=VALUE)"
        )

    def _candidates(self, sizes: Mapping[str, int]) -> Iterator[tuple[dict[str, int], int]]:
        """The sizes to try, then those that the operators demand."""
        yield from candidate_sizes(self.model, sizes)
        demanded = {n: s for n, s in demanded_sizes(self.model).items() if n not in sizes}
        if demanded:
            yield from candidate_sizes(self.model, {**demanded, **sizes})

    def _pools(self, high: int) -> dict[str, Sequence[Any]]:
        """The values of the elements of the integers that are indices, divide, or are compared with
        constants."""
        decisive, pools = self.decisive, dict[str, Sequence[Any]]()
        for value in required_inputs(self.model):
            name = value.name
            if elem_type_of(value) not in _INTEGERS:
                continue
            bound, known = decisive.bounds.get(name), decisive.values.get(name, ())
            numbers = [v for v in known if _has_value(self.types[name], v)]
            wanted = {v for v in numbers if bound is None or 0 <= v < bound}
            if name not in self.scalars and high == 10:
                if bound is not None and bound > 0:
                    pools[name] = range(bound)
                elif wanted:
                    pools[name] = sorted({*range(high), *wanted})
            poles = decisive.poles.get(name)
            if poles:
                pool = pools.get(name, range(max(high, 2)))
                pools[name] = [v for v in pool if v not in poles] or [
                    next(v for v in itertools.count(1) if v not in poles)
                ]
        return pools

    def more(self, fixed: Mapping[str, Any], coverage: Coverage | None) -> Iterator[InputSet]:
        """The sets that run something else than the first one."""
        if self.is_complete(fixed):
            return
        plans = list(self._plans(fixed))
        if coverage is None:
            yield from self._try(plans[:_WITHOUT_BRANCH], fixed)
            return
        for some in (plans[:_FIRST], list(self._random_plans(fixed))):
            if coverage.is_complete:
                return
            seen = set(coverage.ran)
            sets = list(self._try(some, fixed))
            for one, ran in zip(sets, coverage.measure([s.feeds for s in sets]), strict=True):
                if ran - seen:
                    seen |= ran
                    yield one

    def _try(self, plans: Sequence[_Plan], fixed: Mapping[str, Any]) -> Iterator[InputSet]:
        for plan in plans:
            if time.perf_counter() > self.end:
                return
            found = self.accepted(plan, fixed)
            if isinstance(found, InputSet):
                yield found

    def _choices(self, fixed: Mapping[str, Any], names: Iterable[str]) -> dict[str, list[Any]]:
        """The values worth a try of all the elements of some inputs."""
        choices = {}
        for name in names:
            bound = self.decisive.bounds.get(name)
            known = self.decisive.values.get(name, ())
            values = {v for v in known if _has_value(self.types[name], v)}
            if bound is not None:
                values = {v for v in values if -bound <= v < bound}
                values.update(range(bound if bound <= _ROWS else 0))
            kept = sorted(values)
            if name not in fixed and kept:
                choices[name] = kept
        return choices

    def _plans(self, fixed: Mapping[str, Any]) -> Iterator[_Plan]:
        """Each value worth a try is in one of the plans; the last one leaves optionals empty."""
        choices = self._choices(fixed, self.scalars)
        sizes = {n: sorted(v) for n, v in self.decisive.sizes.items() if n in self.open}
        counts = [*map(len, choices.values()), *map(len, sizes.values())]
        for i in range(max(counts, default=0)):
            yield _Plan(
                {name: [values[i % len(values)]] for name, values in choices.items()},
                {name: values[i % len(values)] for name, values in sizes.items()},
            )
        empty = frozenset(optional_inputs(self.model)) - set(fixed)
        if empty:
            yield _Plan(empty=empty)

    def _random_plans(self, fixed: Mapping[str, Any]) -> Iterator[_Plan]:
        """Choices that do not depend on each other, every combination if there are few. An input
        may be drawn instead, which is a choice too."""
        rng = np.random.default_rng(self.seed)
        choices: dict[str, list[Any]] = dict(self._choices(fixed, self.types))
        for name, values in choices.items():
            if self.types[name] != TensorProto.BOOL:
                values.append(None)
        sizes = {n: sorted(v) for n, v in self.decisive.sizes.items() if n in self.open}
        several = math.prod(map(len, choices.values()))
        rows: list[Sequence[Any]] = []
        if several <= _RANDOM:
            rows += itertools.product(*choices.values())
        for i in range(_RANDOM):
            row = (
                rows[i % len(rows)] if rows else [v[rng.integers(len(v))] for v in choices.values()]
            )
            yield _Plan(
                {n: [value] for n, value in zip(choices, row, strict=True) if value is not None},
                {name: int(rng.choice(values)) for name, values in sizes.items()},
                _SCALES[i % len(_SCALES)],
            )


def _has_value(elem_type: int, value: Any) -> bool:
    """Whether a type has a value."""
    if isinstance(value, str) or elem_type == TensorProto.STRING:
        return isinstance(value, str) and elem_type == TensorProto.STRING
    if elem_type == TensorProto.BOOL:
        return bool(value in (0, 1))
    if elem_type in (TensorProto.UINT32, TensorProto.UINT64):
        return bool(value >= 0 and float(value).is_integer())
    return elem_type not in _INTEGERS or float(value).is_integer()


def demanded_sizes(model: ModelProto) -> dict[str, int]:
    """The sizes that the operators of a model demand, such as the width of a weight.

    :return: sizes by name of dimension, none if the model is not valid

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[a, b] x, float[3, 2] w) => (float[a, 2] y) { y = MatMul(x, w) }"
        >>> demanded_sizes(model_from_text(text))
        {'b': 3}
    """
    from xbuilder import GraphBuilder  # usual sizes run, most often

    try:
        known = GraphBuilder(model, infer_shapes_options=True).constraints
    except XoptimError:
        return {}
    sizes = {name: known.canonical(name) for name in open_dimensions(model)}
    return {name: size for name, size in sizes.items() if isinstance(size, int)}


def sizes_of(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, int]:
    """The sizes that given inputs settle.

    :param model: any model
    :param feeds: inputs by name
    :raises OptionError: an input has another shape than the one declared
    """
    sizes: dict[str, int] = {}
    for value in required_inputs(model):
        if not isinstance(feeds.get(value.name), np.ndarray):
            continue
        shape, dims = feeds[value.name].shape, list(dimensions_of(value))
        known: list[Dim] = [sizes.get(str(d), d) for d in dims]
        same = len(shape) == len(dims) or not value.type.tensor_type.HasField("shape")
        if not same or any(
            isinstance(d, int) and d != size for d, size in zip(known, shape, strict=False)
        ):
            raise OptionError(
                f"input {value.name!r} has shape {list(shape)}, the model expects {known}"
            )
        sizes.update((d, n) for d, n in zip(dims, shape, strict=False) if isinstance(d, str))
    return {name: size for name, size in sizes.items() if name in open_dimensions(model)}
