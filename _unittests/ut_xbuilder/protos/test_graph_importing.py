"""Declarations of a file about computed results: types are right, shapes are labels."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder, InferShapesOptions, OptimizationOptions
from xbuilder.dims import prove_equal, prove_ge
from xbuilder.errors import OptionError
from xbuilder.facts.facts import MAX_RANK
from xoptim.testing import run_onnxruntime


def build(text: str, trust: bool = False, positive_dims=False, **kwargs) -> GraphBuilder:
    options = OptimizationOptions(trust_shapes=trust, positive_dims=positive_dims)
    kwargs.setdefault("infer_shapes_options", True)
    return GraphBuilder(parse(text), optimization_options=options, **kwargs)


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("length", [3, "L"])
def test_declared_integers_do_not_decide_of_a_computed_shape(length, trust):
    """The shape of Reshape is an input: the file declares [3, 4, K], the call may give others."""
    text = f"agraph (float[N,12] x, int64[{length}] s) => (float[3,4,K] y) {{ y = Reshape(x, s) }}"
    builder = build(text, trust)
    assert builder.has_rank("y") is (trust or length == 3), "a declared rank is no proof either"
    known = builder.get_shape("y") if builder.has_shape("y") else ()
    assert [d for d in known if isinstance(d, int)] == ([3, 4] if trust else [])
    node = builder.to_onnx().graph.node[0]
    assert (node.input[1] != "s") is trust, "trusted, the target is the constant [3, 4, -1]"


@pytest.mark.parametrize("trust", [False, True])
def test_a_declared_name_does_not_decide_of_a_computed_shape(trust):
    """The file calls N the first dimension of y, as the one of x: the call may give another."""
    text = "agraph (float[N,M] x, int64[2] s) => (float[N,M] z) { y = Reshape(x, s) z = Neg(y) }"
    text = text.replace("{", "<float[N,M] y> {")
    builder = build(text, trust)
    onx = builder.to_onnx()
    types = sorted(n.op_type for n in onx.graph.node)
    assert types == (["Neg"] if trust else ["Neg", "Reshape"])
    declared = [d.dim_param for d in onx.graph.output[0].type.tensor_type.shape.dim]
    assert declared == ["N", "M"], "what users see stays"
    if not trust:
        feeds = {"x": np.ones((2, 6), np.float32), "s": np.array([3, 4])}
        assert run_onnxruntime(onx, feeds)[0].shape == (3, 4)


def test_a_name_nothing_else_has_stays():
    """The first result declared so gives it its meaning; the next one is another dimension."""
    text = """agraph (float[N] x, int64[2] s, int64[2] t) => (float[R,C] y, float[R,N] z) {
        y = Reshape(x, s)
        z = Reshape(x, t)
    }"""
    builder = build(text)
    assert builder.get_shape("y") == ("R", "C")
    rows, columns = builder.get_shape("z")
    assert builder.is_generated(rows) and builder.is_generated(columns)
    assert prove_equal(rows, "R", builder.constraints) is None
    trusted = build(text, trust=True)
    assert trusted.get_shape("z") == ("R", "N")


@pytest.mark.parametrize("trust", [False, True])
def test_declared_shapes_of_an_unknown_operator(trust):
    """Nothing is known of its result but its type; the label stays in the file."""
    text = "agraph (float[N,12] x) => (float[3,4,K] y) { y = mine.Op(x) }"
    builder = build(text, trust)
    assert builder.get_type("y") == 1
    assert builder.has_shape("y") is trust
    dims = builder.to_onnx().graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_value or d.dim_param for d in dims] == [3, 4, "K"]


@pytest.mark.parametrize("trust", [False, True])
def test_declared_shapes_of_the_results_of_a_body(trust):
    text = """agraph (bool c, float[N,M] x, int64[2] s) => (float[N,M] y) {
        y = If (c) <
            then_branch = g1 () => (float[N,M] a) { a = Reshape(x, s) },
            else_branch = g2 () => (float[N,M] b) { b = Neg(x) }
        >
    }"""
    builder = build(text, trust)
    shape = builder.get_shape("y")
    assert (prove_equal(shape[0], "N", builder.constraints) is True) is trust


def test_declared_elements_of_a_sequence():
    text = "agraph (float[N] x) => (seq(float[3]) y) { y = mine.Op(x) }"
    assert build(text).facts["y"].sequence.shape is None
    assert build(text, trust=True).facts["y"].sequence.shape == (3,)


@pytest.mark.parametrize("option", [InferShapesOptions.ONNX, InferShapesOptions.DATA_PROP])
def test_onnx_inference_does_not_start_from_declared_shapes(option):
    """It carries what the file declares from one result to the next ones."""
    text = """agraph (float[N,M] x, int64[2] s) => (float[N,M] z) <float[N,M] y> {
        y = Reshape(x, s)
        z = Neg(y)
    }"""
    builder = build(text, infer_shapes_options=option | InferShapesOptions.BUILDER)
    assert prove_equal(builder.get_shape("z")[0], "N", builder.constraints) is None
    trusted = build(text, True, infer_shapes_options=option | InferShapesOptions.BUILDER)
    assert trusted.get_shape("z") == ("N", "M")


@pytest.mark.parametrize("option", [InferShapesOptions.ONNX, InferShapesOptions.DATA_PROP])
@pytest.mark.parametrize("size", [64, 65, 100, 2**40])
def test_onnx_inference_has_the_same_cap_on_ranks(option, size):
    """An inference that makes one dimension of each element of a declared vector."""
    text = f"agraph (int64[{size}] s) => (float z) {{ y = ConstantOfShape(s) z = ReduceSum<keepdims=0>(y) }}"
    for options in (option, option | InferShapesOptions.BUILDER):
        builder = build(text, infer_shapes_options=options)
        assert builder.has_rank("y") is (size <= MAX_RANK)


def test_a_declared_rank_no_tensor_has():
    dims = ",".join(["1"] * 65)
    builder = build(f"agraph (float[{dims}] x) => (float[N] y) {{ y = mine.Op(x) }}")
    assert builder.get_type("x") == 1 and not builder.has_rank("x")


@pytest.mark.filterwarnings("ignore:The model declares something else")
def test_a_wrong_rank_does_not_hide_the_type():
    """The type of Mystery is unknown: an output without a type is refused by every runtime."""
    text = "agraph (float[2,3] x) => (float[7] y) { a = mine.Op(x) s = Shape(x) y = Reshape(a, s) }"
    builder = build(text)
    output = builder.to_onnx().graph.output[0].type.tensor_type
    assert output.elem_type == TensorProto.FLOAT and len(output.shape.dim) == 2


def test_a_reference_out_of_a_function():
    """onnxruntime uses the value that comes with it; here it is unknown, nothing is computed."""
    model = parse("agraph (float[2,3] x) => (int64[N] y) { y = Shape <end: int = 1> (x) }")
    model.graph.node[0].attribute[0].ref_attr_name = "nobody"
    builder = GraphBuilder(model, infer_shapes_options=True)
    assert builder.get_type("y") == TensorProto.INT64 and builder.value_as_shape("y") is None
    assert builder.to_onnx().graph.node[0] == model.graph.node[0]


WAVE = """
    g (float[b, 1, n] x, float[4, 1, 10] w, float[4, 4, 8] v) => (float[b, 4, t] z, int64[1] q) <
        int64[1] five = {5}, int64[1] nine = {9}, int64[1] four = {4}
    > {
        size = Shape<start = 2, end = 3>(x)
        first = Div(size, five)
        less = Sub(first, nine)
        q = Div(less, four)
        CONV
    }
