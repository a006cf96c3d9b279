"""Runs two models on the same inputs and measures the differences of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from onnx import ModelProto, NodeProto

from xbuilder.nodes.functions import all_nodes
from xbuilder.operators.domains import main_domain
from xbuilder.operators.op_traits import is_random
from xbuilder.tensors.closeness import ATOL, RTOL, Criterion

from ..reports.model_summary import iterate_nodes
from .choices import same_around_choices
from .inputs.coverage import Body
from .inputs.draws import InputSet, draw_inputs
from .inputs.random_inputs import sizes_fixed_by
from .noise import Roundings, with_noise
from .outputs import OutputDifference, compare_outputs
from .sessions.node_runner import reads
from .sessions.reference_session import reference_session
from .sessions.runtime import Model, Opener, Session, VerificationError, structure_of

__all__ = [
    "Model",
    "OutputDifference",
    "Reference",
    "VerificationError",
    "VerificationReport",
    "compare_outputs",
    "verify_models",
]


@dataclass
class VerificationReport:
    """One row for each output, and the conditions of the comparison.

    :param rows: the differences, in the order of the outputs
    :param rtol: tolerance that was asked for
    :param sizes: size given to each dimension the model leaves open
    :param seed: seed of the random inputs, None when inputs were given
    :param atol: absolute tolerance that was asked for
    :param draws: number of sets of inputs
    :param never_ran: the bodies that none of them runs: nothing in them is verified
    :param not_loaded: why onnxruntime does not load the first model, or neither of them, which the
        reference evaluator of onnx ran; empty if it does
    :param ran: the bodies that ran
    """

    rows: list[OutputDifference]
    rtol: float
    sizes: dict[str, int] = field(default_factory=dict)
    seed: int | None = None
    atol: float = ATOL
    draws: int = 1
    never_ran: list[Body] = field(default_factory=list)
    not_loaded: str = ""
    ran: list[Body] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every output is accepted."""
        return all(row.ok for row in self.rows)

    @property
    def max_abs(self) -> float:
        """Largest absolute difference over all outputs."""
        return _largest(row.max_abs for row in self.rows)

    @property
    def max_rel(self) -> float:
        """Largest relative difference over all outputs."""
        return _largest(row.max_rel for row in self.rows)

    def to_rows(self) -> list[dict[str, Any]]:
        """One dictionary by output, for `pandas.DataFrame` or json."""
        return [row.to_row() for row in self.rows]

    @property
    def reason(self) -> str:
        """The outputs that are not accepted, as text; empty if all are."""
        wrong = [f"{r.output!r}: {r.reason}" for r in self.rows if not r.ok]
        if not wrong:
            return ""
        return f"the two models differ on {len(wrong)} of {len(self.rows)} output(s), " + "; ".join(
            wrong[:5]
        )

    def raise_if_different(self) -> None:
        """Does nothing when all outputs are accepted.

        :raises VerificationError: if an output is not accepted, the message names the outputs
        """
        if not self.ok:
            raise VerificationError(self.reason)


