"""Compares the time two models take, with little influence of other processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

#: a run to time: the session, on its inputs
Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Latency:
    """The time of two models run in turns.

    :param before: seconds of the processor for one run of the first one, its best block
    :param ratio: time of the second one over the time of the first one, its median over the blocks
    :param low: the quarter of the blocks below this ratio
    :param high: the quarter of the blocks above this ratio
    """

    before: float
    ratio: float
    low: float = 0.0
    high: float = 0.0


def fast_session(source: str | Path | bytes, threads: int, spins: bool = False) -> Any:
    """A session of onnxruntime on CPU with its own optimizations.

    Idle threads do not spin, so the time of the processor is the time of the computation.

    :param source: a model or the path of its file
    :param threads: number of threads
    :param spins: whether idle threads spin, as by default; use it to measure elapsed time, not
        while another session runs
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    entry = ("force_spinning_stop", "1") if spins else ("intra_op.allow_spinning", "0")
    options.add_session_config_entry(f"session.{entry[0]}", entry[1])
    content = str(source) if isinstance(source, Path) else source
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def compare_sessions(
    first: Any,
    second: Any,
    feeds: Mapping[str, Any],
    blocks: int,
    seconds: float,
    clock: Callable[[], float] = time.process_time,
) -> Latency:
    """Runs two sessions in turns, see :func:`compare_runs`.

    :param first: the reference
    :param second: the session to compare
    :param feeds: the inputs of both
    :param blocks: number of blocks
    :param seconds: time a block takes for each session
    :param clock: returns the time, in seconds

    ::

        before, after = fast_session("model.onnx", 1), fast_session("optimized.onnx", 1)
        print(compare_sessions(before, after, {"x": x}, 9, 0.05).ratio)
    """
    fed = dict(feeds)
    return compare_runs(
        lambda: first.run(None, fed), lambda: second.run(None, fed), blocks, seconds, clock
    )


def compare_runs(
    first: Run,
    second: Run,
    blocks: int = 9,
    seconds: float = 0.05,
    clock: Callable[[], float] = time.process_time,
) -> Latency:
    """Runs two functions in turns and compares their time.

    In each block both run several times, the shortest runs are compared; the ratio is the median
    over the blocks. A disturbance of one run, or of a whole block, does not count.

    :param first: the reference
    :param second: the function to compare
    :param blocks: number of blocks
    :param seconds: time a block takes for each function
    :param clock: returns the time, in seconds
    """
    runs = (first, second)
    begin = clock()
    for run in runs:
        run()
    once = max((clock() - begin) / 2, 1e-6)
    # a run shorter than the resolution of the clock is repeated
    repeated = max(1, int(2e-3 / once))
    turns = max(3, int(seconds / (once * repeated)))
    found = [_block(runs, turns, repeated, i % 2 == 1, clock) for i in range(blocks)]
    ratios = [b / a if a else 1.0 for a, b in found]
    low, _, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return Latency(min(a for a, _ in found), median(ratios), low, high)


def _block(
    runs: Sequence[Run], turns: int, repeated: int, backwards: bool, clock: Callable[[], float]
) -> tuple[float, float]:
    """Shortest time of each function; one block out of two begins with the second one."""
    best = [float("inf")] * 2
    for _ in range(turns):
        for i in (1, 0) if backwards else (0, 1):
            begin = clock()
            for _ in range(repeated):
                runs[i]()
            best[i] = min(best[i], (clock() - begin) / repeated)
    return best[0], best[1]
