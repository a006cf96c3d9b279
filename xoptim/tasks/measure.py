"""Measures the time and the memory models take under onnxruntime, in turns."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xbuilder.errors import OptionError, short_message
from xbuilder.runtimes.custom_operators import loading_message

from ..reports.model_summary import count_ops
from ..reports.tables import counted, human_bytes, print_table, without_empty
from ..trust.inputs.draws import accepted_inputs
from ..trust.inputs.random_inputs import sizes_fixed_by
from ..trust.latency import clock_of, compare_sessions, fast_session
from ..trust.peak_memory import peak_memory
from ..trust.sessions.foreign_values import prepared_run
from ..trust.sessions.runtime import Model, Opener, VerificationError, structure_of
from ..trust.sessions.session_process import SessionError
from .steps import OnStep

if TYPE_CHECKING:
    from ..reports.tables import Output

#: a model that loads in less seconds is loaded twice: the first session of a process takes longer
_SHORT = 1.0


@dataclass(frozen=True, slots=True)
class ModelLatency:
    """The time of one model, beside the first one.

    :param model: its file, or its place among the models
    :param nodes: number of nodes, Constant excepted
    :param load: seconds to load it, onnxruntime's optimizations included
    :param milliseconds: time of one run
    :param ratio: over the first model, median of the comparisons
    :param low: a quarter of the comparisons is below
    :param high: a quarter of the comparisons is above
    :param threads: number of threads
    :param sizes: sizes of the inputs, by name
    :param series: the sizes of dimensions that vary, by name
    :param memory: bytes it takes in a process of its own, None if it was not measured

    Example::

        >>> import xoptim
        >>> from xoptim.testing import model_from_text
        >>> model = model_from_text("agraph (float[n] x) => (float[n] y) { y = Abs(x) }")
        >>> (found,) = xoptim.measure(model, sizes={"n": 3}, seconds=0.01)
        >>> found.nodes, found.sizes, found.ratio
        (1, {'x': [3]}, 1.0)
    """

    model: str
    nodes: int
    load: float
    milliseconds: float
    ratio: float
    low: float
    high: float
    threads: int
    sizes: dict[str, list[int]]
    series: dict[str, int] = field(default_factory=dict)
    memory: int | None = None

    def to_row(self) -> dict[str, Any]:
        """A row for `pandas.DataFrame` or json."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model that is ready to run."""

    name: str
    nodes: int
    source: bytes | str
    session: Any
    load: float


@dataclass(frozen=True, slots=True)
class _Turns:
    """The runs of models in turns with the first one."""

    blocks: int
    seconds: float
    warmup: int
    elapsed: bool
    memory: bool
    threads: int
    processor: str

    def measured(
        self, loaded: Sequence[_Loaded], feeds: dict[str, Any], series: dict[str, int]
    ) -> list[ModelLatency]:
        """Measures models on one set of inputs.

        :param loaded: the models, the first one is the reference
        :param feeds: the inputs
        :param series: the sizes of dimensions that vary
        """
        clock = time.perf_counter if self.elapsed else clock_of(self.processor)
        for one in loaded:
            _warm_up(one, feeds, self.warmup)
        shapes = {n: list(v.shape) for n, v in feeds.items() if hasattr(v, "shape")}
        first, *others = (one.session for one in loaded)
        # a model alone runs in turns with itself, in the same time
        seconds = self.seconds if others else self.seconds / 2
        latencies = [
            compare_sessions(first, other, feeds, self.blocks, seconds, clock)
            for other in others or [first]
        ]
        fastest = min(found.before for found in latencies)
        ratios = [(1.0, 1.0, 1.0), *((found.ratio, found.low, found.high) for found in latencies)]
        return [
            ModelLatency(
                model=one.name,
                nodes=one.nodes,
                load=one.load,
                milliseconds=fastest * 1e3 * ratio,
                ratio=ratio,
                low=low,
                high=high,
                threads=self.threads,
                sizes=shapes,
                series=series,
                memory=_peak(one, feeds) if self.memory else None,
            )
            for one, (ratio, low, high) in zip(loaded, ratios, strict=False)
        ]


def measure_models(
    *models: Model,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    series: Mapping[str, Sequence[int]] | None = None,
    threads: int = 1,
    blocks: int = 9,
    seconds: float = 0.1,
    warmup: int = 1,
    elapsed: bool = False,
    memory: bool = True,
    processor: str = "CPU",
    seed: int = 0,
    names: Sequence[str] = (),
    on_step: OnStep | None = None,
) -> list[ModelLatency]:
    """Measures the time of models on the same inputs, with onnxruntime's own optimizations.

    Each runs in turns with the first one, so that another process slows both. Times are those of
    the processor, over all threads, unless *elapsed* is true. The memory is that of a process which
    loads the model and runs it, the libraries excepted.

    :param models: the models, their bytes or their files; the first one is the reference
    :param inputs: see :func:`xoptim.trust.verification.verify_models`; the first set is timed
    :param sizes: sizes for the open dimensions of the first model, else those another one fixes
    :param series: several sizes for some of these dimensions: every combination is measured
    :param threads: number of threads of onnxruntime
    :param blocks: number of comparisons of two models
    :param seconds: time of one comparison for each model
    :param warmup: number of runs that are not measured, for each model and size
    :param elapsed: measures the elapsed time
    :param memory: measures the memory too, on CPU only
    :param processor: `"CPU"` or `"CUDA"`, where the time is always the elapsed time
    :param seed: seed of the random inputs
    :param names: names of the models in the result, by default their files or their places
    :param on_step: receives the sizes that are measured and the share that is done
    :return: for each combination of sizes, one element by model; the ratios of the first are 1
    :raises VerificationError: a model does not load, or does not run on these inputs
    :raises OptionError: no model, no size, or no such processor

    .. code-block:: python

        before, after = measure_models("model.onnx", "optimized.onnx", sizes={"batch": 8})
        print(after.ratio)
    """
    _check_choices(models, series or {})
    with_memory = memory and processor == "CPU"
    turns = _Turns(blocks, seconds, warmup, elapsed, with_memory, threads, processor)
    fixed = {**_fixed_sizes(models, inputs), **(sizes or {})}
    titles = [names[i] if i < len(names) else _name(m, i) for i, m in enumerate(models)]
    found: list[ModelLatency] = []
    with ExitStack() as files:
        opener = Opener(files)
        loaded = [_load(opener, m, titles[i], i, turns) for i, m in enumerate(models)]
        for chosen in _combinations(series or {}, on_step):
            feeds = accepted_inputs(models[0], inputs, {**fixed, **chosen}, seed)[0]
            found.extend(turns.measured(loaded, feeds, chosen))
    return found


