"""The record of a node in a store."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xbuilder.nodes import record as module
from xbuilder.nodes.record import NodeRecord


def concat(n: int) -> NodeRecord:
    return NodeRecord(oh.make_node("Concat", [f"x{i}" for i in range(n)], ["y"], axis=0), 0, 0)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from("abcdef"), min_size=33, max_size=40),
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdefgh")), max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_many_inputs_are_renamed_as_few_are(
    names: list[str], renames: list[tuple[str, str]], reads: list[bool]
) -> None:
    """One renaming after the other, whenever the inputs are read."""
    record = NodeRecord(oh.make_node("Concat", names, ["y"]), 0, 0)
    expected = tuple(names)
    for (old, new), read in zip(renames, reads, strict=False):
        record.rename_read(old, new)
        expected = tuple(new if name == old else name for name in expected)
        if read:
            assert record.inputs == expected
    assert record.inputs == expected
    assert tuple(record.refresh().input) == expected


def test_many_renamings_rebuild_the_inputs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """8000 Identity before one Concat: the cost does not grow with the square."""
    counts = []
    rebuild = module._renamed_names

    def count(names, renames):
        counts.append(len(renames))
        return rebuild(names, renames)

    monkeypatch.setattr(module, "_renamed_names", count)
    record = concat(8000)
    for i in range(8000):
        record.rename_read(f"x{i}", f"z{i}")
    assert not counts
    assert record.inputs == tuple(f"z{i}" for i in range(8000))
    assert list(record.reads()) == list(record.inputs)
    assert counts == [8000]


def test_an_attribute_that_does_not_exist() -> None:
    record = concat(40)
    record.rename_read("x0", "z")
    with pytest.raises(AttributeError, match="WideRecord has no attribute 'input'"):
        record.input  # noqa: B018
    assert record.inputs[0] == "z"
