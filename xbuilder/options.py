"""The options of the optimization, the inference and the functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any

from .errors import OptionError
from .runtimes.processors import check_processor
from .support.argument_types import PATH, check_names, check_type, shown


class InferShapesOptions(IntFlag):
    """How types and shapes of an existing model are inferred; flags add up.

    * `NONE`: only the declarations of the model are used
    * `NEW`: results the model declares nothing about are inferred, the others are left as declared
    * `ONNX`: `onnx.shape_inference` runs once on the whole model
    * `DATA_PROP`: the same with data propagation
    * `BUILDER`: every node is inferred by the shape functions of this project (True means this one)
    """

    NONE = 0
    NEW = 1
    ONNX = 2
    DATA_PROP = 4
    BUILDER = 8


class OrderAlgorithm(IntEnum):
    """Order of the nodes written at the end.

    * `NONE`: as they are
    * `RANDOM`: any topological order, the same one for the same model
    * `SHAPE`: nodes computing shapes run as early as they can, so that big results are freed sooner
    """

    NONE = 0
    RANDOM = 1
    SHAPE = 2


DEFAULT_PASSES = (
    "remove_identity",
    "remove_unused",
    "constant_folding",
    "remove_unused",
    "remove_duplicated_initializer",
    "patterns",
    "remove_unused",
    "remove_identity",
    "constant_folding",
    "remove_unused",
    "remove_duplicated_initializer",
    "remove_identity",
    "remove_unused",
    "order",
)

#: with this value of `constant_size`, constant folding has a budget relative to the model
DEFAULT_CONSTANT_SIZE = 1024

#: options whose values have one type; the others are checked where they are used
_TYPES: dict[str, tuple[type, ...]] = {
    "remove_unused": (bool,),
    "constant_size": (int,),
    "constant_fusing": (bool,),
    "remove_identity": (bool,),
    "remove_duplicated_shape": (bool,),
    "max_iter": (int,),
    "recursive": (bool,),
    "stop_after": (int,),
    "verbose": (int,),
    "verifies": (bool,),
    "checks": (bool,),
    "late_checks": (bool,),
    "trust_shapes": (bool,),
    "processor": (str,),
    "dump_applied_patterns": (*PATH, type(None)),
    "passes": (list, tuple),
    "public_operators": (bool,),
    "order": (OrderAlgorithm, str, type(None)),
    "features": (list, tuple),
}

#: what to do with a rewrite that fails
ON_FAILURE = ("raise", "warn", "ignore")

#: the default selection, which needs no check
DEFAULT_PATTERNS = "default"


def _as_given(selection: Any) -> list[Any]:
    """Returns a selection as the user wrote it. Nothing resolves it until a resolver is set."""
    return [selection] if isinstance(selection, str) else list(selection)


_resolve: Callable[[Any], list[Any]] = _as_given


def resolve_patterns_with(function: Callable[[Any], list[Any]]) -> None:
    """Sets the function that makes the patterns of a selection. Package xoptim provides it."""
    global _resolve
    _resolve = function


_check_pass: Callable[[str], object] = str


def check_passes_with(function: Callable[[str], object]) -> None:
    """Sets the function that refuses an unknown name of pass. The table of passes provides it."""
    global _check_pass
    _check_pass = function


def _no_profile() -> Any:
    """Refuses to make a profile, which needs package xoptim."""
    raise OptionError("Option profile=True needs package xoptim.")


_new_profile: Callable[[], Any] = _no_profile


def make_profiles_with(function: Callable[[], Any]) -> None:
    """Sets the function that makes a profile. Package xoptim provides it."""
    global _new_profile
    _new_profile = function


class _Selection:
    """Descriptor of the option `patterns`, a list of instances made when it is first read."""

    def __get__(self, options: Any, owner: type) -> Any:
        # read on the class, it is the default value of the field
        return DEFAULT_PATTERNS if options is None else _resolved(options.__dict__)

    def __set__(self, options: Any, value: Any) -> None:
        options.__dict__.update(patterns=value, are_resolved=False)


def _resolved(values: dict[str, Any]) -> list[Any] | None:
    """Patterns selected by the values of some options, made once."""
    if values["patterns"] is not None and not values["are_resolved"]:
        values.update(patterns=_resolve(values["patterns"]), are_resolved=True)
    found: list[Any] | None = values["patterns"]
    return found


@dataclass
class OptimizationOptions:
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
    :param verifies: checks every invariant of the graph after each iteration, and each call of a
        pattern: slow, for those who write patterns
    :param dump_applied_patterns: folder where every applied match is written as a small model
    :param processor: `"CPU"`, `"CUDA"` or `"CPU,CUDA"`, what the optimized model runs on; what is
        faster depends on the CPU, this one unless the option names another: `"CPU:intel-v4"` has
        AVX-512, `"CPU:intel-v3"` has not, so have `"CPU:amd-v4"` and `"CPU:amd-v3"`; there is also
        `"CPU:aarch64"`
    :param order: :class:`OrderAlgorithm` or its name, None leaves the nodes as they are
    :param passes: names of the passes, in order, an unknown one is refused
    :param trust_shapes: the shapes a file declares for computed results are right even where the
        inference cannot know them (a Reshape whose shape is computed at run time), and rewrites
        rely on them; otherwise they are labels, since runtimes do not check them either
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

    remove_unused: bool = True
    constant_folding: bool | Sequence[str] = True
    constant_size: int = DEFAULT_CONSTANT_SIZE
    constant_fusing: bool = True
    remove_identity: bool = True
    remove_duplicated_shape: bool = True
    patterns: Any = _Selection()
    max_iter: int = -1
    recursive: bool = True
    stop_after: int = -1
    verbose: int = 0
    verifies: bool = False
    dump_applied_patterns: str | os.PathLike[str] | None = None
    processor: str = "CPU"
    order: OrderAlgorithm | str | None = OrderAlgorithm.SHAPE
    passes: Sequence[str] = field(default=DEFAULT_PASSES)
    trust_shapes: bool = False
    public_operators: bool = False
    checks: bool = True
    late_checks: bool = False
    on_failure: Any = "raise"
    features: Sequence[Any] = ()
    profile: Any = False

    def __post_init__(self) -> None:
        self._check_types()
        self._add_profile()
        if self.order is None:
            self.order = OrderAlgorithm.NONE
        if isinstance(self.order, str):
            names = OrderAlgorithm.__members__
            if self.order.upper() not in names:
                raise OptionError(f"Unknown order {self.order!r}, expected one of {list(names)}.")
            self.order = names[self.order.upper()]
        check_processor(self.processor)
        if not isinstance(self.constant_folding, bool):
            check_names("constant_folding", self.constant_folding)
        if self.__dict__["patterns"] != DEFAULT_PATTERNS:
            _resolved(self.__dict__)  # refuses a wrong name now
        if self.passes is not DEFAULT_PASSES:
            self._check_passes()

    def _check_passes(self) -> None:
        """Refuses an unknown name of pass."""
        for name in self.passes:
            if not isinstance(name, str):
                raise OptionError(f"Option passes expects names of passes, not {name!r}.")
            _check_pass(name)

    def _add_profile(self) -> None:
        """Adds the profile to the features."""
        if not isinstance(self.profile, bool) and not hasattr(self.profile, "on_attach"):
            raise OptionError(
                f"Option profile expects True, False or a feature, not {shown(self.profile)}."
            )
        if self.profile is True:
            self.profile = _new_profile()
        if self.profile and not any(f is self.profile for f in self.features):
            self.features = (*self.features, self.profile)

    def _check_types(self) -> None:
        for name, expected in _TYPES.items():
            check_type(f"Option {name}", getattr(self, name), expected)
        if not callable(self.on_failure) and self.on_failure not in ON_FAILURE:
            raise OptionError(
                f"Option on_failure expects a function or one of {list(ON_FAILURE)}, "
                f"not {shown(self.on_failure)}."
            )
        if self.constant_size < 0:
            raise OptionError(f"constant_size must be >= 0, got {self.constant_size}.")

    def may_fold(self, op_type: str) -> bool:
        """Whether nodes of this type may be folded."""
        if isinstance(self.constant_folding, bool):
            return self.constant_folding
        return op_type in self.constant_folding

    def __repr__(self) -> str:
        rows = [
            f"{name}={getattr(self, name)!r}"
            for name, spec in self.__dataclass_fields__.items()
            if name != "patterns" and getattr(self, name) != spec.default
        ]
        names = None if self.patterns is None else [type(p).__name__ for p in self.patterns]
        rows.append(f"patterns={'None' if names is None else '[' + ', '.join(names) + ']'}")
        return f"{type(self).__name__}({', '.join(rows)})"


@dataclass
class FunctionOptions:
    """Options of the making of a local function out of a builder.

    :param export_as_function: makes a function; a name implies it
    :param name: its name
    :param domain: its domain
    :param external_threshold: initializers above this size (bytes) become inputs of the function
    :param move_initializer_to_constant: initializers become Constant nodes inside the function
    :param return_initializer: initializers become additional inputs, returned to the caller
    :param inline: inlines the functions called by this one
    :param merge_allowed: an equal function that exists already is reused
    :param rename_allowed: the function takes another name if a different one has its name
    """

    export_as_function: bool = False
    name: str = ""
    domain: str = ""
    external_threshold: int = 2**25
    move_initializer_to_constant: bool = False
    return_initializer: bool = False
    inline: bool = False
    merge_allowed: bool = False
    rename_allowed: bool = False

    def __post_init__(self) -> None:
        for name, spec in self.__dataclass_fields__.items():
            check_type(f"FunctionOptions.{name}", getattr(self, name), type(spec.default))
        if self.name:
            self.export_as_function = True
        if self.export_as_function and not self.name:
            raise OptionError("FunctionOptions(export_as_function=True) needs a name.")
