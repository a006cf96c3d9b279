"""Constant folding: what is folded, what is not and why, names."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array, to_array
from onnx.reference import ReferenceEvaluator
from ut_xbuilder.folding_rows import reasons
from ut_xbuilder.graph_checks import initializer_names, op_types, optimized, parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.passes.registry import run_pass


def builder_with(shape=(2, 3), **options):
    options.setdefault("patterns", None)
    builder = GraphBuilder(18, optimization_options=OptimizationOptions(**options))
    builder.make_tensor_input("x", TensorProto.FLOAT, ("N", shape[0]))
    weight = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    builder.make_initializer("fc.weight", weight)
    return builder


def test_transposed_weight_keeps_its_name():
    builder = builder_with((100, 200))
    t = builder.op.Transpose("fc.weight", perm=[1, 0])
    builder.op.Gemm("x", t, transB=1, outputs=["y"])
    builder.make_tensor_output("y")
    onx = builder.to_onnx()
    assert op_types(onx) == ["Gemm"]
    assert initializer_names(onx) == ["fc.weight"]
    assert list(onx.graph.initializer[0].dims) == [200, 100]
    builder.store.check()


def test_a_chain_keeps_the_name():
    builder = builder_with((100, 200))
    c = builder.op.Cast("fc.weight", to=TensorProto.DOUBLE)
    c = builder.op.Cast(c, to=TensorProto.FLOAT)
    t = builder.op.Transpose(c, perm=[1, 0])
    builder.op.Gemm("x", t, transB=1, outputs=["y"])
    builder.make_tensor_output("y")
    onx = builder.to_onnx()
    assert op_types(onx) == ["Gemm"]
    assert initializer_names(onx) == ["fc.weight"]


def test_tied_weight_stays_tied():
    builder = builder_with((100, 200))
    t = builder.op.Transpose("fc.weight", perm=[1, 0])
    a = builder.op.MatMul("x", "fc.weight")
    builder.op.MatMul(a, t, outputs=["y"])
    builder.make_tensor_output("y")
    onx, statistics = builder.to_onnx(return_optimize_report=True)
    assert op_types(onx) == ["Transpose", "MatMul", "MatMul"]
    assert initializer_names(onx) == ["fc.weight"]
    assert reasons(statistics)["the model would grow"] > 0


def test_tied_weight_read_by_a_subgraph():
    model = parse(
        """
        agraph (float[N,160] x, bool c) => (float[N,160] y)
        {
            w = Identity(x)
            t = Transpose<perm=[1,0]>(w)
            z = MatMul(x, t)
            y = If (c) <
                then_branch = a () => (float[N,160] r) { r = MatMul(z, w) },
                else_branch = b () => (float[N,160] s) { s = Neg(z) }
            >
        }
        """
    )
    del model.graph.node[0]
    weight = np.random.default_rng(0).integers(-3, 4, (160, 160)).astype(np.float32)
    model.graph.initializer.append(from_array(weight, "w"))
    after = optimized(model)
    assert op_types(after) == ["Transpose", "MatMul", "If", "MatMul", "Neg"]
    assert initializer_names(after) == ["w"]


def test_petabytes_are_never_computed():
    model = parse(
        """
        agraph (float[N] x) => (float[N] y) <int64[3] shape = {1000000, 1000000, 1000}>
        { z = ConstantOfShape(shape) m = ReduceMax<keepdims=0>(z) y = Add(x, m) }
        """
    )
    assert op_types(optimized(model, run=False)) == ["ConstantOfShape", "ReduceMax", "Add"]


@pytest.mark.parametrize(
    "body",
    [
        "r = RandomNormal<shape=[3]>()",
        "r = RandomUniformLike(w)",
        "r = Bernoulli(w)",
        "t = Constant<value = bool {1}>() q = Constant<value_float=0.5>() r = Dropout(w, q, t)",
    ],
)
def test_random_is_never_folded(body):
    model = parse(
        f"agraph (float[3] x) => (float[3] y) <float[3] w = {{0.5, 0.5, 0.5}}> "
        f"{{ {body} s = Neg(r) y = Add(x, s) }}"
    )
    before = op_types(model)
    assert op_types(optimized(model, run=False)) == before


def test_dropout_of_old_opsets_is_random():
    text = "agraph (float[3] x) => (float[3] y) <float[3] w = {0.5, 0.5, 0.5}> "
    model = parse(text + "{ r = Dropout(w) y = Add(x, r) }", opset=6)
    assert op_types(optimized(model, run=False)) == ["Dropout", "Add"]
    model = parse(text + "{ r = Dropout(w) y = Add(x, r) }", opset=11)
    assert op_types(optimized(model)) == ["Add"]


def test_an_initializer_that_is_an_input_is_not_a_constant():
    model = parse(
        """
        agraph (float[N,2] x, float[2] w) => (float[N,2] y) <float[2] w = {3.0, 4.0}>
        { n = Neg(w) y = Add(x, n) }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Neg", "Add"]
    feeds = {"x": np.ones((1, 2), np.float32), "w": np.array([7, 8], np.float32)}
    from ut_xbuilder.graph_checks import assert_same

    assert_same(model, after, feeds)


