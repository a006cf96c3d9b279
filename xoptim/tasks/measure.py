"""Measures the time models take under onnxruntime, in turns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xbuilder.errors import OptionError

from ..reports.model_summary import count_ops
from ..trust.inputs.draws import accepted_inputs
from ..trust.latency import compare_sessions, fast_session
from ..trust.sessions.runtime import Model, Opener, VerificationError, short, structure_of
from .tables import print_table

if TYPE_CHECKING:
    from rich.console import Console


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

    def to_row(self) -> dict[str, Any]:
        """A row for `pandas.DataFrame` or json."""
        return asdict(self)


def measure_models(
    *models: Model,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    sizes: Mapping[str, int] | None = None,
    threads: int = 1,
    blocks: int = 9,
    seconds: float = 0.1,
    elapsed: bool = False,
    seed: int = 0,
    names: Sequence[str] = (),
) -> list[ModelLatency]:
    """Measures the time of models on the same inputs, with onnxruntime's own optimizations.

    Each model runs in turns with the first one, so that another process on the machine slows both.
    Times are those of the processor, over all threads, unless *elapsed* is true.

    :param models: the models, their bytes or their files; the first one is the reference
    :param inputs: see :func:`xoptim.trust.verification.verify_models`; the first set is timed
    :param sizes: sizes for the dimensions the first model leaves open
    :param threads: number of threads of onnxruntime
    :param blocks: number of comparisons of two models
    :param seconds: time of one comparison for each model
    :param elapsed: measures the elapsed time
    :param seed: seed of the random inputs
    :param names: names of the models in the result, by default their files or their places
    :return: one element by model; the ratios of the first one are 1
    :raises VerificationError: a model does not load, or does not run on these inputs
    :raises OptionError: there is no model

    .. code-block:: python

        before, after = measure_models("model.onnx", "optimized.onnx", sizes={"batch": 8})
        print(after.ratio)
    """
    if not models:
        raise OptionError("There is no model to measure, give at least one.")
    clock = time.perf_counter if elapsed else time.process_time
    with ExitStack() as files:
        opener = Opener(files)
        sources = [opener.source(m, f"{i + 1}th") for i, m in enumerate(models)]
        feeds = accepted_inputs(models[0], inputs, sizes, seed)[0]
        shapes = {n: list(v.shape) for n, v in feeds.items() if hasattr(v, "shape")}
        found: list[ModelLatency] = []
        first, reference = None, 0.0
        for i, (model, source) in enumerate(zip(models, sources, strict=True)):
            name = names[i] if i < len(names) else _name(model, i)
            session, load = _loaded(source, name, threads, feeds)
            if first is None:
                first = session
                latency = compare_sessions(first, first, feeds, blocks, seconds, clock)
                reference, ratios = latency.before, (1.0, 1.0, 1.0)
            else:
                latency = compare_sessions(first, session, feeds, blocks, seconds, clock)
                ratios = latency.ratio, latency.low, latency.high
            counts = count_ops(structure_of(model))
            nodes = sum(counts.values()) - counts["Constant"]
            once = reference * ratios[0] * 1e3
            found.append(ModelLatency(name, nodes, load, once, *ratios, threads, shapes))
    return found


def _loaded(
    source: bytes | str, name: str, threads: int, feeds: Mapping[str, Any]
) -> tuple[Any, float]:
    """A session that ran once, and the time to load it."""
    begin = time.perf_counter()
    try:
        session = fast_session(source, threads)
        load = time.perf_counter() - begin
        session.run(None, dict(feeds))
    except Exception as e:
        raise VerificationError(f"{name} cannot be measured: {short(e)}") from e
    return session, load


def _name(model: Model, position: int) -> str:
    return str(model) if isinstance(model, (str, Path)) else f"model {position + 1}"


def print_latency(found: Sequence[ModelLatency], out: Console) -> None:
    """Prints one row by model.

    :param found: the measures
    :param out: destination
    """
    rows = [
        (
            m.model,
            m.nodes,
            f"{m.load * 1e3:.0f}",
            f"{m.milliseconds:.3g}",
            f"{m.ratio:.3f}",
            f"{m.low:.3f} - {m.high:.3f}" if i else "",
        )
        for i, m in enumerate(found)
    ]
    columns = ["model", "nodes", "ms to load", "ms to run", "ratio", "half of the ratios"]
    threads = "1 thread" if found[0].threads == 1 else f"{found[0].threads} threads"
    shapes = ", ".join(f"{n}{s}" for n, s in found[0].sizes.items())
    print_table(out, f"latency: onnxruntime, {threads}, {shapes or 'no input'}", columns, rows)
