"""The small models of the windows under names of their own, so that equal ones share sessions."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import onnx
from onnx import ModelProto, NodeProto

from xbuilder.nodes.copies import copy_with_captures
from xbuilder.nodes.subgraphs import node_captures

from .doubles import to_double

_PREFIX = "window."
#: models kept for the next windows, and the largest one in bytes
_KEPT, _LARGEST = 128, 1 << 18


class Program:
    """A model whose names are ranks of appearance.

    :param model: a model without functions

    Invariant: two models that only differ by the names of their results have the same content.
    """

    def __init__(self, model: ModelProto):
        self.names: dict[str, str] = {}
        copy = ModelProto()
        copy.CopyFrom(model)
        for values in (copy.graph.input, copy.graph.initializer):
            for value in values:
                value.name = self._renamed(value.name)
        for node in copy.graph.node:
            self._rename_node(node)
        for value in copy.graph.output:
            value.name = self._renamed(value.name)
        self.content: bytes = copy.SerializeToString(deterministic=True)

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

    def _renamed(self, name: str) -> str:
        return self.names.setdefault(name, f"{_PREFIX}{len(self.names)}") if name else ""

    def _rename_node(self, node: NodeProto) -> None:
        captured = {name: self._renamed(name) for name in node_captures(node)}
        if captured:
            node.CopyFrom(copy_with_captures(node, captured))
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = self._renamed(name)
        for field in ("name", "doc_string", "metadata_props", "device_configurations"):
            node.ClearField(field)


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
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onnx.load_from_string(content))
