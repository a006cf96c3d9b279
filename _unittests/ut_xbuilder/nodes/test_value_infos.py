"""Types of value infos: conversions, dimensions they declare."""

from __future__ import annotations

import onnx.helper as oh
import pytest

from xbuilder import ResultFacts
from xbuilder.nodes.value_infos import (
    clear_names,
    declared_names,
    facts_from_type,
    facts_to_type,
    value_info,
)


def convert(proto):
    count = iter(range(100))
    return facts_from_type(proto, lambda hint: f"{hint}{next(count)}", lambda d: d)


@pytest.mark.parametrize(
    "facts",
    [
        ResultFacts(1, ("a", 3)),
        ResultFacts(7, ()),
        ResultFacts(16),
        ResultFacts(sequence=ResultFacts(1, (2,))),
        ResultFacts(optional=ResultFacts(sequence=ResultFacts(1))),
    ],
)
def test_types_back_and_forth(facts):
    assert convert(facts_to_type(facts, lambda d: True)) == facts


def test_unknown_types():
    assert facts_to_type(ResultFacts(0, (2,)), lambda d: True) is None
    assert facts_to_type(ResultFacts(sequence=ResultFacts()), lambda d: True) is None
    assert value_info("x", ResultFacts(), lambda d: True) is None
    proto = facts_to_type(ResultFacts(1, ("a", "b+1"), None), lambda d: d == "a")
    dims = proto.tensor_type.shape.dim
    assert dims[0].dim_param == "a" and not dims[1].HasField("dim_param")
    proto = facts_to_type(ResultFacts(1, None, 2), lambda d: True)
    assert len(proto.tensor_type.shape.dim) == 2
    assert convert(proto).shape == ("unk0", "unk1")
    negative = oh.make_tensor_type_proto(1, [-1, 2])
    assert convert(negative).shape == ("unk0", 2)


def test_clear_names():
    tensor = oh.make_tensor_value_info("a", 1, ["N", 4])
    sequence = oh.make_tensor_sequence_value_info("b", 1, ["M", 2])
    infos = [tensor, sequence]
    assert declared_names(infos) == {"N", "M"}
    clear_names(infos)
    assert declared_names(infos) == set()
    assert [d.dim_value for d in tensor.type.tensor_type.shape.dim] == [0, 4]