"""
CONV = "y = Conv<strides = [5]>(x, w) z = Conv<strides = [4]>(y, v)"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (CONV, ("(n+15)//20-3",)),
        # the windows may not fit in what is padded
        (CONV.replace("[5]", "[5], pads = [8, 8]").replace("[4]", "[4], pads = [7, 7]"), None),
        # nothing says that a branch runs
        (
            """c = ReduceSum<keepdims = 0>(size) i = Cast<to = 9>(c) z = If (i) <
                then_branch = p () => (float[b, 4, t] zt)
                    { yt = Conv<strides = [5]>(x, w) zt = Conv<strides = [4]>(yt, v) },
                else_branch = r () => (float[1, 1, 4] ze) { ze = Expand(one, four) }
            >""",
            None,
        ),
    ],
)
def test_a_quotient_that_a_convolution_proves_positive(nodes, expected):
    """The window fits in what it reads: the quotient, which comes first, is not truncated."""
    text = WAVE.replace("CONV", nodes)
    if "one" in nodes:
        text = text.replace("int64[1] five", "float[1, 1, 1] one = {1}, int64[1] five")
    builder = GraphBuilder(parse(text), infer_shapes_options=True)
    assert builder.graph.facts["q"].value == expected


def test_a_range_of_what_a_convolution_leaves():
    """Its length is not negative: the convolution proves it."""
    text = """
        g (float[b, 1, n] x, float[4, 1, 10] w) => (float[b, 4, t] y, int64[s] r) <
            int64 nine = {9}, int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}
        > {
            y = Conv(x, w)
            size = Shape<start = 2, end = 3>(x)
            length = Squeeze(size, axis)
            last = Sub(length, nine)
            r = Range(zero, last, one)
        }
    """
    builder = GraphBuilder(parse(text), infer_shapes_options=True)
    assert builder.get_shape("r") == ("n-9",)


FORMULA = """g (float[n] x, float[q] y) => (int64[1] d) {
    a = Shape(x) b = Shape(y) c = Sub(b, a) d = Abs(c) }"""


@pytest.mark.parametrize("name", ["n + 1", "n+1", "2*n", "max(n,1)", "5", "n"])
def test_the_name_of_a_dimension_is_no_formula(name):
    """Sizes at run time are what they are; a name used twice is one dimension."""
    model = parse(FORMULA)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = name
    options = OptimizationOptions(patterns="default")
    after = GraphBuilder(model, optimization_options=options).to_onnx()
    assert after.graph.input[1].type.tensor_type.shape.dim[0].dim_param == name
    sizes = (3, 3) if name == "n" else (3, 9)
    feeds = {k: np.zeros(size, np.float32) for k, size in zip("xy", sizes, strict=True)}
    assert run_onnxruntime(after, feeds)[0].tolist() == [sizes[1] - sizes[0]]


def test_trusted_shapes_are_formulas():
    model = parse(FORMULA)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "n + 1"
    options = OptimizationOptions(patterns=None, trust_shapes=True)
    builder = GraphBuilder(model, optimization_options=options)
    assert builder.value_as_shape("c") == (1,)


def test_a_computed_dimension_is_written_as_it_was():
    model = parse("g (float[n] x) => (float[m] y) { y = Exp(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n + 1"
    model.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 4  # wrong
    with pytest.warns(UserWarning, match="declares something else"):
        after = GraphBuilder(model).to_onnx()
    assert after.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "n + 1"


#: a Reshape that copies n, which may be 0, and leaves the rest to -1
HALVES = """agraph (float[n,8] x, float[k] z) => (float[R,n,4] y, float[k] t) {
    a = Shape <start: int = 0, end: int = 1> (x)
    b = Constant <value_ints: ints = [-1]> ()
    c = Constant <value_ints: ints = [4]> ()
    s = Concat <axis: int = 0> (b, a, c)
    y = Reshape(x, s)
    t = Neg(z)
}"""


@pytest.mark.parametrize("dims", [True, ["n"], ("n", "k"), {"n", "k"}])
def test_positive_dimensions_prove_a_shape(dims):
    plain = build(HALVES)
    assert plain.get_shape("y")[1:] != ("n", 4), "0 copies the 8 of x"
    told = build(HALVES, positive_dims=dims)
    assert told.get_shape("y") == (2, "n", 4)
    known = told.graph.facts.constraints
    assert prove_ge("n", 1, known) is True
    assert prove_ge("k", 1, known) is (None if dims == ["n"] else True)
    onx = told.to_onnx()
    assert [n.op_type for n in onx.graph.node] == ["Reshape", "Neg"]
    feeds = {"x": np.arange(24, dtype=np.float32).reshape(3, 8), "z": np.ones(2, np.float32)}
    for a, b in zip(
        run_onnxruntime(onx, feeds), run_onnxruntime(parse(HALVES), feeds), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("trust", [False, True])
def test_a_positive_dimension_has_the_name_of_the_file(trust):
    text = "agraph (float[`n + 1`] x) => (float[`n + 1`] y) { y = Neg(x) }"
    proto = parse(text.replace("`n + 1`", "q"))
    for info in (*proto.graph.input, *proto.graph.output):
        info.type.tensor_type.shape.dim[0].dim_param = "n + 1"
    options = OptimizationOptions(positive_dims=["n + 1"], trust_shapes=trust)
    builder = GraphBuilder(proto, optimization_options=options)
    (dim,) = builder.get_shape("x")
    assert prove_ge(dim, 1, builder.graph.facts.constraints) is True


def test_a_positive_dimension_exists():
    with pytest.raises(OptionError, match=r"names 'm', which is no dimension.*\['k', 'n'\]"):
        build(HALVES, positive_dims=["m"])


def test_positive_dimensions_of_a_builder():
    g = GraphBuilder(18, optimization_options=OptimizationOptions(positive_dims=["n"]))
    g.make_tensor_input("x", TensorProto.FLOAT, ("n", "k", None, 3))
    proofs = [prove_ge(d, 1, g.graph.facts.constraints) for d in g.get_shape("x")]
    assert proofs == [True, None, None, True]
