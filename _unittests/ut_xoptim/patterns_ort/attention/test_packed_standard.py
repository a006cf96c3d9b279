"""The operator Attention of opset 23 once onnxruntime multiplies the sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from ut_xoptim.patterns_ort.attention.attention_texts import as_float16

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import (
    check_no_match,
    check_pattern,
    make_feeds,
    model_from_text,
    run_reference,
)

NAME = "PackedAttention"
#: heads, length of each
COUNT, LENGTH = 2, 4
WIDTH = COUNT * LENGTH
X = "float[b, s, 6] x"
#: a normalized sequence
NORMALIZED = "x = LayerNormalization<axis = -1>(h, g) "
H = "float[b, s, 6] h"
PRODUCTS = "".join(f"{n}p = MatMul(x, {n}w) {n} = Add({n}p, {n}b) " for n in "qkv")
CALL = "y = Attention<q_num_heads = 2, kv_num_heads = 2, scale = 0.5>(q, k, v) "
MASKED = CALL.replace("v)", "v, mask)")
#: four dimensions are read and given
SPLIT = "".join(
    f"{n}r = Reshape({n}, heads) {n}t = Transpose<perm = [0, 2, 1, 3]>({n}r) " for n in "qkv"
)
BACK = "z = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(z, flat) "
HEADS = SPLIT + "o = Attention<scale = 0.5>(qt, kt, vt) " + BACK
#: positions of keys and of queries
POSITIONS = (
    "shape = Shape<start = 1, end = 2>({0}) size = Squeeze(shape) range = Range(first, size, step) "
    "rows_of = Unsqueeze(range, last) causal = LessOrEqual(range, rows_of) "
)
LOWEST = np.finfo(np.float32).min
SIZES = [{"b": 2, "s": 3}, {"b": 1, "s": 1}, {"b": 3, "s": 40}]


def model(
    body: str, inputs: str = X, opset: int = 23, out: str = "b, s, 8", more: str = "", **others: Any
) -> onnx.ModelProto:
    """An attention on a sequence, whose constants are random, or given."""
    made = model_from_text(
        f"""g ({inputs}) => (float[{out}] y{more}) <
        int64[4] heads = {{0, 0, {COUNT}, {LENGTH}}}, int64[3] flat = {{0, 0, {WIDTH}}},
        int64[4] together = {{0, 0, {3 * COUNT}, {LENGTH}}}, int64[2] rows = {{-1, 6}},
        int64[1] width = {{{3 * WIDTH}}}, int64[1] one = {{1}}, int64[1] last = {{1}},
        int64 first = {{0}}, int64 step = {{1}}, float zero = {{0}}
        > {{ {body} }}""",
        opset,
    )
    rng = np.random.default_rng(0)
    sizes = {"all": (6, 3 * WIDTH), "c": (3 * WIDTH,), "g": (6,)}
    sizes |= {f"{n}w": (6, WIDTH) for n in "qkv"} | {f"{n}b": (WIDTH,) for n in "qkv"}
    values = {n: rng.standard_normal(dims).astype(np.float32) for n, dims in sizes.items()}
    given = {i.name for i in made.graph.input}
    for name, value in {**values, **others}.items():
        if name not in given and any(f"{name}{end}" in body for end in "),"):
            made.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return made


def rewritten(proto: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """The model after the pattern, with the results it had."""
    return check_pattern(proto, None, NAME, atol=1e-5, rtol=1e-4, **options)


def types_of(result: onnx.ModelProto) -> list[str]:
    """Types of the nodes; one is the operator."""
    found = [n.op_type for n in result.graph.node]
    assert [n.domain for n in result.graph.node if n.op_type == "Attention"] == ["com.microsoft"]
    return found


#: what the documentation draws: name -> (before, after)
MODELS = {
    NAME: (
        model_from_text(
            """g (float[b, s, 2] x) => (float[b, s, 2] y) <
            float[2, 2] qw = {1, 2, 3, 4}, float[2, 2] kw = {5, 6, 7, 8},
            float[2, 2] vw = {1, 3, 5, 7}, float[2] vb = {1, 2}
        > {
            q = MatMul(x, qw) k = MatMul(x, kw) v0 = MatMul(x, vw) v = Add(v0, vb)
            y = Attention<q_num_heads = 2, kv_num_heads = 2, scale = 0.5>(q, k, v)
        }""",
            23,
        ),
        model_from_text(
            """g (float[b, s, 2] x) => (float[b, s, 2] y) <
            float[2, 6] w = {1, 2, 5, 6, 1, 3, 3, 4, 7, 8, 5, 7}, float[6] c = {0, 0, 0, 0, 1, 2}
        > { y = com.microsoft.Attention<num_heads = 2, scale = 0.5>(x, w, c) }""",
            23,
        ),
    )
}
ROWS = (
    "d = Shape<end = 2>(x) shape = Concat<axis = 0>(d, width) r = Reshape(x, rows) "
    "p = Gemm(r, all, c) f = Reshape(p, shape) "
)
CUT = ROWS + "q, k, v = Split<axis = 2, num_outputs = 3>(f) " + CALL
MOVED = (
    ROWS + "fr = Reshape(f, together) ft = Transpose<perm = [0, 2, 1, 3]>(fr) "
    "qt, kt, vt = Split<axis = 1, num_outputs = 3>(ft) o = Attention<scale = 0.5>(qt, kt, vt) "
)
CAUSAL = POSITIONS.format("x") + PRODUCTS + MASKED.replace("mask", "causal")
GIVEN = NORMALIZED + PRODUCTS + MASKED
#: the masks that change, and those of the other tables
FORMS = {
    NAME: {
        "three dimensions": (model(PRODUCTS + CALL),),
        "four dimensions": (model(PRODUCTS + HEADS),),
        "one product": (model(CUT),),
        "one product, its heads are moved": (model(MOVED + BACK),),
        "one sequence at a time": (model(PRODUCTS + CALL, "float[1, 5, 6] x"),),
        "the default scale": (model(PRODUCTS + CALL.replace(", scale = 0.5", "")),),
        "causal": (model(PRODUCTS + CALL.replace("scale", "is_causal = 1, scale")),),
        "causal mask": (model(CAUSAL),),
        "a condition": (model(GIVEN, f"{H}, bool[b, 1, s, s] mask"),),
        "a condition for every sequence": (model(GIVEN, f"{H}, bool[s, s] mask", opset=24),),
        "opset 25": (model(GIVEN, f"{H}, bool[b, 1, s, s] mask", opset=25),),
    }
}


def test_operator() -> None:
    check_pattern(*MODELS[NAME], NAME, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("form", FORMS[NAME])
def test_forms(form: str, sizes: dict[str, int]) -> None:
    (proto,) = FORMS[NAME][form]
    types = types_of(rewritten(proto, sizes=sizes))
    assert not {"Add", "Gemm", "MatMul", "Split", "Transpose"} & set(types)


@pytest.mark.parametrize("opset", [23, 24, 25])
def test_no_other_node(opset: int) -> None:
    result = rewritten(model(PRODUCTS + CALL, opset=opset))
    assert types_of(result) == ["Attention"]
    (node,) = result.graph.node
    constants = {i.name: onnx.numpy_helper.to_array(i) for i in result.graph.initializer}
    assert [constants[name].shape for name in node.input[1:]] == [(6, 3 * WIDTH), (3 * WIDTH,)]


def test_the_result_is_not_moved_back() -> None:
    """Four dimensions are given: they are moved after."""
    body = PRODUCTS + SPLIT + "y = Attention<scale = 0.5>(qt, kt, vt)"
    types = types_of(rewritten(model(body, out=f"b, {COUNT}, s, {LENGTH}")))
    assert types == ["Attention", "Reshape", "Transpose"]


@pytest.mark.parametrize("sizes", SIZES)
def test_one_head(sizes: dict[str, int]) -> None:
    body = PRODUCTS + "".join(f"{n}u = Unsqueeze({n}, one) " for n in "qkv")
    body += "o = Attention(qu, ku, vu) y = Squeeze(o, one)"
    assert types_of(rewritten(model(body), sizes=sizes)) == ["Attention"]


@pytest.mark.parametrize("factor", [1.0, 1e4])
@pytest.mark.parametrize("steps", [1, 2, 30])
def test_causal(steps: int, factor: float) -> None:
    """A key that comes after is hidden, however small the scores of the others."""
    proto = model(PRODUCTS + CALL.replace("scale", "is_causal = 1, scale"))
    feeds = make_feeds(proto, {"b": 2, "s": steps})
    feeds["x"] *= np.float32(factor)
    result = check_pattern(proto, None, NAME, feeds=[feeds], atol=1e-3 * factor, rtol=1e-4)
    (node,) = result.graph.node
    assert {a.name: a.i for a in node.attribute if a.name != "scale"} == {
        "num_heads": COUNT, "unidirectional": 1,
    }  # fmt: skip


# -- masks that are added


@pytest.mark.parametrize(
    "dims", [(16, 16), (1, 16, 16), (2, 16, 16), (1, 2, 16, 16), (3, 1, 16, 16)]
)
def test_constants(dims: tuple[int, ...]) -> None:
    """A bias of relative positions, windows."""
    value = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    value[..., 3] = -100
    batch = dims[0] if len(dims) == 4 and dims[0] > 1 else 2
    proto = model(PRODUCTS + MASKED, f"float[{batch}, 16, 6] x", mask=value)
    assert set(types_of(rewritten(proto))) <= {"Attention", "Unsqueeze"}


@pytest.mark.parametrize(
    "made",
    [
        "mask = Add(bias, other) ",
        "mask = Where(seen, zero, low) ",
        "most = Where(seen, zero, low) mask = Add(bias, most) ",
    ],
)
@pytest.mark.parametrize("low", [-100.0, LOWEST / 2])
def test_no_number_is_the_lowest_float(made: str, low: float) -> None:
    """Each query sees something, were everything hidden: the weights are equal."""
    rng = np.random.default_rng(0)
    others = {
        "bias": rng.standard_normal((1, 2, 16, 16)).astype(np.float32),
        "other": rng.standard_normal((1, 1, 16, 16)).astype(np.float32),
        "low": np.array(low, np.float32),
    }
    proto = model(made + PRODUCTS + MASKED, "float[b, 16, 6] x, bool[b, 1, 16, 16] seen", **others)
    feeds = make_feeds(proto, {"b": 2})
    if "seen" in feeds:
        feeds["seen"][0, 0, 3] = False
    assert types_of(rewritten(proto, feeds=[feeds])).count("Mul") == 0


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("low", [None, LOWEST, -np.inf])
def test_each_query_sees_something(low: float | None, sizes: dict[str, int]) -> None:
    """The lowest float is added where the condition is false, or it was, or an infinity."""
    body = CAUSAL
    if low is not None:
        body = body.replace("v, causal", "v, mask").replace(
            PRODUCTS, "mask = Where(causal, zero, low) " + PRODUCTS
        )
    proto = model(body, low=np.array(low or 0, np.float32))
    types = types_of(rewritten(proto, sizes=sizes))
    assert types.count("Where") == 1 and "Mul" not in types


# -- queries everything is hidden from


def hidden(proto: onnx.ModelProto, name: str, sizes: dict[str, int]) -> list[dict[str, np.ndarray]]:
    """Inputs: some queries see nothing; then an element of the sequence is NaN as well."""
    feeds = make_feeds(proto, sizes)
    feeds[name][..., 0, :] = False
    feeds[name][..., -1, :1] = True
    broken = {k: v.copy() for k, v in feeds.items()}
    broken["h"][0, 1] = np.nan
    return [feeds, broken]


@pytest.mark.parametrize(
    ("dims", "opset"),
    [("b, 1, s, s", 23), ("1, 1, s, s", 24), ("1, s, s", 23), ("s, s", 23), ("b, 1, s, s", 25)],
)
def test_condition(dims: str, opset: int) -> None:
    """Zeros for a query that sees nothing, NaN where a value is."""
    proto = model(GIVEN, f"{H}, bool[{dims}] mask", opset=opset)
    for sizes in ({"b": 2, "s": 5}, {"b": 1, "s": 13}):
        for feeds in hidden(proto, "mask", sizes):
            assert types_of(rewritten(proto, feeds=[feeds])).count("Mul") == 1
            y = run_reference(proto, feeds)[0]
            assert np.isnan(y).any() or not y[0, 0].any()


@pytest.mark.parametrize(("low", "opset"), [(LOWEST, 23), (-np.inf, 24), (-np.inf, 25)])
def test_choice(low: float, opset: int) -> None:
    body = GIVEN.replace(PRODUCTS, "mask = Where(seen, zero, low) " + PRODUCTS)
    proto = model(body, f"{H}, bool[b, 1, s, s] seen", opset=opset, low=np.array(low, np.float32))
    for feeds in hidden(proto, "seen", {"b": 2, "s": 5}):
        types = types_of(rewritten(proto, feeds=[feeds], reference=False))
        assert types.count("Mul") == types.count("Where") == 1


#: relative positions, read in a table, and what replaces them (T5)
TABLE = (
    "e = Gather<axis = 0>(table, distances) bias = Transpose<perm = [2, 0, 1]>(e) "
    "mask = Where(seen, bias, low) "
)
DISTANCES = ", int64[s, s] distances"


def relative(seen: str, body: str = "", inputs: str = "", **others: Any) -> onnx.ModelProto:
    """A bias for each head, or the lowest float; *seen* is the condition."""
    table = np.random.default_rng(1).standard_normal((7, COUNT)).astype(np.float32)
    return model(
        body + NORMALIZED + TABLE.replace("seen", seen) + PRODUCTS + MASKED,
        H + inputs + DISTANCES, **{"low": np.array(LOWEST), "table": table, **others},
    )  # fmt: skip


def test_relative_positions() -> None:
    given = relative("seen", inputs=", bool[b, 1, s, s] seen")
    causal = relative("causal", POSITIONS.format("h"))
    rng = np.random.default_rng(0)
    for proto, times in ((given, 1), (causal, 0)):
        for feeds in hidden(given, "seen", {"b": 2, "s": 5}):
            feeds["distances"] = rng.integers(0, 7, (5, 5))
            if not times:
                del feeds["seen"]
            types = types_of(rewritten(proto, feeds=[feeds], reference=False))
            assert (types.count("Mul"), types.count("Where")) == (times, 1)


def test_layers_share_what_is_made_of_the_mask() -> None:
    """Two attentions: one mask, one Mul each."""
    second = PRODUCTS.replace("x,", "x2,") + MASKED
    for name in ("qp", "kp", "vp", "q", "k", "v", "y"):
        second = second.replace(f"{name} =", f"{name}2 =").replace(f"({name},", f"({name}2,")
    second = second.replace("k, v,", "k2, v2,")
    body = GIVEN + "x2 = LayerNormalization<axis = -1>(y, g2) " + second
    more, gain = ", float[b, s, 8] y2", np.ones(8, np.float32)
    proto = model(body, f"{H}, bool[b, 1, s, s] mask", more=more, g2=gain)
    rng = np.random.default_rng(1)
    for tensor in list(proto.graph.initializer):
        if tensor.name in ("qw", "kw", "vw"):
            value = rng.standard_normal((8, WIDTH)).astype(np.float32)
            proto.graph.initializer.append(onnx.numpy_helper.from_array(value, f"{tensor.name}2"))
    for node in proto.graph.node:
        if node.op_type == "MatMul" and node.input[0] == "x2":
            node.input[1] += "2"
    result = check_pattern(proto, None, "default+onnxruntime", atol=1e-5, rtol=1e-4)
    types = [n.op_type for n in result.graph.node]
    counts = {name: types.count(name) for name in ("Attention", "Mul", "Where", "ReduceMax")}
    assert counts == {"Attention": 2, "Mul": 2, "Where": 1, "ReduceMax": 1}


# -- sets


@pytest.mark.parametrize("form", FORMS[NAME])
def test_sets(form: str) -> None:
    """The standard operator stays in the set default."""
    (proto,) = FORMS[NAME][form]
    result = check_pattern(proto, None, "default+onnxruntime", atol=1e-5, rtol=1e-4, sizes=SIZES[0])
    assert types_of(result)
    options = OptimizationOptions(patterns="default")
    made = GraphBuilder(proto, infer_shapes_options=True, optimization_options=options).to_onnx()
    assert {n.domain for n in made.graph.node} == {""}


MASK = ", bool[b, 1, s, s] mask"
ONE_HEAD = {
    **dict.fromkeys(("kw", "vw"), np.ones((6, 4), np.float32)),
    **dict.fromkeys(("kb", "vb"), np.ones(4, np.float32)),
}
REFUSED = {
    "no bias": (model("".join(f"{n} = MatMul(x, {n}w) " for n in "qkv") + CALL), "no bias is added"),
    "a cache is given": (
        model(
            PRODUCTS + CALL.replace("y =", "y, m, n ="),
            more=f", float[b, {COUNT}, s, {LENGTH}] m, float[b, {COUNT}, s, {LENGTH}] n",
        ),
        "other results than the first one",
    ),
    "a cache": (
        model(
            PRODUCTS + CALL.replace("y =", "y, m, n =").replace("v)", 'v, "", i, j)'),
            f"{X}, float[b, {COUNT}, t, {LENGTH}] i, float[b, {COUNT}, t, {LENGTH}] j",
        ),
        "other results than the first one",
    ),
    "lengths of the sequences": (
        model(PRODUCTS + CALL.replace("v)", 'v, "", "", "", i)'), f"{X}, int64[b] i", opset=24),
        "keys and values of the steps before",
    ),
    "softcap": (
        model(PRODUCTS + CALL.replace("scale", "softcap = 2.0, scale")),
        "the scores are bounded or rounded",
    ),
    "another precision": (
        model(PRODUCTS + CALL.replace("scale", "softmax_precision = 10, scale")),
        "the scores are bounded or rounded",
    ),
    "a scale that is null": (
        model(PRODUCTS + CALL.replace("0.5", "0.0")), "the scale is not a positive number",
    ),
    "shared heads": (
        model(
            PRODUCTS + CALL.replace("kv_num_heads = 2", "kv_num_heads = 1"), **ONE_HEAD
        ),
        "the heads do not have the same length",
    ),
    "shared heads, four dimensions": (
        model(
            PRODUCTS.replace("k =", "k0 =").replace("v =", "v0 =")
            + "k = Reshape(k0, others) v = Reshape(v0, others) "
            + HEADS.replace("Reshape(k, heads)", "Reshape(k, alone)").replace(
                "Reshape(v, heads)", "Reshape(v, alone)"
            ),
            **ONE_HEAD, alone=np.array([0, 0, 1, 4]), others=np.array([0, 0, 4]),
        ),
        "the heads do not have the same length",
    ),
    "another sequence": (
        model(PRODUCTS.replace("MatMul(x, kw)", "MatMul(u, kw)") + CALL, f"{X}, float[b, s, 6] u"),
        "not those of one sequence",
    ),
    "a computed weight": (
        model(PRODUCTS + CALL, f"{X}, float[6, {WIDTH}] kw"), "the weight is not a constant matrix",
    ),
    "used elsewhere": (
        model(PRODUCTS + CALL, more=f", float[b, s, {WIDTH}] k"), "used elsewhere",
    ),
    "short sequences": (
        model(PRODUCTS + CALL, "float[b, 11, 6] x"), "short sequences are multiplied one by one",
    ),
    "no product": (
        model(CALL, f"{X}, float[b, s, 8] q, float[b, s, 8] k, float[b, s, 8] v"), None,
    ),
    "causal, a mask": (
        model(GIVEN.replace("scale", "is_causal = 1, scale"), H + MASK), "causal and has a mask",
    ),
    "a mask from outside": (
        model(GIVEN, f"{H}, float[b, 1, s, s] mask"), "the mask may hide everything from a query",
    ),
    **{
        f"a constant mask of {low}": (
            model(
                GIVEN, H.replace("s,", "16,"), out="b, 16, 8",
                mask=np.full((1, 1, 16, 16), low, np.float32),
            ),
            "the mask may hide everything from a query",
        )
        for low in (LOWEST, -np.inf, np.nan)
    },
    "the lowest float at opset 25": (
        model(
            "mask = Where(seen, zero, low) " + GIVEN, f"{H}, bool[b, 1, s, s] seen", opset=25,
            low=np.array(LOWEST),
        ),
        "the mask may hide everything from a query",
    ),
    "the lowest float in the table": (
        relative("causal", POSITIONS.format("h"), table=np.full((7, COUNT), LOWEST, np.float32)),
        "the mask may hide everything from a query",
    ),
    "a table from outside": (
        relative("causal", POSITIONS.format("h"), f", float[7, {COUNT}] table"),
        "the mask may hide everything from a query",
    ),
    "a low number from outside": (
        relative("causal", POSITIONS.format("h"), ", float low"),
        "the mask may hide everything from a query",
    ),
    "a sequence that is not normalized": (
        model(PRODUCTS + MASKED, X + MASK), "a score may not be finite where the sequence is",
    ),
    "a weight that is not finite": (
        model(GIVEN, H + MASK, kw=np.full((6, WIDTH), np.inf, np.float32)),
        "a score may not be finite where the sequence is",
    ),
    "weights so large that a score overflows": (
        model(
            GIVEN, H + MASK, kw=np.full((6, WIDTH), 1e25, np.float32),
            qw=np.full((6, WIDTH), 1e25, np.float32),
        ),
        "a score may not be finite where the sequence is",
    ),
    "a condition for each head": (
        model(GIVEN, f"{H}, bool[b, {COUNT}, s, s] mask"), "heads have their own masks",
    ),
    "a row of mask": (
        model(GIVEN, f"{H}, bool[b, 1, 1, s] mask"), "the mask is broadcast in another way",
    ),
    "a shorter mask": (
        model(GIVEN, f"{H}, bool[b, 1, s, t] mask"), "the mask is broadcast in another way",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    proto, reason = REFUSED[case]
    check_no_match(proto, NAME, reason)


def test_refuses_what_was_not_seen_on_a_device() -> None:
    """A mask that is given may hide everything from a query: CPU gives zeros."""
    check_no_match(model(GIVEN, H + MASK), NAME, "may hide everything", processor="CUDA")
    options = OptimizationOptions(patterns=NAME, processor="CUDA")
    made = GraphBuilder(model(CAUSAL), optimization_options=options).to_onnx()
    assert "Mul" not in types_of(made)


def test_refuses_other_types() -> None:
    """No kernel of CPU, no mask of 16 bits."""
    for proto, processor, reason in (
        (as_float16(model(PRODUCTS + CALL)), "CPU", "no Attention for this type"),
        (as_float16(model(CAUSAL)), "CUDA", "the type is not float"),
    ):
        check_no_match(proto, NAME, reason, processor=processor)
