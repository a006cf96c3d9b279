"""Reads a model, optimizes it and compares its results; writes nothing."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.writing.temporary_files import temporary_folder
from xbuilder.graph.features import Feature
from xbuilder.options import DEFAULT_CONSTANT_SIZE

from ..surgery.signature import SignatureChanges
from .result import OptimizedModel
from .saving import SavingFormat, copy_next_to_data, data_files, stored
from .traces import Traces

if TYPE_CHECKING:
    from ..reports.page.applications import RewriteExamples
    from ..surgery.signature import Shape
    from ..toolkit.features import Provenance
    from ..toolkit.profiles import Profile
    from ..trust.rewrite_places import RewritePlaces
    from ..trust.windows.validation import Validation
    from .steps import OnStep, Steps


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """One optimization of one model, with its options.

    :param model: what :class:`xbuilder.GraphBuilder` reads: a path, a ModelProto...
    :param patterns: selection of patterns, None for none
    :param processor: processors the model is meant for, such as `CPU,CUDA`
    :param target: what runs the model, see :mod:`xoptim.catalogue.targets`; None for no constraint
    :param max_iter: maximum number of iterations, -1 for no limit but the engine's
    :param constant_size: bytes a folded constant may add to the file, see
        :class:`xbuilder.OptimizationOptions`
    :param trust_shapes: the shapes the file declares for computed results are right
    :param positive_dims: dimensions of the inputs that are never 0, True for all of them
    :param public_operators: no rewrite writes an operator onnx does not know in its own domain
    :param keep_functions: calls to local functions are not inlined
    :param data_roots: folders the weights may be in, beside the model's
    :param saving: where the weights go
    :param target_opset: opset the model is converted to first, None to keep its own
    :param signature: changes of the signature, made first
    :param dynamic: shapes of inputs, with names in place of the sizes that become dynamic, see
        :func:`xoptim.surgery.dynamic.make_dynamic`
    :param comparison: the results are compared before writing, with these arguments of
        :func:`xoptim.trust.verification.verify_models`; None does not
    :param measured: the time of both models is measured, with these arguments of
        :func:`xoptim.tasks.measure.measure_models`; None does not
    :param folder: where temporary models are written, those of the comparison
    :param validation: checks each rewrite, None does not
    :param profile: measures the time, None does not
    :param provenance: records in new nodes the rewrites that wrote them and the nodes they replace
    :param traced: records what the page of the report shows beside the statistics
    :param features: other observers of the engine
    :param other_set: a set of patterns, counted where it matches the optimized model
    :param late_checks: big weights are checked when they are written, which may raise
        :class:`xbuilder.errors.LateCheckError` then
    :param verbose: verbosity of the engine
    :param on_step: receives the current step and None, or the share that is done
    """

    model: Any
    patterns: Any = "default"
    processor: str = "CPU"
    target: str | None = None
    max_iter: int = -1
    constant_size: int = DEFAULT_CONSTANT_SIZE
    trust_shapes: bool = False
    positive_dims: bool | Collection[str] = False
    public_operators: bool = False
    keep_functions: bool = False
    data_roots: Sequence[Path] = ()
    saving: SavingFormat = field(default_factory=SavingFormat)
    target_opset: int | None = None
    signature: SignatureChanges = field(default_factory=SignatureChanges)
    dynamic: Mapping[str, Shape] = field(default_factory=dict)
    comparison: Mapping[str, Any] | None = None
    measured: Mapping[str, Any] | None = None
    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    validation: Validation | None = None
    profile: Profile | None = None
    provenance: bool = False
    traced: bool = True
    features: Sequence[Feature] = ()
    other_set: str = ""
    late_checks: bool = False
    verbose: int = 0
    on_step: OnStep | None = None

    def run(self) -> OptimizedModel:
        """Reads, optimizes and verifies the model.

        :return: the optimized model and its statistics
        :raises OptionError: if a pattern wrote an operator that the target does not run
        :raises XoptimError: if the model cannot be read, optimized, or does not run
        """
        begin = time.perf_counter()
        provenance, examples = self._provenance(), self._examples()
        places, steps = self._places(), self._steps()
        watching = (self.validation, self.profile, provenance, examples, places, steps)
        observers = [f for f in (*watching, *self.features) if f is not None]
        mended: list[str] = []
        builder, before = self._read(observers, mended)
        # the container of a small model costs nothing, because its weights are still the builder's
        container, rows = builder.to_onnx(
            large_model=True,
            external_threshold=self.saving.threshold,
            return_optimize_report=True,
            inline=not self.keep_functions,
        )
        if isinstance(self.model, Path):
            container.protect(data_files(before, self.model))
        if self.provenance and provenance is not None:
            provenance.annotate(container.proto)
        if self.target is not None:
            from ..catalogue.targets import check_target

            check_target(self.target, before, container.proto)
        seconds = time.perf_counter() - begin
        result = stored(container, before, self.saving)
        done = OptimizedModel(
            before,
            container.proto,
            result,
            rows,
            seconds,
            name=str(self.model) if isinstance(self.model, Path) else before.graph.name,
            patterns=self.patterns,
            mended=mended,
            saving=self.saving,
            profile=self.profile,
            validation=None if self.validation is None else self.validation.summary,
        )
        if provenance is not None and examples is not None:
            done.traces = Traces(builder, provenance, examples, self.model, self.data_roots)
        if self.other_set:
            done.other_matches = _matches(builder, self.other_set, self.processor)
        if self.comparison is not None or self.measured is not None:
            self._run_both(done, places)
        return done

    def _provenance(self) -> Provenance | None:
        """The observer of the origins of the nodes, None if nothing tells them."""
        if not (self.provenance or self.traced):
            return None
        from ..toolkit.features import Provenance

        return Provenance()

    def _examples(self) -> RewriteExamples | None:
        """The observer of what the page draws, None without a page."""
        if not self.traced:
            return None
        from ..reports.page.applications import RewriteExamples

        return RewriteExamples()

    def _places(self) -> RewritePlaces | None:
        """The observer of what is verified, None without verification."""
        if self.comparison is None:
            return None
        from ..trust.rewrite_places import RewritePlaces

        return RewritePlaces()

    def _steps(self) -> Steps | None:
        if self.on_step is None:
            return None
        from .steps import Steps

        return Steps(self.on_step)

    def _read(self, features: list[Feature], mended: list[str]) -> tuple[GraphBuilder, ModelProto]:
        """The model, converted to another opset if asked, and as it was read. The nodes that no
        longer fix a size are added to a list."""
        options = OptimizationOptions(
            patterns=self.patterns,
            max_iter=self.max_iter,
            constant_size=self.constant_size,
            processor=self.processor,
            verbose=self.verbose,
            trust_shapes=self.trust_shapes,
            positive_dims=self.positive_dims,
            public_operators=self.public_operators,
            late_checks=self.late_checks,
            features=features,
        )

        def builder(model: Any, folder: str | None = None) -> GraphBuilder:
            return GraphBuilder(
                str(model) if isinstance(model, Path) else model,
                infer_shapes_options=True,
                allowed_roots=self.data_roots,
                optimization_options=options,
                base_dir=folder,
            )

        if self.target_opset is None and not self.signature and not self.dynamic:
            read = builder(self.model)
            return read, read.origin
        from xbuilder.files.model_files import load_model

        from ..surgery.signature import change_signature

        is_file = isinstance(self.model, Path)
        source = load_model(self.model, self.data_roots) if is_file else None
        proto = self.model if source is None else source.proto
        if self.signature:
            proto = change_signature(proto, self.signature, copy=not is_file)
        folder = None if source is None else source.base_dir
        converted = proto
        if self.dynamic:
            from ..surgery.dynamic import make_dynamic

            made = make_dynamic(proto, self.dynamic, folder, self.data_roots)
            converted = made.model
            mended += made.mended
        if self.target_opset is not None:
            from ..surgery.opset_conversion import convert_opset

            self._check_functions(proto)
            converted = convert_opset(converted, self.target_opset)
        return builder(converted, folder), proto

    def _check_functions(self, proto: ModelProto) -> None:
        """Refuses to convert functions that are kept.

        :raises OptionError: there are some
        """
        if proto.functions and self.keep_functions:
            raise OptionError(
                "the functions of the model are inlined by --target-opset, it does not go with "
                "--keep-functions"
            )

    def reference(self, before: ModelProto, folder: Path) -> Any:
        """The model whose results are those to keep, as onnxruntime reads it.

        :param before: the model as it was read, its signature changed
        :param folder: where it is written if it has to be
        """
        if not self.signature:
            return copy_next_to_data(self.model, self.data_roots, folder)
        if not isinstance(self.model, Path):
            return before
        roots = self.data_roots
        container = ModelContainer(before, base_dir=self.model.parent, allowed_roots=roots)
        return Path(container.save(folder / "before.onnx")[-1])

    def _run_both(self, done: OptimizedModel, places: RewritePlaces | None) -> None:
        """Compares the results of the two models and measures their time, if it is asked for.

        onnxruntime reads models with external data from files. They are written in a temporary
        folder where there is room for them, and removed at the end.
        """
        from ..trust.inputs.coverage import unverified
        from ..trust.verification import verify_models
        from .measure import measure_models

        with temporary_folder(str(self.folder), "xoptim") as folder:
            before = self.reference(done.before, Path(folder))
            after: ModelProto | Path
            if isinstance(done.stored, ModelContainer):
                after = Path(done.stored.save(Path(folder) / "after.onnx")[-1])
            else:
                after = done.stored
            tell = self.on_step or (lambda what, done: None)
            if self.comparison is not None:
                tell("runs both models", None)
                report = verify_models(before, after, **self.comparison, isolated=True)
                done.verification = report
                rows = (None, ()) if places is None else (places.results, places.right)
                done.unverified = unverified(report.never_ran, *rows)
            if self.measured is not None and not done.failure:
                tell("measures both models", None)
                names = ("before", "after")
                done.latency = measure_models(
                    before, after, names=names, memory=False, **self.measured
                )


def _matches(builder: GraphBuilder, patterns: str, processor: str) -> int:
    """The number of nodes where patterns match, without rewriting anything."""
    from ..engine.optimizer import GraphBuilderPatternOptimization

    engine = GraphBuilderPatternOptimization(builder.graph, patterns, processor=processor)
    found = {
        id(match.nodes[0])
        for pattern in engine.possible_patterns()
        for match in pattern.enumerate_matches(engine)
        if match.nodes
    }
    return len(found)
