"""Changes the signature of a model: sizes and names of its dimensions, names, outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from xbuilder.dims import Dim, substitute
from xbuilder.dims.errors import DimensionError
from xbuilder.errors import OptionError
from xbuilder.nodes.copies import copy_with_captures, copy_with_edges
from xbuilder.nodes.functions import all_nodes
from xbuilder.nodes.subgraphs import node_captures, subgraphs_of
from xbuilder.support.close_names import closest_names

Shape = Sequence[int | str]


@dataclass(frozen=True)
class SignatureChanges:
    """The changes of a signature, made in this order.

    :param sizes: sizes of dimensions by name, `x[0]` for one that has none
    :param shapes: shapes of inputs; a name in place of a size names the dimension
    :param dims: other names for dimensions
    :param names: other names for inputs, outputs and other results of the main graph
    :param outputs: the outputs to keep, in this order, under their new names; all of them if empty
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    dims: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    outputs: Sequence[str] = ()

    def __bool__(self) -> bool:
        return any((self.sizes, self.shapes, self.dims, self.names, self.outputs))


def change_signature(model: ModelProto, changes: SignatureChanges, copy: bool = True) -> ModelProto:
    """Changes the signature of a model; no node changes but in its names.

    :param model: the model, its weights are not read
    :param changes: the changes
    :param copy: changes a copy, weights included, otherwise the model itself
    :return: the changed model
    :raises OptionError: a name is unknown or taken, a size contradicts the one the model declares

    .. code-block:: python

        model = change_signature(model, SignatureChanges(sizes={"batch": 1}))
    """
    changed = model
    if copy:
        changed = ModelProto()
        changed.CopyFrom(model)
    sizes: dict[str, Dim] = {}
    _check_known(changes.shapes, {v.name for v in changed.graph.input}, "input")
    for name, shape in changes.shapes.items():
        _set_shape(changed, name, shape, sizes)
    for name, size in changes.sizes.items():
        _settle(sizes, _named(changed, name), size)
    new_names = {name: new for name, new in changes.dims.items() if name != new}
    _check_known(new_names, _symbols(changed), "dimension")
    for old, new in new_names.items():
        _settle(sizes, old, new)
    _substitute(changed, sizes)
    if changes.names:
        _rename(changed, changes.names)
    if changes.outputs:
        _keep_outputs(changed.graph, changes.outputs)
    return changed


