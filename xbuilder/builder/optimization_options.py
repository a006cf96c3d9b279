"""OptimizationOptions, the options users write: names become passes, patterns, a profile."""

from __future__ import annotations

from typing import Any

from ..graph.model_scope import ModelScope
from ..options import PassOptions
from ..support.argument_types import check_type
from ..support.notebook import html_table


class OptimizationOptions(PassOptions):
    """Options of the optimizer.

    :param remove_unused: removes nodes and initializers that no output needs
    :param constant_folding: True, False, or the operator types that may be folded
    :param constant_size: bytes one fold may add to the model, all of them 64 times as many; with
        the default value, they share one percent of the weights, 64 kilobytes at least
    :param constant_fusing: merges equal initializers
    :param remove_identity: removes Identity nodes
    :param remove_duplicated_shape: keeps one of the Shape nodes computing the same shape
    :param patterns: None, names of sets and patterns (`"default+onnxruntime-CastCast"`, `"A,B"`),
        a `RewriteDatabaseQuery`, or a list of these and of instances; it becomes a list of
        instances, an unknown name is refused
    :param max_iter: maximum number of iterations of the pattern engine, -1 for no limit but the
        engine's
    :param recursive: optimizes subgraphs and local functions as well
    :param stop_after: stops after this number of applied matches, -1 for no limit
    :param verbose: 0 silent, 1 a line per iteration, 10 everything
    :param verifies: runs the nodes each rewrite removed and those it wrote, and compares them, see
        `xoptim.trust.windows.validation.Validation`; checks every invariant of the graph after each
        iteration, and each call of a pattern: slow, for those who write patterns
    :param dump_applied_patterns: folder where every applied match is written as a small model
    :param processor: `"CPU"`, `"CUDA"` or `"CPU,CUDA"`, what the optimized model runs on. The
        rewrites that are faster depend on the CPU, that of this machine unless the option names
        another one: `"CPU:intel-v4"` and `"CPU:amd-v4"` have AVX-512, `"CPU:intel-v3"` and
        `"CPU:amd-v3"` do not, and `"CPU:aarch64"` is an ARM processor
    :param order: :class:`OrderAlgorithm` or its name, None leaves the nodes as they are
    :param passes: names of the passes, in order, an unknown one is refused
    :param trust_shapes: the shapes a file declares for computed results are right even where the
        inference cannot know them (a Reshape whose shape is computed at run time), and rewrites
        rely on them; otherwise they are labels, since runtimes do not check them either
    :param positive_dims: no dimension of an input is ever 0 (True), or those of these names are
        not. Several rewrites wait for that proof, as a Reshape whose shape holds both -1 and a
        dimension that may be 0. The optimized model may fail, or be wrong, on an input without
        elements; sizes of 0 are left out of the validation of rewrites
    :param public_operators: no pattern writes an operator of the main domain that only onnxruntime
        knows, `onnx.checker` accepts the result
    :param on_failure: what to do with a rewrite that fails: `"raise"`, `"warn"`, `"ignore"`, or a
        function of the error and of what failed, after which the optimization continues
    :param features: notified of every change of the graphs while they are optimized, see
        :class:`xbuilder.graph.features.Feature`
    :param profile: measures the optimization: True becomes the profile to read when it is over,
        one of these features, see `xoptim.toolkit.profiles.Profile`
    :param late_checks: a big weight that is multiplied by constants is checked when it is written,
        because it would be read once more otherwise. Writing or reading it raises
        :class:`xbuilder.errors.LateCheckError` if a product is not finite, or too small for its
        type, and the model is to be optimized again without this option, as the command does
    :param checks: a pattern of yours that changes nodes in place, or any one that writes nodes that
        are not valid, is caught and named; a few percent of the time

    ::

        OptimizationOptions(patterns="default+onnxruntime-TransposeTranspose", verbose=1)
    """

    def __post_init__(self) -> None:
        from ..passes.patterns import new_profile, with_validation
        from ..passes.registry import get_pass

        super().__post_init__()
        for name in self.passes:
            get_pass(name)  # refuses an unknown one
        if self.profile is True:
            self.profile = new_profile()
        if self.profile and not any(f is self.profile for f in self.features):
            self.features = (*self.features, self.profile)
        if self.verifies:
            self.features = with_validation(self.features)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an option. Patterns become a list of instances at once."""
        if name == "patterns" and value is not None:
            from ..passes.patterns import select_patterns

            value = select_patterns(value)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        values = {**vars(self), "order": getattr(self.order, "name", None)}
        texts = {name: repr(value) for name, value in values.items() if name != "patterns"}
        patterns = None if self.patterns is None else ", ".join(map(_written, self.patterns))
        texts["patterns"] = "None" if patterns is None else f"[{patterns}]"
        rows = [
            f"{name}={texts[name]}"
            for name, spec in self.__dataclass_fields__.items()
            if name == "patterns" or getattr(self, name) != spec.default
        ]
        return f"{type(self).__name__}({', '.join(rows)})"

    def _repr_html_(self) -> str:
        """The options that have not their default value, for a notebook."""
        values = {**vars(self), "order": getattr(self.order, "name", None)}
        names = [type(p).__name__ for p in self.patterns or ()]
        values["patterns"] = f"{len(names)}: {', '.join(names)}" if names else "none"
        rows = [
            (name, values[name])
            for name, spec in self.__dataclass_fields__.items()
            if name == "patterns" or getattr(self, name) != spec.default
        ]
        return html_table(type(self).__name__, ["option", "value"], rows)


def _written(pattern: Any) -> str:
    """A pattern in a list: its name, or the call that makes it when it is one of the user."""
    if type(pattern).__module__.partition(".")[0] != "xoptim":
        return repr(pattern)
    return repr(repr(pattern).removesuffix("()"))


def as_options(value: Any, name: str = "optimization_options") -> OptimizationOptions | None:
    """Options as users write them: options, or the selection of patterns alone.

    :param value: options, `"default+onnxruntime"`, or None
    :param name: the argument, for the message
    :raises OptionError: it is something else, or a name is unknown

    ::

        as_options("default+onnxruntime").processor  # 'CPU'
    """
    if isinstance(value, str):
        return OptimizationOptions(patterns=None if value.strip().lower() == "none" else value)
    expected = "OptimizationOptions, the names of patterns or None"
    check_type(name, value, OptimizationOptions, expected, optional=True)
    found: OptimizationOptions | None = value
    return found


def resolved_options(scope: ModelScope) -> OptimizationOptions:
    """The options of a model. Those of a builder made without any are resolved here, when they are
    first needed: it may never run a pattern."""
    if not isinstance(scope.options, OptimizationOptions):
        scope.options = OptimizationOptions(**vars(scope.options))
    return scope.options
