"""Cuts a part out of a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnx import ModelProto

from xbuilder.errors import OptionError
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import load_model
from xbuilder.nodes.subgraphs import node_captures
from xbuilder.support.close_names import closest_names

from ..reports.model_summary import iterate_nodes
from ..unfused import unfused_nodes


def extract_model(
    model: ModelProto | str | os.PathLike[str],
    outputs: Sequence[str],
    inputs: Sequence[str] = (),
    data_roots: Sequence[Any] = (),
) -> ModelProto:
    """Cuts out the nodes that compute some results.

    :param model: a model or its path
    :param outputs: results of the main graph: the outputs of the part
    :param inputs: results the part begins with; the inputs of the model it needs are added
    :param data_roots: folders the weights may be in, beside the model's
    :return: a model whose inputs and outputs have the types and the shapes that are inferred
    :raises OptionError: a name is not a result of the model, or the outputs depend on none of the
        inputs

    ::

        part = extract_model("model.onnx", ["scores"], ["query", "key"])
    """
    if isinstance(model, ModelProto):
        proto = model
    else:
        loaded = load_model(model, data_roots)
        proto = ModelContainer.load(Path(loaded.path), data_roots).to_model_proto()
    _check_names(proto, [*inputs, *outputs])
    own = [v.name for v in proto.graph.input if v.name not in inputs]
    part = unfused_nodes(proto, [*inputs, *own], outputs, as_proto=True)
    assert isinstance(part, ModelProto), "it is asked for"
    read = {n for node in part.graph.node for n in (*node.input, *node_captures(node))}
    if inputs and not read.union(outputs).intersection(inputs):
        raise OptionError(
            f"{_list(outputs)} does not depend on {_list(inputs)}: the part begins with results "
            "that come before its outputs."
        )
    kept = [v for v in part.graph.input if v.name in read or v.name in inputs]
    del part.graph.input[:]
    part.graph.input.extend(kept)
    called = {(node.domain, node.op_type) for node in iterate_nodes(proto)}
    part.functions.extend(f for f in proto.functions if (f.domain, f.name) in called)
    part.producer_name, part.producer_version = proto.producer_name, proto.producer_version
    return part


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _check_names(model: ModelProto, names: Sequence[str]) -> None:
    """Refuses a name that is no result of the main graph, tells the closest ones."""
    graph = model.graph
    known = {o for node in graph.node for o in node.output if o}
    known.update(v.name for v in (*graph.input, *graph.initializer))
    for name in names:
        if name not in known:
            close = ", ".join(map(repr, closest_names(name, known)))
            hint = f"did you mean {close}?" if close else "`xoptim print` lists them."
            raise OptionError(f"The model has no result {name!r}, {hint}")
