"""Sequences and optionals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from ut_xbuilder.shapes.shape_cases import infer, is_fresh

from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes.moving.sequence import facts_of_type_proto, join_facts

X = ResultFacts(1, ("a", 3))
SEQ = ResultFacts(sequence=X)


def test_construct_and_read() -> None:
    """Elements keep what they have in common."""
    assert infer("SequenceConstruct", [X, X])[0] == SEQ
    other = infer("SequenceConstruct", [X, ResultFacts(1, ("b", 3))])[0]
    assert other == ResultFacts(sequence=ResultFacts(1, None, 2))
    mixed = infer("SequenceConstruct", [X, ResultFacts(1, ("b",))])[0]
    assert mixed == ResultFacts(sequence=ResultFacts(1))
    assert infer("SequenceAt", [SEQ, ResultFacts(7, ())])[0] == X
    assert infer("SequenceAt", [ResultFacts(), ResultFacts(7, ())])[0] == ResultFacts()
    assert infer("SequenceLength", [SEQ])[0] == ResultFacts(7, ())


def test_empty_insert_erase() -> None:
    """An inserted element may be unlike the others."""
    empty = infer("SequenceEmpty", [], attributes={"dtype": 7})[0]
    assert empty == ResultFacts(sequence=ResultFacts(7))
    assert infer("SequenceEmpty", [])[0].sequence.type == 1
    assert infer("SequenceInsert", [SEQ, X])[0] == SEQ
    found = infer("SequenceInsert", [SEQ, ResultFacts(1, ("b", 3))])[0]
    assert found.sequence == ResultFacts(1, None, 2)
    assert infer("SequenceInsert", [ResultFacts(), X])[0].sequence == ResultFacts(1)
    assert infer("SequenceErase", [SEQ])[0] == SEQ


def test_a_followed_content_does_not_stay_in_a_sequence() -> None:
    """Contents of two elements differ."""
    value = ResultFacts(7, (1,), None, ("a",))
    assert infer("SequenceConstruct", [value, value])[0].sequence == ResultFacts(7, (1,))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [({"axis": 0}, "? 3"), ({"axis": 1}, "a ?"), ({"axis": 0, "new_axis": 1}, "? a 3")],
)
def test_concat_from_sequence(attributes: dict, expected: str) -> None:
    """The joined axis is fresh."""
    found = infer("ConcatFromSequence", [SEQ], attributes=attributes)[0]
    assert " ".join("?" if is_fresh(d) else str(d) for d in found.shape) == expected
    rank = infer(
        "ConcatFromSequence", [ResultFacts(sequence=ResultFacts(1, None, 2))], attributes=attributes
    )[0]
    assert rank == ResultFacts(1, None, len(expected.split()))


@pytest.mark.parametrize(
    ("inputs", "attributes", "expected"),
    [
        ([], {}, ResultFacts(1, (1, 80))),
        ([], {"keepdims": 0}, ResultFacts(1, (80,))),
        ([np.array(5000, np.int64)], {}, ResultFacts(1, None, 2)),
        ([np.array(4200, np.int64)], {}, ResultFacts(1, (4200, 80))),
        ([np.array([4200, 4200], np.int64)], {}, ResultFacts(1, (4200, 80))),
        ([np.array([5000, 3400], np.int64)], {}, ResultFacts(1, None, 2)),
        ([ResultFacts(7, ())], {}, ResultFacts(1, None, 2)),
        ([], {"axis": 4}, None),
    ],
)
def test_split_to_sequence(inputs: list, attributes: dict, expected: Any) -> None:
    """Only parts of one length have a known shape."""
    found = infer("SplitToSequence", [ResultFacts(1, (8400, 80)), *inputs], attributes=attributes)
    assert found[0].sequence == expected


@pytest.mark.parametrize("position", [0, 1, -1, -2])
def test_parts_of_known_lengths(position: int) -> None:
    """Each part has its own shape, a constant position tells which one is read."""
    sizes = (5000, 3400)
    lengths = np.array(sizes, np.int64)
    (found,) = infer("SplitToSequence", [ResultFacts(1, (8400, "a")), lengths])
    assert found.parts == tuple(ResultFacts(1, (size, "a")) for size in sizes)
    part = infer("SequenceAt", [found, np.array(position, np.int64)])[0]
    assert part == ResultFacts(1, (sizes[position], "a"))


def test_a_part_that_is_not_known() -> None:
    """Any position, one beyond the last part, lengths that are not known."""
    (found,) = infer("SplitToSequence", [ResultFacts(1, (5, 3)), np.array([2, 3], np.int64)])
    for position in (ResultFacts(7, ()), np.array(2, np.int64)):
        assert infer("SequenceAt", [found, position])[0] == ResultFacts(1, None, 2)
    (unknown,) = infer("SplitToSequence", [ResultFacts(1, (5, 3)), ResultFacts(7, (2,))])
    assert unknown.parts == ()


def test_split_to_sequence_keepdims_with_lengths() -> None:
    """onnx ignores keepdims when lengths are given, onnxruntime does not: nothing is said."""
    length = ResultFacts(7, (), None, 1)
    found = infer("SplitToSequence", [ResultFacts(1, (5, 3)), length], attributes={"keepdims": 0})
    assert found[0].sequence == ResultFacts(1)


def test_optionals() -> None:
    """Wrapped and unwrapped."""
    wrapped = infer("Optional", [X])[0]
    assert wrapped == ResultFacts(optional=X)
    assert infer("OptionalGetElement", [wrapped])[0] == X
    assert infer("OptionalGetElement", [X], opset=18)[0] == X
    assert infer("OptionalHasElement", [wrapped])[0] == ResultFacts(9, ())
    assert infer("OptionalHasElement", [], opset=18)[0] == ResultFacts(9, ())
    assert infer("OptionalGetElement", [infer("Optional", [SEQ])[0]])[0] == SEQ


def test_type_protos() -> None:
    """Declared types, nested."""
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["a", 3])
    sequence = helper.make_sequence_type_proto(tensor)
    option = helper.make_optional_type_proto(sequence)
    assert facts_of_type_proto(tensor) == ResultFacts(1, None, 2)  # a name proves nothing
    names = {"new_dim": lambda hint: "a"}
    assert facts_of_type_proto(tensor, **names) == X
    assert facts_of_type_proto(sequence, **names) == SEQ
    assert facts_of_type_proto(option, **names) == ResultFacts(optional=SEQ)
    partial = helper.make_tensor_type_proto(TensorProto.FLOAT, [None, 3])
    assert facts_of_type_proto(partial) == ResultFacts(1, None, 2)
    none = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    assert facts_of_type_proto(none) == ResultFacts(1)
    found = infer("Optional", [], attributes={"type": sequence})[0]
    assert is_fresh(found.optional.sequence.shape[0]) and found.optional.sequence.shape[1] == 3


def test_join() -> None:
    """The common part of two facts."""
    assert join_facts(X, X) == X
    assert join_facts(X, ResultFacts(1)) == ResultFacts(1)
    assert join_facts(X, ResultFacts(1, None, 2)) == ResultFacts(1, None, 2)
