"""Runs two models on the same inputs and measures the differences of their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import onnx

from xbuilder.operators.op_traits import RANDOM
from xbuilder.tensors.closeness import ATOL, RTOL, Criterion

from ..reports.model_summary import iterate_nodes
from .noise import Roundings, roundings_of
from .outputs import OutputDifference, compare_outputs
from .random_inputs import candidate_sizes, open_dimensions, random_inputs
from .runtime import Model, Opener, Session, VerificationError, structure_of

__all__ = [
    "Model",
    "OutputDifference",
    "VerificationError",
    "VerificationReport",
    "accepted_inputs",
    "compare_outputs",
    "is_random",
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
    """

    rows: list[OutputDifference]
    rtol: float
    sizes: dict[str, int] = field(default_factory=dict)
    seed: int | None = None
    atol: float = ATOL

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
    inputs: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    rtol: float = RTOL,
    providers: Sequence[str] | None = None,
    seed: int = 0,
    isolated: bool = False,
    atol: float = ATOL,
) -> VerificationReport:
    """Runs two models with onnxruntime on the same inputs and compares their outputs.

    Both run with onnxruntime's own optimizations disabled: the comparison is on the models as they
    are written. Without inputs, random ones are made; where the first model refuses them (a
    dimension that must be a multiple of 32, an index out of range) others are tried, unless `sizes`
    settles every dimension. Types, shapes and values are compared as
    :class:`xbuilder.tensors.closeness.Criterion` says; the noise of the first model is its distance
    from itself when onnxruntime optimizes it, or computes it with doubles. Outputs of random
    operators are compared by type and shape only.

    :param before: the reference: a model, its bytes, or its path (needed for external data)
    :param after: the model to check
    :param inputs: inputs by name, random ones are made if None
    :param sizes: sizes for the dimensions the model leaves open
    :param rtol: relative tolerance
    :param providers: execution providers, CPU by default
    :param seed: seed of the random inputs
    :param isolated: onnxruntime runs in other processes: if it crashes, that is an error like
        another one, and other sizes are tried
    :param atol: absolute tolerance
    :return: one row by output
    :raises VerificationError: if one of the models cannot run, or if the names of inputs or
        outputs are not the same
    :raises OptionError: if `sizes` does not fit the model

    .. code-block:: python

        report = verify_models("model.onnx", optimized, sizes={"batch": 4})
        report.raise_if_different()
    """
    with ExitStack() as files:
        opener = Opener(files, providers, isolated)
        return _verify(opener, before, after, inputs, sizes, Criterion(rtol, atol), seed)


def _verify(
    opener: Opener,
    before: Model,
    after: Model,
    inputs: Mapping[str, Any] | None,
    sizes: Mapping[str, int] | None,
    criterion: Criterion,
    seed: int,
) -> VerificationReport:
    reference = structure_of(before)
    session = opener.open(before, "first")
    if inputs is None:
        feeds, expected, chosen = _first_run(session, reference, sizes, seed)
    else:
        chosen = {}
        feeds = dict(inputs)
        expected = session.run(feeds)
    names = session.names[2]
    again = session.run(feeds) if is_random(iterate_nodes(reference)) else expected
    session.close()
    other = opener.open(after, "second")
    _check_signatures(names, feeds, other)
    got = other.run(feeds, names)
    rows = [
        compare_outputs(name, a, b, criterion, random=not _identical(a, c))
        for name, a, b, c in zip(names, expected, got, again, strict=True)
    ]
    other.close()
    values = dict(zip(names, zip(expected, got, strict=True), strict=True))
    rows = _with_noise(rows, values, criterion, roundings_of(opener, before, feeds))
    return VerificationReport(
        rows, criterion.rtol, chosen, seed if inputs is None else None, criterion.atol
    )


def _with_noise(
    rows: Sequence[OutputDifference],
    values: Mapping[str, tuple[Any, Any]],
    criterion: Criterion,
    roundings: Roundings,
) -> list[OutputDifference]:
    """Compares again the outputs that are refused, with the noise of the first model."""
    found = {row.output: row for row in rows}
    noisy: dict[str, list[Any]] = {row.output: [] for row in rows if row.is_rounding}
    for others in roundings(list(noisy)) if noisy else ():
        for name, value in others.items():
            noisy[name].append(value)
            found[name] = compare_outputs(name, *values[name], criterion, noisy=noisy[name])
        if all(found[name].ok for name in noisy):
            break
    return [found[row.output] for row in rows]


def accepted_inputs(
    model: Model, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, Any]:
    """Makes random inputs that a model accepts, as :func:`verify_models` does.

    :param model: the model, onnxruntime runs it in another process
    :param sizes: sizes for the dimensions the model leaves open
    :param seed: seed of the random inputs
    :raises VerificationError: the model cannot run
    """
    with ExitStack() as files:
        session = Opener(files, None, True).open(model, "first")
        return _first_run(session, structure_of(model), sizes, seed)[0]


def _largest(values: Iterator[float]) -> float:
    return max(values, default=0.0)


def _identical(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, list):
        return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))
    return compare_outputs("", a, b, Criterion(0, 0)).ok


def is_random(nodes: Iterable[onnx.NodeProto]) -> bool:
    """Whether one of the nodes is random."""
    return any(
        node.op_type in RANDOM or (node.op_type == "Dropout" and len(node.input) > 2)
        for node in nodes
    )


def _first_run(
    session: Session, model: onnx.ModelProto, sizes: Mapping[str, int] | None, seed: int
) -> tuple[dict[str, Any], list[Any], dict[str, int]]:
    """Looks for inputs that the reference accepts.

    :return: inputs, outputs, sizes
    """
    first_error: VerificationError | None = None
    for chosen, high in candidate_sizes(model, sizes):
        feeds = random_inputs(model, chosen, seed, integer_high=high)
        try:
            return feeds, session.run(feeds), chosen
        except VerificationError as e:
            first_error = first_error or e
    raise VerificationError(
        f"{first_error}; give sizes to the dimensions {open_dimensions(model)} (--dim NAME=SIZE "
        "on the command line) or real inputs"
    )


def _check_signatures(names: list[str], feeds: Mapping[str, Any], other: Session) -> None:
    """Checks the second model gives the same outputs and takes the same inputs."""
    inputs, defaults, got = other.names
    if got != names:
        raise VerificationError(f"the outputs of the models are {names} and {got}")
    missing = [name for name in feeds if name not in inputs and name not in defaults]
    unknown = [name for name in inputs if name not in feeds]
    if missing or unknown:
        raise VerificationError(
            f"the inputs of the models are not the same: {missing} only in the first one, "
            f"{unknown} only in the second one"
        )
