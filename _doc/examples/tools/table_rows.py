"""The table of a benchmark: each row is computed in a process of its own, within a time limit, and
written as soon as it is known. A benchmark that is interrupted goes on from its table."""

from __future__ import annotations

import logging
import math
import multiprocessing
import resource
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
import pandas
import torch

#: the rows by what identifies them
Rows = dict[tuple[str, ...], dict[str, Any]]
#: a process that waits ends too, after so many times its limit
_WAIT = 20


def _quietly(
    queue: Any, limit: float, row_of: Callable[..., dict[str, Any]], way: Sequence[str]
) -> None:
    """Computes a row on one thread, without the warnings, in so many seconds of the processor."""
    seconds = max(1, math.ceil(limit))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(4)
    torch.set_num_threads(1)
    queue.put(row_of(*way))


def row_within(limit: float, row_of: Callable[..., dict[str, Any]], *way: str) -> Any:
    """A row computed in a process of its own; why there is none, as a text, if it takes too long or
    if the process ends. How busy the machine is does not count.

    :param limit: seconds of the processor
    :param row_of: computes the row
    :param way: its arguments
    """
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_quietly, args=(queue, limit, row_of, way))
    process.start()
    begin = time.monotonic()
    while process.is_alive() and time.monotonic() - begin < _WAIT * limit and queue.empty():
        time.sleep(0.01)
    row = None if queue.empty() else queue.get()
    waits = process.is_alive()
    process.kill()
    process.join()
    if row is None and waits:
        return f"no result after {_WAIT * limit:.0f} s on a machine that may be busy"
    if row is None:
        is_long = process.exitcode == -signal.SIGXCPU
        row = f"longer than {limit:.0f} s" if is_long else "the process ended"
    return row


def read_table(path: Path, *keys: str) -> Rows:
    """The rows that are known, by the columns that identify them."""
    if not path.exists():
        return {}
    rows = pandas.read_csv(path, keep_default_na=False, dtype=str).to_dict("records")
    return {tuple(row[key] for key in keys): row for row in rows}


def write_table(path: Path, rows: Rows, columns: Sequence[str]) -> None:
    """Writes the rows, sorted by what identifies them."""
    table = pandas.DataFrame([rows[k] for k in sorted(rows)]).reindex(columns=columns)
    table.to_csv(path, index=False)
