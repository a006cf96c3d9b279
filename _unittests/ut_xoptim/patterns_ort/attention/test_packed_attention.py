"""Attention with the weights of its heads."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import get_pattern, get_pattern_list
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import check_pattern, make_feeds, model_from_text

PREPARED = "FunctionAttention,"
NAME = "Attention3D"
#: heads, length of each
COUNT, LENGTH = 2, 4
WIDTH = COUNT * LENGTH
X = "float[b, s, 6] x"
SUM = "{0}p = MatMul(x, {0}w) {0}f = Add({0}p, {0}b) "
SPLIT = "{0}r = Reshape({0}f, heads) {0}t = Transpose<perm = [0, 2, 1, 3]>({0}r) "
PRODUCTS = "".join((SUM + SPLIT).format(name) for name in "qkv")
KEYS = "kx = Transpose<perm = [0, 1, 3, 2]>(kt) m = MatMul(qt, kx) n = Mul(m, scale) "
VALUES = "w = Softmax<axis = -1>(n) o = MatMul(w, vt) "
BACK = "z = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(z, flat)"
BODY = PRODUCTS + KEYS + VALUES + BACK
MASKED = BODY.replace("(n)", "(c)").replace("w = S", "c = Add(n, mask) w = S")


def weights() -> dict[str, np.ndarray]:
    """The weights and the bias of queries, keys, values."""
    rng = np.random.default_rng(0)
    found = {}
    for name in "qkv":
        found[f"{name}w"] = rng.standard_normal((6, WIDTH)).astype(np.float32)
        found[f"{name}b"] = rng.standard_normal(WIDTH).astype(np.float32)
    return found


def model(
    body: str, inputs: str = X, kind: str = "float", outputs: str = "", more: str = ""
) -> onnx.ModelProto:
    """An attention on a sequence."""
    text = f"""g ({inputs}) => ({kind}[b, s, {WIDTH}] y{outputs}) <
        int64[4] heads = {{0, 0, {COUNT}, {LENGTH}}}, int64[3] flat = {{0, 0, {WIDTH}}}{more}
    > {{ {body} }}"""
    made = model_from_text(text.replace("float[", f"{kind}["))
    dtype = {"float": np.float32, "float16": np.float16}[kind]
    given = {i.name for i in made.graph.input}
    for name, value in (weights() | {"scale": np.array(0.5)}).items():
        if f" {name})" in body and name not in given:
            made.graph.initializer.append(onnx.numpy_helper.from_array(value.astype(dtype), name))
    return made


def rewritten(proto: onnx.ModelProto, **options) -> onnx.ModelProto:
    """The model after the pattern, with the results it had."""
    return check_pattern(proto, None, PREPARED + NAME, atol=1e-5, rtol=1e-4, **options)


def packed(result: onnx.ModelProto) -> tuple[onnx.NodeProto, dict[str, np.ndarray]]:
    """The operator and the constants it reads."""
    (node,) = [n for n in result.graph.node if n.op_type == "Attention"]
    constants = {i.name: onnx.numpy_helper.to_array(i) for i in result.graph.initializer}
    return node, {n: constants[n] for n in node.input if n in constants}


#: what the documentation draws: name -> (before, after)
MODELS = {
    "Attention3D": (
        f"""g (float[b, s, 2] x) => (float[b, s, 2] y) <
            float[2, 2] qw = {{1, 2, 3, 4}}, float[2, 2] kw = {{5, 6, 7, 8}},
            float[2, 2] vw = {{1, 3, 5, 7}}, float scale = {{0.5}},
            int64[4] heads = {{0, 0, 2, 1}}, int64[3] flat = {{0, 0, 2}}
        > {{ {BODY.replace("p = MatMul", "f = MatMul")
            .replace("qf = Add(qp, qb)", "").replace("kf = Add(kp, kb)", "").replace("vf = Add(vp, vb)", "")} }}""",
        """g (float[b, s, 2] x) => (float[b, s, 2] y) <
            float[2, 6] w = {1, 2, 5, 6, 1, 3, 3, 4, 7, 8, 5, 7}, float[6] c = {0, 0, 0, 0, 0, 0},
            int64[4] heads = {0, 0, 2, 1}, int64[3] flat = {0, 0, 2}
        > {
            a = com.microsoft.Attention<num_heads = 2, scale = 0.5>(x, w, c)
            r = Reshape(a, heads) y = Reshape(r, flat)
        }""",
    )
}  # fmt: skip


def test_operator() -> None:
    check_pattern(*MODELS[NAME], PREPARED + NAME, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "sizes",
    [{"b": 2, "s": 3}, {"b": 1, "s": 1}, {"b": 3, "s": 40}, {"b": 0, "s": 3}, {"b": 2, "s": 0}],
)
def test_sizes(sizes: dict[str, int]) -> None:
    result = rewritten(model(BODY), sizes=sizes)
    node, constants = packed(result)
    joined, bias = (constants[name] for name in node.input[1:3])
    given = weights()
    np.testing.assert_array_equal(joined, np.concatenate([given[f"{n}w"] for n in "qkv"], axis=1))
    np.testing.assert_array_equal(bias, np.concatenate([given[f"{n}b"] for n in "qkv"]))
    assert "MatMul" not in {n.op_type for n in result.graph.node}


@pytest.mark.parametrize("dims", ["b, 12", "1, 7", "1, s"])
def test_lengths(dims: str) -> None:
    """One sequence may be short, several ones have 12 elements."""
    packed(rewritten(model(BODY, X.replace("b, s", dims)), sizes={"b": 2, "s": 3}))


def test_one_bias() -> None:
    """Zeros are written for the others: onnxruntime crashes without any bias."""
    body = BODY
    for name in "kv":
        body = body.replace(f"{name}p = ", f"{name}f = ").replace(
            f"{name}f = Add({name}p, {name}b) ", ""
        )
    node, constants = packed(rewritten(model(body)))
    bias = constants[node.input[2]]
    np.testing.assert_array_equal(bias[:WIDTH], weights()["qb"])
    assert not bias[WIDTH:].any()


def test_zeros_have_the_type_of_the_sequence() -> None:
    """CPU has no such kernel: nothing runs here."""
    body = BODY.replace("qf = Add(qp, qb) ", "").replace("qp = ", "qf = ")
    options = OptimizationOptions(patterns=PREPARED + NAME, processor="CUDA")
    proto = model(body, kind="float16")
    node, constants = packed(GraphBuilder(proto, optimization_options=options).to_onnx())
    assert constants[node.input[2]].dtype == np.float16
    assert not constants[node.input[2]][:WIDTH].any()


#: the columns of a product, their heads; the heads of a product
COLUMNS = "qf, kf, vf = Split<axis = -1>(f, thirds) " + "".join(map(SPLIT.format, "qkv"))
MOVED = (
    "fr = Reshape(f, together) ft = Transpose<perm = [0, 2, 1, 3]>(fr) "
    "qt, kt, vt = Split<axis = 1, num_outputs = 3>(ft) "
)
#: queries, keys and values are an axis that is moved first and removed
APART = (
    "fr = Reshape(f, apart) ft = Transpose<perm = [2, 0, 3, 1, 4]>(fr) "
    "q5, k5, v5 = Split<axis = 0, num_outputs = 3>(ft) "
    "qt = Squeeze(q5, first) kt = Squeeze(k5, first) vt = Squeeze(v5, first) "
)
#: each head holds its queries, keys and values
BESIDE = (
    "fr = Reshape(f, beside) ft = Transpose<perm = [0, 2, 1, 3]>(fr) "
    "qt, kt, vt = Split<axis = 3, num_outputs = 3>(ft) "
)
#: the same heads, moved twice
TWICE = (
    "fr = Reshape(f, together) fu = Transpose<perm = [0, 3, 2, 1]>(fr) "
    "ft = Transpose<perm = [0, 2, 3, 1]>(fu) qt, kt, vt = Split<axis = 1, num_outputs = 3>(ft) "
)


def one_product(
    terms: str, extra: str = "", parts: str = COLUMNS, values: str = VALUES
) -> onnx.ModelProto:
    """Queries, keys and values are the parts of one product of rows."""
    text = f"""g ({X}{extra}) => (float[b, s, {WIDTH}] y) <
        int64[4] heads = {{0, 0, {COUNT}, {LENGTH}}}, int64[3] flat = {{0, 0, {WIDTH}}},
        int64[2] rows = {{-1, 6}}, int64[3] thirds = {{{WIDTH}, {WIDTH}, {WIDTH}}},
        int64[4] pairs = {{-1, 2, {3 * COUNT}, {LENGTH}}},
        int64[4] others = {{-1, 2, {COUNT}, {LENGTH}}}, int64[2] thin = {{-1, 3}},
        int64[4] together = {{0, 0, {3 * COUNT}, {LENGTH}}},
        int64[5] apart = {{0, 0, 3, {COUNT}, {LENGTH}}}, int64[1] first = {{0}},
        int64[4] beside = {{0, 0, {COUNT}, {3 * LENGTH}}},
        int64[4] beside2 = {{-1, 2, {COUNT}, {3 * LENGTH}}},
        int64[4] windows = {{-1, 12, {3 * COUNT}, {LENGTH}}},
        int64[4] two = {{2, -1, {3 * COUNT}, {LENGTH}}},
        int64[5] apart2 = {{-1, 2, 3, {COUNT}, {LENGTH}}},
        float scale = {{0.5}}, int64[1] width = {{{3 * WIDTH}}}, float none = {{0}}
    > {{
        d = Shape<end = 2>(x) shape = Concat<axis = 0>(d, width) {terms}
        {parts + KEYS + values + BACK}
    }}"""
    made = model_from_text(text)
    given = weights()
    for name in "wb":
        value = np.concatenate([given[part + name] for part in "qkv"], axis=-1)
        made.graph.initializer.append(onnx.numpy_helper.from_array(value, f"all{name}"))
    return made


ROWS = "r = Reshape(x, rows) "
RESTORED = "f = Reshape(c, shape) "
GEMM = ROWS + "c = Gemm(r, allw, allb) " + RESTORED


def unnamed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The result has other dimensions than the sequence."""
    for i, dim in enumerate(proto.graph.output[0].type.tensor_type.shape.dim[:2]):
        dim.dim_param = f"other{i}"
    return proto


