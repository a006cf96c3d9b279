"""Facts of the results of a call to a local function."""

from __future__ import annotations

from onnx import TensorProto
from ut_xbuilder.graph_checks import functions_model, op_types, optimized

from xbuilder import GraphBuilder


def test_inference_through_a_call():
    given = functions_model(
        "agraph (float[N,2] x, float[2,M] z) => (float[N,M] y) { t = f.g<p=1>(x, z) y = Neg(t) }",
        "g (u, w) => (v) { m = MatMul(u, w) v = f.h(m) }",
        "h (u) => (v) { t = Transpose(u) v = Transpose(t) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    assert builder.get_shape("t") == ("N", "M")
    assert builder.get_type("t") == TensorProto.FLOAT


def test_inference_uses_attributes_constants_and_known_dimensions():
    given = functions_model(
        """
        agraph (float[N,6] x) => (float[A,B,C] y, float[D,E] z)
        <int64[3] s = {0, 2, 3}>
        {
            y = f.reshape(x, s)
            d = Shape<start=0, end=1>(x)
            z0 = f.transpose<perm=[0,1]>(x)
            z = Neg(z0)
            u = f.transpose(x)
        }
        """,
        "reshape (u, s) => (v) { v = Reshape(u, s) }",
        "transpose <perm> (u) => (v) { v = Transpose<perm: ints = @perm>(u) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    assert builder.get_shape("y") == ("N", 2, 3)
    assert builder.get_shape("z0") == ("N", 6)
    assert builder.get_shape("u") == (6, "N")


def test_references_are_not_default_values():
    """Inside a function, perm is not known: nothing is inferred from its absence."""
    given = functions_model(
        "agraph (float[2,3] x) => (float[A,B] y) { y = f.g<perm=[0,1]>(x) }",
        """g <perm> (u) => (v) {
            k = Constant<value = float[2,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}>()
            t = Transpose<perm: ints = @perm>(k)
            v = Add(u, t)
        }""",
    )
    builder = GraphBuilder(given.functions[0], infer_shapes_options=True)
    assert not builder.has_shape("t")
    assert not builder.is_constant("t")
    kept = optimized(given, inline=False)
    assert "Transpose" in op_types(kept.functions[0])


def test_fresh_dimensions_of_a_body_are_not_shared_between_calls():
    given = functions_model(
        "agraph (float[N] x, float[N] z) => (int64[1,A] a, int64[1,B] b) { a = f.g(x) b = f.g(z) }",
        "g (u) => (v) { v = NonZero(u) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    a, b = builder.get_shape("a"), builder.get_shape("b")
    assert a[0] == b[0] == 1
    assert a[1] != b[1]


def test_two_outputs_share_a_fresh_dimension():
    given = functions_model(
        "agraph (float[N] x) => (int64[1,A] a, int64[1,B] b) { a0, b0 = f.g(x) a = Neg(a0) b = Neg(b0) }",
        "g (u) => (v, w) { v = NonZero(u) w = Neg(v) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    assert builder.get_shape("a0") == builder.get_shape("b0")


def test_calls_that_look_alike_are_instantiated_once():
    calls = " ".join(f"a{i} = f.g(x)" for i in range(5))
    given = functions_model(
        f"agraph (float[N] x, float[M] z) => (float[N] y) {{ {calls} b = f.g(z) y = Neg(x) }}",
        "g (u) => (v) { v = Neg(u) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    assert len(builder.graph.scope.call_facts) == 2
    assert builder.get_shape("a4") == ("N",) and builder.get_shape("b") == ("M",)


def test_recursion_and_missing_inputs():
    given = functions_model(
        "agraph (float[N] x) => (float[N] y) { a = f.g(x) b = f.o(x) y = Neg(x) }",
        "g (u) => (v) { v = f.g(u) }",
        "o (u, lo) => (v) { v = Clip(u, lo) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    assert not builder.has_type("a")
    assert builder.get_shape("b") == ("N",)
