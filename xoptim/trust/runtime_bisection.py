"""Finds which of onnxruntime's own optimizations changes the results of a model."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xbuilder.errors import XoptimError
from xbuilder.runtimes.custom_operators import custom_libraries
from xbuilder.runtimes.sessions import quiet_options
from xbuilder.tensors.closeness import ATOL, RTOL, Criterion

from .inputs.draws import accepted_draws
from .noise import double_results, with_noise
from .sessions.runtime import container_of
from .sessions.session_child import ArraySession
from .verification import VerificationReport, compare_outputs

#: what onnxruntime logs when one of its optimizers changed something
_MODIFIED = re.compile(r"GraphTransformer (\S+) modified: 1")
#: opens a session that logs them
_LOG = """import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 0
for library in sys.argv[2:]:
    options.register_custom_ops_library(library)
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""


class RuntimeOptimizationError(XoptimError):
    """onnxruntime does not load a model, or does not say what it did.

    Example::

        >>> from xoptim.testing import model_from_text
        >>> wrong = model_from_text("agraph (float[2] x) => (float[2] y) { y = NoSuchOperator(x) }")
        >>> import onnx, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     onnx.save(wrong, f"{folder}/wrong.onnx")
        ...     try:
        ...         runtime_optimizers(f"{folder}/wrong.onnx")
        ...     except RuntimeOptimizationError as e:
        ...         print("NoSuchOperator" in str(e))
        True
    """


@dataclass
class RuntimeBisection:
    """The optimizers of onnxruntime that change a model, and those that change its results.

    :param applied: the optimizers that changed the model, in order
    :param runs: number of sessions that were compared
    :param report: comparison of the results without any of them and with all of them
    :param wrong: a smallest set of optimizers that makes the difference, empty if there is none

    Example::

        >>> import onnx, tempfile
        >>> from xoptim.testing import model_from_text
        >>> model = model_from_text("agraph (float[4] x) => (float[4] y) { y = Abs(x) }")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     onnx.save(model, f"{folder}/model.onnx")
        ...     found = bisect_runtime(f"{folder}/model.onnx")
        >>> found.applied, found.wrong, found.report.ok
        ((), (), True)
    """

    applied: tuple[str, ...]
    runs: int
    report: VerificationReport
    wrong: tuple[str, ...] = ()


def runtime_optimizers(model: str | Path) -> tuple[str, ...]:
    """The optimizers of onnxruntime that change a model, in order, each of them once.

    onnxruntime loads the model in another process, whose log is read.

    :param model: a file
    :raises RuntimeOptimizationError: onnxruntime refuses the model

    ::

        runtime_optimizers("model.onnx")  # ('Level1_RuleBasedTransformer', 'ConstantFolding')
    """
    command = [sys.executable, "-c", _LOG, str(model), *custom_libraries()]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise RuntimeOptimizationError(f"onnxruntime does not load {model}: {lines[-1]}")
    return tuple(dict.fromkeys(_MODIFIED.findall(done.stderr)))


def bisect_runtime(
    model: str | Path,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    rtol: float = RTOL,
    seed: int = 0,
    atol: float = ATOL,
) -> RuntimeBisection:
    """Looks for the optimizers of onnxruntime that change the results of a model.

    The results without any optimization are the reference, within their distance from those
    computed with doubles. Where they differ, the optimizers that are not needed for the difference
    are enabled one after the other.

    :param model: a file
    :param inputs: see :func:`xoptim.trust.verification.verify_models`
    :param sizes: sizes of the dimensions the model leaves open
    :param rtol: relative tolerance
    :param seed: seed of the random inputs
    :param atol: absolute tolerance
    :return: the optimizers and the comparison
    :raises RuntimeOptimizationError: onnxruntime refuses the model
    :raises VerificationError: the model cannot run

    .. code-block:: python

        done = bisect_runtime("model.onnx", rtol=1e-5)
        print(done.wrong)  # ('ConvActivationFusion',)
    """
    draws = accepted_draws(model, inputs, sizes, seed)
    applied = runtime_optimizers(model)
    runs = 0
    for one in draws.sets:
        search = _Search(model, one.feeds, Criterion(rtol, atol), seed)
        report = replace(search.compare(()), never_ran=draws.never_ran)
        runs += search.runs
        if not report.ok:
            break
    else:
        return RuntimeBisection(applied, runs, report)
    disabled: list[str] = []
    for name in applied:
        if not search.compare((*disabled, name)).ok:
            disabled.append(name)  # not needed for the difference
    wrong = tuple(name for name in applied if name not in disabled)
    return RuntimeBisection(applied, runs - 1 + search.runs, report, wrong)


class _Search:
    """Runs a model with some of the optimizers of onnxruntime.

    :param model: a file
    :param feeds: inputs by name
    :param criterion: what is accepted
    :param seed: the seed that made the inputs
    """

    def __init__(
        self, model: str | Path, feeds: Mapping[str, Any], criterion: Criterion, seed: int
    ):
        self.model, self.feeds, self.criterion, self.seed = str(model), feeds, criterion, seed
        self.names, self.expected = self._run(None)
        self.runs = 0
        self._doubles: Mapping[str, Any] | None = None

    def compare(self, disabled: Collection[str]) -> VerificationReport:
        """Compares the results with some optimizers disabled with those without optimization."""
        self.runs += 1
        got = self._run(disabled)[1]
        values = dict(zip(self.names, zip(self.expected, got, strict=True), strict=True))
        rows = [compare_outputs(name, a, b, self.criterion) for name, (a, b) in values.items()]
        rows = with_noise(rows, values, self.criterion, self._roundings())
        return VerificationReport(rows, self.criterion.rtol, {}, self.seed)

    def _roundings(self) -> Iterator[Mapping[str, Any]]:
        """The results with doubles: what the optimizers change below their distance is noise."""
        if self._doubles is None:
            try:
                self._doubles = double_results(container_of(self.model), self.feeds, self.names)
            except (XoptimError, MemoryError):  # a node that does not run alone
                self._doubles = {}
        yield self._doubles

    def _run(self, disabled: Collection[str] | None) -> tuple[Sequence[str], Sequence[Any]]:
        """The names of the outputs and their values.

        :param disabled: optimizers that are not run, None to run none at all
        """
        import onnxruntime

        options = quiet_options()
        if disabled is None:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        opened = onnxruntime.InferenceSession(
            self.model,
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=sorted(disabled or ()),
        )
        session = ArraySession(opened)
        return session.names[2], session.run(None, self.feeds)
