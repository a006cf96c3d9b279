"""Names of dimensions that are formulas, as outputs prove them."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xbuilder.graph_checks import optimized, parse, run_onnxruntime

from xbuilder import GraphBuilder
from xbuilder.dims import Dim, prove_equal

#: the difference of two sizes is known if the name of the dimension of the mask is a formula
DECODER = """g (float[b, past] cache, float[b, seq] x, float[b, m] mask) =>
    (float[b, n] present, int64[1] d, float[b, o] other) <int64[1] one = {1}> {
    present = Concat<axis: int = 1>(cache, x)
    a = Shape<start: int = 1>(present)
    c = Shape<start: int = 1>(mask)
    d = Sub(c, a)
    other = Concat<axis: int = 1>(cache, cache)
}"""


def model(mask: str, present: str, other: str = ""):
    """The decoder, with names for the dimensions of its mask and of its outputs."""
    proto = parse(DECODER)
    for info, name in (
        (proto.graph.input[2], mask),
        (proto.graph.output[0], present),
        (proto.graph.output[2], other),
    ):
        info.type.tensor_type.shape.dim[1].dim_param = name
    return proto


def difference(builder: GraphBuilder, expected: Dim) -> bool | None:
    """Whether the difference of sizes is proven to be the expected one."""
    (value,) = builder.value_as_shape("d")
    return prove_equal(value, expected, builder.constraints)


@pytest.mark.parametrize("name", ["past+seq", "past + seq", "seq+past"])
def test_an_output_has_the_formula(name):
    assert difference(GraphBuilder(model(name, "seq + past")), 0) is True  # as torch.onnx spells it
    proto = model(name, name)
    builder = GraphBuilder(proto)
    assert difference(builder, 0) is True
    after = builder.to_onnx()
    assert after.graph.input[2].type.tensor_type.shape.dim[1].dim_param == name
    assert after.graph.output[0].type.tensor_type.shape.dim[1].dim_param == name
    feeds = {k: np.ones((2, n), np.float32) for k, n in (("cache", 3), ("x", 2), ("mask", 5))}
    for got, expected in zip(
        run_onnxruntime(after, feeds), run_onnxruntime(proto, feeds), strict=True
    ):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("mask", "present", "other"),
    [
        ("past+seq", "n", "o"),  # no output has the name
        ("past+seq", "past + total", "o"),  # another name
        ("2*past", "2*past", "o"),  # not what inference finds
        ("past+seq", "past+seq", "past+seq"),  # the name of two dimensions
        ("past+total", "past+total", "o"),  # no input has `total`
        ("total", "total", "o"),  # no formula
        ("past+seq", "n", "past+seq"),  # the other output is longer
    ],
)
def test_a_name_is_no_formula(mask, present, other):
    proto = model(mask, present, other)
    assert difference(GraphBuilder(proto), 0) is None
    feeds = {k: np.ones((2, n), np.float32) for k, n in (("cache", 3), ("x", 2), ("mask", 9))}
    assert run_onnxruntime(optimized(proto), feeds)[1].tolist() == [4]


def test_each_formula_has_its_output():
    builder = GraphBuilder(model("2*past", "past+seq", "2*past"))
    assert difference(builder, "past-seq") is True


def test_an_output_that_depends_on_the_input():
    """The words are added to as many positions as the mask leaves after the cache, as OPT does. The
    output has the length of the formula if the mask has, so it proves nothing: one word may be
    broadcast."""
    proto = parse("""g (float[b, past] cache, float[b, seq] x, float[b, m] mask) =>
        (float[b, n] present) <int64[1] one = {1}, int64[1] far = {9223372036854775807}> {
        start = Shape<start: int = 1>(cache)
        rest = Slice(mask, start, far, one)
        words = Add(x, rest)
        present = Concat<axis: int = 1>(cache, words)
    }""")
    for info in (proto.graph.input[2], proto.graph.output[0]):
        info.type.tensor_type.shape.dim[1].dim_param = "past+seq"
    assert "broadcast" in GraphBuilder(proto).get_shape("words")[1]


def test_an_output_that_is_not_known():
    """Another output of the name may be as long as the mask or not: it contradicts nothing."""
    text = DECODER.replace("other = Concat<axis: int = 1>(cache, cache)", "other = Add(x, present)")
    proto = parse(text)
    for info in (proto.graph.input[2], proto.graph.output[0], proto.graph.output[2]):
        info.type.tensor_type.shape.dim[1].dim_param = "past+seq"
    builder = GraphBuilder(proto)
    assert "broadcast" in builder.get_shape("other")[1]
    assert difference(builder, 0) is True
