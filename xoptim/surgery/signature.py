"""Changes the signature of a model: sizes and names of its dimensions, names, order, types."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from xbuilder.dims import Dim, substitute
from xbuilder.dims.errors import DimensionError
from xbuilder.errors import OptionError
from xbuilder.nodes.copies import copy_with_captures, copy_with_edges, rename_annotations
from xbuilder.nodes.functions import all_nodes
from xbuilder.nodes.subgraphs import node_captures, subgraphs_of
from xbuilder.operators.opsets import opsets_of
from xbuilder.support.close_names import closest_names

Shape = Sequence[int | str]

#: types as users write them
_TYPES = {
    **{n.lower(): n for n, _ in TensorProto.DataType.items() if n not in ("UNDEFINED", "STRING")},
    "float32": "FLOAT",
    "float64": "DOUBLE",
}
#: first opset where Cast has its attribute as an integer, and where it knows bfloat16
_CAST_OPSET, _BFLOAT16_OPSET = 6, 13


@dataclass(frozen=True)
class SignatureChanges:
    """The changes of a signature, made in this order.

    :param sizes: sizes of dimensions by name, `x[0]` for one that has none
    :param shapes: shapes of inputs; a name in place of a size names the dimension
    :param dims: other names for dimensions
    :param names: other names for inputs, outputs and other results of the main graph
    :param outputs: the outputs to keep, in this order, under their new names; all of them if empty
    :param inputs: the first inputs, in this order, under their new names; the others follow
    :param types: types of inputs and outputs, such as `float16`: a Cast is added
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    dims: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    inputs: Sequence[str] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(vars(self).values())


def change_signature(model: ModelProto, changes: SignatureChanges, copy: bool = True) -> ModelProto:
    """Changes the signature of a model; no node changes but in its names, Cast may be added.

    :param model: the model, its weights are not read
    :param changes: the changes
    :param copy: changes a copy, weights included, otherwise the model itself
    :return: the changed model
    :raises OptionError: a name is unknown or taken, a size contradicts the one the model declares,
        a type cannot be cast

    .. code-block:: python

        model = change_signature(model, SignatureChanges(sizes={"batch": 1}))
    """
    changed = model
    if copy:
        changed = ModelProto()
        changed.CopyFrom(model)
    forget_unknown_sizes(changed)
    sizes: dict[str, Dim] = {}
    check_known(changes.shapes, {v.name for v in changed.graph.input}, "input")
    for name, shape in changes.shapes.items():
        _set_shape(changed, name, shape, sizes)
    for name, size in changes.sizes.items():
        _settle(sizes, _named(changed, name), size)
    new_names = {name: new for name, new in changes.dims.items() if name != new}
    check_known(new_names, _symbols(changed), "dimension")
    for old, new in new_names.items():
        _settle(sizes, old, new)
    _substitute(changed, sizes)
    if changes.names:
        _rename(changed, changes.names)
    if changes.outputs:
        _keep_outputs(changed.graph, changes.outputs)
    if changes.inputs:
        _order_inputs(changed.graph, changes.inputs)
    for name, kind in changes.types.items():
        _cast(changed, name, kind)
    return changed


