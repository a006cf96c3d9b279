"""The few nodes of a model that compute one result, alone, with their inputs: to run them again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import ModelProto, NodeProto

from xbuilder.nodes.subgraphs import node_captures
from xbuilder.runtimes.sessions import plain_session

_SCRIPT = '''"""Runs the nodes that compute {name!r} on the inputs torch gives them.

{about}
"""

from pathlib import Path

import numpy as np
import onnxruntime

folder = Path(__file__).parent
data = np.load(folder / "data.npz")
session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
feeds = {{i.name: data[f"input_{{k}}"] for k, i in enumerate(session.get_inputs())}}
(got,) = session.run(None, feeds)
expected = data["expected"]
print("expected", expected.dtype, expected.shape, "got", got.dtype, got.shape)
if expected.shape == got.shape and expected.size:
    gap = np.abs(expected.astype(np.float64) - got.astype(np.float64))
    where = np.unravel_index(np.nanargmax(gap), gap.shape)
    print("largest difference", gap[where], "at", [int(i) for i in where])
'''


def run_model(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a model with onnxruntime, as it is written, and returns its outputs by name.

    :param model: the model
    :param feeds: its inputs
    """
    names = [o.name for o in model.graph.output]
    session = plain_session(model.SerializeToString(), threads=0)
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def with_outputs(model: ModelProto, names: Collection[str]) -> ModelProto:
    """A copy of a model with more outputs.

    :param model: the model
    :param names: results of its main graph
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    known = {o.name for o in copy.graph.output}
    for name in names:
        if name not in known:
            copy.graph.output.add(name=name)
    return copy


def nodes_of(model: ModelProto, name: str, known: Collection[str]) -> list[NodeProto]:
    """The nodes that compute a result from results that are known, in graph order.

    :param model: the model
    :param name: the result
    :param known: results where the search stops, inputs of the model included
    """
    makers = {o: i for i, node in enumerate(model.graph.node) for o in node.output if o}
    found: set[int] = set()
    stack = [name]
    while stack:
        index = makers.get(stack.pop())
        if index is not None and index not in found:
            found.add(index)
            stack.extend(n for n in _reads(model.graph.node[index]) if n not in known)
    return [model.graph.node[i] for i in sorted(found)]


def _reads(node: NodeProto) -> list[str]:
    return [name for name in dict.fromkeys((*node.input, *node_captures(node))) if name]


def extract(
    model: ModelProto, name: str, values: Mapping[str, np.ndarray]
) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """A model that computes one result, and its inputs.

    :param model: the model
    :param name: the result
    :param values: arrays known by name, the model stops there
    """
    nodes = nodes_of(model, name, values)
    made = {o for node in nodes for o in node.output}
    read = list(dict.fromkeys(n for node in nodes for n in _reads(node) if n not in made))
    weights = [i for i in model.graph.initializer if i.name in read]
    kept = {i.name for i in weights}
    feeds = {n: values[n] for n in read if n not in kept and n in values}
    inputs = [
        oh.make_tensor_value_info(n, oh.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in feeds.items()
    ]
    graph = oh.make_graph(nodes, "replay", inputs, [onnx.ValueInfoProto(name=name)], weights)
    graph.sparse_initializer.extend(
        i for i in model.graph.sparse_initializer if i.values.name in read
    )
    alone = oh.make_model(
        graph,
        opset_imports=model.opset_import,
        functions=model.functions,
        ir_version=model.ir_version,
    )
    return alone, feeds


def write_replay(
    folder: str | Path,
    model: ModelProto,
    feeds: Mapping[str, np.ndarray],
    expected: np.ndarray,
    about: str,
) -> Path:
    """Writes ``model.onnx``, ``data.npz`` and ``replay.py``, which runs one on the other.

    :param folder: the folder, made if it does not exist
    :param model: computes one result
    :param feeds: its inputs
    :param expected: the result in torch
    :param about: the place in the torch model, for the reader
    :return: the script
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    names = [i.name for i in model.graph.input]
    arrays: dict[str, Any] = {f"input_{k}": feeds[name] for k, name in enumerate(names)}
    np.savez(folder / "data.npz", expected=expected, **arrays)
    script = folder / "replay.py"
    about = about.replace("\\", "/").replace('"""', "'''")
    script.write_text(_SCRIPT.format(name=model.graph.output[0].name, about=about), "utf-8")
    return script
