"""Keeps the optimization that is measured the fastest, within a time budget."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnx import ModelProto

from xbuilder.errors import XoptimError, short_message
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.writing.temporary_files import temporary_folder

from ..catalogue.selection import get_pattern_list
from ..catalogue.speed_gates import find_speed_gate
from ..catalogue.targets import get_target
from ..reports.model_summary import count_ops, pattern_totals
from ..trust.inputs.draws import accepted_inputs
from ..trust.latency import Latency, compare_sessions, fast_session
from .optimization import Optimization
from .result import OptimizedModel, Trial
from .saving import stored

#: comparisons of two models, and seconds each one takes for each of them
_BLOCKS, _SECONDS = 9, 0.05
#: what is kept when nothing is faster
ORIGINAL = "the original"


def keep_faster(task: Optimization, budget: float = 60.0) -> OptimizedModel:
    """Optimizes a model in several ways and keeps the one that is measured the fastest.

    The patterns of the task are tried first, then the other sets, then the best ones without each
    pattern that applied, in the order of what `xoptim tune` measured. One is faster than another
    when three quarters of the comparisons say so. When none is faster than the original, the
    original is kept.

    :param task: the optimization; its checks and measures are made on what is kept
    :param budget: seconds the trials may take, the first one is always made
    :return: what is kept; its `trials` tell what was measured
    :raises XoptimError: the model cannot be read, optimized as asked, or does not run

    ::

        done = keep_faster(Optimization(model=Path("model.onnx")), budget=30)
        print(done.patterns, [t.ratio for t in done.trials])
    """
    with temporary_folder(str(task.folder), "xoptim") as folder:
        race = _Race(task, Path(folder), budget)
        patterns, trials = race.run()
        kept = replace(task, patterns=patterns, other_set="", late_checks=False)
        done = kept.run() if trials[-1].patterns != ORIGINAL else race.original()
    done.trials = trials
    return done


@dataclass(frozen=True, slots=True)
class _Runner:
    """An optimized model that is ready to run.

    :param text: the selection as a user writes it
    :param patterns: the selection
    """

    text: str
    patterns: Any
    done: OptimizedModel
    session: Any
    nodes: int


class _Race:
    """The trials of one model."""

    def __init__(self, task: Optimization, folder: Path, budget: float):
        self.task = replace(
            task,
            comparison=None,
            measured=None,
            validation=None,
            profile=None,
            late_checks=False,
            other_set="",
        )
        self.wanted, self.folder = task, folder
        self.end = time.perf_counter() + budget
        self.last = 0.0
        self.trials: list[Trial] = []
        self.feeds: dict[str, Any] = {}
        self.reference: Any = None
        self.before: ModelProto | None = None

    def run(self) -> tuple[Any, list[Trial]]:
        """The patterns that are kept, and the trials, the kept one last."""
        best: _Runner | None = None
        ratio = 1.0
        for i, patterns in enumerate(self._sets()):
            if i and not self._has_time():
                break
            found = self._tried(patterns, required=i == 0)
            if found is not None and found[1].high < 1 and found[1].ratio < ratio:
                best, ratio = found[0], found[1].ratio
        if best is not None:
            best = self._without_patterns(best)
            last = self._compared(self.reference, best)
            if last.high < 1:
                self._note(best.text, best.nodes, last, "kept")
                return best.patterns, self.trials
        nodes = 0 if self.before is None else _count(self.before)
        self._note(ORIGINAL, nodes, Latency(0.0, 1.0, 1.0, 1.0), "kept")
        return None, self.trials

    def original(self) -> OptimizedModel:
        """The model as it was read, or only cleaned if its opset or its sizes changed."""
        if self.task.dynamic or self.task.target_opset is not None or self.before is None:
            return replace(self.wanted, patterns=None, other_set="", late_checks=False).run()
        before = self.before
        roots = self.task.data_roots
        model = self.task.model
        base = model.parent if isinstance(model, Path) else None
        container = ModelContainer(before, base_dir=base, allowed_roots=roots)
        saving = self.task.saving
        name = str(model) if isinstance(model, Path) else before.graph.name
        result = stored(container, before, saving)
        return OptimizedModel(before, before, result, [], 0.0, name=name, saving=saving)

    def _sets(self) -> Iterator[Any]:
        """The selections to try: the one of the task, then the sets its target accepts."""
        seen = [self.task.patterns]
        yield self.task.patterns
        target = None if self.task.target is None else get_target(self.task.target)
        contrib = not self.task.public_operators and (target is None or not target.standard)
        for patterns in ("default+onnxruntime", "default", None):
            if patterns not in seen and (contrib or patterns != "default+onnxruntime"):
                seen.append(patterns)
                yield patterns

    def _has_time(self) -> bool:
        return time.perf_counter() + self.last < self.end

    def _tried(
        self, patterns: Any, text: str = "", required: bool = False
    ) -> tuple[_Runner, Latency] | None:
        """A selection that runs, with its latency, None if it does not."""
        begin = time.perf_counter()
        text = text or ("none" if patterns is None else str(patterns))
        runner = self._runner(patterns, text) if required else self._attempt(patterns, text)
        if runner is None:
            return None
        latency = self._compared(self.reference, runner)
        self.last = max(self.last, time.perf_counter() - begin)
        self._note(text, runner.nodes, latency, "faster" if latency.high < 1 else "not faster")
        return runner, latency

    def _attempt(self, patterns: Any, text: str) -> _Runner | None:
        """A model that is ready to run, None if it fails: the trials tell why."""
        try:
            return self._runner(patterns, text)
        except XoptimError as e:
            self._note(text, 0, None, f"fails: {short_message(e)}")
            return None

    def _runner(self, patterns: Any, text: str) -> _Runner:
        """A model optimized with a selection, loaded by onnxruntime."""
        done = replace(self.task, patterns=patterns).run()
        if self.before is None:
            self._prepare(done.before)
        place = self.folder / str(len(self.trials))
        place.mkdir()
        source = done.write_or_serialize(place)
        session = fast_session(source, 1)
        session.run(None, self.feeds)
        with suppress(OSError):  # the session has what it needs
            shutil.rmtree(place)
        return _Runner(text, patterns, done, session, _count(done.after))

    def _prepare(self, before: ModelProto) -> None:
        """Draws the inputs and loads the original."""
        self.before = before
        source = self.task.reference(before, self.folder)
        how = self.wanted.measured or self.wanted.comparison or {}
        names = ("inputs", "sizes", "seed")
        chosen = {name: how[name] for name in names if how.get(name) is not None}
        self.feeds = accepted_inputs(source, **chosen)[0]
        content = source if isinstance(source, Path) else source.SerializeToString()
        self.reference = fast_session(content, 1)

    def _compared(self, first: Any, second: _Runner) -> Latency:
        return compare_sessions(first, second.session, self.feeds, _BLOCKS, _SECONDS)

    def _without_patterns(self, best: _Runner) -> _Runner:
        """Removes the patterns without which the model is faster, while there is time."""
        counts = {r["pattern"]: r["instances"] for r in pattern_totals(best.done.rows)}
        members = get_pattern_list(best.patterns)
        applied = [p.name for p in members if counts.get(p.name)]
        applied.sort(key=lambda name: (-self._known(name), -counts[name]))
        for name in applied:
            if not self._has_time():
                break
            fewer = [p for p in get_pattern_list(best.patterns) if p.name != name]
            text = f"{best.text}-{name}"
            begin = time.perf_counter()
            runner = self._attempt(fewer, text)
            if runner is None:
                continue
            found = self._compared(best.session, runner)
            self.last = max(self.last, time.perf_counter() - begin)
            against = f"{'faster' if found.high < 1 else 'not faster'} than {best.text}"
            self._note(text, runner.nodes, found, against)
            if found.high < 1:
                best = runner
        return best

    def _known(self, name: str) -> float:
        """The ratio `xoptim tune` measured for a pattern, 1 if it did not."""
        gate = find_speed_gate(name, "CPU", self.task.processor)
        return 1.0 if gate is None else gate.ratio

    def _note(self, text: str, nodes: int, latency: Latency | None, verdict: str) -> None:
        ratios = (latency.ratio, latency.low, latency.high) if latency else (math.nan,) * 3
        self.trials.append(Trial(text, nodes, *ratios, verdict))


def _count(model: ModelProto) -> int:
    counts = count_ops(model)
    return sum(counts.values()) - counts["Constant"]