def _fixed_sizes(models: Sequence[Model], inputs: Any) -> dict[str, int]:
    """The sizes that only some of the models fix, none if the user gives the inputs."""
    first, *others = map(structure_of, models)
    return {} if any(inputs or ()) else sizes_fixed_by(first, others)


def _check_choices(models: Sequence[Model], series: Mapping[str, Sequence[int]]) -> None:
    if not models:
        raise OptionError("There is no model to measure, give at least one.")
    empty = [name for name, values in series.items() if not values]
    if empty:
        raise OptionError(f"The series of {empty[0]!r} has no size.")


def _combinations(
    series: Mapping[str, Sequence[int]], on_step: OnStep | None
) -> Iterator[dict[str, int]]:
    """Every combination of several sizes of some dimensions, reported before it is measured."""
    rows = list(itertools.product(*series.values()))
    for i, values in enumerate(rows):
        chosen = dict(zip(series, values, strict=True))
        if on_step is not None:
            sizes = ", ".join(f"{name}={size}" for name, size in chosen.items())
            on_step(f"measures {sizes}" if sizes else "measures", i / len(rows) if sizes else None)
        yield chosen


def _load(opener: Opener, model: Model, name: str, position: int, turns: _Turns) -> _Loaded:
    """A session, and the time to load it."""
    source = opener.source(model, f"{position + 1}th")
    counts = count_ops(structure_of(model))
    times: list[float] = []
    try:
        while not times or (len(times) == 1 and times[0] < _SHORT):
            begin = time.perf_counter()
            session = fast_session(source, turns.threads, processor=turns.processor)
            times.append(time.perf_counter() - begin)
    except OptionError:
        raise
    except Exception as e:
        raise VerificationError(f"{name} cannot be measured: {loading_message(e)}") from e
    nodes = sum(counts.values()) - counts["Constant"]
    return _Loaded(name, nodes, source, session, min(times))


def _warm_up(one: _Loaded, feeds: Mapping[str, Any], runs: int) -> None:
    """Runs a model before it is measured, once at least."""
    _check_inputs(one, feeds)
    try:
        run = prepared_run(one.session, None, feeds)
        for _ in range(max(runs, 1)):
            run()
    except Exception as e:
        raise VerificationError(f"{one.name} cannot be measured: {short_message(e)}") from e


def _check_inputs(one: _Loaded, feeds: Mapping[str, Any]) -> None:
    """Checks that a model takes the inputs that were drawn for the first one."""
    needed = [value.name for value in one.session.get_inputs()]
    accepted = {*needed, *(v.name for v in one.session.get_overridable_initializers())}
    if not set(needed) <= feeds.keys() <= accepted:
        raise VerificationError(
            f"{one.name} cannot be measured: its inputs are {needed}, those of the first model are "
            f"{list(feeds)}"
        )


def _peak(one: _Loaded, feeds: Mapping[str, Any]) -> int | None:
    try:
        return peak_memory(one.source, feeds)
    except SessionError as e:
        raise VerificationError(f"{one.name} cannot be measured: {e}") from e


def _name(model: Model, position: int) -> str:
    return str(model) if isinstance(model, (str, Path)) else f"model {position + 1}"


def print_latency(found: Sequence[ModelLatency], out: Output) -> None:
    """Prints one row by model, and by size if they vary.

    :param found: the measures
    :param out: destination
    """
    title = f"latency: onnxruntime, {conditions_of(found)}"
    print_table(out, title, *latency_table(found), left=1 + len(found[0].series))


def latency_table(found: Sequence[ModelLatency]) -> tuple[list[str], list[list[Any]]]:
    """The columns and the rows of the table of measures."""
    varying = list(found[0].series)
    rows = [
        (
            *(m.series[name] for name in varying),
            m.model,
            m.nodes,
            f"{m.load * 1e3:.0f}",
            "" if m.memory is None else human_bytes(m.memory),
            f"{m.milliseconds:.3g}",
            f"{m.ratio:.3f}",
            "" if m.ratio == m.low == m.high == 1 else f"{m.low:.3f} - {m.high:.3f}",
        )
        for m in found
    ]
    columns = ["model", "nodes", "ms to load", "memory", "ms to run", "ratio", "half of the ratios"]
    return without_empty([*varying, *columns], rows, ["memory"])


def conditions_of(found: Sequence[ModelLatency]) -> str:
    """The threads and the shapes of the inputs of some measures."""
    shapes = ", ".join(f"{n}{s}" for n, s in found[0].sizes.items())
    if found[0].series:
        shapes = f"{len(found)} measures, the first on {shapes}"
    return f"{counted(found[0].threads, 'thread')}, {shapes or 'no input'}"
