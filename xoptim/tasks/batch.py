"""Optimizes many models, each in a process of its own or on a cluster."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from xbuilder.errors import OptionError
from xbuilder.runtimes.custom_operators import custom_libraries
from xbuilder.support.close_names import closest_names

from ..catalogue.pattern_files import load_pattern_file
from ..catalogue.selection import get_pattern_list
from .batch_job import FAILED, Job, optimize_one
from .batch_report import BatchReport
from .many.places import Output, find_sources, in_memory, is_address
from .many.processes import Outcome, default_memory, run_in_processes
from .optimization import Optimization
from .optimize import COMPARISON, SIGNATURE, optimize

#: receives a row, the number of rows so far, the number of models
OnDone: TypeAlias = Callable[[dict[str, Any], int, int], None]
#: arguments of :func:`xoptim.optimize` that are chosen for each model
_OWN = {"model", "args", "kwargs", "dynamic_shapes", "output", "options", "folder"}
_OWN |= {"comparison", "measured", "validation", "profile", "saving"}


def batch(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    patterns: Any = "default",
    jobs: int = 0,
    memory: int = 0,
    timeout: float = 0,
    dask: Any = None,
    force: bool = False,
    pages: bool = False,
    load: Sequence[str | os.PathLike[str]] = (),
    values: Sequence[str] = (),
    files: Sequence[str | os.PathLike[str]] = (),
    on_done: OnDone | None = None,
    **options: Any,
) -> BatchReport:
    """Optimizes many models. A failure, or a process that dies, is a row of the report.

    What is up to date is left: model, options, versions of the tools and output are the same.

    :param sources: files, folders, globs or addresses of fsspec such as `s3://bucket/models`
    :param output: the folder or the address that receives the models, under the same names
    :param patterns: sets and names, see :func:`xoptim.optimize`
    :param jobs: number of processes, that of the processors if 0
    :param memory: bytes a process may allocate, on Linux; its share of the machine if 0
    :param timeout: seconds a model may take, no limit if 0
    :param dask: address of a dask scheduler, or a `distributed.Client`: its workers do it
    :param force: up to date models are optimized as well
    :param pages: writes a page next to each model
    :param load: Python files of patterns
    :param values: values of some inputs, `name=value`
    :param files: files of inputs
    :param on_done: receives each row, the number of rows so far and the number of models
    :param options: those of :func:`xoptim.optimize`: `processor`, `verify`, `validate`...
    :return: one row for each model
    :raises OptionError: a source has no model, an option or a pattern is unknown

    ::

        done = xoptim.batch("models/**/*.onnx", "optimized", verify=True)
        print(done)
        done.report("report.html")
    """
    begin = time.perf_counter()
    _check(options, patterns, load)
    given: dict[str, Any] = {"values": tuple(values), "files": _paths(files)}
    given |= {"options": {"patterns": patterns, **options}, "loaded": _paths(load)}
    shared = {**given, "page": pages, "force": force, "libraries": custom_libraries()}
    todo = _jobs(sources, output, dask is not None, shared)
    rows = _rows(todo, _outcomes(todo, jobs, memory, timeout, dask), on_done)
    return BatchReport(rows, os.fspath(output), time.perf_counter() - begin)


def _paths(paths: Sequence[str | os.PathLike[str]]) -> tuple[Path, ...]:
    return tuple(Path(path).absolute() for path in paths)


def _jobs(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    elsewhere: bool,
    shared: Mapping[str, Any],
) -> list[Job]:
    """One job for each model.

    :raises OptionError: a source has no model, the output is a file
    """
    texts = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    found, target = find_sources(texts, output), os.fspath(output)
    if not is_address(target) and os.path.isfile(target):
        raise OptionError(f"{target!r} is a file, the folder of the results is expected.")
    if elsewhere:  # workers have other folders
        target = target if is_address(target) else os.path.abspath(target)
        found = [s if s.address else replace(s, path=os.path.abspath(s.path)) for s in found]
    return [Job(source, Output(target), **shared) for source in found]


def _rows(todo: Sequence[Job], outcomes: Iterable[Outcome], on_done: OnDone | None) -> list[Any]:
    """The rows of the report, in the order of the jobs; an exception is one of them."""
    rows: list[Any] = [None] * len(todo)
    for count, (i, row) in enumerate(outcomes, 1):
        if isinstance(row, BaseException):
            row = todo[i].row(FAILED, error=str(row), kind=type(row).__name__)
        rows[i] = row
        if on_done is not None:
            on_done(row, count, len(todo))
    return rows


def _outcomes(
    todo: Sequence[Job], jobs: int, memory: int, timeout: float, dask: Any
) -> Iterator[Outcome]:
    """The rows of the jobs, as they end."""
    here = [i for i, job in enumerate(todo) if _only_here(job)]
    yield from ((i, optimize_one(todo[i])) for i in here)
    others = [i for i in range(len(todo)) if i not in set(here)]
    if not others:
        return
    rest = [todo[i] for i in others]
    if dask is not None:
        from .many.cluster import run_on_cluster

        outcomes = run_on_cluster(optimize_one, rest, dask)
    else:
        processes = min(jobs or os.cpu_count() or 1, len(rest))
        limit = memory or default_memory(processes)
        outcomes = run_in_processes(optimize_one, rest, processes, limit, timeout)
    yield from ((others[i], outcome) for i, outcome in outcomes)


def _only_here(job: Job) -> bool:
    """Whether another process cannot read the model, or write the result."""
    return in_memory(job.source.address) or in_memory(job.output.text)


def _check(options: dict[str, Any], patterns: Any, load: Sequence[str | os.PathLike[str]]) -> None:
    """Checks the options once, before they fail for every model.

    :raises OptionError: an option or a pattern is unknown
    """
    known = {*inspect.signature(optimize).parameters, *Optimization.__dataclass_fields__}
    known |= {*COMPARISON, *SIGNATURE}
    for name in options:
        if name not in known - _OWN:
            close = ", ".join(closest_names(name, known - _OWN))
            hint = f"did you mean {close}?" if close else f"it has {sorted(known - _OWN)}."
            raise OptionError(f"batch has no option {name!r}, {hint}")
    for path in load:
        load_pattern_file(os.fspath(path))
    if isinstance(patterns, str) and patterns.strip().lower() != "none":
        get_pattern_list(patterns)