def verify_models(
    before: Model,
    after: Model,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    rtol: float = RTOL,
    providers: Sequence[str] | None = None,
    seed: int = 0,
    isolated: bool = False,
    atol: float = ATOL,
) -> VerificationReport:
    """Runs two models with onnxruntime on the same inputs and compares their outputs.

    Both run with onnxruntime's own optimizations disabled: the comparison is on the models as they
    are written. The reference evaluator of onnx runs a first model that onnxruntime has no kernel
    for. Inputs that are not given are drawn, in several sets if the model has branches, see
    :func:`xoptim.trust.inputs.draws.draw_inputs`; the report tells the branches that never ran.
    Types, shapes and values are compared as :class:`xbuilder.tensors.closeness.Criterion` says; the
    noise of the first model is its distance from itself when onnxruntime optimizes it, or computes
    it with doubles. Outputs of random operators are compared by type and shape only.

    :param before: the reference: a model, its bytes, or its path (needed for external data)
    :param after: the model to check
    :param inputs: inputs by name, or several sets of them; those that are missing are drawn
    :param sizes: sizes for the dimensions the model leaves open, by default those that the other
        one fixes
    :param rtol: relative tolerance
    :param providers: execution providers, CPU by default
    :param seed: seed of the random inputs
    :param isolated: onnxruntime runs in other processes: if it crashes, that is an error like
        another one, and other sizes are tried
    :param atol: absolute tolerance
    :return: one row by output, the largest difference over the sets of inputs
    :raises VerificationError: if one of the models cannot run, or if the names of inputs or
        outputs are not the same
    :raises OptionError: if `sizes` does not fit the model

    .. code-block:: python

        report = verify_models("model.onnx", optimized, sizes={"batch": 4})
        report.raise_if_different()
    """
    given = any(inputs or ())
    fixed = {} if given else sizes_fixed_by(structure_of(before), [structure_of(after)])
    wanted = {**fixed, **(sizes or {})}
    with ExitStack() as files:
        opener = Opener(files, providers, isolated)
        reference = Reference(opener, before, inputs, wanted, Criterion(rtol, atol), seed)
        return reference.compare(after)


class Reference:
    """The outputs of a model, other models are compared with.

    :param opener: opens the sessions
    :param model: the model
    :param inputs: see :func:`verify_models`
    :param sizes: see :func:`verify_models`
    :param criterion: the accepted difference
    :param seed: seed of the random inputs
    :raises VerificationError: the model cannot run

    ::

        with ExitStack() as files:
            reference = Reference(Opener(files), model)
            report = reference.compare(optimized)
    """

    def __init__(
        self,
        opener: Opener,
        model: Model,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        sizes: Mapping[str, int] | None = None,
        criterion: Criterion | None = None,
        seed: int = 0,
    ):
        self.opener, self.model, self.seed = opener, model, seed
        self.criterion = criterion or Criterion()
        given = [inputs] if isinstance(inputs, Mapping) else list(inputs or [{}])
        self.not_loaded = ""
        try:
            session = opener.open(model, "first")
        except VerificationError as e:
            session = reference_session(model, "first", e)
            self.not_loaded = str(e)
        self.names = session.names[2]
        self.draws = draw_inputs(opener, session, model, sizes, seed, given)
        #: for each set of inputs, whether each output changes from one run to the next
        self._random = [self._random_outputs(session, one) for one in self.draws.sets]
        session.close()
        self._noise = [Roundings(opener, model, s.feeds, self.names) for s in self.draws.sets]

    def _random_outputs(self, session: Session, one: InputSet) -> list[bool]:
        """Whether each output changes from one run to the next, or from a runtime to another."""
        model = structure_of(self.model)
        if not is_random(iterate_nodes(model)):
            return [False] * len(self.names)
        if self.not_loaded:
            drawn = _random_results(model)
            return [name in drawn for name in self.names]
        pairs = zip(one.expected, session.run(one.feeds), strict=True)
        return [not _identical(a, b) for a, b in pairs]

    def compare(self, model: Model) -> VerificationReport:
        """Runs another model on the same inputs and compares its outputs.

        :param model: the other model
        :raises VerificationError: it cannot run, its inputs or its outputs have other names
        """
        not_loaded = self.not_loaded
        try:
            session = self.opener.open(model, "second")
        except VerificationError as e:
            if not not_loaded:
                raise
            session = reference_session(model, "second", e)
            not_loaded = f"{not_loaded}; {e}"
        _check_signatures(self.names, self.draws.sets[0].feeds, session)
        rows = self._differences(session, model)
        session.close()
        return VerificationReport(
            self._in_one_runtime(model, rows) if not_loaded == self.not_loaded != "" else rows,
            self.criterion.rtol,
            self.draws.sets[0].sizes,
            self.seed if self.draws.is_random else None,
            self.criterion.atol,
            len(self.draws.sets),
            self.draws.never_ran,
            not_loaded,
            self.draws.ran,
        )

    def _differences(self, session: Session, model: Model) -> list[OutputDifference]:
        """The largest difference of each output, over the sets of inputs."""
        rows: list[OutputDifference] = []
        for i, one in enumerate(self.draws.sets):
            found = self._rows(i, session.run(one.feeds, self.names, self.draws.longest))
            found = self._without_choices(model, one.feeds, found)
            rows = [max(pair, key=_rank) for pair in zip(rows or found, found, strict=True)]
        return rows

    def _without_choices(
        self, model: Model, feeds: Mapping[str, Any], rows: list[OutputDifference]
    ) -> list[OutputDifference]:
        """The differences, but those of choices among nearly equal numbers."""
        wrong = [row.output for row in rows if not row.ok]
        if not wrong or self.not_loaded:
            return rows
        models = (self.model, model)
        found = same_around_choices(self.opener, models, feeds, wrong, self.criterion)
        remark = (
            f"{', '.join(sorted(found))} chooses among nearly equal numbers, the rest is the same"
        )
        return [replace(r, ok=True, reason=remark) if found and not r.ok else r for r in rows]

    def _in_one_runtime(
        self, model: Model, rows: Sequence[OutputDifference]
    ) -> list[OutputDifference]:
        """The differences of onnxruntime, but those that the reference evaluator, which ran the
        first model, does not find: they are between the runtimes."""
        again = rows
        if not all(row.ok for row in rows):
            with suppress(VerificationError):  # it does not know the operators of onnxruntime
                again = self._differences(
                    reference_session(model, "second", VerificationError()), model
                )
        return [
            replace(b, reason=f"in onnxruntime, {a.reason or 'other values'}")
            if b.ok and not a.ok
            else a
            for a, b in zip(rows, again, strict=True)
        ]

    def _rows(self, position: int, got: Sequence[Any]) -> list[OutputDifference]:
        """The differences on one set of inputs."""
        expected = self.draws.sets[position].expected
        rows = [
            compare_outputs(name, a, b, self.criterion, random)
            for name, a, b, random in zip(
                self.names, expected, got, self._random[position], strict=True
            )
        ]
        values = dict(zip(self.names, zip(expected, got, strict=True), strict=True))
        return with_noise(rows, values, self.criterion, self._noise[position])


