"""Normalizations."""

from __future__ import annotations

import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer

from xbuilder import GraphBuilder
from xbuilder.facts.facts import ResultFacts
from xoptim.testing import model_from_text

SIZES = [{"a": 2, "b": 3}, {"a": 4, "b": 2}]
X = ResultFacts(10, ("a", 3, "b"))


@pytest.mark.parametrize(
    "op_type",
    [
        "GroupNormalization",
        "InstanceNormalization",
        "LRN",
        "LpNormalization",
        "MeanVarianceNormalization",
        "RMSNormalization",
    ],
)
def test_like_the_first_input(op_type: str) -> None:
    """Type and shape go through."""
    for facts in (X, ResultFacts(1, None, 3), ResultFacts(1)):
        assert infer(op_type, [facts, ResultFacts(facts.type)], opset=23)[0] == facts


@pytest.mark.parametrize(("axis", "kept"), [(-1, ("a", 3)), (1, ("a",)), (0, ())])
def test_layer_normalization(axis: int, kept: tuple) -> None:
    """Mean and deviation are kept in float."""
    found = infer("LayerNormalization", [X, ResultFacts(10)], 3, attributes={"axis": axis})
    ones = kept + (1,) * (3 - len(kept))
    assert found == [X, ResultFacts(1, ones), ResultFacts(1, ones)]
    double = {"attributes": {"axis": axis, "stash_type": 11}}
    assert infer("LayerNormalization", [X, ResultFacts(10)], 2, **double)[1].type == 11


def test_layer_normalization_runs() -> None:
    """Real run."""
    inputs = [In(("a", "b", 4)), In((4,)), In((4,))]
    expected = [("a", "b", 4), ("a", "b", 1), ("a", "b", 1)]
    check_runs("LayerNormalization", inputs, SIZES, expected, n_outputs=3)


def test_layer_normalization_unknown() -> None:
    """Rank, nothing, wrong axis."""
    found = infer("LayerNormalization", [ResultFacts(1, None, 3)], 2)
    assert found == [ResultFacts(1, None, 3), ResultFacts(1, None, 3)]
    found = infer("LayerNormalization", [X], 2, attributes={"axis": 7})
    assert found[1] == ResultFacts(1)


@pytest.mark.parametrize(("opset", "count"), [(1, 5), (9, 5), (14, 3), (15, 3), (15, 1)])
def test_batch_normalization(opset: int, count: int) -> None:
    """Statistics are vectors of channels."""
    params = [ResultFacts(10, (3,)), ResultFacts(10, (3,))]
    stats = [ResultFacts(1, (3,)), ResultFacts(1, (3,))]
    found = infer("BatchNormalization", [X, *params, *stats], count, opset=opset)
    assert found[0] == X
    assert [(f.type, f.shape) for f in found[1:]] == [(1, (3,))] * (count - 1)


def test_batch_normalization_runs() -> None:
    """Real runs, inference and training."""
    inputs = [In(("a", 3, "b")), *(In((3,)) for _ in range(4))]
    check_runs("BatchNormalization", inputs, SIZES, [("a", 3, "b")], opset=15)
    training = {"attributes": {"training_mode": 1}, "opset": 15, "n_outputs": 3}
    expected = [("a", 3, "b"), (3,), (3,)]
    check_runs("BatchNormalization", inputs, SIZES, expected, **training)


def test_batch_normalization_by_position() -> None:
    """`spatial=0` before opset 9: the statistics have the shape of the scale."""
    scale = ResultFacts(1, (3, "b"))
    given = {"attributes": {"spatial": 0}, "opset": 7}
    found = infer("BatchNormalization", [X, scale, scale, scale, scale], 2, **given)
    assert found[1].shape == (3, "b")


def test_batch_normalization_unknown() -> None:
    """Channels come from the parameters if they have to."""
    inputs = [ResultFacts(1), ResultFacts(1, ("c",))]
    found = infer("BatchNormalization", inputs, 2, opset=15)
    assert found[1].shape == ("c",)


def text_of(node: str, scale: int, skip: str = "") -> str:
    ones = ", ".join(["1"] * scale)
    return f"agraph (float[a,b,c] x{skip}) => (y) <float[{scale}] w = {{{ones}}}> {{ y = {node} }}"


@pytest.mark.parametrize(
    ("node", "known"),
    [
        ("BatchNormalization(x, w, w, w, w)", ("a", 4, "c")),
        ("InstanceNormalization(x, w, w)", ("a", 4, "c")),
        ("InstanceNormalization(x, s, w)", ("a", 4, "c")),
        ("GroupNormalization<num_groups=2>(x, w, w)", ("a", 4, "c")),
        ("LayerNormalization(x, w)", ("a", "b", 4)),
        ("LayerNormalization<axis=2>(x, w)", ("a", "b", 4)),
        ("RMSNormalization(x, w)", ("a", "b", 4)),
        ("SimplifiedLayerNormalization(x, w)", ("a", "b", 4)),
        ("com.microsoft.SkipLayerNormalization(x, z, w)", ("a", "b", 4)),
        # onnxruntime compares the numbers of elements
        ("LayerNormalization<axis=1>(x, w)", ("a", "b", "c")),
        ("RMSNormalization<axis=-2>(x, w)", ("a", "b", "c")),
    ],
)
def test_the_length_of_a_scale(node: str, known: tuple[int | str, ...]) -> None:
    text = text_of(node, 4, ", float[a,b,c] z, float[d] s")
    builder = GraphBuilder(model_from_text(text, opset=23))
    assert tuple(map(builder.constraints.canonical, builder.get_shape("x"))) == known


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        ("LayerNormalization(x, w)", 21),
        ("RMSNormalization(x, w)", 23),
        ("GroupNormalization<num_groups=1>(x, w, w)", 21),
        ("GroupNormalization<num_groups=1>(x, w, w)", 18),
        ("SimplifiedLayerNormalization(x, w)", 21),
    ],
)
def test_a_scale_of_one_element_is_broadcast(node: str, opset: int) -> None:
    model = model_from_text(text_of(node, 1), opset=opset)
    builder = GraphBuilder(model)
    assert list(builder.constraints.items()) == []


def test_a_scale_of_another_length_proves_nothing() -> None:
    text = text_of("LayerNormalization(x, w)", 4).replace("[a,b,c]", "[a,b,3]")
    builder = GraphBuilder(model_from_text(text, opset=23))
    assert builder.get_shape("x") == ("a", "b", 3)
