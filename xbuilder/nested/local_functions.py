"""Turns graphs into local functions, and adds functions to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx.helper as oh
from onnx import FunctionProto

from ..errors import OptionError
from ..graph.graph import Graph
from ..nodes.copies import function_with
from ..nodes.functions import FunctionKey, all_nodes, function_key
from ..nodes.value_infos import IOSpec
from ..operators.domains import main_domain
from ..options import FunctionOptions
from ..protos.exporting import export_function
from ..protos.inline_external import leave_folder
from ..tensors.sizes import initializer_bytes
from .inlining import inline_functions
from .splicing import rename_calls


def make_local_function(
    graph: Graph,
    source: Graph,
    options: FunctionOptions,
    optimize: Callable[[Graph], object] | None = None,
    metadata_props: dict[str, str] | None = None,
) -> tuple[list[str], FunctionKey]:
    """Turns a graph into a local function of the model of another one.

    :param graph: receives the function
    :param source: becomes the function
    :param options: name, domain, treatment of the initializers
    :param optimize: optimizes the body first, if it is given
    :param metadata_props: metadata stored in the function
    :return: names of the initializers that became inputs, and the key `(domain, name)`
    :raises OptionError: another function has the same name
    """
    if not options.export_as_function or not options.name:
        raise OptionError(
            "make_local_function needs FunctionOptions(export_as_function=True, name=...)."
        )
    if options.inline and source.functions:
        inline_functions(source)
    if optimize is not None:
        optimize(source)
    leave_folder(source, graph)
    renamed = add_functions(graph, source.functions, options.rename_allowed)
    added = _initializers_to_inputs(graph, source, options)
    proto = _renamed(export_function(source, options), renamed)
    if not options.domain:
        proto.domain = graph.scope.local_domain
    if metadata_props:
        oh.set_metadata_props(proto, metadata_props)
    key = _add_function(graph, proto, options.merge_allowed, options.rename_allowed)
    graph.add_domain(key[0])
    return added, key


def _initializers_to_inputs(graph: Graph, source: Graph, options: FunctionOptions) -> list[str]:
    """Turns initializers that are not kept in the function into inputs: all of them, or the big
    ones."""
    added: list[str] = []
    for name, value in list(source.constants.initializers.items()):
        small = initializer_bytes(value) < options.external_threshold
        stays = options.move_initializer_to_constant or not options.return_initializer
        if (small and stays) or name in source.constants.overridable:
            continue
        source.input_specs.append(IOSpec(name))
        source.constants.take_initializer(name)
        added.append(
            graph.make_initializer(name, value, give_unique=True, source=f"function {options.name}")
        )
    return added


def add_functions(
    graph: Graph, functions: Mapping[FunctionKey, FunctionProto], rename: bool
) -> dict[FunctionKey, FunctionKey]:
    """Adds functions to a model, those they call first, unless the model has an equal one.

    :param graph: receives the functions
    :param functions: the functions
    :param rename: a function whose name is taken by another one gets a free name
    :return: new keys of the renamed functions; the calls inside functions already have them
    :raises OptionError: a name is taken
    """
    renamed: dict[FunctionKey, FunctionKey] = {}
    done: set[FunctionKey] = set()

    def add(key: FunctionKey) -> None:
        if key in done:
            return
        done.add(key)
        for node in all_nodes(functions[key].node):
            if function_key(node) in functions:
                add(function_key(node))
        new = _add_function(graph, _renamed(functions[key], renamed), True, rename)
        if new != key:
            renamed[key] = new
        graph.add_domain(new[0])

    for key in functions:
        add(key)
    return renamed


def _renamed(function: FunctionProto, renamed: Mapping[FunctionKey, FunctionKey]) -> FunctionProto:
    return function_with(function, rename_calls(function.node, renamed))


def _key_of(proto: FunctionProto, name: str) -> FunctionKey:
    return main_domain(proto.domain), f"{name}:{proto.overload}" if proto.overload else name


def _content(proto: FunctionProto) -> bytes:
    """Serializes a function without its name and what its nodes say of their source, to compare
    functions."""
    copy = FunctionProto()
    copy.CopyFrom(proto)
    copy.name = ""
    for node in all_nodes(copy.node):
        del node.metadata_props[:]
    return bytes(copy.SerializeToString(deterministic=True))


def _add_function(graph: Graph, proto: FunctionProto, merge: bool, rename: bool) -> FunctionKey:
    content, i, name = _content(proto), 1, proto.name
    while True:
        key = _key_of(proto, name)
        known = graph.functions.get(key)
        if known is None:
            proto.name = name
            graph.functions[key] = proto
            return key
        same = _content(known) == content
        if same and merge:
            return key
        if not rename:
            raise OptionError(
                f"{'An equal' if same else 'A different'} function {key} exists already; "
                "allow FunctionOptions(merge_allowed=True) or rename_allowed=True."
            )
        i += 1
        name = f"{proto.name}_{i}"
