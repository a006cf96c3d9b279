"""Finds the rewrite that changes the results of a model, by bisection over the rewrites, then in
the window of each of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.writing.temporary_files import temporary_folder
from xbuilder.tensors.closeness import ATOL, RTOL, Criterion

from ..authoring.rewriters import Member
from ..engine.endless import EndlessError
from .inputs.coverage import Unverified, unverified
from .rewrite_places import RewritePlaces
from .sessions.runtime import Opener, VerificationError
from .verification import Reference, VerificationReport
from .windows.certificates import Summary
from .windows.sessions import shared_sessions
from .windows.validation import Validation, WrongRewriteError


@dataclass
class WrongRewrite:
    """The first rewrite after which the results differ.

    :param position: number of rewrites applied, this one included; 0 when the results differ
        before any pattern: a pass is to blame
    :param patterns: name of the pattern; several when subgraphs are rewritten as well, since each
        graph counts its own rewrites
    :param reason: the difference, or the rule of the engine that the rewrite breaks
    :param report: the comparison, None if the optimized model does not run
    :param files: the rewrite as small models, before and after, if a folder was given

    Example::

        >>> wrong = WrongRewrite(12, ["NotNot"], "relative difference 0.5 is over 0.0001")
        >>> f"rewrite {wrong.position}, {wrong.patterns[0]}: {wrong.reason}"
        'rewrite 12, NotNot: relative difference 0.5 is over 0.0001'
    """

    position: int
    patterns: list[str]
    reason: str
    report: VerificationReport | None = None
    files: list[Path] = field(default_factory=list)


@dataclass
class Bisection:
    """The search for a wrong rewrite, and its result.

    :param rewrites: number of rewrites of the optimized model
    :param runs: number of models that were made and compared with the first one
    :param report: comparison of the model with every rewrite, None if it does not run
    :param wrong: the rewrite to blame, None if none was found
    :param unverified: the bodies that never ran, and the rewrites in them
    :param windows: the certificates of the rewrites, checked in their windows when the results of
        the whole model do not differ

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (bool[4] x) => (bool[4] y) { a = Not(x)  b = Not(a)  y = Not(b) }"
        >>> found = bisect_rewrites(model_from_text(text))
        >>> found.rewrites, found.wrong, found.report.ok
        (1, None, True)
    """

    rewrites: int
    runs: int
    report: VerificationReport | None
    wrong: WrongRewrite | None = None
    unverified: list[Unverified] = field(default_factory=list)
    windows: Summary = field(default_factory=Summary)


class _Search:
    """Optimizes a model with a limited number of rewrites and compares the results."""

    def __init__(
        self,
        model: onnx.ModelProto | str | Path,
        patterns: Any,
        folder: Path,
        assumed: Mapping[str, Any],
        keep_functions: bool,
        reference: Reference,
    ):
        self.model, self.patterns, self.folder = model, patterns, folder
        self.reference = reference
        self.assumed, self.keep_functions = assumed, keep_functions
        self.runs = 0
        #: rows of the statistics of the last optimization
        self.rows: list[dict[str, Any]] = []

    def optimize(
        self, stop_after: int, dump: bool = False, **more: Any
    ) -> tuple[ModelContainer, list[dict[str, Any]]]:
        options = OptimizationOptions(
            patterns=self.patterns,
            stop_after=stop_after,
            dump_applied_patterns=str(self.folder) if dump else None,
            **self.assumed,
            **more,
        )
        model = self.model if isinstance(self.model, onnx.ModelProto) else str(self.model)
        builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
        optimized: tuple[ModelContainer, list[dict[str, Any]]]
        optimized = builder.to_onnx(
            large_model=True, return_optimize_report=True, inline=not self.keep_functions
        )
        return optimized

    def difference(self, stop_after: int, **more: Any) -> tuple[str, VerificationReport | None]:
        """The reason why results differ after this number of rewrites, empty if they do not."""
        self.runs += 1
        optimized, self.rows = self.optimize(stop_after, **more)
        try:
            report = self.reference.compare(optimized)
        except VerificationError as e:
            return str(e), None
        return report.reason, report

    def blamed(self, position: int) -> list[dict[str, Any]]:
        """The row of the last rewrite when this number of them is applied."""
        rows = applied_rows(self.optimize(position, dump=True)[1])
        return rows[-1:] if len(rows) == position else []

    def first_wrong(
        self,
        count: int,
        found: tuple[str, VerificationReport | None],
        kept: str | Path | None,
    ) -> WrongRewrite:
        """The first wrong rewrite of a model that is wrong after *count* of them.

        :param count: number of rewrites
        :param found: the difference after all of them
        :param kept: where the rewrite is written as small models
        """
        first = self.difference(0)
        if first[0]:
            return WrongRewrite(0, [], *first)
        right, wrong = 0, max(1, count)
        # invariant: results are the same after `right` rewrites, they are not after `wrong`
        while wrong - right > 1:
            middle = (right + wrong) // 2
            difference = self.difference(middle)
            if difference[0]:
                wrong, found = middle, difference
            else:
                right = middle
        rows = self.blamed(wrong)
        names = list(dict.fromkeys(r["pattern"].removeprefix("apply_") for r in rows))
        files = _keep_models(rows, self.folder, Path(kept)) if kept is not None else []
        return WrongRewrite(wrong, names, *found, files)

    def run(self, kept: str | Path | None) -> Bisection:
        """Looks for a wrong rewrite by the results of the model, then in the windows.

        :param kept: where the rewrite is written as small models
        """
        places = RewritePlaces()
        try:
            reason, report = self.difference(-1, features=[places])
        except PatternError:  # it never ends, or breaks a rule of the engine
            wrong, windows = self.wrong_window(kept)
            if wrong is None:
                raise
            return Bisection(wrong.position, self.runs, None, wrong, windows=windows)
        done = Bisection(len(applied_rows(self.rows)), 1, report)
        done.unverified = unverified(self.reference.draws.never_ran, places.results)
        if reason:
            done.wrong = self.first_wrong(done.rewrites, (reason, report), kept)
            done.runs = self.runs
        elif done.rewrites:
            done.wrong, done.windows = self.wrong_window(kept)
        return done

    def wrong_window(self, kept: str | Path | None) -> tuple[WrongRewrite | None, Summary]:
        """The first rewrite that is wrong in its window, or that breaks a rule of the engine, and
        the certificates of all of them.

        :param kept: where the two sides of the window are written, with the inputs that show it
        """
        shared_sessions().start(self.reference.opener.idle)
        validation, failed = Validation(kept), list[str]()

        def stop(error: PatternError, rewrite: Member) -> None:
            if not isinstance(error, EndlessError):  # it is put back, others may be wrong
                failed.append(rewrite.name)
                raise error

        try:
            self.optimize(-1, features=[validation], on_failure=stop)
        except PatternError as e:
            if failed:
                count = len(validation.summary.certificates)
                position = count if isinstance(e, WrongRewriteError) else count + 1
                files = [] if kept is None else sorted(Path(kept).rglob("*.*"))
                wrong = WrongRewrite(position, failed[:1], str(e), files=files)
                return wrong, validation.summary
        return None, validation.summary


def applied_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keeps the rows of the statistics that stand for one applied rewrite, in order.

    >>> applied_rows([{"pattern": "match_Cast"}, {"pattern": "apply_Cast", "instances": 1}])
    [{'pattern': 'apply_Cast', 'instances': 1}]
    """
    return [r for r in rows if str(r["pattern"]).startswith("apply_") and r.get("instances")]


