"""Values of onnxruntime: built from arrays, read back, and their types."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto
from onnx.numpy_helper import from_array

from xbuilder.errors import XoptimError
from xbuilder.tensors.bits import pretty_type

from .foreign_values import foreign_array, foreign_value, is_foreign, type_number
from .session_child import open_session

_IR, _OPSET = 10, 21


class UnknownTypeError(XoptimError):
    """A result is neither a tensor nor a sequence."""


@dataclass(slots=True)
class OrtResult:
    """A result of onnxruntime and its type as onnxruntime writes it: ``tensor(float)``."""

    value: Any
    type: str

    @property
    def nbytes(self) -> int:
        """Bytes of a tensor, 0 for anything else."""
        return int(self.value.tensor_size_in_bytes()) if self.value.is_tensor() else 0


def type_of(text: str) -> TypeProto:
    """Reads a type as onnxruntime writes it: ``seq(tensor(float))``.

    :raises UnknownTypeError: if it is neither a tensor, a sequence nor an optional
    """
    kind, _, inside = text.removesuffix(")").partition("(")
    makers = {"seq": oh.make_sequence_type_proto, "optional": oh.make_optional_type_proto}
    if kind == "tensor":
        return oh.make_tensor_type_proto(type_number(text), None)
    if kind not in makers:
        raise UnknownTypeError(f"a result has type {text}, only tensors and sequences are read")
    found: TypeProto = makers[kind](type_of(inside))
    return found


def type_name(itype: int) -> str:
    """Writes the type of a tensor as onnxruntime does."""
    return f"tensor({pretty_type(itype)})"


def to_result(value: Any, itype: int = TensorProto.UNDEFINED) -> OrtResult:
    """Converts an array, or a list of arrays (sequence), into a value of onnxruntime.

    :param value: the content, an array is not copied if it can be avoided
    :param itype: element type, needed for those numpy does not have
    """
    from onnxruntime import OrtValue

    if isinstance(value, list):
        parts = [to_result(v, itype) for v in value]
        return _compute("SequenceConstruct", parts)
    array = np.asarray(value)
    itype = itype or oh.np_dtype_to_tensor_dtype(array.dtype)
    if itype == TensorProto.STRING:
        return _constant(array.astype(str).astype(object))
    kind = type_name(itype)
    if is_foreign(kind):
        return OrtResult(foreign_value(array, kind), kind)
    if not array.flags.c_contiguous:
        array = array.copy()
    return OrtResult(OrtValue.ortvalue_from_numpy(array), kind)


def to_python(result: OrtResult) -> Any:
    """A result as an array, a list of arrays, None for an empty optional."""
    value, (kind, _, inside) = result.value, result.type.removesuffix(")").partition("(")
    if not value.has_value():
        return None
    if kind == "optional":
        return to_python(OrtResult(value, inside))
    if kind == "seq":
        count = int(_compute("SequenceLength", [result]).value.numpy())
        positions = [to_result(np.array(i)) for i in range(count)]
        return [to_python(_compute("SequenceAt", [result, p])) for p in positions]
    return foreign_array(value, result.type) if is_foreign(result.type) else value.numpy()


@functools.lru_cache(maxsize=64)
def _session(op_type: str, types: tuple[str, ...]) -> Any:
    names = [f"i{i}" for i in range(len(types))]
    inputs = [oh.make_value_info(n, type_of(t)) for n, t in zip(names, types, strict=True)]
    node = oh.make_node(op_type, names, ["o"])
    graph = oh.make_graph([node], "value", inputs, [ValueInfoProto(name="o")])
    return open_session(_model(graph).SerializeToString(), ())


def _model(graph: Any) -> ModelProto:
    opset = oh.make_opsetid("", _OPSET)
    return ModelProto(ir_version=_IR, opset_import=[opset], graph=graph)


def _compute(op_type: str, inputs: Sequence[OrtResult]) -> OrtResult:
    session = _session(op_type, tuple(r.type for r in inputs))
    feeds = {f"i{i}": r.value for i, r in enumerate(inputs)}
    return OrtResult(session.run_with_ort_values(["o"], feeds)[0], session.get_outputs()[0].type)


def _constant(array: np.ndarray) -> OrtResult:
    """A value onnxruntime cannot be given, computed by a model of one constant."""
    node = oh.make_node("Constant", [], ["o"], value=from_array(array))
    graph = oh.make_graph([node], "value", [], [ValueInfoProto(name="o")])
    session = open_session(_model(graph).SerializeToString(), ())
    return OrtResult(session.run_with_ort_values(["o"], {})[0], session.get_outputs()[0].type)
