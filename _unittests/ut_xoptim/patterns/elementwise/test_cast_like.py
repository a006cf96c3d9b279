"""Conversions to the type of another result: Cast, or nothing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnx.helper as oh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

MODELS = {
    "CastLike": {
        "another type": (
            "g (int64[a] x, float16[b] t) => (float16[a] y) { y = CastLike(x, t) }",
            "g (int64[a] x, float16[b] t) => (float16[a] y) { y = Cast<to=10>(x) }",
        ),
        "same type": (
            "g (float[a] x, float[b] t) => (float[a] y) { c = CastLike(x, t) y = Abs(c) }",
            "g (float[a] x, float[b] t) => (float[a] y) { y = Abs(x) }",
        ),
        "an inferred type": (
            "g (float[a, b] x) => (int64[a, b] y) { s = Shape(x) y = CastLike(x, s) }",
            "g (float[a, b] x) => (int64[a, b] y) { y = Cast<to=7>(x) }",
            {"feeds": [{"x": np.array([[1, -2, 0]], dtype=np.float32)}]},
        ),
        "an output": (
            "g (int32[a] x, float[b] t) => (float[a] c, float[a] y)"
            "{ c = CastLike(x, t) y = Abs(c) }",
            "g (int32[a] x, float[b] t) => (float[a] c, float[a] y)"
            "{ c = Cast<to=1>(x) y = Abs(c) }",
        ),
        "without dimension": (
            "g (bool x, double[0] t) => (double y) { y = CastLike(x, t) }",
            "g (bool x, double[0] t) => (double y) { y = Cast<to=11>(x) }",
        ),
        "with the operand of another one": (
            "g (bool[a] x, float[a] t) => (float[a] y, float[a] z)"
            "{ y = CastLike(x, t) z = CastLike(t, y) }",
            "g (bool[a] x, float[a] t) => (float[a] y, float[a] z)"
            "{ y = Cast<to=1>(x) z = Identity(t) }",
        ),
    },
}

NEAR_MISSES = {
    "unknown type": (
        "g (float[a] x, float[b] t) => (float[a] y){ u = local.Unknown(t) y = CastLike(x, u) }",
        "the type to convert to is not known",
    ),
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests({"CastLike": NEAR_MISSES})


@pytest.mark.parametrize(
    "opset,attributes",
    [(18, {}), (19, {"saturate": 0}), (23, {"saturate": 1}), (24, {"round_mode": "down"})],
)
def test_attributes_are_kept(opset: int, attributes: dict):
    """Attributes of CastLike are attributes of the Cast of the same opset."""
    target = TensorProto.FLOAT8E8M0 if "round_mode" in attributes else TensorProto.FLOAT16
    target = TensorProto.FLOAT8E4M3FN if "saturate" in attributes else target
    graph = oh.make_graph(
        [oh.make_node("CastLike", ["x", "t"], ["y"], **attributes)],
        "g",
        [
            oh.make_tensor_value_info("x", TensorProto.FLOAT, ["a"]),
            oh.make_tensor_value_info("t", target, [1]),
        ],
        [oh.make_tensor_value_info("y", target, ["a"])],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=11)
    (node,) = optimize_with(model, ["CastLike"])[0].graph.node
    found = {a.name: oh.get_attribute_value(a) for a in node.attribute}
    expected = {k: v.encode() if isinstance(v, str) else v for k, v in attributes.items()}
    assert (node.op_type, found) == ("Cast", {"to": target, **expected})


_BODY = [
    oh.make_node("CastLike", ["x", "t"], ["c"]),
    oh.make_node("Identity", ["c"], ["y"]),
]


def test_types_of_a_function_are_unknown():
    """A local function may be called with other types: nothing changes."""
    function = oh.make_function("local", "f", ["x", "t"], ["y"], _BODY, [oh.make_opsetid("", 18)])
    optimizer = GraphBuilderPatternOptimization(GraphBuilder(function), ["CastLike"])
    (pattern,) = optimizer.patterns
    reasons = [optimizer.explain(pattern, n) for n in optimizer.iter_roots(pattern)]
    assert ["is not known" in r for r in reasons] == [True]


def test_types_a_function_makes_are_known():
    """A result of a function whose type does not depend on its inputs."""
    nodes = [oh.make_node("Shape", ["t"], ["s"]), oh.make_node("CastLike", ["x", "s"], ["y"])]
    function = oh.make_function("local", "f", ["x", "t"], ["y"], nodes, [oh.make_opsetid("", 18)])
    options = OptimizationOptions(patterns="CastLike")
    builder = GraphBuilder(function, infer_shapes_options=True, optimization_options=options)
    builder.optimize()
    (node,) = builder.nodes
    assert (node.op_type, oh.get_node_attr_value(node, "to")) == ("Cast", TensorProto.INT64)


def test_referenced_attribute():
    """The attribute belongs to the function: the Cast refers to it as well."""
    nodes = [oh.make_node("Shape", ["t"], ["s"]), oh.make_node("CastLike", ["x", "s"], ["y"])]
    nodes[1].attribute.add(
        name="saturate", ref_attr_name="keep", type=onnx.AttributeProto.AttributeType.INT
    )
    opsets = [oh.make_opsetid("", 19)]
    function = oh.make_function("local", "f", ["x", "t"], ["y"], nodes, opsets, ["keep"])
    options = OptimizationOptions(patterns="CastLike")
    builder = GraphBuilder(function, infer_shapes_options=True, optimization_options=options)
    builder.optimize()
    (node,) = builder.nodes
    references = {a.name: a.ref_attr_name for a in node.attribute}
    assert (node.op_type, references) == ("Cast", {"to": "", "saturate": "keep"})


def test_in_a_subgraph():
    """The body reads a type of the outer graph."""
    model = model_from_text(
        "g (bool c, int64[a] x, float[b] t) => (float[a] y) {"
        "  y = If (c) <then_branch = g1 () => (float[a] r) { r = CastLike(x, t) },"
        "              else_branch = g2 () => (float[a] s) { u = CastLike(t, t) s = CastLike(x, u) }>"
        "}"
    )
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns="CastLike"),
    )
    got = builder.to_onnx()
    bodies = [[n.op_type for n in a.g.node] for a in got.graph.node[0].attribute]
    assert bodies == [["Cast"], ["Cast"]]
    feeds = {"x": np.arange(3), "t": np.ones(2, dtype=np.float32)}
    for c in (True, False):
        feed = {**feeds, "c": np.array(c)}
        expected, found = run_onnxruntime(model, feed), run_onnxruntime(got, feed)
        np.testing.assert_array_equal(expected[0], found[0])


def test_constants_follow():
    """A null bias made with Expand(CastLike(0)) is seen by the rewrites that look for zeros."""
    before = (
        "g (float[a, 1, b, c] x) => (float[a, 2, d, e] y)"
        " <float[2, 1, 1, 1] w = {1, 2}, int64 zero = {0}, int64[1] two = {2}>"
        "{ z = CastLike(zero, x) bias = Expand(z, two) y = Conv(x, w, bias) }"
    )
    after = (
        "g (float[a, 1, b, c] x) => (float[a, 2, d, e] y) <float[2, 1, 1, 1] w = {1, 2}>"
        "{ y = Conv(x, w) }"
    )
    check_pattern(before, after, "CastLike,ConvBiasNull")


_NUMPY = {
    "float": np.float32,
    "float16": np.float16,
    "double": np.float64,
    "bfloat16": ml_dtypes.bfloat16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "bool": np.bool_,
}


@settings(deadline=None)
@given(
    st.sampled_from(sorted(_NUMPY)),
    st.sampled_from(sorted(_NUMPY)),
    st.lists(st.integers(0, 2), max_size=3),
    st.integers(15, 25),
)
def test_any_type(source: str, target: str, shape: list[int], opset: int):
    """Cast gives what CastLike gives, for every pair of types, null dimensions included."""
    dims = ", ".join(map(str, shape))
    text = f"g ({source}[{dims}] x, {target}[b] t) => ({target}[{dims}] y) {{ y = CastLike(x, t) }}"
    model = model_from_text(text, opset)
    got = optimize_with(model, ["CastLike"])[0]
    assert [n.op_type for n in got.graph.node] == ["Identity" if source == target else "Cast"]
    to = oh.np_dtype_to_tensor_dtype(np.dtype(_NUMPY[target]))
    assert all(oh.get_node_attr_value(n, "to") == to for n in got.graph.node if n.attribute)
    if "bfloat16" in (source, target) or opset > 23:
        return
    values = np.arange(int(np.prod(shape))).reshape(shape).astype(_NUMPY[source])
    feeds = {"x": values, "t": np.zeros(1, dtype=_NUMPY[target])}
    expected, found = run_onnxruntime(model, feeds), run_onnxruntime(got, feeds)
    np.testing.assert_array_equal(expected[0], found[0])