def _check_known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuses a name that is not known, tells the closest ones."""
    known = sorted(known)
    for name in names:
        if name not in known:
            close = closest_names(name, known)
            hint = (
                f"did you mean {', '.join(map(repr, close))}" if close else f"it has {known[:10]}"
            )
            raise OptionError(f"The model has no {what} {name!r}, {hint}")


def _settle(sizes: dict[str, Dim], name: str, size: Dim) -> None:
    if sizes.setdefault(name, size) != size:
        raise OptionError(f"Dimension {name!r} has two values, {sizes[name]} and {size}.")


# -- dimensions


def _value_infos(model: ModelProto) -> Iterator[ValueInfoProto]:
    """Every declaration of a model: those of its main graph, subgraphs and functions."""
    graphs: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    nodes = [n for holder in graphs for n in all_nodes(holder.node)]
    inner = [graph for node in nodes for _, graph in subgraphs_of(node)]
    for graph in (model.graph, *inner):
        yield from (*graph.input, *graph.output, *graph.value_info)
    for function in model.functions:
        yield from function.value_info


def _dims_of(kind: TypeProto) -> Iterator[Any]:
    """The dimensions of a type, those of the elements of a sequence included."""
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        yield from _dims_of(getattr(kind, which).elem_type)
    elif which in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(kind, which).shape.dim


def _symbols(model: ModelProto) -> set[str]:
    """The names of the dimensions of the inputs."""
    found = (d.dim_param for v in model.graph.input for d in _dims_of(v.type))
    return {name for name in found if name}


def _named(model: ModelProto, name: str) -> str:
    """The name of a dimension, given one if the user says where it is: `x[0]`."""
    places = {}
    for value in model.graph.input:
        for axis, dim in enumerate(_dims_of(value.type)):
            if not dim.HasField("dim_value"):
                places[f"{value.name}[{axis}]"] = dim
    _check_known([name], {*_symbols(model), *places}, "dynamic dimension")
    if name in places and name not in _symbols(model):
        dim = places[name]
        if not dim.dim_param:
            dim.dim_param = name.replace("[", "_").rstrip("]")
        return str(dim.dim_param)
    return name


def _set_shape(model: ModelProto, name: str, shape: Shape, sizes: dict[str, Dim]) -> None:
    """Notes what the shape of an input says of its dimensions."""
    value = next(v for v in model.graph.input if v.name == name)
    if not value.type.HasField("tensor_type"):
        raise OptionError(f"Input {name!r} is no tensor, it has no shape.")
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        for _ in shape:
            tensor.shape.dim.add()
    if len(tensor.shape.dim) != len(shape):
        raise OptionError(
            f"Input {name!r} has {len(tensor.shape.dim)} dimensions, the shape {list(shape)} has "
            f"{len(shape)}."
        )
    for axis, (dim, asked) in enumerate(zip(tensor.shape.dim, shape, strict=True)):
        if not dim.HasField("dim_value"):
            symbol = _named(model, dim.dim_param or f"{name}[{axis}]")
            if symbol != asked:
                _settle(sizes, symbol, asked)
        elif dim.dim_value != asked:
            raise OptionError(
                f"Dimension {axis} of input {name!r} is {dim.dim_value}, not {asked}: the nodes "
                "may rely on a size that the model fixes. Export it with this dimension dynamic."
            )


def _substitute(model: ModelProto, sizes: Mapping[str, Dim]) -> None:
    """Replaces dimensions everywhere. A declaration that cannot be read loses its dimension."""
    if not sizes:
        return
    for value in _value_infos(model):
        for dim in _dims_of(value.type):
            text = dim.dim_param
            if not text:
                continue
            found: Dim = sizes.get(text, text)
            if found == text:
                with contextlib.suppress(DimensionError):
                    found = substitute(text, sizes)
            if isinstance(found, int):
                dim.dim_value = found
            elif found != text:
                dim.dim_param = found


# -- names


def _rename(model: ModelProto, names: Mapping[str, str]) -> None:
    """Renames results of the main graph, in its subgraphs too."""
    graph = model.graph
    weights = [*graph.initializer, *(s.values for s in graph.sparse_initializer)]
    made = {o for node in graph.node for o in node.output if o}
    known = {*made, *(v.name for v in graph.input), *(w.name for w in weights)}
    _check_known(names, known, "result")
    inner = {o for n in all_nodes(graph.node) for o in n.output}
    for new in names.values():
        if (new in known or new in inner) and new not in names:
            raise OptionError(f"A result is called {new!r} already, choose another name.")
    if len(set(names.values())) < len(names):
        raise OptionError(f"Two results would have the same name: {sorted(names.values())}.")

    def rename(name: str) -> str:
        return names.get(name, name)

    for value in (*graph.input, *graph.output, *graph.value_info, *weights):
        value.name = rename(value.name)
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = rename(annotation.tensor_name)
    nodes = [_renamed(node, names, rename) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def _renamed(node: NodeProto, names: Mapping[str, str], rename: Callable[[str], str]) -> NodeProto:
    """A node with other names of results."""
    captured = [name for name in node_captures(node) if name in names]
    if captured:
        node = copy_with_captures(node, {name: names[name] for name in captured})
    edges = {*node.input, *node.output}
    if edges.isdisjoint(names):
        return node
    return copy_with_edges(node, tuple(map(rename, node.input)), tuple(map(rename, node.output)))


def _keep_outputs(graph: GraphProto, outputs: Sequence[str]) -> None:
    """Keeps some outputs only, in this order. The optimizer removes what nothing needs any more."""
    known = {value.name: value for value in graph.output}
    _check_known(outputs, known, "output")
    kept = [known[name] for name in dict.fromkeys(outputs)]
    del graph.output[:]
    graph.output.extend(kept)
