"""Measures the time each pattern of a selection saves, on models optimized with and without it."""

from __future__ import annotations

import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.files.model_files import load_model
from xbuilder.files.writing.temporary_files import temporary_folder
from xbuilder.runtimes.installed import installed_version
from xbuilder.runtimes.processors import measured_features
from xbuilder.runtimes.sessions import providers_of
from xbuilder.tensors.closeness import ATOL, RTOL, Criterion

from ..authoring.rewriters import Member
from ..catalogue.selection import get_pattern_list
from ..catalogue.speed_gated import SpeedGatedRewrite
from ..catalogue.speed_gates import SpeedGate
from ..reports.model_summary import pattern_totals
from .latency import clock_of, compare_sessions, fast_session
from .sessions.runtime import Opener, VerificationError
from .verification import Reference

#: receives the current measure and the share that is done
OnStep: TypeAlias = Callable[[str, float], None]


@dataclass
class Measure:
    """The time a pattern saves on a model.

    :param pattern: as a selection writes it
    :param model: name of the file, its path if others have the same name
    :param rewrites: how many times it applies
    :param threads: number of threads of onnxruntime
    :param microseconds: CPU time of one run without it
    :param ratio: time with it over time without, NaN if the results are wrong
    :param reason: reason why it was not measured, empty otherwise
    """

    pattern: str
    model: str
    rewrites: int
    threads: int
    microseconds: float = math.nan
    ratio: float = math.nan
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the results were the same."""
        return not self.reason


@dataclass(frozen=True)
class Tuning:
    """The parameters of the measures.

    :param patterns: selection of the patterns to measure
    :param base: selection that optimizes the models, with each pattern and without it
    :param threads: numbers of threads
    :param blocks: see :func:`xoptim.trust.latency.compare_runs`
    :param seconds: see :func:`xoptim.trust.latency.compare_runs`
    :param sizes: sizes for the dimensions the models leave open
    :param rtol: relative tolerance between results
    :param seed: seed of the random inputs
    :param atol: absolute tolerance between results
    :param inputs: gives the inputs of a file that are not drawn, one mapping by set; None for none
    :param processor: `"CPU"` or `"CUDA"`: the models are optimized for it and run on it. The time
        is then the elapsed time. The original model runs on CPU to give the expected outputs
    """

    patterns: Any = "onnxruntime"
    base: Any = "default+onnxruntime"
    threads: Sequence[int] = (1, 2)
    blocks: int = 9
    seconds: float = 0.05
    sizes: Mapping[str, int] = field(default_factory=dict)
    rtol: float = RTOL
    seed: int = 0
    atol: float = ATOL
    inputs: Callable[[Path], Sequence[Mapping[str, Any]]] | None = None
    processor: str = "CPU"


class _Variant(NamedTuple):
    """A pattern and the two selections that differ by it."""

    name: str
    pattern: str
    without: list[Member]
    complete: list[Member]


def tune(
    models: Sequence[str | Path], how: Tuning | None = None, on_step: OnStep | None = None
) -> list[Measure]:
    """Measures the patterns of a selection on models. Results are compared first; a pattern that
    applies nowhere is not measured.

    :param models: files
    :param how: parameters of the measures
    :param on_step: called before each measure
    :return: a row for each pattern, model and number of threads
    :raises InvalidModelError: a file is no model
    :raises VerificationError: a model cannot run
    :raises OptionError: onnxruntime does not run models on the processor
    """
    how = how or Tuning()
    providers = providers_of(how.processor)
    paths = [Path(model) for model in models]
    measures: list[Measure] = []
    variants = _variants(how)
    with ExitStack() as files:
        opener = Opener(files, isolated=True)
        # a wrong file is refused before any measure
        references = [_reference(opener, path, how) for path in paths]
        for reference in references:
            reference.opener = Opener(files, providers, isolated=True)
        for i, (path, label) in enumerate(zip(paths, _labels(paths), strict=True)):
            with temporary_folder(tempfile.gettempdir(), "xoptim") as folder:
                bench = _Bench(path, label, how, references[i], Path(folder))
                for j, variant in enumerate(variants):
                    if on_step is not None:
                        share = (i + j / len(variants)) / len(models)
                        on_step(f"{variant.name} on {label}", share)
                    measures += bench.measures(variant)
    return measures


def _reference(opener: Opener, path: Path, how: Tuning) -> Reference:
    """The outputs of a model on inputs it accepts."""
    load_model(path)
    try:
        criterion = Criterion(how.rtol, how.atol)
        given = None if how.inputs is None else how.inputs(path)
        return Reference(opener, path, given, how.sizes, criterion, how.seed)
    except VerificationError as e:
        raise VerificationError(f"{str(path)!r} cannot be measured: {e}") from e


def _labels(paths: Sequence[Path]) -> list[str]:
    """The names of files, with their folders when several have the same name."""
    counts = Counter(path.name for path in paths)
    return [path.name if counts[path.name] == 1 else str(path) for path in paths]


def _variants(how: Tuning) -> list[_Variant]:
    """Each pattern with and without it, and once more with its gate open and closed."""
    base = get_pattern_list(how.base)
    variants = []
    for pattern in get_pattern_list(how.patterns):
        name = pattern.name
        asked = isinstance(pattern, SpeedGatedRewrite) and pattern.is_lifted
        is_in_base = any(p.name == name for p in base)
        plain = base if is_in_base or asked else [*base, pattern]
        if not asked:
            without = [p for p in base if p.name != name]
            variants.append(_Variant(name, name, without, plain))
        if isinstance(pattern, SpeedGatedRewrite):
            lifted, closed = pattern.lifted(), pattern.closed()
            opened = [lifted if p.name == name else p for p in plain]
            opened = opened if is_in_base or not asked else [*base, lifted]
            shut = [closed if p.name == name else p for p in plain]
            variants.append(_Variant(pattern.gate_name, name, shut, opened))
    return variants


class _Bench:
    """A model optimized with several selections, each optimized, run and compared once.

    :param model: its file
    :param label: its name in reports
    :param how: how to measure
    :param reference: its outputs
    :param folder: where the optimized models are written
    """

    def __init__(self, model: Path, label: str, how: Tuning, reference: Reference, folder: Path):
        self.model, self.label, self.how = model, label, how
        self.reference, self.folder = reference, folder
        self._made: dict[tuple[int, ...], tuple[Path, dict[str, int], str]] = {}

    def measures(self, variant: _Variant) -> Iterator[Measure]:
        """The rows of a pattern, none if it does not apply."""
        after, counts, reason = self._optimized(variant.complete)
        rewrites = counts.get(variant.pattern, 0)
        if not rewrites:
            return
        before, others, wrong = self._optimized(variant.without)
        rewrites -= others.get(variant.pattern, 0)
        if rewrites <= 0:
            return
        for threads in self.how.threads:
            row = Measure(variant.name, self.label, rewrites, threads, reason=wrong or reason)
            if row.ok:
                how = self.how
                first, second = (
                    fast_session(path, threads, processor=how.processor) for path in (before, after)
                )
                feeds = self.reference.draws.sets[0].feeds
                clock = clock_of(how.processor)
                found = compare_sessions(first, second, feeds, how.blocks, how.seconds, clock)
                row.microseconds, row.ratio = found.before * 1e6, found.ratio
            yield row

    def _optimized(self, selection: list[Member]) -> tuple[Path, dict[str, int], str]:
        """The file of an optimized model, the counts of each pattern, the reason it is wrong."""
        key = tuple(id(p) for p in selection)
        if key not in self._made:
            options = OptimizationOptions(patterns=selection, processor=self.how.processor)
            builder = GraphBuilder(
                str(self.model), infer_shapes_options=True, optimization_options=options
            )
            container, rows = builder.to_onnx(large_model=True, return_optimize_report=True)
            place = self.folder / str(len(self._made))
            place.mkdir()
            path = Path(container.save(place / "model.onnx")[-1])
            counts = {str(r["pattern"]): int(r["instances"]) for r in pattern_totals(rows)}
            self._made[key] = path, counts, self._difference(path)
        return self._made[key]

    def _difference(self, path: Path) -> str:
        """The reason why an optimized model differs, empty if it does not."""
        try:
            return self.reference.compare(path).reason
        except VerificationError as e:
            return str(e)


def summary(measures: Iterable[Measure], processor: str = "CPU") -> list[SpeedGate]:
    """The geometric mean of the ratios of each pattern, over models and numbers of threads.

    :param measures: rows, those of wrong results are left out
    :param processor: the processor that ran the models, `"CPU"` or `"CUDA"`
    """
    ratios: dict[str, list[float]] = defaultdict(list)
    for row in measures:
        if row.ok:
            ratios[row.pattern].append(row.ratio)
    version, features = installed_version(), measured_features(processor, processor)
    return [
        SpeedGate(name, processor, version, features, math.exp(sum(map(math.log, r)) / len(r)))
        for name, r in ratios.items()
    ]


def measure_rows(measures: Iterable[Measure], processor: str = "CPU") -> list[dict[str, Any]]:
    """The rows of a table, with the version of onnxruntime and the name of the processor.

    :param measures: the measures
    :param processor: the processor that ran the models, `"CPU"` or `"CUDA"`
    """
    version, features = installed_version(), measured_features(processor, processor)
    return [
        {
            **asdict(m),
            "microseconds": round(m.microseconds, 1),
            "ratio": round(m.ratio, 3),
            "onnxruntime": version,
            "features": features,
        }
        for m in measures
    ]