def bisect_rewrites(
    model: onnx.ModelProto | str | Path,
    patterns: Any = "default",
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    rtol: float = RTOL,
    seed: int = 0,
    folder: str | Path | None = None,
    isolated: bool = False,
    trust_shapes: bool = False,
    keep_functions: bool = False,
    atol: float = ATOL,
    positive_dims: bool | Sequence[str] = False,
) -> Bisection:
    """Looks for the first rewrite that changes the results of a model, reports the comparisons.

    It runs about ``log2(number of rewrites)`` times, then each rewrite in its own window.

    :param model: a model or its path
    :param patterns: a selection of patterns
    :param inputs: see :func:`xoptim.trust.verification.verify_models`, as for the next ones
    :param sizes: sizes of the dimensions that the model leaves open
    :param rtol: relative tolerance
    :param seed: seed of the random inputs
    :param folder: where the rewrite is written as small models, before and after; it is created
    :param isolated: see :func:`xoptim.trust.verification.verify_models`
    :param trust_shapes: see :class:`xbuilder.OptimizationOptions`
    :param keep_functions: local functions are optimized where they are, not inlined
    :param atol: see :func:`xoptim.trust.verification.verify_models`
    :param positive_dims: see :class:`xbuilder.OptimizationOptions`
    :return: the wrong rewrite, if any, and the comparisons
    :raises VerificationError: if the original model does not run
    :raises EndlessError: if the rewrites never end, and none of them is wrong in its window

    .. code-block:: python

        done = bisect_rewrites("model.onnx", "default+onnxruntime", folder="wrong")
        print(done.rewrites, done.runs, done.wrong)
    """
    with ExitStack() as files, temporary_folder(tempfile.gettempdir(), "xoptim") as name:
        opener = Opener(files, isolated=isolated)
        # fails if the original model does
        reference = Reference(opener, model, inputs, sizes, Criterion(rtol, atol), seed)
        assumed = {"trust_shapes": trust_shapes, "positive_dims": positive_dims}
        return _Search(model, patterns, Path(name), assumed, keep_functions, reference).run(folder)


def find_wrong_rewrite(
    model: onnx.ModelProto | str | Path, patterns: Any = "default", **options: Any
) -> WrongRewrite | None:
    """Looks for the first rewrite that changes the results of a model.

    :param model: a model or its path
    :param patterns: a selection of patterns
    :param options: those of :func:`bisect_rewrites`
    :return: the rewrite, None if all of them are right
    :raises VerificationError: if the original model does not run

    .. code-block:: python

        wrong = find_wrong_rewrite("model.onnx", "default+onnxruntime", folder="wrong")
        if wrong:
            print(wrong.patterns, wrong.reason)
    """
    return bisect_rewrites(model, patterns, **options).wrong


def _keep_models(rows: list[dict[str, Any]], dumped: Path, folder: Path) -> list[Path]:
    """Copies the small models of some rewrites out of all the dumped ones."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = []
    for row in rows:
        name = row["pattern"].removeprefix("apply_")
        stem = f"{name}_{row['iteration']:03d}_{row['match_index']:04d}"
        for suffix in ("before", "after"):
            source = dumped / f"{stem}_{suffix}.onnx"
            if source.exists():
                kept.append(folder / source.name)
                shutil.copyfile(source, kept[-1])
    return kept