def _rank(row: OutputDifference) -> tuple[bool, float]:
    """Sorts differences: the refused ones are last, then the largest one."""
    return not row.ok, row.max_rel


def _random_results(model: ModelProto) -> set[str]:
    """The results of the main graph that depend on a random operator."""
    bodies = {(main_domain(f.domain), f.name): all_nodes(f.node) for f in model.functions}
    drawn: set[tuple[str, str]] = set()

    def draws(nodes: Sequence[NodeProto]) -> bool:
        calls = ((main_domain(n.domain), n.op_type) for n in nodes)
        return is_random(nodes) or not drawn.isdisjoint(calls)

    while new := {key for key, nodes in bodies.items() if key not in drawn and draws(nodes)}:
        drawn |= new
    found: set[str] = set()
    for node in model.graph.node:
        if draws(all_nodes([node])) or not found.isdisjoint(reads(node)):
            found.update(node.output)
    return found


def _largest(values: Iterator[float]) -> float:
    return max(values, default=0.0)


def _identical(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, list):
        return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))
    return compare_outputs("", a, b, Criterion(0, 0)).ok


def _check_signatures(names: list[str], feeds: Mapping[str, Any], other: Session) -> None:
    """Checks the second model gives the same outputs and takes the same inputs."""
    inputs, defaults, got = other.names
    if got != names:
        raise VerificationError(
            f"the outputs of the models are {names} and {got}, the same names in the same order "
            "are expected"
        )
    missing = [name for name in feeds if name not in inputs and name not in defaults]
    unknown = [name for name in inputs if name not in feeds]
    sides = {"first": missing, "second": unknown}
    found = [f"{which} only in the {side} one" for side, which in sides.items() if which]
    if found:
        raise VerificationError(f"the inputs of the models are not the same: {', '.join(found)}")
