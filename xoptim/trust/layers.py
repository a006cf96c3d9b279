"""Finds the first result that differs between two models, by running both node by node.

A result is freed as soon as no node needs it. The memory is the memory of the results alive at one
place of the models, and of the weights of one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from onnx import NodeProto

from xbuilder.nodes.functions import all_nodes
from xbuilder.operators.op_traits import is_random
from xbuilder.tensors.closeness import ATOL, RTOL, Criterion

from .inputs.coverage import Body, bodies_of
from .inputs.draws import Draws, draw_inputs, sizes_of
from .inputs.random_inputs import (
    candidate_sizes,
    random_inputs,
    required_inputs,
    sizes_fixed_by,
)
from .noise import DoubleRunner, optimized_results
from .outputs import OutputDifference, compare_outputs
from .sessions.node_runner import NodeError, NodeRunner, reads
from .sessions.ort_values import OrtResult, to_python, to_result
from .sessions.runtime import Model, Opener, VerificationError, container_of

#: number of results whose noise is measured with the optimizations of onnxruntime
_MOST_SESSIONS = 8


@dataclass
class LayerDifference(OutputDifference):
    """The difference between the two versions of one result, with their producers.

    :param before: operator in the first model
    :param after: operator in the second model
    :param nodes: names of the two nodes
    :param rewrites: rewrites that wrote the second node, if the model records them
    :param sources: results of the first model it replaces, if the model records them

    Example::

        >>> row = LayerDifference("y", "float32", (4,), 0.5, 0.2, False, before="Exp", after="Sqrt")
        >>> row.ok, row.to_row()["after"]
        (False, 'Sqrt')
    """

    before: str = ""
    after: str = ""
    nodes: tuple[str, str] = ("", "")
    rewrites: str = ""
    sources: str = ""


@dataclass
class LayerReport:
    """The results compared, in the order of the first model.

    :param rows: the results both models have, up to the first difference unless all were asked for
    :param results: number of results of each model
    :param rtol: tolerance that was asked for
    :param sizes: size given to each dimension the models leave open
    :param seed: seed of the random inputs, None when inputs were given
    :param peak_bytes: the largest amount of memory the results of both models took together
    :param atol: absolute tolerance that was asked for
    :param draws: number of sets of inputs
    :param never_ran: the bodies that none of them runs: nothing in them is compared

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[4] x) => (float[4] y) { a = Abs(x)  y = Exp(a) }"
        >>> other = text.replace("Exp", "Sqrt")
        >>> report = compare_layers(model_from_text(text), model_from_text(other))
        >>> report.ok, report.first.output, report.first.before, report.first.after
        (False, 'y', 'Exp', 'Sqrt')
    """

    rows: list[LayerDifference]
    results: tuple[int, int]
    rtol: float
    sizes: dict[str, int] = field(default_factory=dict)
    seed: int | None = None
    peak_bytes: int = 0
    atol: float = ATOL
    draws: int = 1
    never_ran: list[Body] = field(default_factory=list)

    @property
    def first(self) -> LayerDifference | None:
        """The first result that differs, None if there is none."""
        return next((row for row in self.rows if not row.ok), None)

    @property
    def ok(self) -> bool:
        """Whether every compared result is accepted."""
        return self.first is None

    @property
    def max_rel(self) -> float:
        """Largest relative difference."""
        return max((row.max_rel for row in self.rows), default=0.0)

    def to_rows(self) -> list[dict[str, Any]]:
        """One dictionary by result, for `pandas.DataFrame` or json."""
        return [row.to_row() for row in self.rows]


def compare_layers(
    before: Model,
    after: Model,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    rtol: float = RTOL,
    providers: Sequence[str] = (),
    seed: int = 0,
    stop: bool = True,
    allowed_roots: Sequence[Any] = (),
    atol: float = ATOL,
) -> LayerReport:
    """Runs two models node by node and compares the results that have the same name.

    The rewrites of this project keep the names of the results they keep. A call to a local
    function, an If, a Loop is one node. A result of a random operator is given to both models.
    Values are compared as :func:`xoptim.trust.verification.verify_models` does.

    :param before: the reference: a model, its bytes, or its path: weights in other files stay there
    :param after: the model to compare
    :param inputs: inputs by name, or several sets of them; those that are missing are drawn
    :param sizes: sizes for the dimensions the first model leaves open, by default those that the
        second one fixes
    :param rtol: relative tolerance
    :param providers: execution providers, CPU by default
    :param seed: seed of the random inputs
    :param stop: stops at the first difference
    :param allowed_roots: folders the weights may be in, beside the one of the model
    :param atol: absolute tolerance
    :return: the comparison, ``report.first`` is the first difference
    :raises VerificationError: a node of one model does not run, or the models do not have the same
        inputs, or no result in common

    .. code-block:: python

        report = compare_layers("model.onnx", "optimized.onnx", rtol=1e-3)
        if not report.ok:
            print(report.first.output, report.first.after, report.first.max_rel)
    """
    first, second = container_of(before, allowed_roots), container_of(after, allowed_roots)
    runners = NodeRunner(first, providers), NodeRunner(second, providers)
    criterion = Criterion(rtol, atol)
    given = [inputs] if isinstance(inputs, Mapping) else list(inputs or [{}])
    if not any(given):
        sizes = {**sizes_fixed_by(first.proto, [second.proto]), **(sizes or {})}
    draws = Draws([])
    if bodies_of(first.proto):
        with ExitStack() as files:
            opener = Opener(files, providers)
            draws = draw_inputs(opener, opener.open(first, "first"), first, sizes, seed, given)
        reports = _reports(runners, draws, criterion, seed, stop)
    else:
        reports = [_first_report(runners, one, sizes, criterion, seed, stop) for one in given]
    found = max(reports, key=lambda report: (not report.ok, report.max_rel))
    found.draws, found.never_ran = len(reports), draws.never_ran
    return found


def _reports(
    runners: tuple[NodeRunner, NodeRunner],
    draws: Draws,
    criterion: Criterion,
    seed: int,
    stop: bool,
) -> list[LayerReport]:
    """The comparison on each set of inputs."""
    reports = []
    for one in draws.sets:
        report = _Comparison(runners, one.feeds, criterion, stop).run()
        report.sizes, report.seed = one.sizes, seed if draws.is_random else None
        reports.append(report)
    return reports


def _first_report(
    runners: tuple[NodeRunner, NodeRunner],
    given: Mapping[str, Any],
    sizes: Mapping[str, int] | None,
    criterion: Criterion,
    seed: int,
    stop: bool,
) -> LayerReport:
    """The comparison on the first inputs the reference accepts. The whole model is never loaded."""
    model = runners[0].container.proto
    if all(value.name in given for value in required_inputs(model)):
        return _Comparison(runners, given, criterion, stop).run()
    sizes = {**sizes_of(model, given), **(sizes or {})}
    error: VerificationError | None = None
    for chosen, high in candidate_sizes(model, sizes):
        feeds = {**random_inputs(model, chosen, seed, integer_high=high), **given}
        try:
            report = _Comparison(runners, feeds, criterion, stop).run()
        except _FirstModelError as e:
            error = error or e
            continue
        report.sizes, report.seed = dict(chosen), seed
        return report
    raise error or VerificationError("no size was tried")


class _FirstModelError(VerificationError):
    """The reference refuses the inputs, other inputs may do."""


class _Walk:
    """Runs the nodes of a model in order and frees the results no node needs any more.

    :param runner: runs the nodes
    :param feeds: inputs
    :param held: results to keep until they are released, by name
    """

    def __init__(self, runner: NodeRunner, feeds: Mapping[str, OrtResult], held: set[str]):
        self.runner, self.held = runner, held
        self.nodes = list(runner.container.proto.graph.node)
        self.makers = {name: node for node in self.nodes for name in node.output if name}
        self.uses = Counter(name for node in self.nodes for name in reads(node))
        self.values = dict(feeds)
        self.position = 0

    def step(self) -> NodeProto:
        """Runs the next node."""
        node: NodeProto = self.nodes[self.position]
        self.values.update(self.runner.run(node, self.values))
        self.position += 1
        for name in reads(node):
            self.uses[name] -= 1
            self._free(name)
        for name in node.output:
            self._free(name)
        return node

    def release(self, name: str) -> None:
        """Allows a result to be freed once no node needs it."""
        self.held.discard(name)
        self._free(name)

    def _free(self, name: str) -> None:
        if self.uses[name] <= 0 and name not in self.held:
            self.values.pop(name, None)

    @property
    def nbytes(self) -> int:
        """Bytes of the live results."""
        return sum(result.nbytes for result in self.values.values())


class _Comparison:
    """Two walks; the second one goes as far as the first one needs."""

    def __init__(
        self,
        runners: tuple[NodeRunner, NodeRunner],
        feeds: Mapping[str, Any],
        criterion: Criterion,
        stop: bool,
    ):
        _check_inputs(runners, feeds)
        given = {name: _result(name, value) for name, value in feeds.items()}
        made = [{n for node in r.container.proto.graph.node for n in node.output} for r in runners]
        # a result of the first model may be a constant in the second one
        both = made[0] & (made[1] | set(runners[1].weights)) - {""}
        if not both:
            raise VerificationError("the models have no result of the same name to compare")
        self.first, self.second = (_Walk(r, given, set(both)) for r in runners)
        self.both: set[str] = both
        self.criterion, self.stop, self.peak = criterion, stop, 0
        self.feeds, self.sessions = feeds, 0
        self.doubles = _Walk(DoubleRunner(runners[0].container), given, set(both))

    def run(self) -> LayerReport:
        """Compares the results in the order of the first model."""
        rows = []
        for row in self._rows():
            rows.append(row)
            if self.stop and not row.ok:
                break
        counts = tuple(len(walk.makers) for walk in (self.first, self.second))
        return LayerReport(
            rows,
            (counts[0], counts[1]),
            self.criterion.rtol,
            peak_bytes=self.peak,
            atol=self.criterion.atol,
        )

    def _rows(self) -> Iterator[LayerDifference]:
        for _ in range(len(self.first.nodes)):
            node = self._step(self.first, "first")
            shared = [name for name in node.output if name in self.both]
            for name in shared:
                self._reach(name)
                yield self._compare(name, node)
            for name in shared:
                for walk in (self.first, self.second, self.doubles):
                    walk.release(name)

    def _reach(self, name: str) -> None:
        """Runs the second model until it has a result."""
        if self.second.runner.is_weight(name):
            self.second.values[name] = self.second.runner.weight(name)
        while name not in self.second.values:
            self._step(self.second, "second")

    def _step(self, walk: _Walk, which: str) -> NodeProto:
        try:
            node = walk.step()
        except NodeError as e:
            kind = _FirstModelError if which == "first" else VerificationError
            raise kind(f"in the {which} model, {e}") from e
        self.peak = max(self.peak, self.first.nbytes + self.second.nbytes)
        return node

    def _compare(self, name: str, node: NodeProto) -> LayerDifference:
        from ..engine.node_metadata import REWRITES, SOURCES

        values = self.first.values[name], self.second.values[name]
        random = is_random(all_nodes([node]))
        difference = self._difference(name, to_python(values[0]), to_python(values[1]), random)
        if random and difference.ok:
            self.second.values[name] = values[0]
        other = self.second.makers.get(name, NodeProto(op_type="initializer"))
        metadata = {p.key: p.value for p in other.metadata_props}
        return LayerDifference(
            **vars(difference),
            before=_operator(node),
            after=_operator(other),
            nodes=(node.name, other.name),
            rewrites=metadata.get(REWRITES, ""),
            sources=metadata.get(SOURCES, ""),
        )

    def _difference(self, name: str, expected: Any, got: Any, random: bool) -> OutputDifference:
        """The difference between two versions of a result, beside the noise of the first one."""
        found = compare_outputs(name, expected, got, self.criterion, random)
        noisy: list[Any] = []
        if found.is_rounding and self.sessions < _MOST_SESSIONS:
            self.sessions += 1
            noisy += optimized_results(self.first.runner.container, self.feeds, name)
            found = compare_outputs(name, expected, got, self.criterion, random, noisy)
        if found.is_rounding:
            noisy += self._with_doubles(name)
            found = compare_outputs(name, expected, got, self.criterion, random, noisy)
        return found

    def _with_doubles(self, name: str) -> list[Any]:
        """A result of the first model computed with doubles, none if a node does not run."""
        try:
            while name not in self.doubles.values:
                self.doubles.step()
        except NodeError:
            return []
        return [to_python(self.doubles.values[name])]


def _operator(node: NodeProto) -> str:
    return node.op_type if node.domain in {"", "ai.onnx"} else f"{node.domain}.{node.op_type}"


def _result(name: str, value: Any) -> OrtResult:
    if value is None:
        raise VerificationError(f"input {name!r} is optional and empty, nodes cannot be run alone")
    return to_result(value)


def _check_inputs(runners: tuple[NodeRunner, NodeRunner], feeds: Mapping[str, Any]) -> None:
    taken = [[i.name for i in required_inputs(r.container.proto)] for r in runners]
    for which, names in zip(("first", "second"), taken, strict=True):
        missing = [name for name in names if name not in feeds]
        if missing:
            raise VerificationError(
                f"the models do not take the same inputs, {taken[0]} and {taken[1]}: "
                f"{missing} of the {which} model are not given"
            )
