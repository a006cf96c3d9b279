"""Adds the content of a graph to the graph of another model."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import SparseTensorProto

from ..errors import OptionError
from ..facts.facts import ResultFacts
from ..graph.graph import Graph
from ..nodes.functions import FunctionKey
from ..protos.inline_external import leave_folder
from .local_functions import add_functions
from .splicing import Rename, rename_calls, splice


def check_joined(
    graph: Graph, source: Graph, input_names: Sequence[str], output_names: Sequence[str]
) -> None:
    """Checks that a graph may join another one, and registers its domains.

    :param graph: receives the content
    :param source: the graph to add
    :param input_names: results of *graph* given to the inputs of *source*
    :param output_names: names of its outputs in *graph*
    :raises OptionError: it may not
    """
    for kind, expected, found in (
        ("input", source.input_names, input_names),
        ("output", source.output_names, output_names),
    ):
        if len(expected) != len(found):
            raise OptionError(
                f"The other graph has {len(expected)} {kind}s {expected}, "
                f"{len(found)} names were given: {list(found)}."
            )
    for name in input_names:
        if name and not graph.has_name(name):
            raise OptionError(f"Result {name!r} does not exist in the graph; add it first.")
    opsets = graph.opsets
    for domain, version in source.opsets.items():
        if opsets.setdefault(domain, version) != version:
            raise OptionError(
                f"Domain {domain or 'ai.onnx'!r} has version {opsets[domain]} in this graph "
                f"and {version} in the other one; make both with the same opsets."
            )


def join(
    graph: Graph,
    source: Graph,
    input_names: Sequence[str],
    output_names: Sequence[str],
    fresh: Rename,
) -> list[ResultFacts]:
    """Adds the content of a graph to another one, which knows its domains.

    :param graph: receives the content
    :param source: the graph to add, it is not usable afterwards
    :param input_names: results of *graph* given to the inputs of *source*
    :param output_names: names of its outputs in *graph*
    :param fresh: gives a name of *graph* to any other result
    :return: facts of the outputs of *source*
    :raises OptionError: the name of an output is taken
    """
    leave_folder(source, graph)
    renamed: dict[FunctionKey, FunctionKey] = add_functions(graph, source.functions, True)
    facts = [source.facts[n] for n in source.output_names]
    mapping = dict(zip(source.input_names, input_names, strict=True))
    results = list(zip(source.output_names, output_names, strict=True))
    for name in output_names:
        if graph.has_name(name):
            raise OptionError(f"Result {name!r} exists already; give another output name.")
        graph.names.reserve(name)
    _copy_initializers(graph, source, mapping, fresh)
    splice(graph, None, rename_calls(source.nodes, renamed), mapping, results, fresh)
    pinned = source.store.pinned & set(mapping)
    graph.store.pinned.update(mapping[name] for name in pinned)
    return facts


def _copy_initializers(graph: Graph, source: Graph, mapping: dict[str, str], fresh: Rename) -> None:
    """Adds the initializers of a graph to another one, and their names to the mapping."""
    for name, value in list(source.constants.initializers.items()):
        if mapping.get(name):  # the default value of an input that is given
            continue
        new = mapping[name] = fresh(name)
        graph.constants.add_initializer(new, value)
        if name in source.constants.sources:
            graph.constants.sources[new] = source.constants.sources[name]
        if name in source.constants.external_names:
            graph.constants.external_names.add(new)
    for sparse in source.sparse_initializers:
        name = sparse.values.name
        mapping[name] = fresh(name)
        _copy_sparse(graph, sparse, mapping[name])


def _copy_sparse(graph: Graph, sparse: SparseTensorProto, new: str) -> None:
    copy = SparseTensorProto()
    copy.CopyFrom(sparse)
    copy.values.name = new
    graph.sparse_initializers.append(copy)
    known = ResultFacts(copy.values.data_type, tuple(copy.dims))
    graph.facts.refine(new, known, "a sparse initializer")
