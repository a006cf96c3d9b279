"""Models nobody meant to write: one or several changes of a valid one, in its proto or bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

INTEGERS = (0, 1, -1, 2, 3, 7, 64, 65, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e38, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "x", "N", "N+1", "2*", "?", "a b", "é", "\x00", "../w.data", "a" * 5000, "((((" * 50)
#: operators that take the place of others
OP_TYPES = (
    "Add",
    "Cast",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Expand",
    "Gather",
    "Identity",
    "If",
    "Loop",
    "MatMul",
    "NoSuchOperator",
    "Range",
    "ReduceSum",
    "Reshape",
    "Shape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
    "Where",
)
_INTEGER_TYPES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_REAL_TYPES = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}


class Mutator:
    """Makes mutants of a model, always the same for the same seed.

    :param seed: seed of every choice
    """

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def pick(self, items: Any) -> Any:
        """One of the items."""
        return items[int(self.rng.integers(len(items)))]

    def mutant(self, model: ModelProto) -> bytes:
        """The bytes of a mutant; one in four is changed as bytes, the others as a proto.

        :param model: a valid model, it is not changed
        """
        if self.rng.random() < 0.25:
            return self.changed_bytes(model.SerializeToString())
        copy = ModelProto()
        copy.CopyFrom(model)
        for _ in range(self.pick((1, 1, 1, 2, 3))):
            change = self.pick(_CHANGES)
            change(self, copy)
        return copy.SerializeToString()

    # -- bytes

    def changed_bytes(self, data: bytes) -> bytes:
        """Truncates, flips, removes, repeats or inserts bytes."""
        size = len(data)
        kind = self.pick(("truncate", "flip", "flip", "flip", "remove", "repeat", "insert"))
        start = int(self.rng.integers(size))
        stop = min(size, start + int(self.rng.integers(1, 17)))
        if kind == "truncate":
            return data[:start]
        if kind == "remove":
            return data[:start] + data[stop:]
        if kind == "repeat":
            return data[:stop] + data[start:]
        if kind == "insert":
            return data[:start] + self.rng.bytes(stop - start) + data[start:]
        changed = bytearray(data)
        for _ in range(self.pick((1, 1, 2, 8))):
            changed[int(self.rng.integers(size))] ^= 1 << int(self.rng.integers(8))
        return bytes(changed)

    # -- any field of a proto

    def any_field(self, model: ModelProto) -> None:
        """Changes, removes, repeats or swaps one field of one message."""
        message = self.pick(list(_messages(model)))
        field = self.pick(message.DESCRIPTOR.fields)
        if _is_repeated(field):
            self._change_list(message, field, model)
        elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            self._change_message(message, field, model)
        elif self.rng.random() < 0.2:
            message.ClearField(field.name)
        else:
            setattr(message, field.name, self._scalar(field, model))

    def _scalar(self, field: FieldDescriptor, model: ModelProto) -> Any:
        if field.cpp_type in _INTEGER_TYPES:
            low, high = _INTEGER_TYPES[field.cpp_type]
            return max(low, min(high, self.pick(INTEGERS)))
        if field.cpp_type in _REAL_TYPES:
            return self.pick(FLOATS)
        if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
            return self.pick([v.number for v in field.enum_type.values])
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return bool(self.rng.integers(2))
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self.rng.bytes(self.pick((0, 1, 8, 100)))
        names = [n for node in model.graph.node for n in (*node.input, *node.output)]
        return self.pick(names) if names and self.rng.random() < 0.5 else self.pick(TEXTS)

    def _change_list(self, message: Message, field: FieldDescriptor, model: ModelProto) -> None:
        values = getattr(message, field.name)
        kind = self.pick(("remove", "repeat", "swap", "change", "clear", "add"))
        if kind == "clear":
            del values[:]
        elif kind == "add" or not values:
            self._add(values, field, model)
        elif kind == "remove":
            del values[int(self.rng.integers(len(values)))]
        elif kind == "repeat":
            values.append(self.pick(values))
        elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            values[int(self.rng.integers(len(values)))].CopyFrom(_copy(self.pick(values)))
        elif kind == "swap":
            values[int(self.rng.integers(len(values)))] = self.pick(values)
        else:
            values[int(self.rng.integers(len(values)))] = self._scalar(field, model)

    def _add(self, values: Any, field: FieldDescriptor, model: ModelProto) -> None:
        if field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
            values.append(self._scalar(field, model))
            return
        others = [m for m in _messages(model) if m.DESCRIPTOR is field.message_type]
        copy = _copy(self.pick(others)) if others else None
        added = values.add()
        if copy is not None:
            added.CopyFrom(copy)

    def _change_message(self, message: Message, field: FieldDescriptor, model: ModelProto) -> None:
        others = [m for m in _messages(model) if m.DESCRIPTOR is field.message_type]
        if others and self.rng.random() < 0.7:
            getattr(message, field.name).CopyFrom(_copy(self.pick(others)))
        else:
            message.ClearField(field.name)

    # -- changes that make sense to a reader of models

    def wrong_edge(self, model: ModelProto) -> None:
        """A node reads another result: one that comes later makes a cycle."""
        node = self._node(model)
        names = [n for other in model.graph.node for n in other.output]
        names += [i.name for i in (*model.graph.input, *model.graph.initializer)]
        if node is not None and node.input and names:
            node.input[int(self.rng.integers(len(node.input)))] = self.pick(names)

    def wrong_operator(self, model: ModelProto) -> None:
        """A node becomes another operator."""
        node = self._node(model)
        if node is not None:
            node.op_type = self.pick(OP_TYPES)

    def wrong_attribute(self, model: ModelProto) -> None:
        """An attribute has another value, another type, or another name."""
        node = self._node(model)
        if node is None or not node.attribute:
            return
        attribute: AttributeProto = self.pick(node.attribute)
        kind = self.pick(("i", "f", "s", "ints", "type", "name", "value"))
        if kind == "type":
            attribute.type = self.pick(AttributeProto.AttributeType.values())
        elif kind == "name":
            attribute.name = self.pick((*TEXTS, "axis", "perm", "to", "value"))
        elif attribute.type == AttributeProto.INT or kind == "i":
            attribute.i, attribute.type = self.pick(INTEGERS), AttributeProto.INT
        elif attribute.type == AttributeProto.INTS or kind == "ints":
            attribute.ints.append(self.pick(INTEGERS))
            attribute.type = AttributeProto.INTS
        elif attribute.type == AttributeProto.FLOAT or kind == "f":
            attribute.f, attribute.type = self.pick(FLOATS), AttributeProto.FLOAT
        else:
            attribute.s = self.pick(TEXTS).encode()

    def wrong_type(self, model: ModelProto) -> None:
        """An input, an output or an initializer has another type of elements, or other dimensions."""
        graph = model.graph
        kind = self.pick(("value", "value", "tensor"))
        if kind == "tensor" and graph.initializer:
            tensor: TensorProto = self.pick(graph.initializer)
            if self.rng.random() < 0.5:
                tensor.data_type = self.pick((*TensorProto.DataType.values(), 2**31 - 1))
            else:
                tensor.dims.append(self.pick(INTEGERS))
            return
        infos = [*graph.input, *graph.output, *graph.value_info]
        if not infos:
            return
        tensor_type = self.pick(infos).type.tensor_type
        if self.rng.random() < 0.4:
            tensor_type.elem_type = self.pick((*TensorProto.DataType.values(), 2**31 - 1))
        elif tensor_type.shape.dim and self.rng.random() < 0.8:
            dim = self.pick(tensor_type.shape.dim)
            if self.rng.random() < 0.5:
                dim.dim_value = self.pick(INTEGERS)
            else:
                dim.dim_param = self.pick(TEXTS)
        else:
            tensor_type.shape.dim.add()

    def wrong_content(self, model: ModelProto) -> None:
        """A small integer tensor, a shape or axes perhaps, holds other numbers."""
        tensors = [t for t in _messages(model) if isinstance(t, TensorProto)]
        integers = [t for t in tensors if t.data_type == TensorProto.INT64 and t.ByteSize() < 1000]
        if not integers:
            return
        tensor = self.pick(integers)
        if tensor.raw_data:
            values = np.frombuffer(
                tensor.raw_data[: len(tensor.raw_data) // 8 * 8], np.int64
            ).copy()
            if values.size:
                values[int(self.rng.integers(values.size))] = self.pick(INTEGERS)
                tensor.raw_data = values.tobytes()
        elif tensor.int64_data:
            i = int(self.rng.integers(len(tensor.int64_data)))
            tensor.int64_data[i] = self.pick(INTEGERS)

    def wrong_opset(self, model: ModelProto) -> None:
        """The model is of another opset."""
        if model.opset_import:
            self.pick(model.opset_import).version = self.pick((*range(1, 28), *INTEGERS))

    def _node(self, model: ModelProto) -> NodeProto | None:
        nodes = [m for m in _messages(model) if isinstance(m, NodeProto)]
        return self.pick(nodes) if nodes else None


_CHANGES: tuple[Callable[[Mutator, ModelProto], None], ...] = (
    Mutator.any_field,
    Mutator.any_field,
    Mutator.any_field,
    Mutator.wrong_attribute,
    Mutator.wrong_attribute,
    Mutator.wrong_content,
    Mutator.wrong_edge,
    Mutator.wrong_operator,
    Mutator.wrong_opset,
    Mutator.wrong_type,
    Mutator.wrong_type,
)


def _messages(message: Message) -> Iterator[Message]:
    """A message and all those in it."""
    yield message
    for field, value in message.ListFields():
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            for inner in value if _is_repeated(field) else (value,):
                yield from _messages(inner)


def _copy(message: Message) -> Message:
    """A copy: a message that would be copied into one of its parts kills the process."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _is_repeated(field: FieldDescriptor) -> bool:
    """Older versions of protobuf only have the label."""
    if hasattr(field, "is_repeated"):
        return field.is_repeated
    return field.label == FieldDescriptor.LABEL_REPEATED
