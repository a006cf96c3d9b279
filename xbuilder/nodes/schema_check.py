"""Checks nodes against the schema of their operator, once for every form of node."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import lru_cache
from operator import attrgetter

from onnx import NodeProto

from ..errors import InvalidModelError
from .arity import arity_of, check_arity
from .attribute_types import Typed, attribute_problem, attribute_types, warn_ignored
from .mended_attributes import mended
from .record import Key, NodeRecord

#: the part of a node its schema constrains: type, domain, numbers of inputs and outputs, name and
#: type of each attribute
Form = tuple[str, str, int, int, Typed]
_name_and_type = attrgetter("name", "type")


def form_of(record: NodeRecord) -> Form:
    """The form of a node. Two nodes of one form are both valid, or none is."""
    given: Typed = tuple(map(_name_and_type, record._proto.attribute[:]))
    return record.op_type, record.domain, len(record.inputs), len(record.outputs), given


@lru_cache(maxsize=1 << 14)
def is_standard(form: Form, opset: int) -> bool:
    """Whether the schema of an operator accepts a form, with no attribute it does not have.

    False for an operator onnx does not know. Every check of a node starts here, and only the forms
    it refuses are examined further.

    :param form: form of a node
    :param opset: version of its domain
    """
    op_type, domain, n_inputs, n_outputs, given = form
    arity, known = arity_of(op_type, domain, opset), attribute_types(op_type, domain, opset)
    if arity is None or known is None:
        return False
    return (
        arity[0] <= n_inputs <= arity[1]
        and arity[2] <= n_outputs <= arity[3]
        and all(name in known for name, _ in given)
        and not attribute_problem(op_type, domain, opset, given)
    )


def check_node(proto: NodeProto, opset: int) -> None:
    """Checks the numbers of inputs and outputs of a node, the names and the types of its
    attributes, and that no required one is missing.

    An operator that onnx does not know is accepted.

    :param proto: the node
    :param opset: version of its domain
    :raises InvalidModelError: the schema of the operator refuses the node
    """
    record = NodeRecord(proto, 0, 0)
    form = form_of(record)
    if not is_standard(form, opset):
        check_arity(record, {record.domain: opset})
        _check_attributes(record, form, opset)


def _check_attributes(record: NodeRecord, form: Form, opset: int) -> None:
    problem = attribute_problem(record.op_type, record.domain, opset, form[-1])
    if problem:
        raise InvalidModelError(
            f"Node {record!r} of operator {record.op_type} is not valid in opset {opset}: "
            f"{problem}."
        )
    warn_ignored(record.op_type, record.domain, opset, form[-1])


def node_check(
    opsets: Mapping[str, int], functions: Container[Key] = ()
) -> Callable[[NodeRecord], None]:
    """Makes a function that checks the nodes of a graph as :func:`check_node` does, each form once.
    Only the numbers of inputs and outputs are checked for calls to local functions.

    An attribute that only has the wrong type is :func:`mended` in the record, whose node is copied.

    :param opsets: version of every domain
    :param functions: the local functions
    :return: a function that raises an InvalidModelError
    """
    valid: set[Form] = set()

    def check(record: NodeRecord) -> None:
        form = form_of(record)
        if form in valid:
            return
        opset = opsets.get(record.domain, 0)
        if record.key in functions:
            check_arity(record, opsets)
        elif not is_standard(form, opset):
            check_arity(record, opsets)
            record._proto = mended(record._proto, opsets)
            form = form_of(record)
            _check_attributes(record, form, opset)
        valid.add(form)

    return check