@pytest.mark.parametrize(
    "terms",
    [
        "f0 = MatMul(x, allw) f = Add(f0, allb)",
        "f = MatMul(x, allw)",
        ROWS + "c = Gemm(r, allw, allb) " + RESTORED,
        ROWS + "c = Gemm(r, allw) " + RESTORED,
        ROWS + "c0 = MatMul(r, allw) c = Add(allb, c0) " + RESTORED,
    ],
)
@pytest.mark.parametrize("parts", [COLUMNS, MOVED, APART])
def test_one_product(terms: str, parts: str) -> None:
    """The weight stays the one it was."""
    result = rewritten(one_product(terms, parts=parts))
    node, constants = packed(result)
    assert list(node.input)[:2] == ["x", "allw"]
    assert constants[node.input[2]].any() == ("allb" in terms)
    assert not {"Split", "Gemm", "MatMul"} & {n.op_type for n in result.graph.node}


#: windows of the rows of a sequence
WINDOWS = MOVED.replace("f, together", "c, windows")


@pytest.mark.parametrize(
    "product", ["c = Gemm(r, allw, allb) ", "p = MatMul(r, allw) c = Add(p, allb) "]
)
@pytest.mark.parametrize(
    "softmax", [VALUES, "v0 = Softmax(n) i = IsNaN(v0) w = Where(i, none, v0) o = MatMul(w, vt) "]
)
def test_windows_of_rows(product: str, softmax: str) -> None:
    """The elements of a window are rows of a matrix, one Reshape splits their heads."""
    proto = unnamed(one_product(ROWS + product, parts=WINDOWS, values=softmax))
    result = rewritten(proto, sizes=[{"b": 2, "s": 12}, {"b": 3, "s": 8}, {"b": 0, "s": 12}])
    node, _ = packed(result)
    made = {n.output[0]: n for n in result.graph.node}
    target = next(i for i in result.graph.initializer if i.name == made[node.input[0]].input[1])
    assert onnx.numpy_helper.to_array(target).tolist() == [-1, 12, 6]
    assert "Softmax" not in {n.op_type for n in result.graph.node}


