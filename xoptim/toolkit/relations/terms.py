"""A graph as terms: an operator applied to operands, each a term or a result of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import onnx
from cons.core import ConsError
from etuples import etuple
from etuples.core import ExpressionTuple
from onnx import AttributeProto, NodeProto
from unification import isvar

from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.nodes.attribute_types import default_attributes
from xbuilder.nodes.attributes import attribute_value
from xbuilder.nodes.record import NodeRecord

from ...authoring.right_side import NewNode, NewResult

#: default depth of a term, in nodes
DEPTH = 6
#: types of attributes with a python value; the others are compared as they are written
_PLAIN = frozenset(
    {
        AttributeProto.INT,
        AttributeProto.FLOAT,
        AttributeProto.STRING,
        AttributeProto.INTS,
        AttributeProto.FLOATS,
        AttributeProto.STRINGS,
    }
)


class ConstantTerm:
    """A new constant, equal to those of the same type, shape and content.

    :param value: its content

    Example::

        >>> zero, one = constant(np.zeros(2)), constant(np.ones(2))
        >>> zero, zero == constant(np.zeros(2)), zero == one
        (constant([0.0, 0.0]), True, False)
    """

    def __init__(self, value: np.ndarray):
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConstantTerm) or self.value.dtype != other.value.dtype:
            return False
        return np.array_equal(self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.value.shape, self.value.dtype.str))

    def __repr__(self) -> str:
        return f"constant({self.value.tolist()!r})"


def constant(value: Any) -> ConstantTerm:
    """A constant as a term.

    :param value: an array, or a value numpy converts into one
    """
    return ConstantTerm(np.asarray(value))


class OperatorTerms:
    """`op.MatMul(x, y)` is the term of an operator applied to operands; keywords are attributes,
    arrays are constants.

    An operator of another domain: `op.Gelu(x, domain="com.microsoft")`.

    Example::

        >>> from unification import unify, var
        >>> x = var("x")
        >>> unify(op.Transpose(x, perm=[1, 0]), op.Transpose("a", perm=[1, 0]))[x]
        'a'
    """

    def __getattr__(self, op_type: str) -> Callable[..., ExpressionTuple]:
        if op_type.startswith("_"):
            raise AttributeError(op_type)

        def term(*operands: Any, domain: Any = "", **attributes: Any) -> ExpressionTuple:
            written = {n: tuple(v) if isinstance(v, list) else v for n, v in attributes.items()}
            read = (constant(o) if isinstance(o, np.ndarray) else o for o in operands)
            return etuple(Operator(op_type, domain, written), *read)

        return term


#: makes terms
op = OperatorTerms()


class WrittenAttribute:
    """A tensor, a graph, or a reference to an attribute of a function: equal if written alike.

    :param proto: the attribute

    Example::

        >>> from onnx import helper
        >>> value = helper.make_attribute("value", helper.make_tensor("c", 1, [1], [0.5]))
        >>> WrittenAttribute(value)
        <value>
    """

    def __init__(self, proto: AttributeProto):
        self.proto = proto
        self._bytes = proto.SerializeToString(deterministic=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrittenAttribute) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __repr__(self) -> str:
        return f"<{self.proto.name}>"


@cache
def _default_values(op_type: str, domain: str, opset: int) -> Mapping[str, Any]:
    """Default values of the attributes that a node omits."""
    return {n: _plain(a) for n, a in default_attributes(op_type, domain, opset).items()}


def _plain(attribute: AttributeProto) -> Any:
    """An attribute as a value that can be compared and hashed."""
    if attribute.ref_attr_name or attribute.type not in _PLAIN:
        return WrittenAttribute(attribute)
    value = attribute_value(attribute)
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, eq=False)
class Operator:
    """The operator of a term; any of its fields may be a variable.

    Called on operands, it describes a node to write, see `g.op` in the other forms of rewrites.

    :param op_type: operator type
    :param domain: domain
    :param attributes: values by name; a variable stands for all of them. Those that are not
        written have their default
    :param result: which of its results
    :param results: how many results the node has
    :param defaults: defaults of the attributes, known for a node of a graph

    ::

        Operator("Softmax", attributes={"axis": -1})
        Operator(var("operator"), attributes=var("attributes"))
    """

    op_type: Any
    domain: Any = ""
    attributes: Any = field(default_factory=dict)
    result: int = 0
    results: int = 1
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def attributes_beside(self, other: Operator) -> Any:
        """Attributes to compare with those of another operator: both have the same names."""
        if isvar(self.attributes) or isvar(other.attributes):
            return self.attributes
        names = sorted({*self.attributes, *other.attributes})
        defaults = self.defaults or other.defaults
        return {n: self.attributes.get(n, defaults.get(n)) for n in names}

    def __call__(self, *operands: Any) -> NewNode | NewResult:
        """Describes the node to write.

        :param operands: results of the graph, other new nodes, constants, numbers (they take the
            type of the first operand that is a result), None where an input is missing
        :raises OptionError: something is still a variable
        """
        for value in (self.op_type, self.domain, self.attributes, *operands):
            if isvar(value):
                raise OptionError(f"{self} cannot be written: {value} has no value.")
        attributes = {
            n: v.proto if isinstance(v, WrittenAttribute) else v for n, v in self.attributes.items()
        }
        inputs = [_operand(o, operands) for o in operands]
        new = NewNode(self.op_type, inputs, attributes, self.domain, self.results)
        return new[self.result] if self.results > 1 else new

    def _key(self) -> tuple[Any, ...]:
        frozen = self.attributes if isvar(self.attributes) else frozenset(self.attributes.items())
        return self.op_type, self.domain, frozen, self.result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        name = f"{self.domain}::{self.op_type}" if self.domain else f"{self.op_type}"
        if isvar(self.attributes):
            return f"{name}[{self.attributes}]"
        written = ", ".join(f"{n}={v!r}" for n, v in self.attributes.items())
        return f"{name}[{written}]" if written else name


def _operand(value: Any, operands: tuple[Any, ...]) -> Any:
    if isinstance(value, GraphResult):
        return value.name
    if isinstance(value, ConstantTerm):
        return value.value
    if isinstance(value, (bool, int, float)):
        typed = next((o.dtype for o in operands if isinstance(o, GraphResult)), None)
        if typed is None:
            raise OptionError(f"{value!r} has no type: give an array, or a result beside it.")
        return np.array(value, dtype=typed)
    return value


class GraphResult:
    """A result of a graph as a term: the operator that produces it applied to its inputs.

    Nodes are read when they are compared with something, not before. Two results are equal if they
    have the same name.

    :param graph: the graph
    :param name: the name
    :param depth: how many nodes away a term may look; further, results are only names
    :param seen: receives the nodes that were read

    Example::

        >>> from xbuilder import GraphBuilder
        >>> g = GraphBuilder(18)
        >>> x = g.make_tensor_input("x", 1, ("n",))
        >>> result = GraphResult(g.graph, g.op.Abs(x, outputs=["y"]))
        >>> result.is_computed, result.term
        (True, ExpressionTuple((Abs, <x>)))
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        depth: int = DEPTH,
        seen: list[NodeRecord] | None = None,
    ):
        self.graph = graph
        self.name = name
        self._depth = depth
        self._seen = seen

    @cached_property
    def term(self) -> ExpressionTuple:
        """The operator and its operands.

        :raises ConsError: no node produces this result (an input, an initializer, an outer result),
            or it is too far
        """
        if not self.is_computed:
            raise ConsError(f"no node gives {self.name!r}, or it is too far")
        record = self.graph.store.producers[self.name]
        if self._seen is not None:
            self._seen.append(record)
        graph, depth = self.graph, self._depth - 1
        operator = operator_term(graph, record, record.outputs.index(self.name))
        names = record.inputs
        operands = (GraphResult(graph, n, depth, self._seen) if n else None for n in names)
        return etuple(operator, *operands)

    @property
    def is_computed(self) -> bool:
        """Whether a node produces it, within the depth."""
        return self._depth > 0 and self.name in self.graph.store.producers

    def is_number(self, number: float) -> bool:
        """Whether it is a constant of one element with this value."""
        shape = self.graph.facts[self.name].shape
        if shape is None or any(d != 1 for d in shape):
            return False
        value = self.graph.constants.uniform_value(self.name)
        return value is not None and bool(value == number)

    def is_constant(self, constant: ConstantTerm) -> bool:
        """Whether it is a constant of this type, this shape and this content."""
        array = constant.value
        facts = self.graph.facts[self.name]
        if facts.shape != array.shape or not self.graph.constants.is_cheap(self.name):
            return False
        value = self.graph.constants.value(self.name)
        return value is not None and value.dtype == array.dtype and np.array_equal(value, array)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its element type.

        :raises OptionError: it is not known
        """
        kind = self.graph.facts[self.name].type
        if not kind:
            raise OptionError(f"The type of {self.name!r} is not known.")
        return onnx.helper.tensor_dtype_to_np_dtype(kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphResult):
            return NotImplemented
        return self.name == other.name and self.graph is other.graph

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<{self.name}>"


def operator_term(graph: Graph, record: NodeRecord, result: int = 0) -> Operator:
    """The operator of a node.

    :param graph: the graph
    :param record: the node
    :param result: which of its results

    Example::

        >>> from xbuilder import GraphBuilder
        >>> g = GraphBuilder(18)
        >>> x = g.make_tensor_input("x", 1, ("a", "b"))
        >>> y = g.op.Transpose(x, perm=[1, 0])
        >>> operator_term(g.graph, g.graph.store.producers[y])
        Transpose[perm=(1, 0)]
    """
    node: NodeProto = graph.store.proto(record)
    attributes = {a.name: _plain(a) for a in node.attribute}
    opset = graph.opsets.get(record.domain, 1)
    return Operator(
        record.op_type,
        record.domain,
        attributes,
        result,
        len(record.outputs),
        _default_values(record.op_type, record.domain, opset),
    )
