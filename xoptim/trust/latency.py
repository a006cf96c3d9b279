"""Compares the time two models take, with little influence of other processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from xbuilder.errors import OptionError
from xbuilder.runtimes.processors import PROVIDERS
from xbuilder.runtimes.sessions import providers_of, quiet_options

from .sessions.foreign_values import prepared_run

#: runs on a GPU that are not measured: they load kernels, and take a thousand times longer
_WARM = 20
#: a run to time: the session, on its inputs
Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Latency:
    """The time of two models run in turns.

    :param before: CPU time of one run of the first model in its best block, in seconds
    :param ratio: time of the second one over the time of the first one, its median over the blocks
    :param low: the quarter of the blocks below this ratio
    :param high: the quarter of the blocks above this ratio
    """

    before: float
    ratio: float
    low: float = 0.0
    high: float = 0.0


def fast_session(
    source: str | Path | bytes, threads: int, spins: bool = False, processor: str = "CPU"
) -> Any:
    """A session of onnxruntime with its own optimizations.

    Idle threads do not spin, so the CPU time is the time of the computation.

    :param source: a model or the path of its file
    :param threads: number of threads
    :param spins: whether idle threads spin, as by default; use it to measure elapsed time, not
        while another session runs
    :param processor: `"CPU"` or `"CUDA"`
    :raises OptionError: onnxruntime does not run models on this processor
    """
    import onnxruntime

    options = quiet_options()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    entry = ("force_spinning_stop", "1") if spins else ("intra_op.allow_spinning", "0")
    options.add_session_config_entry(f"session.{entry[0]}", entry[1])
    content = str(source) if isinstance(source, Path) else source
    providers = providers_of(processor)
    session = onnxruntime.InferenceSession(content, options, providers=providers)
    if session.get_providers()[0] != providers[0]:
        raise OptionError(
            f"onnxruntime has {providers[0]} but cannot use it: a library of CUDA or cuDNN is "
            "missing, or the driver is too old. Ask for CPU, or install what its log names."
        )
    return session


def clock_of(processor: str) -> Callable[[], float]:
    """The clock that measures a run: CPU time, or elapsed time on a GPU.

    :param processor: `"CPU"` or `"CUDA"`
    """
    return time.perf_counter if "CUDA" in processor else time.process_time


def bound_run(session: Any, feeds: Mapping[str, Any]) -> Run:
    """The run to time. On CUDA, inputs and outputs stay in the memory of the device, because the
    copies from and to the host are the same for all models.

    :param session: a session of onnxruntime
    :param feeds: its inputs
    """
    import onnxruntime

    fed = dict(feeds)
    is_bound = session.get_providers()[0] == PROVIDERS["CUDA"]
    if not is_bound or not all(
        isinstance(v, np.ndarray) and v.dtype != object and v.dtype.isbuiltin for v in fed.values()
    ):
        return prepared_run(session, None, fed)
    binding = session.io_binding()
    for name, value in fed.items():
        on_device = onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0)
        binding.bind_ortvalue_input(name, on_device)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")
    return lambda: session.run_with_iobinding(binding)


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
    runs = bound_run(first, feeds), bound_run(second, feeds)
    on_gpu = PROVIDERS["CUDA"] in first.get_providers() + second.get_providers()
    for run in runs * _WARM if on_gpu else ():
        run()
    # cuDNN may build a plan again after a run of another session
    return compare_runs(*runs, blocks, seconds, clock, int(on_gpu))


def compare_runs(
    first: Run,
    second: Run,
    blocks: int = 9,
    seconds: float = 0.05,
    clock: Callable[[], float] = time.process_time,
    unmeasured: int = 0,
) -> Latency:
    """Runs two functions in turns and compares their time.

    In each block both run several times, the shortest runs are compared; the ratio is the median
    over the blocks. A disturbance of one run, or of a whole block, does not count.

    :param first: the reference
    :param second: the function to compare
    :param blocks: number of blocks
    :param seconds: time a block takes for each function
    :param clock: returns the time, in seconds
    :param unmeasured: number of runs that begin each turn of a function and are not measured
    """
    runs = (first, second)
    begin = clock()
    for run in runs:
        run()
    once = max((clock() - begin) / 2, 1e-6)
    # a run shorter than the resolution of the clock is repeated
    repeated = max(1, int(2e-3 / once))
    turns = max(3, int(seconds / (once * repeated)))
    how = turns, repeated, unmeasured, clock
    found = [_block(runs, i % 2 == 1, *how) for i in range(blocks)]
    ratios = [b / a if a else 1.0 for a, b in found]
    low, _, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return Latency(min(a for a, _ in found), median(ratios), low, high)


def _block(
    runs: Sequence[Run],
    backwards: bool,
    turns: int,
    repeated: int,
    unmeasured: int,
    clock: Callable[[], float],
) -> tuple[float, float]:
    """Shortest time of each function; one block out of two begins with the second one."""
    best = [float("inf")] * 2
    for _ in range(turns):
        for i in (1, 0) if backwards else (0, 1):
            for _ in range(unmeasured):
                runs[i]()
            begin = clock()
            for _ in range(repeated):
                runs[i]()
            best[i] = min(best[i], (clock() - begin) / repeated)
    return best[0], best[1]
