"""The right-hand side of a rewrite: operators described but not written yet.

`g.op.Clip(x, low, high)` describes an operator. No name is reserved and no constant added to the
graph before the engine applies the match: a dropped match leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto

from xbuilder.errors import OptionError
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.nodes.functions import function_key
from xbuilder.nodes.making import make_node_proto
from xbuilder.nodes.subgraphs import captured_names
from xbuilder.operators.op_traits import AXES_INPUT_SINCE
from xbuilder.support.names import result_prefix

#: input of an operator: a result, a new operator, a constant, or nothing
Operand: TypeAlias = (
    "str | NewNode | NewResult | np.ndarray | DerivedConstant | Sequence[int] | None"
)
#: replacement of a result: another one, a new operator, a constant
Replacement: TypeAlias = "str | NewNode | NewResult | np.ndarray | TensorProto"
_CONSTANTS = (np.ndarray, TensorProto)


class DerivedConstant:
    """A constant derived from another one, whose name it takes if nothing else reads that one.

    :param value: an array, or a tensor computed by blocks when the model is written
    :param name: the constant it is derived from
    """

    __slots__ = ("name", "value")

    def __init__(self, value: np.ndarray | BlockTensor, name: str):
        self.value = value
        self.name = name


class NewNode:
    """An operator to write. It stands for its first result; `new[1]`, `new[2]` are the others.

    :param op_type: operator type
    :param inputs: names, other new operators, arrays (they become initializers), None
    :param attributes: python values or AttributeProto by name
    :param domain: domain
    :param outputs: number of results
    :param missing: positions of the optional results that are not written
    :param function: the local function it calls, if the rewrite brings it
    """

    __slots__ = (
        "attributes",
        "domain",
        "function",
        "inputs",
        "missing",
        "op_type",
        "outputs",
        "overload",
    )

    def __init__(
        self,
        op_type: str,
        inputs: Sequence[Operand],
        attributes: Mapping[str, Any] | None = None,
        domain: str = "",
        outputs: int = 1,
        missing: Container[int] = (),
        function: FunctionProto | None = None,
    ):
        self.op_type = op_type
        self.inputs = tuple([i if type(i) is str else _operand(op_type, i) for i in inputs])
        self.attributes = dict(attributes or {})
        self.domain = domain
        self.outputs = outputs
        self.missing = missing
        self.function = function
        #: the overload of the function it calls
        self.overload = "" if function is None else function.overload

    def __getitem__(self, index: int) -> NewResult:
        if not 0 <= index < self.outputs:
            raise IndexError(f"{self.op_type} gives {self.outputs} results, there is no {index}.")
        return NewResult(self, index)

    def __iter__(self) -> Iterator[NewResult]:
        return (NewResult(self, i) for i in range(self.outputs))

    def __repr__(self) -> str:
        inputs = ", ".join("?" if isinstance(i, np.ndarray) else str(i) for i in self.inputs)
        return f"{self.op_type}({inputs})"


class NewResult:
    """One result of a new operator.

    :param node: the operator
    :param index: position of the result
    """

    __slots__ = ("index", "node")

    def __init__(self, node: NewNode, index: int):
        self.node = node
        self.index = index


def _operand(op_type: str, value: Any) -> str | NewNode | NewResult | np.ndarray | DerivedConstant:
    if value is None:
        return ""
    if isinstance(value, (str, NewNode, NewResult, np.ndarray, DerivedConstant)):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, (list, tuple)) and all(map(_is_integer, value)):
        return np.array(value, dtype=np.int64)
    raise OptionError(
        f"An input of {op_type} is {value!r}; expected a name, a new operator, an array, a list of "
        "integers or None. A number has no type: use g.scalar(1.0, like=name)."
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


class NewNodeFactory:
    """`g.op.Transpose(x, perm=[1, 0])` describes an operator to write.

    `axes` and parameters like `keepdims` are written as the opset of the graph requires:
    `g.op.Squeeze(x, axes=[0])` holds whatever the opset is. `domain`, `outputs` (the number of
    results) and `missing` (positions of the optional ones that are not written) are not attributes.

    :param opset: main opset of the graph
    """

    def __init__(self, opset: int):
        self._opset = opset

    def __getattr__(self, op_type: str) -> Callable[..., NewNode]:
        if op_type.startswith("_"):
            raise AttributeError(op_type)

        def make(
            *inputs: Operand,
            domain: str = "",
            outputs: int = 1,
            missing: Container[int] = (),
            **attributes: Any,
        ) -> NewNode:
            axes = attributes.get("axes")
            written = axes is None or domain or isinstance(axes, AttributeProto)
            since = None if written else AXES_INPUT_SINCE.get(op_type)
            if since is not None and self._opset >= since:
                del attributes["axes"]
                inputs = (*inputs, np.array(axes, dtype=np.int64))
            kept = {k: v for k, v in attributes.items() if v is not None}
            return NewNode(op_type, inputs, kept, domain, outputs, missing)

        setattr(self, op_type, make)  # no call of __getattr__ the next time
        return make


def read_names(replacements: Mapping[str, Replacement]) -> set[str]:
    """Names of the graph that a right-hand side reads, its subgraphs included."""
    names: set[str] = set()
    stack: list[Any] = []
    for value in replacements.values():
        if isinstance(value, str):
            names.add(value)
        else:
            stack.append(value)
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if type(node) is NewResult:
            node = node.node
        if type(node) is not NewNode or id(node) in seen:
            continue  # a constant reads nothing
        seen.add(id(node))
        for operand in node.inputs:
            if isinstance(operand, str):
                names.add(operand)
            else:
                stack.append(operand)
        for attribute in node.attributes.values():
            if isinstance(attribute, (GraphProto, AttributeProto)):
                names.update(_captured(attribute))
    names.discard("")
    return names


def _captured(attribute: GraphProto | AttributeProto) -> Iterable[str]:
    """Names that a subgraph in an attribute captures."""
    if isinstance(attribute, GraphProto):
        return captured_names(attribute)
    return captured_names(attribute.g) if attribute.type == AttributeProto.GRAPH else ()


class RightSide:
    """The `apply` of a match made of replacements: it writes the new nodes.

    :param replacements: replacement of each result
    """

    __slots__ = ("replacements",)

    def __init__(self, replacements: Mapping[str, Replacement]):
        self.replacements = replacements

    def write_one_name(self, g: Any) -> tuple[str, str] | None:
        """Writes a right-hand side without nodes: another result, or a constant, which becomes an
        initializer.

        :return: the result and the name that replaces it, None if there are nodes to write
        """
        if len(self.replacements) != 1:
            return None
        ((result, value),) = self.replacements.items()
        if isinstance(value, str):
            return result, value
        if not isinstance(value, _CONSTANTS):
            return None
        name = _shared(g, result, value)
        self.replacements = {result: name}
        return result, name

    def __call__(self, g: Any, *nodes: NodeProto) -> list[NodeProto]:
        """The new nodes, in topological order."""
        return Writer(g, self.replacements).nodes()


class Writer:
    """Writes the nodes of a right-hand side, once the match is applied.

    A new node that produces a replaced result takes the name of the node it replaces.

    :param g: the optimizer, which makes nodes, names and initializers
    :param replacements: replacement of each result
    """

    def __init__(self, g: Any, replacements: Mapping[str, Replacement]):
        self._g = g
        self._replacements = replacements
        self._final: dict[tuple[int, int], str] = {}
        self._names: dict[int, list[str]] = {}
        self._nodes: list[NodeProto] = []

    def nodes(self) -> list[NodeProto]:
        """The new nodes, in topological order."""
        copies: list[tuple[Replacement, str]] = []
        for result, value in self._replacements.items():
            if not isinstance(value, (str, NewNode, NewResult)):
                value = _shared(self._g, result, value)
            key = None if isinstance(value, str) else _key(value)
            if key is None or key in self._final:
                copies.append((value, result))
            else:
                self._final[key] = result
        for value in self._replacements.values():
            if isinstance(value, (NewNode, NewResult)):
                self._name_of(value)
        for value, result in copies:
            source = self._name_of(value)
            self._nodes.append(self._g.make_node("Identity", [source], [result]))
        return self._nodes

    def _name_of(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, np.ndarray):
            return str(self._g.make_initializer("", value))
        if isinstance(value, DerivedConstant):
            return self._derived(value)
        node, index = (value.node, value.index) if isinstance(value, NewResult) else (value, 0)
        if id(node) not in self._names:
            self._write(node)
        return self._names[id(node)][index]

    def _derived(self, value: DerivedConstant) -> str:
        """Name of a derived constant, written once even if several new nodes read it."""
        if id(value) not in self._names:
            name = str(self._g.graph.derived_initializer(value.name, value.value))
            self._names[id(value)] = [name]
        return self._names[id(value)][0]

    def _write(self, node: NewNode) -> None:
        inputs = [i if type(i) is str else self._name_of(i) for i in node.inputs]
        outputs = [self._final.get((id(node), i)) for i in range(node.outputs)]
        names = [o or self._new_name(node, i, inputs) for i, o in enumerate(outputs)]
        protos, values = [], {}
        for name, value in node.attributes.items():
            if isinstance(value, AttributeProto):
                protos.append(value)
            else:
                values[name] = value
        label = self._label(node.op_type, outputs)
        new = make_node_proto(node.op_type, inputs, names, node.domain, label, protos, values)
        if node.overload:
            new.overload = node.overload
        if node.function is not None:
            self._g.graph.functions[function_key(new)] = node.function
        self._names[id(node)] = names
        self._nodes.append(new)

    def _label(self, op_type: str, outputs: Sequence[str | None]) -> str:
        """Name of a new node, taken from the node that produced its result."""
        if op_type == "Identity":  # removed right after
            return ""
        for output in outputs:
            replaced = self._g.store.producers.get(output) if output else None
            if replaced is not None:
                return str(self._g.graph.unique_node_name(replaced._proto.name or op_type))
        return str(self._g.graph.unique_node_name(op_type))

    def _new_name(self, node: NewNode, index: int, inputs: Sequence[str]) -> str:
        """Name of a result that replaces nothing; empty if it is missing."""
        if index in node.missing:
            return ""
        return str(self._g.unique_name(result_prefix(node.op_type, inputs)))


def _key(value: NewNode | NewResult) -> tuple[int, int]:
    return (id(value.node), value.index) if isinstance(value, NewResult) else (id(value), 0)


def _shared(g: Any, result: str, value: Any) -> str:
    """Name of an initializer equal to a small constant, or of a new one called as a result."""
    return str(g.graph.constants.shared_name(value) or g.make_initializer(result, value))
