"""What converts a graph, as seen by what converts its subgraphs and its functions.

:class:`.interpreter.Interpreter` is the one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from xbuilder import GraphBuilder

from ..inputs.dynamic_shapes import DimensionNamer
from .function_plan import FunctionPlan, Group


@dataclass(frozen=True, slots=True)
class Region:
    """The graph nodes belong to.

    :param module: the owner of the graph
    :param live: the nodes to convert
    :param wanted: the nodes needed outside, beside those other live nodes use
    """

    module: torch.fx.GraphModule
    live: set[torch.fx.Node]
    wanted: set[torch.fx.Node]


class Conversion(Protocol):
    """Converts the nodes of one fx graph into the nodes of one ONNX graph.

    * *g*, *root*: receives the nodes, receives the local functions
    * *namer*: prints the dimensions
    * *plan*: what becomes a local function
    * *prefix*: in a function, what the names in the model start with
    """

    g: GraphBuilder
    root: GraphBuilder
    namer: DimensionNamer
    plan: FunctionPlan
    prefix: str

    def convert_nodes(
        self, region: Region, nodes: Sequence[torch.fx.Node], values: dict[torch.fx.Node, Any]
    ) -> Any:
        """Converts some nodes of a graph in order."""

    def inline(self, module: torch.fx.GraphModule, args: Iterable[Any]) -> Any:
        """Converts the graph of a submodule at this place."""

    def child(self) -> Conversion:
        """Converts a subgraph, which sees the results of this graph."""

    def for_function(self, builder: GraphBuilder, group: Group) -> Conversion:
        """Converts the body of a function, which sees nothing of this graph."""

    def initializer(self, name: str, value: torch.Tensor) -> str:
        """Adds a weight or a constant."""

    def allocate(self, node: torch.fx.Node, fake: Any) -> list[str]:
        """Chooses the names of the results."""

    def short_name(self, node: torch.fx.Node) -> str:
        """The name of a node, without number in a function."""

    def record(self, node: torch.fx.Node, fake: Any, result: Any) -> Any:
        """Sets types and shapes of the results."""

    def declare_output(
        self,
        name: str,
        value: Any,
        allow_untyped: bool = False,
        shape: Sequence[int | str] | None = None,
    ) -> None:
        """Declares an output of the graph."""


#: converts a node that owns other graphs: conversion, node, arguments, named arguments
Handler = Callable[[Conversion, torch.fx.Node, list[Any], dict[str, Any]], Any]
