"""Sizes that become dynamic: what is proven, mended, refused."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import onnxruntime
import pytest

import xoptim
from xbuilder.errors import OptionError
from xoptim.surgery.dynamic import FixedSizeError, make_dynamic

HEAD = '<ir_version: 8, opset_import: ["" : 18, "local" : 1]> '
ATTENTION = """g (float[1, 5, 8] x, float[8, 8] w) => (float[1, 5, 8] y)
<int64[4] s = {1, 5, 2, 4}, int64[3] r = {1, 5, 8}> {
    m = MatMul(x, w) a = Reshape(m, s) t = Transpose<perm = [0, 2, 1, 3]>(a)
    u = Transpose<perm = [0, 1, 3, 2]>(t) z = MatMul(t, u) p = Softmax<axis = -1>(z)
    v = MatMul(p, t) q = Transpose<perm = [0, 2, 1, 3]>(v) y = Reshape(q, r) }"""
#: heads and rows share a dimension, as with bmm
FOLDED = """g (float[1, 2, 5, 4] x) => (float[1, 5, 2, 4] y)
<int64[3] s = {2, 5, 4}, int64[4] r = {1, 2, 5, 4}> {
    a = Reshape(x, s) b = Relu(a) c = Reshape(b, r) y = Transpose<perm = [0, 2, 1, 3]>(c) }"""


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def shapes(model: onnx.ModelProto) -> list[list[object]]:
    values = [*model.graph.input, *model.graph.output]
    return [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values]


def outputs(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)


def check_rows(text: str, shape: tuple[int | str, ...], mended: int) -> onnx.ModelProto:
    """Each row of a batch has the result the model with one row gives."""
    model = parse(text)
    made = make_dynamic(model, {"x": shape})
    assert model == parse(text)
    onnx.checker.check_model(made.model)
    assert len(made.mended) == mended and made.sizes["b"] == 1
    rng = np.random.default_rng(0)
    sizes = [d if isinstance(d, int) else made.sizes[d] for d in shape]
    x = rng.standard_normal((3, *sizes[1:])).astype(np.float32)
    others = {
        v.name: rng.standard_normal([d.dim_value for d in v.type.tensor_type.shape.dim]).astype("f")
        for v in model.graph.input
        if v.name != "x"
    }
    (found,) = outputs(made.model, {"x": x, **others})
    rows = [outputs(model, {"x": x[i : i + 1], **others})[0] for i in range(3)]
    np.testing.assert_allclose(found, np.concatenate(rows), rtol=1e-5)
    return made.model


@pytest.mark.parametrize(
    ("text", "shape", "mended", "output"),
    [
        ("g (float[1, 4] x) => (float[1, 4] y) { y = Relu(x) }", ("b", 4), 0, ["b", 4]),
        (
            "g (float[1, 3, 8] x) => (float[1, 24] y) <int64[2] s = {1, -1}> { y = Reshape(x, s) }",
            ("b", 3, 8), 1, ["b", 24],
        ),
        (
            "g (float[1, 3, 8] x) => (float[1, 24] y) <int64[2] s = {1, 24}> { y = Reshape(x, s) }",
            ("b", "c", "n"), 1, ["b", "c*n"],
        ),
        (
            "g (float[1, 3, 8] x) => (float[1, 24] y) <int64[2] s = {0, -1}> { y = Reshape(x, s) }",
            ("b", 3, 8), 0, ["b", 24],
        ),
        (
            "g (float[1, 3, 8] x) => (float[1, 24] y) { y = Flatten<axis = 1>(x) }",
            ("b", 3, 8), 0, ["b", 24],
        ),
        (ATTENTION, ("b", 5, 8), 2, ["b", 5, 8]),
        (ATTENTION, ("b", "n", 8), 2, ["b", "n", 8]),
        (FOLDED, ("b", 2, 5, 4), 2, ["b", 5, 2, 4]),
        (FOLDED, ("b", 2, "n", 4), 2, ["b", "n", 2, 4]),
        (
            """g (float[1, 5, 8] x, float[1, 1, 8] c) => (float[1, 6, 8] y) {
                y = Concat<axis = 1>(c, x) }""",
            ("b", 5, 8), 1, ["b", 6, 8],
        ),
        (
            """g (float[1, 3, 8, 8] x) => (float[1, 2] y)
            <float[2, 3, 3, 3] w, float[2] z> {
                c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w) a = GlobalAveragePool(c)
                y = Flatten(a) }""".replace("<float[2, 3, 3, 3] w, float[2] z>", "").replace(
                "] x)", "] x, float[2, 3, 3, 3] w)"
            ),
            ("b", 3, "h", "w"), 0, ["b", 2],
        ),
    ],
)  # fmt: skip
def test_rows(text, shape, mended, output):
    made = check_rows(text, shape, mended)
    assert shapes(made)[0] == list(shape) and shapes(made)[-1] == output


def test_other_sizes_run():
    made = make_dynamic(parse(ATTENTION), {"x": ("b", "n", 8)}).model
    x, w = np.ones((2, 7, 8), np.float32), np.eye(8, dtype=np.float32)
    (found,) = outputs(made, {"x": x, "w": w})
    np.testing.assert_allclose(found, x, rtol=1e-6)


def test_shape_computed_by_the_model():
    text = """g (float[2, 4] x, float[2, 4] z) => (float[2, 4] y) {
        s = Shape(x) r = Reshape(z, s) y = Add(x, r) }"""
    made = make_dynamic(parse(text), {"x": ("n", 4), "z": ("n", 4)})
    assert shapes(made.model)[-1] == ["n", 4] and not made.mended


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("x) { a = Sub(x, x) y = Squeeze(a, z) }", ("b", 5, 8), "Squeeze 'y' .*needs 1 to be b"),
        ("x) { y = Add(x, t) }", ("b", "n", 8), "Add 'y' .*needs n to be 5"),
        ("x) { y = ReduceSum(x, z) }", ("b", 5, 8), "does not keep the rows of 'b'"),
        ("x) { y = Gather<axis = 0>(x, i) }", ("b", 5, 8), "takes some rows only"),
        ("x) { y = Gather<axis = 1>(x, k) }", (1, "n", 8), "at fixed places of n"),
        ("x) { y = Softmax<axis = 0>(x) }", ("b", 5, 8), "mixes rows"),
        ("x) { y = CumSum(x, i) }", ("b", 5, 8), "mixes rows"),
        ("x) { y = Slice(x, z, five, one) }", (1, "n", 8), "stops at a fixed place"),
        ("x) { y = Slice(x, last, first, z, back) }", ("b", 5, 8), "another order"),
        ("x) { y = Concat<axis = 0>(x, x) }", ("b", 5, 8), "puts rows side by side"),
        ("x) { y = Tile(x, twice) }", ("b", 5, 8), "repeats rows"),
        ("x) { y = Split<axis = 1, num_outputs = 1>(x) }", (1, "n", 8), "splits n"),
        ("x) { y, j = TopK<axis = 1>(x, one) }", (1, "n", 8), "fixed number of n"),
        (
            "x) { a = Transpose<perm = [1, 0, 2]>(x) y = Reshape(a, flat) }",
            ("b", 5, 8), "moves b inside a dimension",
        ),
        (
            "x) { a = Transpose<perm = [1, 0, 2]>(x) y = Flatten<axis = 2>(a) }",
            ("b", 5, 8), "moves rows inside",
        ),
        ("x) { y = AveragePool<kernel_shape = [8]>(x) }", ("b", 5, "w"), "covers the 8 of w"),
        ("x) { y = GlobalAveragePool(x) }", (1, 5, 8), "No size becomes dynamic"),
        ("x) { y = Einsum<equation = \"abc->acb\">(x) }", ("b", 5, 8), "nothing is known"),
        ("x) { y = local.f(x) }", ("b", 5, 8), "nothing is known"),
        ("x, bool c) { y = If(c) <then_branch = a () => (o) { o = Neg(x) }, "
         "else_branch = d () => (p) { p = Abs(x) }> }", ("b", 5, 8), "its body is not followed"),
    ],
)  # fmt: skip
def test_refusals(text, shape, message):
    values = """<int64[1] z = {{0}}, int64[1] one = {{1}}, int64[1] five = {{5}}, int64[1] k = {{2}},
    int64 i = {{0}}, int64[1] back = {{-1}}, int64[1] last = {{-1}}, int64[1] first = {{-99}},
    int64[3] twice = {{2, 1, 1}}, int64[1] flat = {{40}}, float[1, 5, 8] t = {{{}}}>""".format(
        ", ".join(["1"] * 40)
    )
    text = text.replace(") {", f") => (y) {values} {{", 1)
    function = '<domain: "local", opset_import: ["" : 18]> f (a) => (b) { b = Neg(a) }'
    text = f"g (float[1, 5, 8] {text} {function if 'local.f' in text else ''}"
    kind = OptionError if message.startswith("No size") else FixedSizeError
    with pytest.raises(kind, match=message):
        make_dynamic(parse(text), {"x": shape})


def test_a_number_that_is_a_size():
    text = "g (float[1, 32] x) => (float[1, 32] y) <float n = {%s}> { y = Mul(x, n) }"
    for number in ("32", "31", "0.03125"):
        with pytest.raises(FixedSizeError, match="which may come from a size"):
            make_dynamic(parse(text % number), {"x": (1, "w")})
    assert shapes(make_dynamic(parse(text % "33"), {"x": (1, "w")}).model)[-1] == [1, "w"]


def test_ambiguous_places():
    text = """g (float[1, 4, 4] x) => (float[1, 4, 4] y)
    <int64[2] s = {1, 16}, int64[3] r = {1, 4, 4}> { a = Reshape(x, s) y = Reshape(a, r) }"""
    with pytest.raises(FixedSizeError, match=r"which may be \['h', 'w'\] or \['w', 'h'\]"):
        make_dynamic(parse(text), {"x": (1, "h", "w")})


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"z": ("b", 5, 8)}, "no input 'z'"),
        ({"x": ("b", 5)}, "'x' has 3 dimensions, the shape .* has 2"),
        ({"x": ("b", 6, 8)}, "is 5, not 6: give it a name"),
        ({"x": ("b", "b", 8)}, "is 5, 'b' is 1 elsewhere"),
        ({"x": ("n", 5, 8)}, "has a dimension 'n', choose another name"),
        ({"m": ("b", 5)}, "is dynamic already, it is called 'n'"),
    ],
)
def test_wrong_shapes(asked, message):
    text = "g (float[1, 5, 8] x, float[n, 5] m) => (float[1, 5, 8] y, float[n, 5] w) "
    with pytest.raises(OptionError, match=message):
        make_dynamic(parse(text + "{ y = Relu(x) w = Relu(m) }"), asked)


def test_optimized_and_verified():
    model = parse(ATTENTION)
    done = xoptim.optimize(model, dynamic={"x": ("batch", "seq", 8)}, verify=True, measure=True)
    assert done.verification is not None and done.verification.ok
    assert shapes(done.model)[0] == ["batch", "seq", 8] and len(done.mended) == 2
    assert "dynamic: sizes removed from 2 nodes: Reshape 'a', Reshape 'y'" in str(done)
    assert done.to_dict()["mended"] == ["Reshape 'a'", "Reshape 'y'"]
