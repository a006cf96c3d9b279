"""The options of the passes, the inference and the functions: plain values."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any

from .errors import OptionError
from .runtimes.processors import check_processor
from .support.argument_types import PATH, check_names, check_type, shown


class InferShapesOptions(IntFlag):
    """The inference of types and shapes of an existing model; flags add up.

    * `NONE`: only the declarations of the model are used, until its patterns run: what they may ask
      for is inferred then
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
    "positive_dims": (bool, list, tuple, set, frozenset),
    "processor": (str,),
    "dump_applied_patterns": (*PATH, type(None)),
    "passes": (list, tuple),
    "public_operators": (bool,),
    "order": (OrderAlgorithm, str, type(None)),
    "features": (list, tuple),
}

#: what to do with a rewrite that fails
ON_FAILURE = ("raise", "warn", "ignore")


@dataclass
class PassOptions:
    """The options the passes and the engine read, checked one by one, nothing is resolved.

    Those of a user are :class:`xbuilder.OptimizationOptions`, which says what each one means.
    """

    remove_unused: bool = True
    constant_folding: bool | Sequence[str] = True
    constant_size: int = DEFAULT_CONSTANT_SIZE
    constant_fusing: bool = True
    remove_identity: bool = True
    remove_duplicated_shape: bool = True
    patterns: Any = "default"
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
    positive_dims: bool | Collection[str] = False
    public_operators: bool = False
    checks: bool = True
    late_checks: bool = False
    on_failure: Any = "raise"
    features: Sequence[Any] = ()
    profile: Any = False

    def __post_init__(self) -> None:
        self._check_types()
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
        if not isinstance(self.positive_dims, bool):
            check_names("Option positive_dims", self.positive_dims)
        check_names("Option passes", self.passes)

    def _check_types(self) -> None:
        for name, expected in _TYPES.items():
            check_type(f"Option {name}", getattr(self, name), expected)
        if not callable(self.on_failure) and self.on_failure not in ON_FAILURE:
            raise OptionError(
                f"Option on_failure expects a function or one of {list(ON_FAILURE)}, "
                f"not {shown(self.on_failure)}."
            )
        if not isinstance(self.profile, bool) and not hasattr(self.profile, "on_attach"):
            raise OptionError(
                f"Option profile expects True, False or a feature, not {shown(self.profile)}."
            )
        if self.constant_size < 0:
            raise OptionError(f"constant_size must be >= 0, got {self.constant_size}.")

    def may_fold(self, op_type: str) -> bool:
        """Whether nodes of this type may be folded."""
        if isinstance(self.constant_folding, bool):
            return self.constant_folding
        return op_type in self.constant_folding


@dataclass
class FunctionOptions:
    """Options of the making of a local function out of a builder.

    :param export_as_function: makes a function; a name implies it
    :param name: its name
    :param domain: its domain; the local domain of the model if it is empty, or `"*"`
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
        if self.domain == "*":
            self.domain = ""
        if self.export_as_function and not self.name:
            raise OptionError("FunctionOptions(export_as_function=True) needs a name.")
