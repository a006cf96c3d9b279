"""The interface of Interpreter that converters of subgraphs and functions use."""

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
    """A graph and the nodes to convert in it.

    :param module: the owner of the graph
    :param live: the nodes to convert
    :param wanted: nodes needed outside of the graph, besides those that live nodes use
    """

    module: torch.fx.GraphModule
    live: set[torch.fx.Node]
    wanted: set[torch.fx.Node]


class Conversion(Protocol):
    """Converts the nodes of one fx graph into the nodes of one ONNX graph.

    * *g*, *root*: receives the nodes, receives the local functions
    * *namer*: prints the dimensions
    * *plan*: the nodes that become local functions
    * *prefix*: in a function, the prefix of the names in the model
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
        """Inlines the graph of a submodule at this place."""

    def child(self) -> Conversion:
        """An interpreter for a subgraph, which sees the results of this graph."""

    def for_function(self, builder: GraphBuilder, group: Group) -> Conversion:
        """An interpreter for the body of a function, which sees nothing of this graph."""

    def initializer(self, name: str, value: torch.Tensor) -> str:
        """Adds a weight or a constant."""

    def allocate(self, node: torch.fx.Node, fake: Any) -> list[str]:
        """Chooses the names of the results."""

    def short_name(self, node: torch.fx.Node) -> str:
        """The name of a node, without number in a function."""

    def record(self, node: torch.fx.Node, fake: Any, result: Any) -> Any:
        """Records types and shapes of the results."""

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