def check_known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuses a name that is not known.

    :param names: the names of a user
    :param known: those that exist
    :param what: the noun of the message
    :raises OptionError: the message tells the closest ones
    """
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


def dims_of(kind: TypeProto) -> Iterator[Any]:
    """The dimensions of a type, those of the elements of a sequence included.

    :param kind: the type
    """
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        yield from dims_of(getattr(kind, which).elem_type)
    elif which in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(kind, which).shape.dim


def forget_unknown_sizes(model: ModelProto) -> None:
    """Removes the size -1 and the name ?, which some exporters write for an unknown size.

    :param model: the model, its inputs are changed
    """
    for value in model.graph.input:
        for dim in dims_of(value.type):
            if dim.dim_value < 0:
                dim.ClearField("dim_value")
            elif dim.dim_param == "?":
                dim.ClearField("dim_param")


def _symbols(model: ModelProto) -> set[str]:
    """The names of the dimensions of the inputs."""
    found = (d.dim_param for v in model.graph.input for d in dims_of(v.type))
    return {name for name in found if name}


def _named(model: ModelProto, name: str) -> str:
    """The name of a dimension, given one if the user says where it is: `x[0]`."""
    places = {}
    for value in model.graph.input:
        for axis, dim in enumerate(dims_of(value.type)):
            if not dim.HasField("dim_value"):
                places[f"{value.name}[{axis}]"] = dim
    check_known([name], {*_symbols(model), *places}, "dynamic dimension")
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
        for dim in dims_of(value.type):
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
    check_known(names, known, "result")
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
    rename_annotations(graph, rename)
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
    check_known(outputs, known, "output")
    kept = [known[name] for name in dict.fromkeys(outputs)]
    del graph.output[:]
    graph.output.extend(kept)


def _order_inputs(graph: GraphProto, inputs: Sequence[str]) -> None:
    """Puts some inputs first, in this order."""
    known = {value.name: value for value in graph.input}
    check_known(inputs, known, "input")
    ordered = [known[name] for name in dict.fromkeys((*inputs, *known))]
    del graph.input[:]
    graph.input.extend(ordered)


# -- types


def _cast(model: ModelProto, name: str, kind: str) -> None:
    """Gives another type to an input or an output, with a Cast between it and the nodes."""
    graph = model.graph
    inputs, outputs = ({v.name: v for v in values} for values in (graph.input, graph.output))
    check_known([name], {*inputs, *outputs}, "input or output")
    if kind not in _TYPES:
        close = closest_names(kind, _TYPES)
        hint = f"did you mean {close[0]!r}" if close else f"expected one of {sorted(_TYPES)}"
        raise OptionError(f"There is no type {kind!r} a tensor may be cast to, {hint}.")
    asked = TensorProto.DataType.Value(_TYPES[kind])
    value = inputs.get(name) or outputs[name]
    declared = value.type.tensor_type.elem_type
    if declared == asked:
        return
    _check_cast(model, value, asked)
    if name in inputs and name in outputs:
        raise OptionError(f"{name!r} is an input and an output, its type cannot be changed.")
    inner = _free_name(model, f"{name}_{oh.tensor_dtype_to_np_dtype(declared)}")
    _rename(model, {name: inner})
    value.name, value.type.tensor_type.elem_type = name, asked
    if name in inputs:
        node = oh.make_node("Cast", [name], [inner], to=declared)
        nodes = [node, *graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
    else:
        graph.node.append(oh.make_node("Cast", [inner], [name], to=asked))


def cast_inputs(values: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """Inputs of a model as the model whose types were changed takes them.

    :param values: inputs by name
    :param types: see :class:`SignatureChanges`

    ::

        cast_inputs({"x": np.ones(2)}, {"x": "float16"})["x"].dtype  # float16
    """
    kinds = {n: TensorProto.DataType.Value(_TYPES[t]) for n, t in types.items() if t in _TYPES}
    return {
        n: np.asarray(v).astype(oh.tensor_dtype_to_np_dtype(kinds[n])) if n in kinds else v
        for n, v in values.items()
    }


def _check_cast(model: ModelProto, value: ValueInfoProto, asked: int) -> None:
    """Refuses a type that Cast does not reach from the one of an input or an output."""
    kind, opset = value.type.tensor_type.elem_type, opsets_of(model).get("", 1)
    if kind in (TensorProto.UNDEFINED, TensorProto.STRING):
        raise OptionError(f"{value.name!r} is no tensor of numbers, its type cannot be changed.")
    if any(tensor.name == value.name for tensor in model.graph.initializer):
        raise OptionError(f"{value.name!r} is a weight, its type cannot be changed.")
    needed = _BFLOAT16_OPSET if TensorProto.BFLOAT16 in (kind, asked) else _CAST_OPSET
    if opset < needed:
        raise OptionError(
            f"Cast of {value.name!r} needs opset {needed}, the model has {opset}: convert it with "
            "target_opset first."
        )


def _free_name(model: ModelProto, name: str) -> str:
    """A name no result of a model has."""
    taken = {v.name for v in (*model.graph.input, *model.graph.initializer)}
    taken.update(o for node in all_nodes(model.graph.node) for o in node.output)
    while name in taken:
        name += "_"
    return name
