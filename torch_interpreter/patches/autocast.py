"""Graphs with autocast regions. torch writes their casts when it decomposes the graph."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

import torch

from xbuilder.support.user_warnings import warn_user

_TYPE_CHECK = "aten._assert_tensor_metadata.default"
#: position of the argument `enabled` of a region
_ENABLED = 2
_DEVICES = ("cpu", "cuda")


def has_autocast(graph: torch.fx.Graph) -> bool:
    """Whether a region of a graph runs under autocast.

    One that disables autocast writes no cast, unless another region encloses it.
    """
    regions = [n for n in graph.nodes if str(n.target) == "wrap_with_autocast"]
    return any(n.args[_ENABLED] is not False for n in regions)


def graph_modules(program: torch.export.ExportedProgram) -> list[torch.fx.GraphModule]:
    """The graph of a program and the graphs of its regions."""
    modules = program.graph_module.modules()
    return [m for m in modules if isinstance(m, torch.fx.GraphModule)]


def without_type_checks(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """A copy of the program without its assertions on element types.

    Dynamo does not see the casts of the enclosing regions, so the types it asserts are wrong.
    """
    changed: torch.export.ExportedProgram = program._update(
        copy.deepcopy(program.graph_module), program.graph_signature
    )
    for module in graph_modules(changed):
        for node in list(module.graph.nodes):
            if str(node.target) == _TYPE_CHECK:
                module.graph.erase_node(node)
        module.recompile()
    return changed


@contextlib.contextmanager
def without_autocast(mod: object) -> Iterator[None]:
    """Exports out of the autocast of the caller in this context, and warns about it: torch.export
    gives the graph the types of this autocast, not the casts.

    :param mod: the model; a program that torch exported already has its casts
    """
    devices = [d for d in _DEVICES if torch.is_autocast_enabled(d)]
    if devices and not isinstance(mod, torch.export.ExportedProgram):
        warn_user(
            "The model is exported out of torch.autocast, with the types of its weights: enter "
            "torch.autocast in forward to export its casts."
        )
    with contextlib.ExitStack() as stack:
        for device in devices:
            stack.enter_context(torch.autocast(device, enabled=False))
        yield
