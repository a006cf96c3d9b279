"""The outputs of a graph of torch.compile: what a model computes, what Python gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..writing.fx_nodes import fake_value
from ..writing.symbols import SYM_KINDS

pytree = torch.utils._pytree


@dataclass(frozen=True, slots=True)
class InputBack:
    """An output that is an argument of the graph, returned as it is.

    :param position: which argument
    """

    position: int


@dataclass(frozen=True, slots=True)
class Constant:
    """An output that no node computes: None where there is no gradient, a number.

    :param value: what is returned
    """

    value: Any


@dataclass(frozen=True, slots=True)
class Computed:
    """An output of the model.

    :param position: which output of the model
    :param number: the Python type of a symbolic number, None for a tensor
    :param order: the dimensions from the largest stride to the smallest, None if it is contiguous
    """

    position: int
    number: type | None = None
    order: tuple[int, ...] | None = None


Output = InputBack | Constant | Computed


def split_outputs(
    module: torch.fx.GraphModule, returned: int | None = None
) -> tuple[torch.fx.GraphModule, list[Output]]:
    """A graph that only returns what has to be computed, and where every output comes from.

    A model has no output without type: None has no place there. An argument that is an output, as
    the weights a forward keeps for its backward, would be copied.

    :param module: graph of torch.compile
    :param returned: how many of the outputs, the first ones, the user sees, all by default; the
        strides of the others do not matter
    :return: the reduced graph, one entry for each output of the graph
    """
    inputs = {n: i for i, n in enumerate(module.graph.find_nodes(op="placeholder"))}
    leaves = pytree.tree_leaves(module.graph.output_node().args[0])
    computed: dict[torch.fx.Node, int] = {}
    outputs: list[Output] = []
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.fx.Node):
            outputs.append(Constant(leaf))
        elif leaf in inputs:
            outputs.append(InputBack(inputs[leaf]))
        else:
            fake, position = fake_value(leaf), computed.setdefault(leaf, len(computed))
            seen = returned is None or i < returned
            order = stride_order(fake) if seen and isinstance(fake, torch.Tensor) else None
            outputs.append(Computed(position, SYM_KINDS.get(type(fake)), order))
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    graph.graph_copy(module.graph, copies)
    graph.output(tuple(copies[n] for n in computed))
    return torch.fx.GraphModule(module, graph), outputs


def stride_order(fake: torch.Tensor) -> tuple[int, ...] | None:
    """The dimensions of a tensor from the largest stride to the smallest.

    :param fake: a tensor without data
    :return: None for the order of a contiguous tensor
    """
    axes, strides = range(fake.ndim), fake.stride()
    order = tuple(axes if fake.is_contiguous() else sorted(axes, key=lambda a: -strides[a]))
    return None if order == tuple(axes) else order
