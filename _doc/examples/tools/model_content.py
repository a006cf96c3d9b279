"""
What a model holds
==================

Nodes, operators and fingerprints of a model, the files of a corpus. ``bench_corpus.py`` and
``bench_graphs.py`` compare models with them.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import onnx


def digest(*parts: object) -> str:
    """A short hash of a few values."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def subgraphs_of(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    """The graphs an attribute holds."""
    if attribute.type == onnx.AttributeProto.GRAPH:
        return [attribute.g]
    return list(attribute.graphs)


def iterate_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in subgraphs_of(attribute):
                yield from iterate_nodes(graph.node)


def count_operators(model: onnx.ModelProto) -> dict[str, int]:
    """Number of nodes of each operator, subgraphs and functions included."""
    bodies = [model.graph.node, *(f.node for f in model.functions)]
    names = (
        f"{node.domain}.{node.op_type}".lstrip(".")
        for body in bodies
        for node in iterate_nodes(body)
    )
    return dict(sorted(collections.Counter(names).items()))


def count_nodes(model: onnx.ModelProto) -> int:
    """Number of nodes, subgraphs and functions included, Constant apart."""
    return sum(n for name, n in count_operators(model).items() if name != "Constant")


# -- fingerprints: a result is what gives it, its operator, its attributes, its operands


def fingerprint(model: onnx.ModelProto) -> str:
    """The content two models have in common when only names and the order of the nodes differ.

    :param model: a model whose graphs are sorted
    """
    opsets = sorted((o.domain, o.version) for o in model.opset_import)
    functions = sorted(_of_function(f) for f in model.functions)
    return digest(opsets, functions, _of_graph(model.graph, {}))


def _of_function(function: onnx.FunctionProto) -> str:
    known = {name: digest("input", i) for i, name in enumerate(function.input)}
    attributes = (
        sorted(function.attribute),
        sorted(_attribute(a, {}) for a in function.attribute_proto),
    )
    body = _of_nodes(function.node, known, function.output)
    return digest(function.domain, function.name, function.overload, attributes, body)


def _of_graph(graph: onnx.GraphProto, outer: Mapping[str, str]) -> str:
    known = dict(outer)
    known.update((info.name, digest("input", i)) for i, info in enumerate(graph.input))
    for tensor in graph.initializer:
        content = onnx.TensorProto()
        content.CopyFrom(tensor)
        content.ClearField("name")
        content.ClearField("doc_string")
        known[tensor.name] = digest(content.SerializeToString(deterministic=True))
    for sparse in graph.sparse_initializer:
        known[sparse.values.name] = digest(sparse.SerializeToString(deterministic=True))
    return _of_nodes(graph.node, known, [o.name for o in graph.output])


def _of_nodes(
    nodes: Iterable[onnx.NodeProto], known: dict[str, str], outputs: Iterable[str]
) -> str:
    found = []
    for node in nodes:
        attributes = sorted(_attribute(a, known) for a in node.attribute)
        operands = [known.get(name, "") for name in node.input]
        found.append(digest(node.domain, node.op_type, node.overload, attributes, operands))
        known.update((name, digest(found[-1], i)) for i, name in enumerate(node.output) if name)
    return digest([known.get(name, "") for name in outputs], sorted(found))


def _attribute(attribute: onnx.AttributeProto, known: Mapping[str, str]) -> str:
    graphs = subgraphs_of(attribute)
    if graphs:
        return digest(attribute.name, [_of_graph(g, known) for g in graphs])
    content = onnx.AttributeProto()
    content.CopyFrom(attribute)
    if content.HasField("t"):
        content.t.ClearField("name")
    return digest(content.SerializeToString(deterministic=True))


# -- the files of a corpus


def models_of(folders: Iterable[Path]) -> dict[str, Path]:
    """The ONNX files of folders by name: their path in the folder without the extension, and
    without ``model`` where the folder of a file has the name.

    :raises FileNotFoundError: a folder has none
    :raises ValueError: two files have the same name
    """
    found: dict[str, Path] = {}
    for folder in map(Path.resolve, folders):
        paths = sorted(folder.rglob("*.onnx"))
        if not paths:
            raise FileNotFoundError(f"No file *.onnx in {folder}.")
        for path in paths:
            name = path.relative_to(folder).with_suffix("").as_posix().removesuffix("/model")
            if name in found:
                raise ValueError(f"Two models are called {name!r}: {found[name]} and {path}.")
            found[name] = path
    return found
