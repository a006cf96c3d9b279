"""Casts around operators that onnxruntime has no CPU kernel for with some element types.

They are computed in a wider type. The table of kernels lists the types onnxruntime runs, the
schemas of onnx list the types no runtime may accept. A type without an exact wider one is
unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx.helper import make_node, np_dtype_to_tensor_dtype

from xbuilder import GraphBuilder
from xbuilder.nodes.loading import loads
from xbuilder.runtimes.installed import kernel_table
from xbuilder.tensors.bits import pretty_type

from ..common.types import to_numpy_type
from ..writing.graph_writer import OpCall, Operators, Shape, Tensor
from ..writing.symbols import SymScalar
from .older_opsets import call_of

BOOL, BFLOAT16, FLOAT16 = TensorProto.BOOL, TensorProto.BFLOAT16, TensorProto.FLOAT16
FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
INT8, INT16, UINT8 = TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8
UINT16, UINT32 = TensorProto.UINT16, TensorProto.UINT32

# for each type, those that represent its values exactly; the first one with a kernel is taken
WIDER: dict[int, tuple[int, ...]] = {
    BFLOAT16: (FLOAT,),
    FLOAT16: (FLOAT,),
    **dict.fromkeys((BOOL, INT8, INT16, UINT8, UINT16), (INT32, INT64)),
    **dict.fromkeys((INT32, UINT32), (INT64,)),
}
# their kernels take float16 and bfloat16, and fail if there is a reduction
_NOT_REDUCED = frozenset({"ScatterElements", "ScatterND"})


def runs_on_cpu(op_type: str, opset: int, index: int, itype: int) -> bool:
    """Whether onnxruntime runs an operator on CPU when its input *index* has a type its schema
    accepts: it has a kernel, casts float16, or runs the function that defines the operator."""
    if itype == BFLOAT16 and op_type in _NOT_REDUCED:
        return False
    types = [*[0] * min(index, len(onnx.defs.get_schema(op_type, opset).inputs) - 1), itype]
    node = make_node(op_type, [f"x{i}" for i in range(len(types))], ["y"])
    return loads(kernel_table("CPU"), node, opset, types)


@functools.cache
def computed_in(op_type: str, opset: int, index: int, itype: int, cpu: bool = True) -> int:
    """The type in which an operator is computed, given the type of its input *index*.

    :param op_type: operator type
    :param opset: main opset
    :param index: which input
    :param itype: its type
    :param cpu: the type must have a CPU kernel, not only be in the schema
    """
    if itype not in WIDER or not onnx.defs.has(op_type, opset, ""):
        return itype
    accepted = _parameter(op_type, opset, index).types
    for candidate in (itype, *WIDER[itype]):
        name = f"tensor({pretty_type(candidate)})"
        if name in accepted and (not cpu or runs_on_cpu(op_type, opset, index, candidate)):
            return candidate
    return itype


def _parameter(op_type: str, opset: int, index: int) -> onnx.defs.OpSchema.FormalParameter:
    inputs = onnx.defs.get_schema(op_type, opset).inputs
    return inputs[min(index, len(inputs) - 1)]


class KernelWriter:
    """A :class:`.graph_writer.GraphWriter` that casts operands where a kernel is missing.

    :param g: receives the nodes
    :param cpu: for CPU; otherwise, only types that the schemas of onnx refuse are cast
    """

    def __init__(self, g: GraphBuilder, cpu: bool = True) -> None:
        self.g = g
        self.cpu = cpu

    @property
    def op(self) -> Operators:
        """Adds nodes of the main domain."""
        return _CastAround(self.g, self.cpu)

    @property
    def main_opset(self) -> int:
        """Opset of the main domain."""
        return self.g.main_opset

    def has_type(self, name: str) -> bool:
        """Whether the element type of a result is known."""
        return self.g.has_type(name)

    def get_type(self, name: str) -> int:
        """The element type of a result."""
        return self.g.get_type(name)

    def has_shape(self, name: str) -> bool:
        """Whether the shape of a result is known."""
        return self.g.has_shape(name)

    def get_shape(self, name: str) -> Shape:
        """The shape of a result."""
        return self.g.get_shape(name)

    def get_rank(self, name: str) -> int:
        """The number of dimensions of a result."""
        return self.g.get_rank(name)

    def make_initializer(self, name: str, value: Any, *, allow_empty: bool = False) -> str:
        """Adds a constant."""
        return self.g.make_initializer(name, value, allow_empty=allow_empty)


def _refuse_sizes(op_type: str, attributes: Mapping[str, Any]) -> None:
    """Refuses an attribute that depends on a dynamic dimension.

    :raises ValueError: there is one
    """
    for name, value in attributes.items():
        listed = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(v, SymScalar) for v in listed):
            raise ValueError(
                f"attribute {name!r} of {op_type} depends on a dynamic dimension, and ONNX has a "
                "number there: leave this dimension static"
            )


class _CastAround:
    """The operators of a graph, with casts where a kernel is missing."""

    def __init__(self, g: GraphBuilder, cpu: bool) -> None:
        self.g = g
        self.cpu = cpu

    def __getattr__(self, op_type: str) -> OpCall:
        call = call_of(self.g, op_type)
        name = op_type.removesuffix("AnyOpset")

        def cast_around(*inputs: Tensor | None, **attributes: Any) -> str:
            _refuse_sizes(name, attributes)
            changed = self._changed(name, inputs)
            if self.cpu and attributes.get("reduction", "none") != "none":
                changed = changed or self._reduced(name, inputs)
            if not changed:
                return call(*inputs, **attributes)
            cast = [self._cast(name, i, x, changed) for i, x in enumerate(inputs)]
            restored: str = self._restored(name, call(*cast, **attributes), changed)
            return restored

        return cast_around

    def _changed(self, name: str, inputs: tuple[Tensor | None, ...]) -> dict[str, tuple[int, int]]:
        """The types to change by type parameter of the schema, as pairs (from, to)."""
        changed: dict[str, tuple[int, int]] = {}
        for i, x in enumerate(inputs):
            itype = self._type(x)
            found = computed_in(name, self.g.main_opset, i, itype, self.cpu)
            if found != itype:
                parameter = _parameter(name, self.g.main_opset, i)
                changed[parameter.type_str] = (itype, found)
        return changed

    def _reduced(self, name: str, inputs: tuple[Tensor | None, ...]) -> dict[str, tuple[int, int]]:
        """The types to change for a scatter with a reduction, which has no kernel for float16."""
        if name not in _NOT_REDUCED or self._type(inputs[0]) != FLOAT16:
            return {}
        return {_parameter(name, self.g.main_opset, 0).type_str: (FLOAT16, FLOAT)}

    def _type(self, x: Tensor | None) -> int:
        if isinstance(x, str):
            return self.g.get_type(x) if self.g.has_type(x) else 0
        return 0 if x is None else np_dtype_to_tensor_dtype(np.asarray(x).dtype)

    def _cast(
        self, name: str, i: int, x: Tensor | None, changed: dict[str, tuple[int, int]]
    ) -> Tensor | None:
        types = changed.get(_parameter(name, self.g.main_opset, i).type_str)
        if types is None or x is None or self._type(x) != types[0]:
            return x
        if isinstance(x, str):
            result: str = self.g.op.Cast(x, to=types[1])
            return result
        return np.asarray(x).astype(to_numpy_type(types[1]))

    def _restored(self, name: str, made: Any, changed: dict[str, tuple[int, int]]) -> Any:
        """Casts the results back to the type they have without the casts."""
        parameters = onnx.defs.get_schema(name, self.g.main_opset).outputs
        results = [made] if isinstance(made, str) else list(made)
        for i, result in enumerate(results):
            types = changed.get(parameters[min(i, len(parameters) - 1)].type_str)
            if types is not None:
                results[i] = self.g.op.Cast(result, to=types[0])
        return results[0] if isinstance(made, str) else tuple(results)