@pytest.mark.parametrize(
    "terms", ["f0 = MatMul(x, allw) f = Add(f0, allb)", "f = MatMul(x, allw)", GEMM]
)
def test_parts_of_heads(terms: str) -> None:
    """The columns of the weight and the bias are reordered."""
    node, constants = packed(rewritten(one_product(terms, parts=BESIDE)))
    order = np.arange(3 * WIDTH).reshape(COUNT, 3, LENGTH).swapaxes(0, 1).ravel()
    for place, letter in ((1, "w"), (2, "b")):
        given = np.concatenate([weights()[n + letter] for n in "qkv"], axis=-1)
        expected = given[..., order] if letter == "w" or "allb" in terms else np.zeros_like(given)
        np.testing.assert_array_equal(constants[node.input[place]], expected)


def unshaped(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Without the shape of the sequence, which nothing reads."""
    del proto.graph.node[:2]
    return unnamed(proto)


def turned(proto: onnx.ModelProto, *names: str) -> onnx.ModelProto:
    """Some weights are transposed."""
    for tensor in proto.graph.initializer:
        if tensor.name in names:
            value = onnx.numpy_helper.to_array(tensor).T.copy()
            tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
    return proto


def rows_of(turns: str) -> onnx.ModelProto:
    """Three products of the rows of a sequence, some weights are transposed."""
    body = "r = Reshape(x, rows) " + "".join(
        f"{n}p = Gemm<transB = {int(n in turns)}>(r, {n}w) {n}f = Reshape({n}p, dims) {SPLIT.format(n)}"
        for n in "qkv"
    )
    more = ", int64[2] rows = {-1, 6}, int64[3] dims = {-1, 16, 8}"
    proto = model(body + KEYS + VALUES + BACK, X.replace("s", "16"), more=more)
    return turned(proto, *(f"{name}w" for name in turns))


TURNED = ROWS + "c = Gemm<transB = 1>(r, allw, allb) " + RESTORED


@pytest.mark.parametrize("patterns", [NAME, f"GemmTranspose,{NAME}", f"{NAME},GemmTranspose"])
def test_a_weight_that_is_transposed(patterns: str) -> None:
    """It was, or another pattern did it: it is written as the operator reads it."""
    proto = one_product(GEMM) if "Gemm" in patterns else turned(one_product(TURNED), "allw")
    result = check_pattern(proto, None, PREPARED + patterns, atol=1e-5, rtol=1e-4)
    assert "Gemm" not in {n.op_type for n in result.graph.node}
    options = OptimizationOptions(patterns=PREPARED + patterns)
    node, constants = packed(GraphBuilder(proto, optimization_options=options).to_onnx())
    given = weights()
    joined = np.concatenate([given[f"{n}w"] for n in "qkv"], axis=1)
    np.testing.assert_array_equal(constants[node.input[1]], joined)


def test_a_transposition_that_moves_nothing() -> None:
    terms = "same = Transpose<perm = [0, 1]>(allw) " + TURNED.replace("allw", "same")
    result = rewritten(turned(one_product(terms), "allw"))
    assert packed(result) and "Gemm" not in {n.op_type for n in result.graph.node}


@pytest.mark.parametrize("turns", ["", "qkv"])
def test_three_weights_that_are_transposed(turns: str) -> None:
    rewritten(rows_of(turns), sizes={"b": 2})
    options = OptimizationOptions(patterns=PREPARED + NAME)
    node, constants = packed(GraphBuilder(rows_of(turns), optimization_options=options).to_onnx())
    given = weights()
    joined = np.concatenate([given[f"{n}w"] for n in "qkv"], axis=1)
    np.testing.assert_array_equal(constants[node.input[1]], joined)


def test_zeros_beside_a_weight_that_is_transposed() -> None:
    values = "w0 = Softmax<axis = -1>(n) i = IsNaN(w0) w = Where(i, none, w0) o = MatMul(w, vt) "
    result = rewritten(turned(one_product(TURNED, values=values), "allw"))
    assert packed(result) and "IsNaN" in {n.op_type for n in result.graph.node}


ONE = "".join(SUM.format(name) for name in "qkv") + (
    "qu = Unsqueeze(qf, head) kt = Transpose<perm = [0, 2, 1]>(kf) ku = Unsqueeze(kt, head) "
    "vu = Unsqueeze(vf, head) m = MatMul(qu, ku) n = Mul(m, scale) w = Softmax<axis = -1>(n) "
    "o = MatMul(w, vu) y = Squeeze(o, head)"
)


@pytest.mark.parametrize("sizes", [{"b": 2, "s": 3}, {"b": 1, "s": 1}])
def test_one_head(sizes: dict[str, int]) -> None:
    """A sequence is one head, nothing is reshaped."""
    proto = model(ONE)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "head"))
    result = rewritten(proto, sizes=sizes)
    assert [n.op_type for n in result.graph.node] == ["Attention"]


@pytest.mark.parametrize("dims", ["b, 1, s, s", "1, 2, s, s", "b, 2, s, s", "1, 1, s, s"])
@pytest.mark.parametrize("low", [np.float32(-np.inf), np.finfo(np.float32).min, np.float32(-1e4)])
def test_masks(dims: str, low: np.float32) -> None:
    """Any mask of four dimensions; rows that are entirely hidden keep their result, NaN included."""
    proto = model(MASKED, f"{X}, float[{dims}] mask")
    feeds = make_feeds(proto, {"b": 2, "s": 5})
    mask = feeds["mask"]
    mask[mask < -0.5] = low
    mask[..., 0] = 0
    mask[0, :, 0] = low
    node, _ = packed(rewritten(proto, feeds=[feeds]))
    assert list(node.input)[3:] == ["", "", "mask"]


@pytest.mark.parametrize("dims", ["b, 1, 1, s", "1, 2, 1, s", "b, 1, 1, 12"])
@pytest.mark.parametrize("low", [np.float32(-np.inf), np.finfo(np.float32).min, np.float32(-1e4)])
@pytest.mark.parametrize("opset", [14, 18])
def test_one_row_for_every_query(dims: str, low: np.float32, opset: int) -> None:
    """The row of a mask is repeated; every key of a sequence may be hidden, NaN included."""
    steps = dims.rsplit(", ", 1)[1]
    sequence = X.replace("b, s", f"b, {steps}")
    proto = older(model(MASKED, f"{sequence}, float[{dims}] mask"), opset)
    for sizes in ({"b": 2, "s": 5}, {"b": 2, "s": 1}, {"b": 1, "s": 3}):
        feeds = make_feeds(proto, sizes)
        feeds["mask"][feeds["mask"] < -0.5] = low
        feeds["mask"][-1] = low
        result = rewritten(proto, feeds=[feeds])
        node, _ = packed(result)
        (repeated,) = [n for n in result.graph.node if n.op_type == "Expand"]
        assert list(node.input)[3:] == ["", "", repeated.output[0]]
        assert repeated.input[0] == "mask"


@pytest.mark.parametrize(
    ("dims", "widths"), [("b, 1, s, 1", (1,)), ("1, 2, s, 1", (1,)), ("b, 1, s, u", (1, 3))]
)
@pytest.mark.parametrize("opset", [13, 18])
def test_one_column_of_mask(dims: str, widths: tuple[int, ...], opset: int) -> None:
    """It is repeated for every key, whether it is known to be one or not: GPT2 reads its mask at
    `batch * seq // batch` positions."""
    proto = older(model(MASKED, f"{X}, float[{dims}] mask"), opset)
    for u in widths:
        result = rewritten(proto, sizes=[{"b": 2, "s": 3, "u": u}, {"b": 1, "s": 3, "u": u}])
        node, _ = packed(result)
        (repeated,) = [n for n in result.graph.node if n.op_type == "Expand"]
        assert list(node.input)[3:] == ["", "", repeated.output[0]]


def test_layers_share_the_mask_that_is_repeated() -> None:
    """Two attentions of one sequence, one row of mask."""
    results = "|".join(re.findall(r"(\w+) = [A-Z]", MASKED))
    second = re.sub(rf"\b({results})\b(?! = \[)", r"\1_2", MASKED)
    proto = model(
        MASKED + " " + second, f"{X}, float[b, 1, 1, s] mask", outputs=", float[b, s, 8] y_2"
    )
    for name, value in weights().items():
        if name not in {i.name for i in proto.graph.initializer}:
            proto.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    options = OptimizationOptions(patterns="default+onnxruntime")
    made = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options).to_onnx()
    assert [n.op_type for n in made.graph.node].count("Expand") == 1


@pytest.mark.parametrize(
    ("opset", "patterns", "domain"),
    [
        (18, "default+onnxruntime", "com.microsoft"),
        (23, "default+onnxruntime", "com.microsoft"),
        (23, "default", ""),
    ],
)
def test_comes_before_the_standard_operator(opset: int, patterns: str, domain: str) -> None:
    proto = older(model(BODY), opset)
    found = check_pattern(proto, None, patterns, atol=1e-5, rtol=1e-4)
    assert [n.domain for n in found.graph.node if n.op_type == "Attention"] == [domain]


def test_order() -> None:
    """The operator measured faster than any other comes first, the standard operator afterwards."""
    found = sorted(get_pattern_list("default+onnxruntime"), key=lambda p: p.priority)
    ranks = {p.name: i for i, p in enumerate(found)}
    assert max(ranks["CausalAttention"], ranks["TinyWeightsAttention"]) < ranks[NAME]
    assert ranks[NAME] < ranks["AttentionGQA"]


def test_big_weights_are_joined_when_the_model_is_written(monkeypatch) -> None:
    monkeypatch.setattr("xoptim.analysis.weights.weights.DEFERRED_BYTES", 16)
    node, constants = packed(rewritten(model(BODY)))
    given = weights()
    joined = constants[node.input[1]]
    np.testing.assert_array_equal(joined, np.concatenate([given[f"{n}w"] for n in "qkv"], axis=1))


def infinite(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """A number of a constant is not finite."""
    found = next(i for i in proto.graph.initializer if i.name == name)
    value = onnx.numpy_helper.to_array(found).copy()
    value.flat[0] = np.inf
    found.CopyFrom(onnx.numpy_helper.from_array(value, name))
    return proto


def older(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """The same nodes under an older opset."""
    proto.opset_import[0].version = opset
    return proto


#: zeros replace NaN in the weights
GUARDED = BODY.replace(
    "w = Softmax<axis = -1>(n)", "w0 = Softmax<axis = -1>(n) i = IsNaN(w0) w = Where(i, none, w0)"
)
NONE = ", float none = {0}"
REFUSED = {
    "longer values": (
        model(
            BODY.replace("(qf, heads)", "(qf, three)").replace("(kf, heads)", "(kf, three)"),
            f"{X}, float[6, 6] qw, float[6] qb, float[6, 6] kw, float[6] kb",
            more=f", int64[4] three = {{0, 0, {COUNT}, 3}}",
        ),
        "the heads do not have the same length",
    ),
    "an infinite weight of the values": (
        infinite(model(GUARDED, more=NONE), "vw"), "a weight of the values is not finite",
    ),
    "an infinite bias of the values": (
        infinite(model(GUARDED, more=NONE), "vb"), "a weight of the values is not finite",
    ),
    "heads of other elements, one product for each": (
        unnamed(one_product(GEMM, parts=COLUMNS.replace("heads", "others"))),
        "the heads are not those of each element",
    ),
    "shorter rows": (
        one_product(
            "r = Reshape(x, thin) c = MatMul(r, half) f = Reshape(c, shape)",
            f", float[3, {3 * WIDTH // 2}] half",
        ),
        "the rows are not those of the sequence",
    ),
    "another sequence": (
        model(BODY.replace("MatMul(x, kw)", "MatMul(u, kw)"), f"{X}, float[b, s, 6] u"),
        "not those of one sequence",
    ),
    "short sequences": (
        model(BODY, X.replace("[b, s, 6]", "[b, 11, 6]")), "short sequences are multiplied one by one",
    ),
    "long sequences": (
        model(BODY, X.replace("[b, s, 6]", "[b, 1024, 6]")),
        "MultiHeadAttention computes many scores in blocks, even_slower=True applies it",
    ),
    "computed weight": (
        model(BODY, f"{X}, float[6, {WIDTH}] kw"), "the weight is not a constant matrix",
    ),
    "computed bias": (model(BODY, f"{X}, float[{WIDTH}] kb"), "the bias is not a constant"),
    "used elsewhere": (
        model(BODY, outputs=f", float[b, s, {WIDTH}] kf"), "used elsewhere",
    ),
    "no product": (
        model(BODY.replace("vf = Add(vp, vb)", "vf = Add(x2, vb)")
            .replace("vp = MatMul(x, vw)", ""), f"{X}, float[b, s, {WIDTH}] x2"),
        "no product is added to a bias",
    ),
    "mask on keys": (
        model(MASKED, f"{X}, float[b, 1, 1, u] mask"), "the mask is broadcast in another way",
    ),
    "a weight that is transposed, two that are not": (
        rows_of("q"), "some weights are transposed",
    ),
    "scaled": (
        one_product(ROWS + "c = Gemm<alpha = 2.0>(r, allw, allb) " + RESTORED),
        "the product is scaled or transposed",
    ),
    "other rows": (
        one_product("r = Reshape(u, rows) c = Gemm(r, allw, allb) f = Reshape(c, shape)",
            ", float[s, b, 6] u"),
        "the product is not the one of a sequence",
    ),
    "parts in another order": (
        one_product(GEMM, parts=MOVED.replace("qt, kt", "kt, qt")),
        "the heads are not moved from a sequence",
    ),
    "windows of any length": (
        unshaped(one_product(ROWS + "c = Gemm(r, allw, allb) ", parts=WINDOWS.replace("windows", "two"))),
        "the length of the sequence is not known",
    ),
    "parts of heads in another order": (
        one_product(GEMM, parts=BESIDE.replace("qt, kt, vt", "kt, qt, vt")),
        "the heads are not moved from a sequence",
    ),
    "heads of other elements, which hold all the parts": (
        unnamed(one_product(GEMM, parts=BESIDE.replace("beside", "beside2"))),
        "the heads are not those of each element",
    ),
    "keys before queries, the axis is removed": (
        one_product(GEMM, parts=APART.replace("q5, k5", "k5, q5")),
        "the heads are not moved from a sequence",
    ),
    "another permutation, the axis is removed": (
        one_product(GEMM, parts=APART.replace("ft = Transpose<perm = [2, 0, 3, 1, 4]>(fr)",
        "fu = Transpose<perm = [0, 2, 3, 1, 4]>(fr) ft = Transpose<perm = [1, 0, 2, 3, 4]>(fu)")),
        "the heads are not moved from a sequence",
    ),
    "other products with the axis": (
        unnamed(one_product(GEMM, parts=APART.replace("apart", "apart2"))),
        "the heads are not those of each element",
    ),
    "parts of a result that is moved twice": (
        one_product(GEMM, parts=TWICE),
        "the heads are not moved from a sequence",
    ),
    "heads of other elements": (
        unnamed(one_product(GEMM, parts=MOVED.replace("together", "pairs"))),
        "the heads are not those of each element",
    ),
    "float16": (model(BODY, kind="float16"), "no Attention for this type"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    """The reason; the graph is put back."""
    proto, reason = REFUSED[case]
    reasons: list[str] = []
    pattern = get_pattern(NAME)
    pattern.listener = lambda told: reasons.append(told[3])
    builder = GraphBuilder(proto, infer_shapes_options=True)
    patterns = [get_pattern("FunctionAttention"), pattern]
    GraphBuilderPatternOptimization(builder, patterns).optimize()
    assert any(reason in text for text in reasons), reasons
    found = sorted(n.op_type for n in builder.graph.nodes)
    assert found == sorted(n.op_type for n in proto.graph.node)
