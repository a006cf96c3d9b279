"""Inputs and outputs of a graph: converts their types to facts and back, reads their dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import onnx.helper as oh
from onnx import TensorShapeProto, TypeProto, ValueInfoProto

from ..dims import Dim, Shape
from ..dims.scope import as_written
from ..facts.facts import MAX_RANK, ResultFacts

#: names exporters write for an unknown dimension; two of them are not equal
_NO_NAMES = frozenset({"?", "*", "-1", "None", "unk", "unknown"})

#: metadata of an input that is an integer, or a vector of one: the dimension it holds
DIMENSION = "xoptim.dimension"


@dataclass(slots=True)
class IOSpec:
    """An input or an output: the proto of the file it comes from, else the declared type and
    shape."""

    name: str
    proto: ValueInfoProto | None = None
    doc_string: str = ""


def shape_from_proto(
    proto: TensorShapeProto, new_dim: Callable[[str], str], normalize: Callable[[str], Dim]
) -> Shape:
    """Converts a shape. A dimension without value nor name becomes a fresh symbol."""
    dims: list[Dim] = []
    for d in proto.dim:
        kind = d.WhichOneof("value")
        if kind == "dim_value" and d.dim_value >= 0:
            dims.append(d.dim_value)
        elif kind == "dim_param" and d.dim_param and d.dim_param not in _NO_NAMES:
            dims.append(normalize(d.dim_param))
        else:
            dims.append(new_dim("unk"))
    return tuple(dims)


def facts_from_type(
    proto: TypeProto, new_dim: Callable[[str], str], normalize: Callable[[str], Dim]
) -> ResultFacts:
    """Converts an ONNX type into facts, without the dimensions if there are too many."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        if not tensor.HasField("shape") or len(tensor.shape.dim) > MAX_RANK:
            return ResultFacts(tensor.elem_type)
        return ResultFacts(tensor.elem_type, shape_from_proto(tensor.shape, new_dim, normalize))
    if kind == "sequence_type":
        inner = facts_from_type(proto.sequence_type.elem_type, new_dim, normalize)
        return ResultFacts(sequence=inner)
    if kind == "optional_type":
        inner = facts_from_type(proto.optional_type.elem_type, new_dim, normalize)
        return ResultFacts(optional=inner)
    return ResultFacts()


def facts_to_type(facts: ResultFacts, keep: Callable[[str], bool]) -> TypeProto | None:
    """Converts facts into an ONNX type, None if the type is not known.

    :param facts: facts of a result
    :param keep: whether a symbolic dimension is written, the others are left unknown
    """
    if facts.sequence is not None:
        inner = facts_to_type(facts.sequence, keep)
        return None if inner is None else oh.make_sequence_type_proto(inner)
    if facts.optional is not None:
        inner = facts_to_type(facts.optional, keep)
        return None if inner is None else oh.make_optional_type_proto(inner)
    if not facts.type:
        return None
    shape: tuple[int | str | None, ...] | None = facts.shape
    if shape is None and facts.rank is not None:
        shape = (None,) * facts.rank
    if shape is not None:
        shape = tuple(
            as_written(d) if isinstance(d, str) and keep(d) else d if isinstance(d, int) else None
            for d in shape
        )
    return oh.make_tensor_type_proto(facts.type, shape)


def value_info(name: str, facts: ResultFacts, keep: Callable[[str], bool]) -> ValueInfoProto | None:
    """Makes a ValueInfoProto, None if the type is not known."""
    proto = facts_to_type(facts, keep)
    return None if proto is None else oh.make_value_info(name, proto)


def shape_protos(proto: TypeProto) -> Iterator[TensorShapeProto]:
    """Shapes in a type: one for a tensor, that of the elements for a sequence."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        if tensor.HasField("shape"):
            yield tensor.shape
    elif kind in ("sequence_type", "optional_type"):
        yield from shape_protos(getattr(proto, kind).elem_type)


def declared_names(infos: Sequence[ValueInfoProto]) -> set[str]:
    """Names or expressions some value infos declare as dimensions, or as content."""
    dims = {
        dim.dim_param
        for info in infos
        for shape in shape_protos(info.type)
        for dim in shape.dim
        if dim.dim_param
    }
    return dims.union(filter(None, map(held_dimension, infos)))


def held_dimension(info: ValueInfoProto) -> str:
    """The dimension an input holds, as its metadata says, empty if it holds none."""
    if not info.metadata_props:
        return ""
    return next((p.value for p in info.metadata_props if p.key == DIMENSION), "")


def hold_dimension(info: ValueInfoProto, facts: ResultFacts, keep: Callable[[str], bool]) -> None:
    """Writes the dimension an input holds in its metadata, if it is known to hold one.

    :param info: changed in place
    :param facts: facts of the input
    :param keep: whether a symbolic dimension is written
    """
    value = facts.value
    dim = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    if isinstance(dim, str) and keep(dim) and not held_dimension(info):
        info.metadata_props.add(key=DIMENSION, value=as_written(dim))


def clear_names(infos: Sequence[ValueInfoProto]) -> None:
    """Makes the symbolic dimensions of some value infos unknown.

    :param infos: changed in place
    """
    for info in infos:
        for shape in shape_protos(info.type):
            for dim in shape.dim:
                if dim.HasField("dim_param"):
                    dim.ClearField("dim_param")
