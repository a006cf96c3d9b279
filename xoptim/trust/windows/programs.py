"""The small models of the windows under names of their own, so that equal ones share sessions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto

from xbuilder.nodes.copies import copy_with_captures, copy_with_edges
from xbuilder.nodes.subgraphs import node_captures
from xbuilder.runtimes.reference import reference_evaluator

from .doubles import to_double

_PREFIX = "window."
#: models kept for the next windows, and the largest one in bytes
_KEPT, _LARGEST = 128, 1 << 18


class Names:
    """Gives names their rank of appearance.

    :param prefix: beginning of the new names
    """

    def __init__(self, prefix: str = _PREFIX):
        self.prefix, self.known = prefix, dict[str, str]()

    def __call__(self, name: str) -> str:
        return self.known.setdefault(name, f"{self.prefix}{len(self.known)}") if name else ""


def renamed(node: NodeProto, rename: Callable[[str], str]) -> NodeProto:
    """A copy of a node with other names, and without what changes nothing of its results.

    :param node: a node
    :param rename: gives the new names, those its bodies capture included
    """
    captured = node_captures(node)
    if captured:
        node = copy_with_captures(node, {name: rename(name) for name in captured})
    inputs = tuple(map(rename, node.input))
    copy = copy_with_edges(node, inputs, tuple(map(rename, node.output)))
    for field in ("name", "doc_string", "metadata_props", "device_configurations"):
        copy.ClearField(field)
    return copy


class Program:
    """A model whose names are ranks of appearance.

    :param model: a model without functions

    Invariant: two models that only differ by the names of their results have the same content.
    """

    def __init__(self, model: ModelProto):
        rename = Names()
        self.names = rename.known
        graph = GraphProto(name="window")
        for kind in ("input", "initializer"):
            for value in getattr(model.graph, kind):
                getattr(graph, kind).add().CopyFrom(value)
                getattr(graph, kind)[-1].name = rename(value.name)
        graph.node.extend(renamed(node, rename) for node in model.graph.node)
        for value in model.graph.output:
            graph.output.add().CopyFrom(value)
            graph.output[-1].name = rename(value.name)
        whole = ModelProto(
            ir_version=model.ir_version, opset_import=model.opset_import, graph=graph
        )
        self.content: bytes = whole.SerializeToString(deterministic=True)

    def given(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Values under the names of the program.

        :param feeds: values under the names of the model
        """
        return {self.names[name]: value for name, value in feeds.items() if name in self.names}

    def original(self, text: str) -> str:
        """A message with the names of the model.

        :param text: a message with the names of the program
        """
        known = {new: old for old, new in self.names.items()}
        return re.sub(rf"{re.escape(_PREFIX)}\d+", lambda m: known.get(m.group(), m.group()), text)


def doubled(content: bytes) -> bytes:
    """A serialized model that computes with doubles.

    :param content: a serialized model
    """
    return _doubled(content) if len(content) < _LARGEST else _doubled.__wrapped__(content)


def evaluator_of(content: bytes) -> Any:
    """The reference evaluator of a serialized model, the one that was made for an equal model.

    :param content: a serialized model
    """
    return _evaluator(content) if len(content) < _LARGEST else _evaluator.__wrapped__(content)


@functools.lru_cache(_KEPT)
def _doubled(content: bytes) -> bytes:
    found: bytes = to_double(onnx.load_from_string(content)).SerializeToString(deterministic=True)
    return found


@functools.lru_cache(_KEPT)
def _evaluator(content: bytes) -> Any:
    return reference_evaluator(onnx.load_from_string(content))


def is_invalid(model: ModelProto) -> bool:
    """Whether ONNX refuses the types or the shapes that the nodes of a model read."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return True
    return False