def test_the_default_value_does_not_tell_the_shape():
    """w may be given with another length: Shape(w) is not constant."""
    model = parse(
        """
        agraph (float[N,2] x, float[K] w) => (int64[1] y) <float[2] w = {3.0, 4.0}>
        { y0 = Shape(w) y = Identity(y0) z = Neg(x) }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["Shape"]
    builder = GraphBuilder(model, infer_shapes_options=True)
    assert builder.get_shape("w") == ("K",)
    assert not builder.is_constant("y0")


def test_an_output_is_not_folded():
    model = parse(
        "agraph (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1.0, 2.0}> "
        "{ y = Neg(w) z = Add(x, y) }"
    )
    after = optimized(model)
    assert op_types(after) == ["Neg", "Add"]


@pytest.mark.parametrize("patterns", [None, "default"])
@pytest.mark.parametrize(
    "body,out",
    [
        ("Z = Identity(B)", "float[2] Z"),
        ("B4 = Concat<axis=0>(B, B) Z = Mul(X, B4)", "float[4] Z"),
        ("Z = If(c) <then_branch = t () => (float[2] T) { T = Identity(B) },"
         " else_branch = e () => (float[2] E) { E = Neg(B) }>", "float[2] Z"),
    ],
    ids=["an output", "another node", "a subgraph"],
)  # fmt: skip
def test_a_weight_whose_other_half_is_read_keeps_its_value(body, out, patterns):
    """A = Split(W)[0] is folded, W is not free: Split(W)[1] is still needed."""
    model = parse(
        f"agraph (float[4] X, bool c) => (float[4] Y, {out}) <float[4] W = {{0, 1, 2, 3}}> "
        f"{{ A, B = Split<axis=0, num_outputs=2>(W) {body}"
        f" AA = Concat<axis=0>(A, A) Y = Add(X, AA) }}"
    )
    after = optimized(model, patterns=patterns)
    feeds = {"X": np.ones(4, dtype=np.float32), "c": np.array(True)}
    got = ReferenceEvaluator(after).run(None, feeds)
    expected = ReferenceEvaluator(model).run(None, feeds)
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_shape_of_a_static_result():
    model = parse(
        """
        agraph (float[4,5] x, float[20] z) => (float[20] y)
        { s = Shape(x) n = Neg(x) f = Flatten<axis=0>(n) m = ReduceProd<keepdims=1>(s)
          r = Reshape(f, m) y = Add(r, z) }
        """
    )
    assert op_types(optimized(model)) == ["Neg", "Flatten", "Reshape", "Add"]


def test_only_some_types_are_folded():
    model = parse(
        "agraph (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> "
        "{ a = Neg(w) b = Abs(w) c = Add(x, a) y = Add(c, b) }"
    )
    assert op_types(optimized(model, constant_folding=["Neg"])) == ["Abs", "Add", "Add"]
    assert op_types(optimized(model, constant_folding=False)) == op_types(model)
    assert op_types(optimized(model)) == ["Add", "Add"]


@pytest.mark.parametrize("op,b", [("Div", [0, 1]), ("Mod", [0, 1]), ("Div", [-1, -1])])
def test_integer_division_that_would_crash(op, b):
    """Dividing integers by zero kills the process in onnxruntime: it is left alone."""
    model = parse(
        f"agraph (int64[2] x) => (int64[2] y) <int64[2] b = {{{b[0]}, {b[1]}}}> "
        f"{{ q = {op}(a, b) y = Add(x, q) }}"
    )
    a = np.array([-(2**63), 5], dtype=np.int64)
    model.graph.initializer.append(from_array(a, "a"))
    assert op_types(optimized(model, run=False)) == [op, "Add"]


def test_division_of_integers_truncates():
    model = parse(
        "agraph (int64[2] x) => (int64[2] y) <int64[2] a = {-7, 7}, int64[2] b = {2, -2}> "
        "{ q = Div(a, b) y = Add(x, q) }"
    )
    after = optimized(model)
    assert op_types(after) == ["Add"]
    assert to_array(after.graph.initializer[0]).tolist() == [-3, -3]


def test_what_fails_stays():
    model = parse(
        "agraph (float[2] x) => (float[2] y) <float[2] a = {1.0, 2.0}, int64[1] i = {7}> "
        "{ g = Gather(a, i) y = Add(x, g) }"
    )
    builder = GraphBuilder(model, optimization_options=OptimizationOptions(patterns=None))
    onx, statistics = builder.to_onnx(return_optimize_report=True)
    assert op_types(onx) == ["Gather", "Add"]
    assert "no runtime computes it" in reasons(statistics)


def test_signs_of_zero_are_kept():
    model = parse(
        "agraph (float[1] x) => (float[1] y) <float[1] a = {0.0}> { b = Neg(a) y = Div(x, b) }"
    )
    after = optimized(model)
    assert op_types(after) == ["Div"]
    assert np.signbit(to_array(after.graph.initializer[0])).all()


def test_wrongly_declared_shape():
    model = parse(
        """
        agraph (float[N,2] x) => (float[N,2] y) <float[2] a = {1.0, 2.0}, float[5] b>
        { b = Neg(a) y = Add(x, b) }
        """
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert op_types(optimized(model)) == ["Add"]
        assert op_types(optimized(model, infer=False)) == ["Add"]
    with pytest.warns(UserWarning, match="'b'"):
        GraphBuilder(model)


def test_a_reused_small_constant_is_not_the_folded_one():
    """A generated constant whose name now holds something else is not given again."""
    builder = builder_with()
    two = np.array([2], dtype=np.int64)
    name = builder.make_initializer("", two)
    assert builder.make_initializer("", two.copy()) == name
    s = builder.op.Neg(name)
    builder.op.Expand("x", s, outputs=["y"])
    builder.make_tensor_output("y", 1, ("a", "b"))
    builder.constant_folding()
    assert builder.get_constant(name).tolist() == [-2]
    other = builder.make_initializer("", two)
    assert builder.get_constant(other).tolist() == [2]


def test_statistics_have_the_columns_users_group_by():
    builder = builder_with()
    builder.op.Neg("fc.weight", outputs=["n"])
    builder.op.MatMul("x", "n", outputs=["y"])
    builder.make_tensor_output("y")
    (_, report) = run_pass(builder.graph, "constant_folding")
    rows = report.rows
    assert rows[-1]["pattern"] == "constant_folding" and rows[-1]["removed"] == 1
    assert all({"pattern", "time_in", "removed", "added"} <= set(r) for r in rows)


def test_constants_of_the_outer_graph_are_folded_inside():
    model = parse(
        """
        agraph (float[N,2] x, bool c) => (float[N,2] y) <float[2] w = {1.0, 2.0}>
        {
            y = If (c) <
                then_branch = a () => (float[N,2] r) { n = Neg(w) r = Add(x, n) },
                else_branch = b () => (float[N,2] s) { s = Add(x, w) }
            >
        }
        """
    )
    after = optimized(model)
    assert op_types(after) == ["If", "Add", "Add"]


@pytest.mark.parametrize("opset", range(11, 27))
def test_every_opset(opset):
    from xbuilder.operators.opsets import newest_opset

    if opset > newest_opset():
        pytest.skip("the installed onnx package does not know this opset")
    axes = "a = Unsqueeze<axes=[0]>(w)" if opset < 13 else "a = Unsqueeze(w, zero)"
    model = parse(
        f"""
        agraph (float[N,2] x) => (float[N,2] y) <float[2] w = {{1.0, 2.0}}, int64[1] zero = {{0}}>
        {{ {axes} t = Transpose<perm=[1,0]>(a) u = Transpose(t) y = Add(x, u) }}
        """,
        opset=opset,
    )
    after = optimized(model, ort=opset < 25)
    assert op_types(after) == ["Add"]
    assert after.opset_import[0].version == opset


def quantized(n, per_channel=False):
    """Weight -> QuantizeLinear -> DequantizeLinear -> Transpose -> MatMul, as a QAT exporter does."""
    builder = builder_with((n, n))
    scale = np.full((n,) if per_channel else (), 0.5, dtype=np.float32)
    builder.make_initializer("scale", scale)
    builder.make_initializer("zero", np.zeros(scale.shape, dtype=np.int8))
    q = builder.op.QuantizeLinear("fc.weight", "scale", "zero", outputs=["q"])
    d = builder.op.DequantizeLinear(q, "scale", "zero", outputs=["d"])
    builder.op.MatMul("x", builder.op.Transpose(d, perm=[1, 0]), outputs=["y"])
    builder.make_tensor_output("y")
    return builder


@pytest.mark.parametrize("patterns", [None, "default", "default+onnxruntime"])
@pytest.mark.parametrize("n,per_channel", [(2, False), (100, False), (100, True)])
def test_dequantization_is_left_to_the_runtime(n, per_channel, patterns):
    builder = quantized(n, per_channel)
    builder.optimization_options.patterns = patterns
    model, statistics = builder.to_onnx(return_optimize_report=True)
    assert "DequantizeLinear" in op_types(model)
    assert not {"QuantizeLinear"} & set(op_types(model))
    assert not builder.is_constant("d"), "no pattern moves what depends on it either"
    (weight,) = (i for i in model.graph.initializer if len(i.dims) == 2)
    assert weight.data_type == TensorProto.INT8
    found = reasons(statistics)
    assert found["the runtime needs it to know that the weight is quantized"] > 0
    again = GraphBuilder(model, optimization_options=OptimizationOptions(patterns=patterns))
    assert op_types(again.to_onnx()) == op_types(model)


@pytest.mark.parametrize("op_type", ["MatMulNBits", "DequantizeBFP", "DequantizeLinear"])
def test_quantized_operators_of_onnxruntime_stay(op_type):
    builder = builder_with()
    builder.make_node(op_type, ["fc.weight", "fc.weight"], ["t"], domain="com.microsoft")
    builder.op.Identity("t", outputs=["y"])
    builder.make_tensor_output("y", TensorProto.FLOAT)
    statistics = builder.optimize()
    assert set(reasons(statistics)) == {"the runtime needs it to know that the weight is quantized"}


def test_what_follows_an_identity_that_stays():
    """A branch gives a constant through an output: what reads it is folded at once."""
    model = parse(
        """
        agraph (float[2] x) => (float[A] out, float[2] y)
            <bool yes = {1}, float[2] w = {-1.0, 2.0}>
        {
            out = If (yes) <
                then_branch = t () => (float[B] p) {
                    q = If (yes) <
                        then_branch = t2 () => (float[C] r) { r = Identity(w) },
                        else_branch = e2 () => (float[D] s) { s = Neg(x) }
                    >
                    p = Identity(q)
                },
                else_branch = e () => (float[E] u) { u = Neg(x) }
            >
            a = Abs(out)
            y = Mul(a, x)
        }
        """
    )
    for infer in (False, True):
        assert sorted(op_types(optimized(model, infer=infer))) == ["Identity", "Mul"]


def test_what_reads_a_folded_constant_is_better_known():
    """The bounds of a Range are integers made of floats, as onnxruntime writes them."""
    model = parse(
        """
        agraph (float[batch, seq] x) => (float[batch, n] y) <float start = {0.0}, float step = {1.0}>
        {
            zero = Cast<to: int=7>(start)
            one = Cast<to: int=7>(step)
            s = Shape<start: int=1, end: int=2>(x)
            n = Squeeze(s)
            r = Range(zero, n, one)
            f = Cast<to: int=1>(r)
            y = Add(x, f)
        }
        """
    )
    options = OptimizationOptions(patterns=None)
    builder = GraphBuilder(model, optimization_options=options)
    builder.to_onnx()
    assert builder.get_shape("r") == ("seq",)
    assert builder.get_shape("y") == ("batch", "seq")
