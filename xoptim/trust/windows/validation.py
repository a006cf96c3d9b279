"""An observer of the engine that checks every rewrite in its own window, when it happens."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from xbuilder.errors import PatternError
from xbuilder.graph.features import Feature

from ...authoring.rewriters import Member
from ...engine.engine import Engine
from ...engine.observers import Observer
from ...engine.outcomes import Application
from .certificates import RIGHT, ROUNDS, WRONG, Certificate, Summary
from .checking import Outcome, check_window
from .keys import WindowKeys
from .narrowing import narrow_window
from .programs import is_invalid
from .same_nodes import has_same_nodes
from .sessions import shared_sessions
from .sizes import Sizes
from .window import Window, window_of

#: number of levels of producers that are added before the next check, and whether they include the
#: expensive ones: those near, which often agree with the rewrite at once, then those further
_NEAR: tuple[tuple[int, bool], ...] = ((2, False),)
_FAR = ((2, False), (2, True), (8, False), (8, True), (64, False), (100_000, True))
#: a window that differs on larger inputs, in bytes, is checked again
_KEPT_BYTES = 1 << 20
#: levels of readers that are added
_READERS = 4


class WrongRewriteError(PatternError):
    """A rewrite does not compute what the nodes it removed do."""


@dataclass
class _Checked:
    """The last check of a window, and the window then."""

    outcome: Outcome
    window: Window


class Validation(Observer):
    """Checks every rewrite: the nodes it removed and those it wrote run as two small models.

    Their free results are inputs, with several sizes and several kinds of values. If the sides
    differ, or do not run, the producers of these inputs are added, until they agree: a rewrite may
    rely on what is known of its inputs. A rewrite that still differs raises an error, is undone,
    and goes to `on_failure`. Two windows that are equal but for the names are checked once, those
    that only have other weights or other sizes are run on fewer values.

    :param folder: receives the two models of a wrong rewrite and the inputs that show it

    ::

        validation = Validation()
        options = OptimizationOptions(patterns="default", features=[validation])
        GraphBuilder(model, optimization_options=options).optimize()
        print(validation.summary.text())
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None):
        self.folder = None if folder is None else Path(folder)
        self.summary = Summary()
        self._known: dict[bytes, Outcome] = {}
        #: keys of the windows that are right, without their weights and their sizes
        self._right: set[bytes] = set()
        #: the reference evaluator does not judge the differences of the runtime yet
        self._hasty = True
        #: sizes that show a difference in a smaller window, by symbol
        self._shown: Sizes = {}
        shared_sessions().start()  # onnxruntime is imported while the model is

    def replaced(self, engine: Engine, done: Application) -> None:
        """Checks a rewrite.

        :raises WrongRewriteError: it is wrong
        """
        begin = time.perf_counter()
        pattern = done.match.pattern
        certificate = Certificate(pattern.name, _first_result(done))
        certificate.nodes = len(done.removed), len(done.written())
        checked = self._check(window_of(engine.graph, done), pattern, certificate, done)
        outcome, window = checked.outcome, checked.window
        certificate.take(outcome)
        certificate.around = len(window.producers)
        if outcome.status in (RIGHT, ROUNDS):
            certificate.verdict = outcome.status
        elif outcome.status == "differs" and outcome.found is not None:
            if certificate.repeated:  # with its own names
                outcome = check_window(window, pattern, bool(window.around))
            certificate.verdict = WRONG
            certificate.reason = outcome.found.reason if outcome.found else outcome.reason
        else:
            certificate.reason = outcome.reason
        certificate.seconds = time.perf_counter() - begin
        self.summary.certificates.append(certificate)
        done.certificate = certificate.columns()
        if certificate.verdict == WRONG:
            raise WrongRewriteError(self._message(done, window, outcome))

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Records the changes a rewriter made to the graph by itself, which have no window."""
        if done.refusal or done.certificate:
            return
        certificate = Certificate(done.match.pattern.name, _first_result(done))
        certificate.reason = "it changes the graph by itself"
        self.summary.certificates.append(certificate)

    # -- the check

    def _check(
        self, window: Window, member: Member, certificate: Certificate, done: Application
    ) -> _Checked:
        """Checks a window, without the reference evaluator at first: it is slow, and more nodes
        explain nearly all the differences of the runtime."""
        self._hasty, self._shown = True, {}
        checked = self._grown(window, member, certificate, done)
        if checked.outcome.status not in (RIGHT, ROUNDS):
            self._hasty = False
            checked = self._grown(window_of(window.graph, done), member, certificate, done)
        return checked

    def _grown(
        self, window: Window, member: Member, certificate: Certificate, done: Application
    ) -> _Checked:
        """Checks a window, then with the nodes that give its inputs, then with those that read its
        results, then with more and more of the first ones, until both sides agree."""
        first = self._at_level(window, member, certificate)
        near = self._with_producers(window, first, member, certificate, _NEAR)
        if first.status == near.status == "differs":
            wider = window_of(window.graph, done)
            last = self._with_readers(wider, first, member, certificate)
            if last.status != "differs":
                return _Checked(last, wider)
        last = self._with_producers(window, near, member, certificate, _FAR)
        if last.status == "differs":
            wider = replace(
                window, around=dict(window.around), constants=dict(window.constants), readers=[]
            )
            other = self._with_readers(wider, last, member, certificate, True)
            if other.status != "differs":
                return _Checked(other, wider)
            last = self._whole(window, last, member, certificate)
        if last.status == "blocked" and first.found is not None:
            start = window_of(window.graph, done)
            if is_invalid(start.model(1)) and not is_invalid(start.model(0)):
                return _Checked(first, start)
            last.reason = f"on free inputs, {first.found.reason}; but {last.reason}"
        return _Checked(last, window)

    def _with_readers(
        self,
        window: Window,
        last: Outcome,
        member: Member,
        certificate: Certificate,
        is_whole: bool = False,
    ) -> Outcome:
        """Checks a window with the readers of its results, a few levels of them, and all their
        producers if the window has its own. A rewrite may change a result that is only read where
        the change does not count."""
        for _ in range(_READERS):
            if last.status != "differs" or not window.grow_forward():
                break
            if is_whole:
                window.grow(True, sys.maxsize, sys.maxsize)
            found = self._at_level(window, member, certificate, False)
            if found.status == "blocked":
                break
            last = found
        return self._whole(window, last, member, certificate)

    def _whole(
        self, window: Window, last: Outcome, member: Member, certificate: Certificate
    ) -> Outcome:
        """Checks all the rows of a window whose samples differ."""
        if last.status == "differs" and "rows" in last.methods:
            return self._remembered(window, window, member, certificate)
        return last

    def _with_producers(
        self,
        window: Window,
        last: Outcome,
        member: Member,
        certificate: Certificate,
        growths: Sequence[tuple[int, bool]],
    ) -> Outcome:
        """Checks a window with the producers of its inputs, more and more of them."""
        for times, heavy in growths:
            if last.status in (RIGHT, ROUNDS) or not _may_change(last):
                break
            size = len(window.around)
            window.grow(heavy, times)
            if len(window.around) > size:
                last = self._at_level(window, member, certificate, False)
        return last

    def _at_level(
        self, window: Window, member: Member, certificate: Certificate, is_last: bool = True
    ) -> Outcome:
        """Checks a window as it is. The rows of large weights and inputs are sampled, all of them
        are taken if the samples do not run, or if they differ and the window does not grow."""
        if has_same_nodes(window):
            return Outcome("right", {"nodes": None})
        narrow = narrow_window(window)
        if narrow is not None:
            outcome = self._remembered(narrow, window, member, certificate)
            if outcome.status in (RIGHT, ROUNDS) or (outcome.status == "differs" and not is_last):
                return outcome
        return self._remembered(window, window, member, certificate)

    def _remembered(
        self, window: Window, whole: Window, member: Member, certificate: Certificate
    ) -> Outcome:
        """Checks a window, or remembers an equal one.

        :param whole: the window it is a sample of, itself if it is none
        """
        large = not window.inputs() or bool(window.around)
        keys = WindowKeys(window, member, (large, self._hasty), self._shown)
        key = keys.whole
        known = self._known.get(key)
        certificate.repeated = known is not None
        if known is None:
            brief = keys.family in self._right
            known = check_window(window, member, large, brief, self._hasty, self._shown)
            if brief:
                known.methods["alike"] = None
            elif known.status in (RIGHT, ROUNDS):
                self._right.add(keys.family)
            if window is not whole:
                known.methods["rows"] = None
            drawn = {n: v for n, v in known.feeds.items() if n not in window.constants}
            sizes = (v.nbytes for v in drawn.values() if isinstance(v, np.ndarray))
            if sum(sizes) < _KEPT_BYTES:
                self._known[key] = known
                known.feeds = drawn
        if known.status == "differs":
            self._shown = known.sizes[-1]
        return known

    # -- what is said of a wrong rewrite

    def _message(self, done: Application, window: Window, outcome: Outcome) -> str:
        found, pattern = outcome.found, done.match.pattern
        assert found is not None
        where = f" at {list(found.at)}" if found.at else ""
        values = f": {found.values[0]} became {found.values[1]}" if found.values else ""
        sizes = outcome.sizes[-1] if outcome.sizes else {}
        shapes = [
            f"{name}: {_shown(value)}"
            for name, value in outcome.feeds.items()
            if name not in window.constants
        ]
        text = [
            f"Rewrite {pattern.name} is wrong: result {found.name!r} of "
            f"{_nodes_text(window.before)} is not what {_nodes_text(window.after)} gives{where}"
            f"{values}.",
            f"  {found.reason}, largest absolute difference {found.max_abs:.3g}; {pattern.name} "
            f"declares itself {pattern.precision}.",
            f"  inputs: {', '.join(shapes[:6]) or 'none'}"
            + (f", sizes {sizes}" if sizes else "")
            + (f", with {len(window.producers)} nodes around" if window.around else ""),
        ]
        if self.folder is None:
            text.append(
                "  Validation(folder=...), `xoptim optimize --windows FOLDER` or `xoptim bisect -o "
                "FOLDER` saves the two models and these inputs."
            )
        else:
            stem = f"{pattern.name}_{len(self.summary.certificates):04d}"
            text.append(
                f"  the two models and these inputs are in {self._save(stem, window, outcome)}"
            )
        return "\n".join(text)

    def _save(self, stem: str, window: Window, outcome: Outcome) -> Path:
        """Writes the models and the inputs of a wrong window. Returns their folder."""
        assert self.folder is not None
        folder = self.folder / stem
        folder.mkdir(parents=True, exist_ok=True)
        for i, name in enumerate(("before", "after")):
            onnx.save(window.model(i, embed=True), folder / f"{name}.onnx")
        drawn = {n: v for n, v in outcome.feeds.items() if n not in window.constants}
        arrays = {n: v for n, v in drawn.items() if isinstance(v, np.ndarray)}
        np.savez(folder / "inputs.npz", allow_pickle=True, **arrays)
        return folder


def with_validation(features: Sequence[Feature]) -> Sequence[Feature]:
    """Features and a :class:`Validation`, unless there is one already."""
    known = any(isinstance(f, Validation) for f in features)
    return features if known else (*features, Validation())


def _may_change(outcome: Outcome) -> bool:
    """Whether more nodes may change the outcome."""
    return outcome.status == "differs" or not outcome.reason.startswith("its nodes")


def _first_result(done: Application) -> str:
    return next((o for r in done.removed for o in r.outputs if o), "")


def _nodes_text(nodes: list[onnx.NodeProto]) -> str:
    names = [f"{n.op_type} {n.name!r}" if n.name else n.op_type for n in nodes]
    shown = names if len(names) < 7 else [*names[:5], f"{len(names) - 5} others"]
    return "[" + ", ".join(shown) + "]"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} elements"
    if value.size <= 4:
        return f"{value.dtype} {value.tolist()}"
    return f"{value.dtype}{list(value.shape)}"
