"""Checks that nodes have as many inputs and outputs as their operator takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ..errors import InvalidModelError
from ..operators.op_schemas import schema_of
from .record import NodeRecord

Arity = tuple[int, int, int, int]


@lru_cache(maxsize=4096)
def arity_of(op_type: str, domain: str, opset: int) -> Arity | None:
    """Numbers of inputs and outputs an operator takes, None if it is unknown.

    :return: least and most inputs, least and most outputs

    ::

        arity_of("Clip", "", 18)  # (1, 3, 1, 1)
    """
    schema = schema_of(op_type, domain, opset)
    if schema is None:
        return None
    return schema.min_input, schema.max_input, schema.min_output, schema.max_output


def check_arity(record: NodeRecord, opsets: Mapping[str, int]) -> None:
    """Checks that a node has as many inputs and outputs as its operator takes, since its readers
    rely on it.

    An operator that onnx does not know is accepted.

    :param record: the node
    :param opsets: version of every domain
    :raises InvalidModelError: if it has too few of them, or too many
    """
    opset = opsets.get(record.domain, 0)
    arity = arity_of(record.op_type, record.domain, opset)
    if arity is None:
        return
    fewest, most, fewest_outputs, most_outputs = arity
    if not fewest <= len(record.inputs) <= most:
        raise _wrong(record, opset, "input", len(record.inputs), fewest, most)
    if not fewest_outputs <= len(record.outputs) <= most_outputs:
        raise _wrong(record, opset, "output", len(record.outputs), fewest_outputs, most_outputs)


def _wrong(
    record: NodeRecord, opset: int, kind: str, found: int, fewest: int, most: int
) -> InvalidModelError:
    expected = f"at least {fewest} expected" if found < fewest else f"at most {most} expected"
    return InvalidModelError(
        f"Node {record!r} has {found} {kind}(s), {expected} by operator {record.op_type} of opset "
        f"{opset}; the model is not valid."
    )
