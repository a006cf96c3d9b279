"""The values of its inputs a model decides upon: what it compares them with, what it indexes with
them, how many times a loop runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.numpy_helper import to_array

from xbuilder.nodes.attributes import find_attribute
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.operators.op_traits import ARITHMETIC

from .random_inputs import dimensions_of, required_inputs

#: operators whose result has the values of their first input, or a choice of them
_SAME = {
    "Abs", "Cast", "Clip", "Expand", "Flatten", "Gather", "Identity", "Max", "Min", "Mod", "Not",
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Reshape", "Slice", "Split", "Squeeze",
    "Tile", "Transpose", "Unsqueeze",
}  # fmt: skip
_COMPARED = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod"}
#: operators of conditions: both operands may decide
_LOGICAL = {"And", "Or", "Xor"}
#: constants with more values are tables, not bounds
_MOST_VALUES = 16
#: numbers of steps of a loop worth a try
_STEPS = (0, 1, 2, 3)
#: calls of local functions that are followed
_MOST_CALLS = 100


@dataclass
class Decisive:
    """The values worth a try.

    :param values: by input: what it is compared with, words or numbers, and the numbers around them
    :param sizes: the same by open dimension
    :param bounds: by input that is an index: the number of positions
    :param poles: by input that divides: the values for which the divisor is 0
    """

    values: dict[str, set[Any]] = field(default_factory=lambda: defaultdict(set))
    sizes: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    bounds: dict[str, int] = field(default_factory=dict)
    poles: dict[str, set[float]] = field(default_factory=lambda: defaultdict(set))


class _Origin(NamedTuple):
    """A result is ``scale * x + shift`` where `x` is an input, or the size of a dimension."""

    name: str
    is_size: bool = False
    scale: float = 1.0
    shift: float = 0.0

    def source_of(self, value: float) -> float:
        """The value of `x` that gives a value."""
        return (value - self.shift) / self.scale


def decisive_values(model: ModelProto) -> Decisive:
    """Follows the inputs, and their sizes, to what they are compared with."""
    functions = {(f.domain, f.name): f for f in model.functions}
    search = _Search(Decisive(), functions)
    for value in required_inputs(model):
        search.origins[value.name] = [_Origin(value.name)]
        search.shapes[value.name] = list(dimensions_of(value))
    search.follow_graph(model.graph)
    return search.found


class _Search:
    def __init__(self, found: Decisive, functions: Mapping[tuple[str, str], FunctionProto]):
        self.found, self.functions = found, functions
        self.calls = 0
        self.origins: dict[str, list[_Origin]] = {}
        #: dimensions of the results that are inputs, and of those that are shapes of them
        self.shapes: dict[str, list[int | str]] = {}
        self.vectors: dict[str, list[int | str]] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.dims: dict[str, list[int]] = {}

    def follow_graph(self, graph: GraphProto) -> None:
        """Follows the nodes of a graph, then of its subgraphs."""
        for tensor in graph.initializer:
            self.dims[tensor.name] = list(tensor.dims)
            self._add_constant(tensor.name, tensor)
        self._follow(graph.node)

    def _follow(self, nodes: Iterable[NodeProto]) -> None:
        for node in nodes:
            function = self.functions.get((node.domain, node.op_type))
            if function is not None:
                self._call(node, function)
                continue
            self._step(node)
            for _, body in subgraphs_of(node):
                self.follow_graph(body)

    def _call(self, node: NodeProto, function: FunctionProto) -> None:
        """Follows the operands of a call into the function, and its results out of it."""
        self.calls += 1
        if self.calls > _MOST_CALLS:
            return
        inner = _Search(self.found, self.functions)
        inner.calls = self.calls
        known = ("origins", "shapes", "vectors", "constants", "dims")
        for name in known:
            mine, theirs = getattr(self, name), getattr(inner, name)
            pairs = zip(function.input, node.input, strict=False)
            theirs.update((formal, mine[actual]) for formal, actual in pairs if actual in mine)
        inner._follow(function.node)
        self.calls = inner.calls
        for name in known:
            mine, theirs = getattr(self, name), getattr(inner, name)
            pairs = zip(function.output, node.output, strict=False)
            mine.update((actual, theirs[formal]) for formal, actual in pairs if formal in theirs)

    def _add_constant(self, name: str, tensor: TensorProto) -> None:
        small = np.prod(tensor.dims, dtype=np.float64) <= _MOST_VALUES
        if small and tensor.data_location != TensorProto.EXTERNAL:
            self.constants[name] = to_array(tensor)

    def _step(self, node: NodeProto) -> None:
        if node.op_type == "Constant":
            self._constant(node)
        elif node.op_type == "Shape":
            self.vectors.update(self._shape(node))
        elif node.op_type == "Gather" and node.input[0] in self.vectors:
            self._size(node)
        else:
            self._indices(node)
            self._steps(node)
            self._compare(node)
            self._divisor(node)
            self._pass_on(node)

    def _constant(self, node: NodeProto) -> None:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                self._add_constant(node.output[0], attribute.t)
            elif attribute.name in ("value_int", "value_float"):
                value = attribute.i if attribute.name == "value_int" else attribute.f
                self.constants[node.output[0]] = np.array(value)
            elif attribute.name in ("value_ints", "value_floats"):
                self.constants[node.output[0]] = np.array([*attribute.ints, *attribute.floats])

    def _shape(self, node: NodeProto) -> Mapping[str, list[int | str]]:
        shape = self.shapes.get(node.input[0])
        if shape is None or any(a.name in ("start", "end") for a in node.attribute):
            return {}
        return {node.output[0]: shape}

    def _size(self, node: NodeProto) -> None:
        """One dimension of a shape."""
        vector, index = self.vectors[node.input[0]], self.constants.get(node.input[1])
        if index is None or index.size != 1 or not -len(vector) <= int(index.item()) < len(vector):
            return
        dim = vector[int(index.item())]
        if isinstance(dim, str):
            self.origins[node.output[0]] = [_Origin(dim, is_size=True)]

    def _indices(self, node: NodeProto) -> None:
        if node.op_type not in ("Gather", "GatherElements") or len(node.input) < 2:
            return
        dims = self.dims.get(node.input[0])
        attribute = find_attribute(node, "axis")
        axis = 0 if attribute is None else attribute.i
        for origin in self.origins.get(node.input[1], ()):
            if dims and -len(dims) <= axis < len(dims) and not origin.is_size:
                bound = int(origin.source_of(dims[axis]))
                self.found.bounds[origin.name] = min(
                    bound, self.found.bounds.get(origin.name, bound)
                )

    def _steps(self, node: NodeProto) -> None:
        """A number of steps, or the condition of a branch."""
        if node.op_type in ("Loop", "Range", "If"):
            for name in node.input:
                self._try(name, (0, 1) if node.op_type == "If" else _STEPS)

    def _compare(self, node: NodeProto) -> None:
        if node.op_type not in _COMPARED or len(node.input) != 2:
            return
        for one, other in (tuple(node.input), tuple(reversed(node.input))):
            constant = self.constants.get(other)
            if constant is not None and constant.dtype.kind in "iufb":
                values = constant.astype(np.float64).ravel().tolist()
                around = () if node.op_type == "Equal" else (-1, 1)
                self._try(one, [v + d for v in values for d in (0, *around)])
            elif constant is not None and constant.dtype.kind == "O":
                for origin in self.origins.get(one, ()):
                    self.found.values[origin.name].update(_words(constant))

    def _divisor(self, node: NodeProto) -> None:
        """An input that divides: onnxruntime stops at an integer divided by 0."""
        for origin in self.origins.get(node.input[1], ()) if node.op_type in ("Div", "Mod") else ():
            if not origin.is_size:
                self.found.poles[origin.name].add(origin.source_of(0))

    def _try(self, name: str, values: Iterable[float]) -> None:
        for origin in self.origins.get(name, ()):
            for value in map(origin.source_of, values):
                if not origin.is_size:
                    self.found.values[origin.name].add(value)
                elif value >= 0 and float(value).is_integer():
                    self.found.sizes[origin.name].add(int(value))

    def _pass_on(self, node: NodeProto) -> None:
        """Gives the origins of the inputs to the results."""
        origins: list[_Origin] = []
        if node.op_type in _SAME and node.input:
            origins = self.origins.get(node.input[0], [])
            if node.op_type in ("Identity", "Cast"):
                self._rename(node.input[0], node.output[0])
        elif node.op_type == "Where" or node.op_type in _LOGICAL:
            read = node.input[node.op_type == "Where" :]
            origins = [o for n in read for o in self.origins.get(n, ())]
        elif node.op_type in ARITHMETIC and len(node.input) == 2:
            origins = self._affine(node)
        for name in node.output if origins else ():
            self.origins[name] = origins

    def _rename(self, name: str, result: str) -> None:
        """A result has the shape and the content of another one."""
        if name in self.shapes:
            self.shapes[result] = self.shapes[name]
        if name in self.constants:
            self.constants[result] = self.constants[name]

    def _affine(self, node: NodeProto) -> list[_Origin]:
        first, second = node.input
        if second in self.constants and self.constants[second].size == 1:
            value, known = float(self.constants[second].item()), self.origins.get(first, ())
            scale, shift = {
                "Add": (1.0, value),
                "Sub": (1.0, -value),
                "Mul": (value, 0.0),
                "Div": (1 / value if value else 0.0, 0.0),
            }[node.op_type]
        elif first in self.constants and self.constants[first].size == 1:
            value, known = float(self.constants[first].item()), self.origins.get(second, ())
            scale, shift = {"Add": (1.0, value), "Sub": (-1.0, value), "Mul": (value, 0.0)}.get(
                node.op_type, (0.0, 0.0)
            )
        else:
            return []
        return [
            _Origin(o.name, o.is_size, o.scale * scale, o.shift * scale + shift)
            for o in known
            if scale
        ]


def _words(constant: np.ndarray) -> list[str]:
    """The words of a tensor of strings."""
    items = constant.ravel().tolist()
    return [w.decode("utf-8", "replace") if isinstance(w, bytes) else str(w) for w in items]
