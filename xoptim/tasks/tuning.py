"""Measures the time each pattern saves on many models, each in a process of its own."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from xbuilder.files.writing.temporary_files import temporary_folder
from xbuilder.runtimes.custom_operators import custom_libraries, custom_operators

from ..catalogue.pattern_files import load_pattern_file
from ..trust.tuning import Measure, Tuning, tune
from .many.places import Source, local_file
from .many.processes import run_in_processes
from .steps import OnStep


def tune_each(
    sources: Sequence[Source],
    how: Tuning,
    loaded: Sequence[Path] = (),
    on_step: OnStep | None = None,
) -> list[Measure]:
    """Measures the patterns of a selection on models, one after the other.

    :param sources: the models
    :param how: parameters of the measures
    :param loaded: files of patterns
    :param on_step: called after each model
    :return: the measures; a model that fails, or whose process dies, is one without a pattern
    """
    names = Counter(source.name for source in sources)
    labels = [s.name if names[s.name] == 1 else str(s) for s in sources]
    calls = [(source, how, tuple(loaded), custom_libraries()) for source in sources]
    found: dict[int, list[Measure]] = {}
    # one process: measures that run together disturb each other
    for i, outcome in run_in_processes(_tuned, calls, 1):
        if isinstance(outcome, BaseException):
            found[i] = [Measure("", labels[i], 0, 0, reason=str(outcome) or repr(outcome))]
        else:
            found[i] = [replace(measure, model=labels[i]) for measure in outcome]
        if on_step is not None:
            on_step(f"{len(found)} of {len(calls)}, {labels[i]}", len(found) / len(calls))
    return [measure for i in sorted(found) for measure in found[i]]


def _tuned(call: tuple[Source, Tuning, Sequence[Path], Sequence[str]]) -> list[Measure]:
    """The measures of one model, in another process."""
    source, how, loaded, libraries = call
    for path in loaded:
        load_pattern_file(path)
    with (
        temporary_folder(tempfile.gettempdir(), "xoptim") as folder,
        custom_operators(*libraries),
    ):
        return tune([local_file(source, Path(folder))], how)
