"""Bodies of Loop and Scan as functions of Python, whose operators add nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from ..common.types import to_numpy_type
from .graph_writer import GraphWriter, Tensor, several

#: types of results that are not the one of the first input
_TYPES: dict[str, int] = {
    **dict.fromkeys(("Shape", "ArgMax"), TensorProto.INT64),
    **dict.fromkeys(("Equal", "Greater", "IsNaN", "Less", "LessOrEqual"), TensorProto.BOOL),
}


def _operator(op_type: str) -> Callable[[Value, Input], Value]:
    return lambda a, b: a.op.several(op_type, 1, a, b)[0]


class Value:
    """A result of a body; arithmetic, comparisons and logic add nodes.

    :param op: adds nodes
    :param name: its name
    :param itype: its element type
    """

    def __init__(self, op: BodyOperators, name: str, itype: int):
        self.op, self.name, self.itype = op, name, itype

    __add__, __sub__, __mul__ = _operator("Add"), _operator("Sub"), _operator("Mul")
    __truediv__, __mod__ = _operator("Div"), _operator("Mod")
    __matmul__ = _operator("MatMul")
    __lt__, __le__, __gt__ = _operator("Less"), _operator("LessOrEqual"), _operator("Greater")
    __and__, __or__ = _operator("And"), _operator("Or")

    def __neg__(self) -> Value:
        return self.op.Neg(self)

    def __invert__(self) -> Value:
        return self.op.Not(self)


#: a result of the body, one of the graph around it, a number of the type of the last result among
#: the inputs, or integers of 64 bits
Input: TypeAlias = Value | str | int | float | Sequence[int]
Step: TypeAlias = Callable[..., Sequence[Value]]


class BodyOperators:
    """Adds the nodes of a body: ``op.Gather(x, k, axis=-1)``.

    No result of a torch model has a name with a colon, as those of a body have.

    :param g: the graph around the body
    """

    def __init__(self, g: GraphWriter):
        self._g = g
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._constants: dict[tuple[int, str], str] = {}

    def __getattr__(self, op_type: str) -> Callable[..., Value]:
        return lambda *inputs, **attributes: self.several(op_type, 1, *inputs, **attributes)[0]

    def several(self, op_type: str, n: int, *inputs: Input, **attributes: Any) -> list[Value]:
        """Adds a node with several results of one type.

        :param op_type: its operator
        :param n: number of results
        :param inputs: its inputs
        :param attributes: its attributes
        """
        values = [v for v in map(self._known, inputs) if v is not None]
        like = values[-1].itype if values else TensorProto.INT64
        itype = like if op_type == "Where" or not values else values[0].itype
        names = [self._name(v, like) for v in inputs]
        made = [f"{op_type}:{len(self._nodes)}:{i}" for i in range(n)]
        self._nodes.append(helper.make_node(op_type, names, made, **attributes))
        itype = attributes.get("to") or _TYPES.get(op_type, itype)
        return [Value(self, name, itype) for name in made]

    def _known(self, x: Input) -> Value | None:
        if isinstance(x, str):
            return Value(self, x, self._g.get_type(x))
        return x if isinstance(x, Value) else None

    def _name(self, x: Input, itype: int) -> str:
        if isinstance(x, Value):
            return x.name
        if isinstance(x, str):
            return x
        if not isinstance(x, int | float):
            itype = TensorProto.INT64
        key = (itype, repr(x))
        if key not in self._constants:
            self._constants[key] = f"Constant:{len(self._nodes)}"
            value = numpy_helper.from_array(np.array(x, dtype=to_numpy_type(itype)))
            node = helper.make_node("Constant", [], [self._constants[key]], value=value)
            self._nodes.append(node)
        return self._constants[key]

    def _input(self, name: str, itype: int, shape: Sequence[int] | None = None) -> Value:
        self._inputs.append(helper.make_tensor_value_info(name, itype, shape))
        return Value(self, name, itype)

    def _state(self, x: Tensor) -> Value:
        itype = (
            self._g.get_type(x) if isinstance(x, str) else helper.np_dtype_to_tensor_dtype(x.dtype)
        )
        return self._input(f"state:{len(self._inputs)}", itype)

    def _graph(self, made: Sequence[Value]) -> GraphProto:
        """The body, whose outputs are computed by different nodes."""
        taken = {i.name for i in self._inputs}
        outputs = []
        for value in made:
            own = self.Identity(value) if value.name in taken else value
            taken.add(own.name)
            outputs.append(helper.make_tensor_value_info(own.name, own.itype, None))
        return helper.make_graph(self._nodes, "body", self._inputs, outputs)


def loop(
    g: GraphWriter, step: Step, trips: Tensor | None, *states: Tensor, conditional: bool = False
) -> tuple[str, ...]:
    """The last states of a Loop, then what its steps compute besides, one after the other.

    :param g: the graph
    :param step: gives the next states and the other results from the number of the step and from
        the states; all it computes depends on them
    :param trips: the number of steps, None if only the condition ends the loop
    :param states: the first states
    :param conditional: the first result of a step is whether the loop goes on
    :return: names of the results
    """
    op = BodyOperators(g)
    k = op._input("step:k", TensorProto.INT64, ())
    go = op._input("step:go", TensorProto.BOOL, ())
    made = step(k, *map(op._state, states))
    made = made if conditional else [go, *made]
    body = op._graph(made)
    return several(g, "Loop", len(made) - 1, trips, np.array(True), *states, body=body)


def scan(
    g: GraphWriter, step: Step, states: Sequence[Tensor], rows: Sequence[Tensor], **attributes: Any
) -> tuple[str, ...]:
    """The last states of a Scan, then the rows its steps compute.

    :param g: the graph
    :param step: gives the next states and new rows from the states and from one row of each tensor
    :param states: the first states
    :param rows: tensors whose rows are read one after the other
    :param attributes: of the node
    :return: names of the results
    """
    op = BodyOperators(g)
    made = step(*map(op._state, [*states, *rows]))
    body, n = op._graph(made), len(rows)
    inputs = (*states, *rows)
    return several(g, "Scan", len(made), *inputs, body=body, num_scan_inputs=n, **attributes)
