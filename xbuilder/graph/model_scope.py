"""The state all graphs of a model share: opsets, options, functions, names, totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from onnx import FunctionProto

from ..constants.budget import Budget
from ..constants.growth import GrowthBudget
from ..dims.scope import DimensionNames
from ..facts.facts import ResultFacts
from ..files.data_folder import DataFolder
from ..nodes.functions import FunctionKey
from ..options import InferShapesOptions, PassOptions
from ..support.names import NameAllocator
from ..support.user_warnings import warn_user
from .notes import Notes


@dataclass(slots=True)
class Totals:
    """Totals over the optimization of a model so far, bodies and functions included.

    :param rewrites: number of rewrites applied
    :param growth: bytes constant folding adds to the model
    :param budget: cost of the constants that may still be computed
    :param notes: state of the passes and of the engine during one optimization
    """

    rewrites: int = 0
    growth: GrowthBudget = field(default_factory=GrowthBudget)
    budget: Budget = field(default_factory=Budget)
    notes: Notes = field(default_factory=Notes)

    def begin(self) -> None:
        """Another optimization begins."""
        self.rewrites, self.notes = 0, Notes()


@dataclass(slots=True)
class ModelScope:
    """State shared by the graph of a model and its bodies. A local function has its own scope.

    :param opsets: version of every domain
    :param options: how the model is optimized
    :param infer_options: how the types and shapes of a model that is read are inferred
    :param verbose: verbosity
    :param local_domain: domain of the local functions made out of graphs
    :param is_function: the outermost graph is the body of a local function
    :param ir_version: IR version to write, None for the lowest possible
    :param folder: where the external data is
    :param spells_main_domain: the model writes `ai.onnx` for the main domain
    :param functions: local functions
    :param names: names of results
    :param node_names: names of nodes
    :param dimensions: names of dimensions
    :param totals: totals over the optimization so far
    :param warned: results whose wrong declaration in the file the user was warned about
    :param changed_symbols: symbols an iteration of a loop changes, by output of the loop and
        attribute
    :param changed_sizes: sizes of the inputs of the body an iteration changes: position and axis,
        None for all
    :param pending_calls: functions whose bodies are being inferred
    :param call_facts: facts of the results of the calls inferred so far
    """

    opsets: dict[str, int] = field(default_factory=dict)
    options: PassOptions = field(default_factory=PassOptions)
    infer_options: InferShapesOptions = InferShapesOptions.NONE
    verbose: int = 0
    local_domain: str = "local_function"
    is_function: bool = False
    ir_version: int | None = None
    folder: DataFolder = field(default_factory=DataFolder)
    spells_main_domain: bool = False
    functions: dict[FunctionKey, FunctionProto] = field(default_factory=dict)
    names: NameAllocator = field(default_factory=NameAllocator)
    node_names: NameAllocator = field(default_factory=NameAllocator)
    dimensions: DimensionNames = field(default_factory=DimensionNames)
    totals: Totals = field(default_factory=Totals)
    warned: set[str] = field(default_factory=set)
    changed_symbols: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    changed_sizes: dict[tuple[str, str], set[tuple[int, int | None]]] = field(default_factory=dict)
    pending_calls: tuple[FunctionKey, ...] = ()
    call_facts: dict[tuple[Any, ...], list[ResultFacts | None]] = field(default_factory=dict)

    def for_function(self, key: FunctionKey) -> ModelScope:
        """Scope of a local function read on its own: the options and the other functions are those
        of the model, names and versions are its own.

        :param key: the function
        """
        others = self.functions.copy()
        others.pop(key, None)
        return replace(
            self,
            opsets={},
            is_function=True,
            ir_version=None,
            spells_main_domain=False,
            functions=others,
            names=NameAllocator(),
            node_names=NameAllocator(),
            dimensions=DimensionNames(),
            warned=set(),
            changed_symbols={},
            changed_sizes={},
            pending_calls=(),
            call_facts={},
        )

    def for_call(self, key: FunctionKey, opsets: Mapping[str, int]) -> ModelScope:
        """Scope of the body of one call, whose facts alone are read: dimensions and functions are
        those of the caller.

        :param key: the function that is called
        :param opsets: versions of its domains
        """
        return replace(
            self,
            opsets=dict(opsets),
            is_function=False,
            names=NameAllocator(),
            node_names=NameAllocator(),
            warned=set(),
            changed_symbols={},
            changed_sizes={},
            pending_calls=(*self.pending_calls, key),
        )

    def warn_wrong_declaration(self, name: str, reason: str) -> None:
        """Warns the user once that the file declares something wrong about a result.

        :param name: the result
        :param reason: what is inferred and what is declared
        """
        if name not in self.warned:
            self.warned.add(name)
            warn_user(
                f"The model declares something else than what is inferred for {name!r}: {reason}; "
                "the inferred one is kept."
            )
