"""Dimension names a body declares: local to the body, unless they are proven to be the outer's."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from ut_xbuilder.graph_checks import parse, run_onnxruntime

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.nodes.value_infos import declared_names

LOOP = """
agraph (float[N,4] X, float[{initial},4] A, int64 T, bool C) => (float[P,4] Y, float[{out}] S)
{{
    Y, S = Loop (T, C, A) <
        body = b (int64 i, bool ci, float[{inside},4] v) => (bool co, float[{after},4] w, {scan} e)
        {{ co = Identity(ci) {nodes} }}
    >
}}
"""
EXPAND = "w = Identity(v) s = Shape(X) e = Expand(v, s)"


def loop(nodes=EXPAND, initial="K", inside="N", after="N", scan="M,4"):
    dims = {"initial": initial, "inside": inside, "after": after, "scan": f"float[{scan}]"}
    return parse(LOOP.format(nodes=nodes, out=f"T,{scan.replace('M', 'Q')}", **dims))


def body_of(model):
    builder = GraphBuilder(model, infer_shapes_options=True)
    return builder, next(builder.iter_subgraph_builders())


def check_same(model, feeds):
    expected = run_onnxruntime(model, feeds)
    for patterns in (None, "default"):
        options = OptimizationOptions(patterns=patterns)
        new = GraphBuilder(model, optimization_options=options).to_onnx()
        for a, b in zip(expected, run_onnxruntime(new, feeds), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.shape == b.shape


def feeds(n, k):
    values = np.arange(4 * (n + k), dtype=np.float32).reshape((-1, 4))
    return {"X": values[:n], "A": values[n:], "T": np.array(2), "C": np.array(True)}


def test_a_name_of_the_body_is_not_the_outer_dimension():
    model = loop()
    check_same(model, feeds(3, 1))
    builder, body = body_of(model)
    assert builder.get_shape("X") == ("N", 4)
    assert body.get_shape("v")[0] != "N"
    assert body.get_shape("v") == body.get_shape("w")


def test_a_carried_dimension_that_grows():
    nodes = (
        "one = Constant<value = float[1,4] {1, 1, 1, 1}>() w = Concat<axis=0>(v, one) "
        "a = Shape(v) c = Shape(X) q = Equal(a, c) e = Cast<to=1>(q)"
    )
    model = loop(nodes, "N", after="M", scan="2")
    # both A and X have the dimension N
    check_same(model, feeds(2, 2))
    builder, body = body_of(model)
    assert body.get_shape("v")[0] != "N"
    assert builder.get_shape("Y")[0] != "N"


@pytest.mark.parametrize(
    "nodes,after",
    [
        ("w = Neg(v) e = Add(v, X)", "N"),
        ("w = Add(v, X) e = Neg(w)", "N"),
        ("w = Neg(v) e = Add(v, X)", "M"),
    ],
)
def test_a_carried_dimension_that_stays_keeps_its_outer_name(nodes, after):
    builder, body = body_of(loop(nodes, "N", after=after))
    for name in ("v", "w", "e"):
        assert body.get_shape(name) == ("N", 4)
    assert builder.get_shape("Y") == ("N", 4)
    assert builder.get_shape("S")[1:] == ("N", 4)


@pytest.mark.parametrize("initial,inside", [("N", "M"), ("M", "N"), ("K", "N")])
def test_another_dimension_is_not_shared(initial, inside):
    _, body = body_of(loop("w = Neg(v) e = Neg(w)", initial, inside, inside))
    shape = body.get_shape("v")
    assert shape == body.get_shape("e") and shape[0] not in ("N", "M")


def test_inputs_of_a_body_which_disagree():
    text = """
        agraph (float[N] X, float[N] A, float[K] B, int64 T, bool C) => (float[P] Y, float[Q] Z)
        {
            Y, Z = Loop (T, C, A, B) <
                body = b (int64 i, bool ci, float[N] v, float[N] w)
                    => (bool co, float[N] v2, float[N] w2)
                { co = Identity(ci) v2 = Neg(v) w2 = Neg(w) }
            >
        }
        """
    _, body = body_of(parse(text))
    assert body.get_shape("v") == body.get_shape("w") != ("N",)


def test_a_dimension_shared_by_a_scan():
    text = """
        agraph (float[N] X, float[N] A, float[{dims}] B) => (float[P] Y, float[T,Q] Z)
        {{
            Y, Z = Scan <num_scan_inputs=1, scan_input_axes=[{axis}],
                body = b (float[N] v, float[L] row) => (float[N] w, float[L] r)
                {{ w = Add(v, X) r = Neg(row) }}
            > (A, B)
        }}
        """
    for dims, axis, expected in (("K,L", 0, "L"), ("L,K", -1, "L"), ("K,L", 1, None)):
        builder, body = body_of(parse(text.format(dims=dims, axis=axis)))
        assert body.get_shape("v") == ("N",) and builder.get_shape("Y") == ("N",)
        found = body.get_shape("row")[0]
        assert found == expected if expected else found not in ("K", "L")


def test_names_of_the_branches_of_if():
    text = """
        agraph (float[N,4] X, bool c) => (float[P,4] Y)
        {
            Y = If (c) <
                then_branch = a () => (float[N,4] t) {
                    i = NonZero(X) f = Cast<to=1>(i) g = Transpose(f) t = Concat<axis=1>(g, g)
                },
                else_branch = b () => (float[N,4] e) { e = Neg(X) }
            >
        }
        """
    builder = GraphBuilder(parse(text), infer_shapes_options=True)
    then, orelse = builder.iter_subgraph_builders()
    assert then.get_shape("t")[0] != "N"
    assert orelse.get_shape("e") == ("N", 4)
    assert builder.get_shape("Y")[0] != "N"


def test_nested_bodies_share_through_one_another():
    text = """
        agraph (float[N] A, int64 T, bool C) => (float[P] Y)
        {
            Y = Loop (T, C, A) <
                body = outer (int64 i, bool ci, float[N] v) => (bool co, float[M] w)
                {
                    co = Identity(ci)
                    u = Loop (T, C, v) <
                        body = inner (int64 j, bool cj, float[N] x) => (bool ck, float[N] y)
                        { ck = Identity(cj) y = Neg(x) }
                    >
                    w = Concat<axis=0>(u, A)
                }
            >
        }
        """
    builder = GraphBuilder(parse(text), infer_shapes_options=True)
    outer, inner = builder.iter_subgraph_builders()
    local = outer.get_shape("v")
    assert local != ("N",)
    assert inner.get_shape("x") == inner.get_shape("y") == local == outer.get_shape("u")


def test_many_nested_loops_whose_dimension_grows():
    depth, calls = 8, []
    text = "w0 = Concat<axis=0>(v0, v0)"
    for i in range(depth):
        text = (
            f"w{i + 1} = Loop (T, C, v{i + 1}) < body = b{i} "
            f"(int64 i{i}, bool c{i}, float[N] v{i}) => (bool d{i}, float[M] w{i}) "
            f"{{ d{i} = Identity(c{i}) {text} }} >"
        )
    text = f"agraph (float[N] v{depth}, int64 T, bool C) => (float[P] w{depth}) {{ {text} }}"

    class Counting(GraphBuilder):
        def __init__(self, *args, **kwargs):
            calls.append(1)
            super().__init__(*args, **kwargs)

    model = parse(text)
    Counting(model, infer_shapes_options=True)
    assert len(calls) <= depth**2


def test_the_file_keeps_the_names_of_the_body():
    model = loop("w = Neg(v) d = Neg(w) e = Neg(d)")
    body = model.graph.node[0].attribute[0].g
    body.value_info.append(oh.make_tensor_value_info("d", onnx.TensorProto.FLOAT, ["N", 4]))
    new = GraphBuilder(model, optimization_options=OptimizationOptions(patterns=None)).to_onnx()
    after = next(a.g for a in new.graph.node[0].attribute if a.name == "body")
    assert declared_names(after.input) == {"N"}
    assert declared_names(after.output) == {"N", "M"}
    assert declared_names(after.value_info) <= {"N"}


def test_a_written_dimension_does_not_take_the_place_of_another():
    builder, body = body_of(loop())
    local = body.get_shape("v")[0]
    assert builder.is_written("N") and builder.is_written("2*N")
    assert not body.is_written("N") and not body.is_written(local) and body.is_written("K")


SIZES = """
agraph (int64 T, bool C, float[{initial}] A) => (float[P,Q] Y)
{{
    Y = Loop (T, C, A) <
        body = b (int64 i, bool ci, float[5,4] v) => (bool co, float[R,S] w)
        {{ co = Identity(ci) target = Constant<value_ints=[5,4]>() {nodes} }}
    >
}}
"""
RESHAPED = "w = Reshape(v, target)"
FLIPPED = "t = Reshape(v, target) w = Transpose<perm=[1,0]>(t)"


@pytest.mark.parametrize(
    ("initial", "nodes", "shape", "known"),
    [
        ("5,4", RESHAPED, (5, 4), (5, 4)),
        ("N,M", RESHAPED, (4, 5), None),
        ("N,4", RESHAPED, (5, 4), (None, 4)),
        ("4,5", RESHAPED, (4, 5), None),
        ("5,4", FLIPPED, (5, 4), None),
    ],
)
def test_a_size_a_body_declares_is_proven_or_unknown(initial, nodes, shape, known):
    """onnxruntime does not check it: the first iteration, or the second, gets another shape."""
    model = parse(SIZES.format(initial=initial, nodes=nodes))
    builder, body = body_of(model)
    found = tuple(d if isinstance(d, int) else None for d in body.get_shape("v"))
    assert found == (known or (None, None))
    given = {"T": np.array(2), "C": np.array(True), "A": np.ones(shape, np.float32)}
    expected = run_onnxruntime(model, given)
    new = builder.to_onnx()
    assert run_onnxruntime(new, given)[0].shape == expected[0].shape
    declared = new.graph.node[-1].attribute[0].g.input[2].type.tensor_type.shape.dim
    assert [d.dim_value for d in declared] == [5, 4], "what users see stays"


def test_a_size_a_body_declares_is_trusted():
    model = parse(SIZES.format(initial="N,M", nodes=RESHAPED))
    options = OptimizationOptions(trust_shapes=True)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    assert next(builder.iter_subgraph_builders()).get_shape("v") == (5, 4)
