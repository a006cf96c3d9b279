"""Mixtures of experts."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

RNG = np.random.RandomState(0)
#: 3 experts, tokens of length 4, rows of length 2
FIRST, SECOND = RNG.randn(3, 2, 2, 4).round(2), RNG.randn(3, 4, 2).round(2)


def _constant(name: str, value: np.ndarray, dims: str) -> str:
    return f"float[{dims}] {name} = {{{', '.join(map(str, value.ravel()))}}}"


MIXED_UP = FIRST.transpose(0, 2, 1, 3).reshape(3, 4, 4)
GATE, UP = _constant("w1", FIRST, "3, 4, 4"), _constant("w2", SECOND, "3, 4, 2")
CONSTANTS = (
    UP + ", int64[1] k = {2}, int64[1] one = {1}, int64[1] two = {2}, int64[3] twice = {1, 2, 1},"
    " int64[2] rows = {-1, 4}, int64[1] flat = {-1}, int64[3] by_expert = {-1, 2, 4},"
    " int64[2] halves = {2, 2}"
)
ROUTE = "p = Softmax<axis = -1>(r) v, i = TopK<axis = 1>(p, k) "
WEIGHTS = "t = ReduceSum<keepdims = 1>(v, one) w = Div(v, t) "
REPEAT = "u = Unsqueeze(x, one) e = Expand(u, twice) m = Reshape(e, rows) f = Reshape(i, flat) "
UPWARDS = "g1 = Gather(w1, f) c1 = Unsqueeze(m, two) m1 = MatMul(g1, c1) h = Squeeze(m1, two) "
HALVES = "a, b = Split<axis = 1>(h, halves) "
SILU = "z = Sigmoid(a) s = Mul(a, z) "
DOWN = "q = Mul(s, b) g2 = Gather(w2, f) c2 = Unsqueeze(q, two) m2 = MatMul(g2, c2) o = Squeeze(m2, two) "
SUM = (
    "fw = Reshape(w, flat) cw = Unsqueeze(fw, one) d = Mul(o, cw) y3 = Reshape(d, by_expert) "
    "y = ReduceSum<keepdims = 0>(y3, one)"
)
EXPERTS = REPEAT + UPWARDS + HALVES + SILU + DOWN + SUM
ALL = ROUTE + WEIGHTS + EXPERTS
MOE = (
    'com.microsoft.MoE<k = 2, activation_type = "swiglu", swiglu_fusion = 1,'
    " activation_alpha = 1.0, activation_beta = 0.0>"
)
#: the sum of the weights, the tokens read after the operator
AGAIN = (
    "t1 = ReduceSum<keepdims = 1>(w, one) b = Less(t1, zero) y2 = Mul(o, t1) y = Where(b, x, y2)"
)
LAYOUT = "w4 = Reshape(w1, cut) w5 = Transpose<perm = [0, 2, 1, 3]>(w4) wm = Reshape(w5, back) "


def model(body: str, kind: str = "float", r: str = "n, 3", weight: str = GATE) -> str:
    text = f"""g (float[n, 4] x, float[{r}] r) => (float[n, 4] y) <
        {weight}, {CONSTANTS}> {{ {body} }}"""
    return text.replace("float", kind)


#: the layer of gpt-oss: matrices moved, biases, halves interleaved, bounds, a factor and a number
BIASED = (
    REPEAT + "g1 = Gather(v1, f) c1 = Unsqueeze(m, one) m1 = MatMul(c1, g1) h1 = Squeeze(m1, one) "
    "b1 = Gather(bias1, f) h = Add(h1, b1) a1 = Slice(h, zero1, most, one, two) "
    "b0 = Slice(h, one, most, one, two) a = Clip(a1, , high) b2 = Clip(b0, low, high) "
    "s = com.microsoft.QuickGelu<alpha = 1.5>(a) b = Add(b2, half) q = Mul(b, s) "
    "g2 = Gather(v2, f) c2 = Unsqueeze(q, one) m2 = MatMul(c2, g2) o1 = Squeeze(m2, one) "
    "b3 = Gather(bias2, f) o = Add(b3, o1) " + SUM
)
BIASES = ", ".join((
    _constant("bias1", RNG.randn(3, 4).round(2), "3, 4"),
    _constant("bias2", RNG.randn(3, 4).round(2), "3, 4"),
))  # fmt: skip
MOVED = ", ".join((
    _constant("v1", MIXED_UP.transpose(0, 2, 1), "3, 4, 4"),
    _constant("v2", SECOND.transpose(0, 2, 1), "3, 2, 4"), BIASES,
    "int64[1] zero1 = {0}, int64[1] most = {9223372036854775807}, float low = {-1}, float high = {1},"
    " float half = {0.5}",
))  # fmt: skip
BIASED_MOE = (
    "wm = Transpose<perm = [0, 2, 1]>(v1) wn = Transpose<perm = [0, 2, 1]>(v2) "
    'o = com.microsoft.MoE<k = 2, activation_type = "swiglu", swiglu_fusion = 1, activation_alpha ='
    " 1.5, activation_beta = 0.5, swiglu_limit = 1.0>(x, z, wm, bias1, wn, bias2) "
)
#: both halves of a bias that follow each other
JOINED = "b1 = Gather(bias1, f) h1 = Squeeze(m1, two) h = Add(h1, b1) "


SHAPES = ", int64[4] cut = {3, 2, 2, 4}, int64[3] back = {3, 4, 4}"
SCALES = GATE + ", float tiny = {1e-20}, float scale = {2.5}"
#: TopK reads other numbers, the weights are divided by their sum and something, then multiplied
DEEPSEEK = (
    "p = Sigmoid(r) p2 = Add(p, r) v0, i = TopK<axis = 1>(p2, k) v = GatherElements<axis = 1>(p, i) "
    "t0 = ReduceSum<keepdims = 1>(v, one) t = Add(t0, tiny) w0 = Div(v, t) w = Mul(w0, scale) "
)


def biased(body: str = BIASED, route: str = ROUTE + WEIGHTS) -> str:
    return model(route + body, weight=f"{GATE}, {MOVED}")


def written(
    route: str,
    moe: str = f"{LAYOUT}o = {MOE}(x, z, wm, , w2) ",
    weight: str = GATE + ", int64[4] cut = {3, 2, 2, 4}, int64[3] back = {3, 4, 4}",
) -> str:
    body = (
        route + "d = Shape(p) l = Log(w) "
        "n = ConstantOfShape<value = float[1] {-inf}>(d) z = ScatterElements<axis = 1>(n, i, l) "
    )
    return model(body + moe + AGAIN, weight=weight + ", float zero = {0}")


#: pattern -> case -> (before, after)
MODELS = {
    "MoE": {
        "weights whose sum is one": (model(ALL), written(ROUTE + WEIGHTS)),
        "weights as they are": (
            model(ROUTE.replace("v, i", "w, i") + EXPERTS), written(ROUTE.replace("v, i", "w, i")),
        ),
        "operands exchanged": (
            model(ALL.replace("(o, cw)", "(cw, o)").replace("(s, b)", "(b, s)").replace("(a, z)", "(z, a)")),
            written(ROUTE + WEIGHTS),
        ),
        "QuickGelu": (
            model(ALL.replace(SILU, "s = com.microsoft.QuickGelu<alpha = 1.0>(a) ")),
            written(ROUTE + WEIGHTS),
        ),
        "Sigmoid chooses": (
            model(ALL.replace("Softmax<axis = -1>", "Sigmoid")),
            written((ROUTE + WEIGHTS).replace("Softmax<axis = -1>", "Sigmoid")),
        ),
        "another factor": (
            model(ALL.replace(SILU, "s = com.microsoft.QuickGelu(a) ")),
            written(ROUTE + WEIGHTS).replace("alpha = 1.0", "alpha = 1.702"),
        ),
        "scores of deepseek": (model(DEEPSEEK + EXPERTS, weight=SCALES), written(DEEPSEEK, weight=SCALES + SHAPES).replace("Shape(p)", "Shape(p2)")),
        "halves that are interleaved, as gpt-oss": (
            biased(), written(ROUTE + WEIGHTS, BIASED_MOE, f"{GATE}, {MOVED}"),
        ),
        "halves that follow each other, with biases": (
            model(ALL.replace("h = Squeeze(m1, two) ", JOINED), weight=f"{GATE}, {BIASES}"),
            written(
                ROUTE + WEIGHTS,
                LAYOUT + "x1 = Reshape(bias1, cut2) x2 = Transpose<perm = [0, 2, 1]>(x1) "
                f"bm = Reshape(x2, back2) o = {MOE}(x, z, wm, bm, w2) ",
                f"{GATE}, {BIASES}{SHAPES}, int64[3] cut2 = {{3, 2, 2}}, int64[2] back2 = {{3, 4}}",
            ),
        ),
        "tokens of three dimensions": (
            model(ALL.replace("Unsqueeze(x, one)", "Transpose<perm = [1, 0, 2]>(x)")).replace(
                "float[n, 4] x", "float[1, n, 4] x"),
            written("u = Transpose<perm = [1, 0, 2]>(x) x2 = Reshape(u, rows) " + ROUTE + WEIGHTS)
            .replace("MoE(x,", "MoE(x2,").replace(">(x, z", ">(x2, z").replace("(b, x,", "(b, x2,")
            .replace("float[n, 4] x", "float[1, n, 4] x"),
        ),
        "one expert": (
            model(
                (ROUTE.replace("v, i", "w, i") + EXPERTS).replace("e = Expand(u, twice) ", "")
                .replace("(e, rows)", "(u, rows)")
            ).replace("[1] k = {2}", "[1] k = {1}").replace("{-1, 2, 4}", "{-1, 1, 4}"),
            written(ROUTE.replace("v, i", "w, i")).replace("[1] k = {2}", "[1] k = {1}")
            .replace("k = 2,", "k = 1,"),
        ),
    }
}  # fmt: skip
test_rewrites = rewrite_tests(MODELS, atol=1e-5, processor="CPU")


@pytest.mark.parametrize(
    "scores",
    [[0, 0, 0], [1, 0, 0], [0, 1, 1], [5, 0, 1e-9], [0, 1e-9, 0], [200, 0, 0], [np.nan, 0, 0]],
)
def test_scores(scores: list[float]) -> None:
    """Experts with the same score, close ones, no weight left, NaN: TopK still decides."""
    feeds = {"x": RNG.randn(2, 4), "r": np.array([scores, [0, 1, 2]])}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    before, after = MODELS["MoE"]["weights whose sum is one"]
    check_pattern(before, after, "MoE", feeds=[feeds], atol=1e-5)


@pytest.mark.parametrize("n", [0, 1])
def test_sizes(n: int) -> None:
    before, after = MODELS["MoE"]["weights whose sum is one"]
    check_pattern(before, after, "MoE", sizes={"n": n}, atol=1e-5)


def test_tokens_are_read_again() -> None:
    """onnxruntime 1.31 writes the result over tokens nothing else reads, when it knows the sizes:
    the results are wrong without the Where."""
    changes = {
        "float[n, 4] x,": "float[5, 4] x0,",
        "float[n, 3] r": "float[5, 3] r",
        "float[n, 4] y)": "float[5, 4] last)",
        "p = Softmax": "x = Neg(x0) p = Softmax",
        " }": " y9 = Abs(y) last = Neg(y9) }",
    }
    texts = list(MODELS["MoE"]["weights whose sum is one"])
    for old, new in changes.items():
        texts = [text.replace(old, new) for text in texts]
    check_pattern(*texts, "MoE", atol=1e-5)


#: one expert for each token, one weight for all of them
ONE_WEIGHT = (
    model(
        "p = Softmax<axis = -1>(r) v, i = TopK<axis = 1>(p, k) p1 = Softmax<axis = -1>(r1) "
        "w, j = TopK<axis = 1>(p1, k) "
        + EXPERTS.replace("e = Expand(u, twice) ", "").replace("(e, rows)", "(u, rows)")
    )
    .replace("[1] k = {2}", "[1] k = {1}").replace("{-1, 2, 4}", "{-1, 1, 4}")
    .replace("] r)", "] r, float[1, 3] r1)")
)  # fmt: skip
REFUSED = {
    "along another axis": (model(ALL.replace("(y3, one)", "(y3, two)")), "along the second axis"),
    "the axis is kept": (
        model(ALL.replace("keepdims = 0>(y3", "keepdims = 1>(y3")).replace("n, 4] y", "n, 1, 4] y"),
        "an axis is kept",
    ),
    "no product": (model(ALL.replace("Mul(o, cw)", "Mul(m, cw)")), "no operand is given"),
    "a sum": (model(ALL.replace("Mul(o, cw)", "Add(o, cw)")), "no Mul before"),
    "other experts": (
        model(ALL.replace("Gather(w2, f)", "Gather(w2, f2)") + " f2 = Neg(f)").replace(
            "g2 = ", "f2 = Sub(f, f) g2 = ").replace(" f2 = Neg(f)", ""),
        "the experts are not the same",
    ),
    "experts of an input": (
        model(ALL.replace("Reshape(i, flat)", "Reshape(i0, flat)")).replace(
            "] r)", "] r, int64[n, 2] i0)"),
        "TopK does not choose the experts",
    ),
    "the values of TopK": (
        model(ALL.replace("Reshape(i, flat)", "Reshape(v1, flat)").replace(
            "u = Uns", "v1 = Cast<to = 7>(v) u = Uns")),
        "TopK does not choose the experts",
    ),
    "scores of other experts": (model(ALL, r="n, 5"), "are not those of experts"),
    "negative weights": (model(ALL.replace("Softmax<axis = -1>", "Tanh")), "may be negative"),
    "divided by something else": (
        model(ALL.replace("Div(v, t)", "Div(v, r1)").replace("t = ", "r1 = Abs(t0) t0 = ").replace(
            "r1 = Abs(t0) t0 = ReduceSum<keepdims = 1>(v, one)",
            "t0 = ReduceSum<keepdims = 1>(r, one) r1 = Sigmoid(t0)")), "may be negative",
    ),
    "weights of an input": (
        model(ROUTE + EXPERTS).replace("] r)", "] r, float[n, 2] w)"), "may be negative",
    ),
    "another activation": (model(ALL.replace("Sigmoid(a)", "Tanh(a)")), "is not SiLU"),
    "Sigmoid of the other half": (model(ALL.replace("Sigmoid(a)", "Sigmoid(b)")), "is not SiLU"),
    "no activation": (model(ALL.replace(SILU, "s = Neg(a) ")), "no SiLU before"),
    "the second half is activated": (
        model(ALL.replace("Sigmoid(a)", "Sigmoid(b)").replace("(a, z)", "(b, z)")
              .replace("(s, b)", "(s, a)")),
        "the first half is not the one of SiLU",
    ),
    "tokens are not repeated": (
        model(ALL.replace("(e, rows)", "(x2, rows)").replace("e = Expand(u, twice)", "x2 = Concat<axis = 0>(x, x)")),
        "no Expand before",
    ),
    "one token for all": (
        model(ALL.replace("u = Unsqueeze(x, one)", "u = Slice(u0, zero, one)").replace(
            "e = Exp", "e = Exp").replace(ROUTE, ROUTE + "u0 = Unsqueeze(x, one) ").replace(
            "Expand(u, twice)", "Expand(u, many)")).replace(
            ", int64[1] k", ", int64[1] zero = {0}, int64[1] k").replace("] r)", "] r, int64[3] many)"),
        "repeated for each expert|the shape is not known",
    ),
    "the weights are an input": (
        model(ALL, weight=_constant("unused", FIRST, "3, 4, 4")).replace("] r)", "] r, float[3, 4, 4] w1)"),
        "the weight is not constant",
    ),
    "unknown weights": (
        model(ALL, weight=_constant("unused", FIRST, "3, 4, 4")).replace("] r)", "] r, float[e, 4, 4] w1)"),
        "are not static",
    ),
    "the rows are used": (
        model(ALL).replace("4] y)", "4] y, float[m, 2] q)"), "used elsewhere",
    ),
    "double": (model(ALL, "double"), "no MoE for this type"),
    "one half has bounds": (
        biased(BIASED.replace("b2 = Clip(b0, low, high) ", "b2 = Neg(b0) ")), "one half only has bounds",
    ),
    "other bounds": (
        biased().replace("low = {-1}", "low = {-2}"), "the bounds are not those of the operator",
    ),
    "the first half has a lower bound": (
        biased(BIASED.replace("Clip(a1, , high)", "Clip(a1, low, high)")), "the bounds are not those",
    ),
    "every other row twice": (
        biased(BIASED.replace("b0 = Slice(h, one,", "b0 = Slice(h, zero1,")), "not cut in two halves",
    ),
    "every third row": (
        biased(BIASED.replace("a1 = Slice(h, zero1, most, one, two)", "a1 = Slice(h, zero1, most, one, three)")
               ).replace("float half", "int64[1] three = {3}, float half"), "not cut in two halves",
    ),
    "rows of another result": (
        biased(BIASED.replace("b0 = Slice(h, ", "h0 = Neg(h) b0 = Slice(h0, ")), "not cut in two halves",
    ),
    "a vector is added to the half": (
        biased().replace("float half = {0.5}", "float[2] half = {0.5, 1}"), "no number is added",
    ),
    "the bias of all experts": (
        biased(BIASED.replace("b1 = Gather(bias1, f)", "b1 = Neg(row)")).replace(
            "float half", "float[1, 4] row = {1, 2, 3, 4}, float half"), "no bias of experts is added",
    ),
    "the bias of other experts": (
        biased(BIASED.replace("b1 = Gather(bias1, f)", "f2 = Sub(f, f) b1 = Gather(bias1, f2)")),
        "not the bias of the expert",
    ),
    "a number that may be large": (
        model(DEEPSEEK + EXPERTS, weight=SCALES.replace("{2.5}", "{1e5}")), "may be negative",
    ),
    "a negative number is added": (
        model(DEEPSEEK + EXPERTS, weight=SCALES.replace("{1e-20}", "{-1}")), "may be negative",
    ),
    "divided by a sum that loses its axis": (
        model(ALL.replace("t = ReduceSum<keepdims = 1>", "t9 = ReduceSum<keepdims = 0>").replace(
            "w = Div", "t = Unsqueeze(t9, one) w = Div")), "may be negative",
    ),
    "the values of TopK, integers": (
        model(ALL.replace("Reshape(i, flat)", "Reshape(i1, flat)").replace(
            "u = Uns", "r1 = Cast<to = 7>(r) i1, i2 = TopK<axis = 1>(r1, k) u = Uns")),
        "TopK does not choose the experts",
    ),
    "rows are cut, not columns": (
        model(ALL.replace("Split<axis = 1>(h, halves)", "Split<axis = 0>(h, halves)").replace(
            "Unsqueeze(q, two)", "Reshape(q, pieces)")).replace("[n, 4]", "[2, 4]").replace(
            "[n, 3]", "[2, 3]").replace(", int64[1] k", ", int64[3] pieces = {4, 2, 1}, int64[1] k"),
        "the rows are not cut in two halves",
    ),
    "a weight for each number": (
        model(ALL.replace("Mul(o, cw)", "Mul(o, c4)").replace(
            "cw = Unsqueeze(fw, one)", "cw = Unsqueeze(fw, one) c4 = Concat<axis = 1>(cw, cw, cw, cw)")),
        "a weight is not for a row",
    ),
    "weights of other tokens": (
        model(ALL.replace("Reshape(w, flat)", "Reshape(w9, flat)").replace(
            "fw = ", "w9 = Transpose<perm = [1, 0]>(w) fw = ")),
        "a weight is not for an expert",
    ),
    "one weight for all tokens": (ONE_WEIGHT, "a weight is not for an expert"),
    "the number of experts is computed": (
        model(ALL.replace("Reshape(d, by_expert)", "Reshape(d, b3)").replace(
            "y3 =", "n2 = Shape(i) b3 = Concat<axis = 0>(n2, four) y3 =")).replace(
            "int64[1] k = {2}", "int64[1] four = {4}").replace("] r)", "] r, int64[1] k)"),
        "the number is not known",
    ),
    "experts of several tokens are added": (
        model(ROUTE + WEIGHTS + EXPERTS.replace("Reshape(w, flat)", "Reshape(w4, flat)").replace(
            "fw = ", "w4 = Reshape(w, fours) fw = ")).replace("{-1, 2, 4}", "{-1, 4, 4}").replace(
            ", int64[1] k", ", int64[2] fours = {-1, 4}, int64[1] k").replace("[n, 4] y", "[m, 4] y"),
        "the number is not known",
    ),
    "four dimensions": (
        model(ALL).replace("int64[3] by_expert = {-1, 2, 4}", "int64[4] by_expert = {-1, 2, 4, 1}").replace(
            "[n, 4] y", "[n, 4, 1] y"),
        "there are not three dimensions",
    ),
    "several experts for each row": (
        model(ALL.replace("Gather(w1, f)", "Gather(w1, i)").replace("c1 = Unsqueeze(m, two)", "c1 = Reshape(e, tall)")
              .replace("h = Squeeze(m1, two)", "h = Reshape(m1, rows)")).replace(
            ", int64[1] k", ", int64[4] tall = {-1, 2, 4, 1}, int64[1] k"),
        "not multiplied by the matrix of an expert",
    ),
    "more experts afterwards": (
        model(ALL).replace(UP, _constant("w2", RNG.randn(5, 4, 2).round(2), "5, 4, 2")),
        "do not have the shapes of experts",
    ),
    "on CUDA": (model(ALL), "of CUDA was not compared", {"processor": "CUDA"}),
}  # fmt: skip

test_refuses = refusal_tests({"MoE": REFUSED})
