"""A feature that keeps outputs distinct from inputs and from other outputs."""

from __future__ import annotations

from collections.abc import Iterator

import onnx.helper as oh
from onnx import ValueInfoProto

from xbuilder.graph.features import Feature
from xbuilder.graph.graph import Graph
from xbuilder.inference.graph_inference import add_node


class DistinctOutputs(Feature):
    """Outputs never alias: neither an input, nor an initializer, nor another output.

    A runtime that writes its outputs in buffers of the caller, or over its inputs, may need it.
    Outputs that alias when the feature is attached go through an Identity, and get a name of their
    own. A rewrite that makes an alias is refused. Cost of a check:
    O(outputs).
    """

    def on_attach(self, graph: Graph) -> None:
        """Puts an Identity before each output that is an alias."""
        separate_outputs(graph)

    def validate(self, graph: Graph) -> str:
        """Names the first output that is an alias."""
        return next((reason for _, reason in aliases(graph)), "")


def aliases(graph: Graph) -> Iterator[tuple[int, str]]:
    """The outputs that are also an input, an initializer or another output.

    :return: the position of each one and the kind of the alias
    """
    seen: set[str] = set()
    for i, name in enumerate(graph.output_names):
        if name not in graph.store.producers:
            yield i, f"output {i} is {name!r}, which no node gives"
        elif name in seen:
            yield i, f"output {i} is {name!r}, which is another output"
        seen.add(name)


def separate_outputs(graph: Graph) -> int:
    """Renames outputs that are aliases and puts an Identity before them.

    :return: number of these outputs
    """
    renamed = list(aliases(graph))
    for i, _ in renamed:
        spec = graph.output_specs[i]
        name = graph.unique_name(f"{spec.name}_output")
        add_node(graph, oh.make_node("Identity", [spec.name], [name]))
        spec.name = name
        if spec.proto is not None:
            proto = ValueInfoProto()
            proto.CopyFrom(spec.proto)
            proto.name = name
            spec.proto = proto
    if renamed:
        graph.store.keep_outputs(graph.output_names)
    return len(renamed)
