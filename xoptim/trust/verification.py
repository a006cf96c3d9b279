"""Runs two models on the same inputs and measures the differences of their results."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import EncodeError

from xbuilder.errors import XoptimError
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import load_model
from xbuilder.files.model_formats import format_of
from xbuilder.files.writing.temporary_files import temporary_folder
from xbuilder.operators.op_traits import RANDOM

from ..reports.model_summary import iterate_nodes
from .random_inputs import candidate_sizes, open_dimensions, random_inputs
from .session_child import names_of, open_session
from .session_process import SessionProcess

#: a model, its serialized form, the path of its file, the container of a large model
Model = onnx.ModelProto | ModelContainer | bytes | str | Path

#: element types whose precision is below the default tolerance
_MINIMAL_RTOL = {"float16": 1e-2, "bfloat16": 5e-2}
#: smaller magnitudes of a result are replaced by this one in the comparison
_TINY = 1e-3


class VerificationError(XoptimError):
    """The models cannot be compared, or their results differ."""


@dataclass
class OutputDifference:
    """The difference between two versions of one output.

    :param output: name of the output
    :param dtype: element type in the first model
    :param shape: shape in the first model
    :param max_abs: largest absolute difference
    :param max_rel: largest difference relative to the expected value; values smaller than the
        mean magnitude of the output count for that mean
    :param ok: the difference is accepted
    :param reason: reason of the refusal, or a remark; empty otherwise
    """

    output: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float
    max_rel: float
    ok: bool
    reason: str = ""


@dataclass
class VerificationReport:
    """One row for each output, and the conditions of the comparison.

    :param rows: the differences, in the order of the outputs
    :param rtol: tolerance that was asked for
    :param sizes: size given to each dimension the model leaves open
    :param seed: seed of the random inputs, None when inputs were given
    """

    rows: list[OutputDifference]
    rtol: float
    sizes: dict[str, int] = field(default_factory=dict)
    seed: int | None = None

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
        return [{**asdict(row), "shape": list(row.shape)} for row in self.rows]

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
    rtol: float = 1e-4,
    providers: Sequence[str] | None = None,
    seed: int = 0,
    isolated: bool = False,
) -> VerificationReport:
    """Runs two models with onnxruntime on the same inputs and compares their outputs.

    Both run with onnxruntime's own optimizations disabled: the comparison is on the models as they
    are written. Without inputs, random ones are made; where the first model refuses them (a
    dimension that must be a multiple of 32, an index out of range) others are tried, unless `sizes`
    settles every dimension. Integers, booleans and strings must be equal. For floats, types and
    shapes must be equal, NaN and infinities at the same places, and
    ``|a - b| <= rtol * max(|a|, m)`` for each value where ``m`` is the mean magnitude of the
    expected output. `rtol` is at least 1e-2 for float16. Outputs of random operators are compared
    by type and shape only.

    :param before: the reference: a model, its bytes, or its path (needed for external data)
    :param after: the model to check
    :param inputs: inputs by name, random ones are made if None
    :param sizes: sizes for the dimensions the model leaves open
    :param rtol: relative tolerance
    :param providers: execution providers, CPU by default
    :param seed: seed of the random inputs
    :param isolated: onnxruntime runs in other processes: if it crashes, that is an error like
        another one, and other sizes are tried
    :return: one row by output
    :raises VerificationError: if one of the models cannot run, or if the names of inputs or
        outputs are not the same
    :raises OptionError: if `sizes` does not fit the model

    .. code-block:: python

        report = verify_models("model.onnx", optimized, sizes={"batch": 4})
        report.raise_if_different()
    """
    with ExitStack() as files:
        opener = _Opener(files, providers, isolated)
        return _verify(opener, before, after, inputs, sizes, rtol, seed)


def _verify(
    opener: _Opener,
    before: Model,
    after: Model,
    inputs: Mapping[str, Any] | None,
    sizes: Mapping[str, int] | None,
    rtol: float,
    seed: int,
) -> VerificationReport:
    reference = _load_structure(before)
    session = opener.open(before, "first")
    if inputs is None:
        feeds, expected, chosen = _first_run(session, reference, sizes, seed)
    else:
        chosen = {}
        feeds = dict(inputs)
        expected = _run(session, feeds, "first")
    names = session.names[2]
    again = _run(session, feeds, "first") if is_random(iterate_nodes(reference)) else expected
    session.close()
    other = opener.open(after, "second")
    _check_signatures(names, feeds, other)
    got = _run(other, feeds, "second", names)
    rows = [
        compare_outputs(name, a, b, rtol, random=not _identical(a, c))
        for name, a, b, c in zip(names, expected, got, again, strict=True)
    ]
    other.close()
    _add_rounding_remark(opener, before, feeds, dict(zip(names, expected, strict=True)), rows)
    return VerificationReport(rows, rtol, chosen, seed if inputs is None else None)


def _add_rounding_remark(
    opener: _Opener,
    before: Model,
    feeds: Mapping[str, Any],
    expected: Mapping[str, Any],
    rows: Sequence[OutputDifference],
) -> None:
    """Adds to the reasons the distance of the first model from itself when onnxruntime optimizes
    it, since a difference of this size may be the rounding of this model on these inputs."""
    wrong = [row for row in rows if not row.ok and 0 < row.max_rel < 1 and row.shape]
    if not wrong:
        return
    names = [row.output for row in wrong]
    try:
        session = opener.open(before, "first", optimized=True)
        got = _run(session, feeds, "first", names)
    except VerificationError:  # the behaviour of onnxruntime is another matter
        return
    session.close()
    for row, value in zip(wrong, got, strict=True):
        gap = compare_outputs(row.output, expected[row.output], value, math.inf).max_rel
        if 0 < gap < math.inf:
            row.reason += f" ({gap:.3g} when onnxruntime optimizes the first model alone)"


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
        session = _Opener(files, None, True).open(model, "first")
        return _first_run(session, _load_structure(model), sizes, seed)[0]


def compare_outputs(
    name: str, expected: Any, got: Any, rtol: float = 1e-4, random: bool = False
) -> OutputDifference:
    """Compares two versions of one output.

    :param name: name of the output
    :param expected: array, list of arrays (sequence), or None (optional)
    :param got: the other version
    :param rtol: relative tolerance
    :param random: compares types and shapes only
    :return: the difference
    """
    if isinstance(expected, list) and isinstance(got, list):
        return _compare_sequences(name, expected, got, rtol, random)
    if expected is None or got is None:
        same = expected is None and got is None
        reason = "" if same else "one is empty and not the other"
        gap = 0.0 if same else math.inf
        return OutputDifference(name, "optional", (), gap, gap, same, reason)
    a, b = np.asarray(expected), np.asarray(got)
    row = OutputDifference(name, str(a.dtype), a.shape, math.inf, math.inf, False)
    if a.dtype != b.dtype:
        row.reason = f"type {a.dtype} became {b.dtype}"
    elif a.shape != b.shape:
        row.reason = f"shape {a.shape} became {b.shape}"
    elif random:
        row.max_abs, row.max_rel, row.ok, row.reason = 0.0, 0.0, True, "random, shape only"
    else:
        _compare_values(row, a, b, rtol)
    return row


def _compare_sequences(
    name: str, expected: list[Any], got: list[Any], rtol: float, random: bool
) -> OutputDifference:
    row = OutputDifference(name, "sequence", (len(expected),), 0.0, 0.0, True)
    if len(expected) != len(got):
        row.max_abs, row.max_rel, row.ok = math.inf, math.inf, False
        row.reason = f"{len(expected)} elements became {len(got)}"
        return row
    for a, b in zip(expected, got, strict=True):
        element = compare_outputs(name, a, b, rtol, random)
        row.max_abs = max(row.max_abs, element.max_abs)
        row.max_rel = max(row.max_rel, element.max_rel)
        row.ok, row.reason = row.ok and element.ok, row.reason or element.reason
    return row


def _compare_values(row: OutputDifference, a: np.ndarray, b: np.ndarray, rtol: float) -> None:
    """Fills the row with the differences between two arrays of same type and shape."""
    if a.size == 0:
        row.max_abs, row.max_rel, row.ok = 0.0, 0.0, True
        return
    if a.dtype.kind not in "fc" and a.dtype.name not in _MINIMAL_RTOL:
        different = int(np.count_nonzero(a != b))
        row.ok = different == 0
        row.reason = "" if row.ok else f"{different} of {a.size} values differ"
        row.max_abs = row.max_rel = 0.0
        if a.dtype.kind in "iu" and different:
            gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
            row.max_abs = float(gap.max())
            row.max_rel = float((gap / np.maximum(np.abs(a.astype(np.float64)), 1)).max())
        elif different:
            row.max_abs = row.max_rel = 1.0
        return
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    # infinities match infinities of the same sign, NaN match NaN; the rest has a difference
    special = ~(np.isfinite(x) & np.isfinite(y))
    mismatch = int(np.count_nonzero(special & ~((x == y) | (np.isnan(x) & np.isnan(y)))))
    if mismatch:
        row.reason = f"{mismatch} of {a.size} values are NaN or infinite in one model only"
        return
    x, y = x[~special], y[~special]
    if x.size == 0:
        row.max_abs, row.max_rel, row.ok = 0.0, 0.0, True
        return
    gap, size = np.abs(x - y), np.abs(x)
    row.max_abs = float(gap.max())
    row.max_rel = float((gap / np.maximum(size, max(float(size.mean()), _TINY))).max())
    limit = max(rtol, _MINIMAL_RTOL.get(a.dtype.name, 0.0))
    row.ok = row.max_rel <= limit
    if not row.ok:
        row.reason = f"relative difference {row.max_rel:.3g} is over {limit:g}"


def _largest(values: Iterator[float]) -> float:
    return max(values, default=0.0)


def _identical(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, list):
        return len(a) == len(b) and all(_identical(x, y) for x, y in zip(a, b, strict=True))
    return compare_outputs("", a, b, 0.0).ok


def is_random(nodes: Iterable[onnx.NodeProto]) -> bool:
    """Whether one of the nodes is random."""
    return any(
        node.op_type in RANDOM or (node.op_type == "Dropout" and len(node.input) > 2)
        for node in nodes
    )


def _load_structure(model: Model) -> onnx.ModelProto:
    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, ModelContainer):
        return model.proto
    if isinstance(model, bytes):
        return onnx.load_from_string(model)
    return load_model(model, check_data=False).proto


@dataclass
class _Session:
    """A session of onnxruntime, in this process or in another one."""

    session: Any
    #: inputs, inputs with a default value, outputs
    names: tuple[list[str], list[str], list[str]]

    def close(self) -> None:
        """Frees the memory of the model."""
        if isinstance(self.session, SessionProcess):
            self.session.close()
        self.session = None


@dataclass
class _Opener:
    """Opens sessions; their processes and temporary files live until *files* is closed."""

    files: ExitStack
    providers: Sequence[str] | None
    isolated: bool

    def open(self, model: Model, which: str, optimized: bool = False) -> _Session:
        source = self._source(model, which)
        providers = list(self.providers or ())
        try:
            if self.isolated:
                process = SessionProcess(source, providers, optimized)
                self.files.callback(process.close)
                return _Session(process, (process.inputs, process.defaults, process.outputs))
            session = open_session(source, providers, optimized)
            return _Session(session, names_of(session))
        except Exception as e:
            raise VerificationError(
                f"onnxruntime does not load the {which} model: {_short(e)}"
            ) from e

    def _source(self, model: Model, which: str) -> bytes | str:
        """The model as onnxruntime reads it: bytes, or a path."""
        if isinstance(model, str | Path) and format_of(model) != "binary":
            model = ModelContainer.load(model)  # onnxruntime reads no text format
        if isinstance(model, ModelContainer):
            folder = self.files.enter_context(temporary_folder(tempfile.gettempdir(), "xoptim"))
            return model.save(Path(folder) / "model.onnx")[-1]
        if not isinstance(model, onnx.ModelProto):
            return model if isinstance(model, bytes) else str(model)
        try:
            content: bytes = model.SerializeToString()
            return content
        except (EncodeError, ValueError) as e:
            raise VerificationError(
                f"the {which} model is too large to be verified in memory, give its path: {e}"
            ) from e


def _run(
    session: _Session, feeds: Mapping[str, Any], which: str, names: list[str] | None = None
) -> list[Any]:
    try:
        results: list[Any] = session.session.run(names, dict(feeds))
        return results
    except Exception as e:
        raise VerificationError(f"onnxruntime does not run the {which} model: {_short(e)}") from e


def _short(error: Exception) -> str:
    """First line of an error of onnxruntime, which may be followed by pages."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:400]


def _first_run(
    session: _Session, model: onnx.ModelProto, sizes: Mapping[str, int] | None, seed: int
) -> tuple[dict[str, Any], list[Any], dict[str, int]]:
    """Looks for inputs that the reference accepts.

    :return: inputs, outputs, sizes
    """
    first_error: VerificationError | None = None
    for chosen, high in candidate_sizes(model, sizes):
        feeds = random_inputs(model, chosen, seed, integer_high=high)
        try:
            return feeds, _run(session, feeds, "first"), chosen
        except VerificationError as e:
            first_error = first_error or e
    raise VerificationError(
        f"{first_error}; give sizes to the dimensions {open_dimensions(model)} (--dim NAME=SIZE "
        "on the command line) or real inputs"
    )


def _check_signatures(names: list[str], feeds: Mapping[str, Any], other: _Session) -> None:
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
