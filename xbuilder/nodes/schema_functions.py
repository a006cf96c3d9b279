"""The functions that define operators, which a runtime computes where it has no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from typing import Any

from onnx import FunctionProto, NodeProto, TypeProto
from onnx.helper import make_sequence_type_proto, make_tensor_type_proto

from ..dims import Shape
from ..operators.domains import main_domain
from ..operators.op_schemas import schema_of
from .functions import all_nodes, bind_attributes


def has_function(op_type: str, domain: str, opset: int) -> bool:
    """Whether the definition of an operator has a function for an opset, for some nodes at least.

    :param op_type: operator type
    :param domain: domain
    :param opset: version of the domain

    >>> has_function("Relu", "", 18), has_function("Relu", "", 17)
    (True, False)
    """
    schema: Any = schema_of(op_type, domain, opset)  # the stubs do not tell functions
    if schema is None:
        return False
    written = schema.function_opset_versions, schema.context_dependent_function_opset_versions
    return any(_last(versions, opset) is not None for versions in written)


def schema_function(
    node: NodeProto,
    opset: int,
    input_types: Sequence[int],
    shapes: Sequence[Shape | None] = (),
) -> FunctionProto | None:
    """The function that defines an operator, None if there is none for this node. The attributes
    of the node take the place of the references to them.

    :param node: the node
    :param opset: version of its domain
    :param input_types: element type of each input, 0 for a missing one
    :param shapes: shape of each input, None if it is not known; some functions depend on it

    >>> from onnx.helper import make_node
    >>> swish = make_node("Swish", ["x"], ["y"], alpha=2.0)
    >>> [inner.op_type for inner in schema_function(swish, 24, [1]).node]
    ['Constant', 'CastLike', 'Mul', 'Sigmoid', 'Mul']
    """
    schema: Any = schema_of(node.op_type, node.domain, opset)  # the stubs do not tell functions
    if schema is None:
        return None
    function = FunctionProto()
    if schema.has_context_dependent_function:
        version = _last(schema.context_dependent_function_opset_versions, opset)
        if version is None:
            return None
        # an input of SequenceMap that is no tensor is a sequence, of any type
        other = make_sequence_type_proto(TypeProto()) if node.op_type == "SequenceMap" else None
        types = [
            (make_tensor_type_proto(t, shape) if t or other is None else other).SerializeToString()
            for t, shape in zip_longest(input_types, shapes[: len(input_types)])
        ]
        text = schema.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), types
        )
    elif schema.has_function:
        version = _last(schema.function_opset_versions, opset)
        if version is None:
            return None
        text = schema.get_function_with_opset_version(version)
    else:
        return None
    function.ParseFromString(text)
    return bound_function(function, node, schema) if function.node else None


def _last(versions: Sequence[int], opset: int) -> int | None:
    return max((v for v in versions if v <= opset), default=None)


def bound_function(function: FunctionProto, node: NodeProto, schema: Any) -> FunctionProto:
    """A copy of a function with the attributes of a node, without the inputs it does not have.

    :param function: the function
    :param node: the node it defines
    :param schema: the definition of its operator, which has the default values of the attributes
    """
    given = {a.name: a for a in node.attribute}
    defaults = {n: a.default_value for n, a in schema.attributes.items() if a.default_value.name}
    count = len(node.input)
    missing = [n for i, n in enumerate(function.input) if i >= count or not node.input[i]]
    bound = FunctionProto()
    bound.CopyFrom(function)
    del bound.node[:]
    bound.node.extend(bind_attributes(inner, given, defaults, missing) for inner in function.node)
    return bound


@cache
def changed_operators(op_type: str, domain: str, opset: int) -> frozenset[str]:
    """The operators, in the function of an operator, that changed since the function was written: a
    runtime ignores such a function.

    :param op_type: operator type
    :param domain: domain
    :param opset: version of the domain

    >>> sorted(changed_operators("Swish", "", 24)), sorted(changed_operators("Swish", "", 25))
    ([], ['CastLike', 'Constant'])
    """
    schema: Any = schema_of(op_type, domain, opset)
    if schema is None or not schema.has_function:
        return frozenset()
    version = _last(schema.function_opset_versions, opset)
    if version is None:
        return frozenset()
    function = FunctionProto()
    function.ParseFromString(schema.get_function_with_opset_version(version))
    used = {n.op_type for n in all_nodes(function.node) if not main_domain(n.domain)}
    return frozenset(op for op in used if _since(op, version) != _since(op, opset))


def _since(op_type: str, opset: int) -> int:
    schema = schema_of(op_type, "", opset)
    return 0 if schema is None else schema.since_version
