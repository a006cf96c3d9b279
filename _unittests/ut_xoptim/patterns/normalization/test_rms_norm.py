"""RMSNormalization from elementary operators, then its scale."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests


def rms(
    body: str = "",
    dims: str = "a, b, 4",
    outputs: str = "",
    epsilon: str = "0.00001",
    elem_type: str = "float",
) -> str:
    """Model with the decomposed formula."""
    body = (
        body
        or """q = Pow(X, two)
    v = ReduceMean<keepdims = 1>(q, axes)
    w = Add(v, eps)
    s = Sqrt(w)
    r = Reciprocal(s)
    Y = Mul(X, r)"""
    )
    return f"""agraph ({elem_type}[{dims}] X) => ({elem_type}[{dims}] Y{outputs}) <
    {elem_type} eps = {{{epsilon}}}, {elem_type} two = {{2}}, {elem_type} one = {{1}},
    int64[1] axes = {{-1}}, int64[1] middle = {{1}}, int64[2] both = {{1, 2}}
> {{
    {body}
}}"""


WRITTEN = """agraph (float[a, b, 4] X) => (float[a, b, 4] Y) <float[4] scale = {1, 1, 1, 1}> {
    Y = RMSNormalization<axis = -1, epsilon = 0.00001, stash_type = 1>(X, scale)
}"""


def scaled(after: str, constants: str = "", inputs: str = "", outputs: str = "") -> str:
    """A RMSNormalization and what comes after."""
    return f"""agraph (float[a, b, 2] X{inputs}) => (float[a, b, 2] Y{outputs}) <
    float[2] scale = {{2, 3}}, float[2] ones = {{1, 1}}{constants}
> {{
    {after}
}}"""


NORM = "n = RMSNormalization<epsilon = 0.001>(X, scale) "

#: what the documentation draws: name -> (before, after)
MODELS = {
    "RMSNormalization": (rms(), WRITTEN),
    "RMSNormalizationMul": (
        scaled(NORM + "Y = Mul(n, c)", ", float[2] c = {5, 7}"),
        scaled(
            "Y = RMSNormalization<epsilon = 0.001>(X, product)", ", float[2] product = {10, 21}"
        ),
    ),
}

START = "v = ReduceMean<keepdims = 1>(q, axes) w = Add(eps, v) "
BODIES = {
    "x*x": "q = Mul(X, X) " + START + "s = Sqrt(w) r = Reciprocal(s) Y = Mul(r, X)",
    "division": "q = Mul(X, X) " + START + "s = Sqrt(w) Y = Div(X, s)",
    "1 / sqrt": "q = Mul(X, X) " + START + "s = Sqrt(w) r = Div(one, s) Y = Mul(r, X)",
    "Pow -0.5": "q = Mul(X, X) h = Constant<value_float = -0.5>() "
    + START
    + "s = Pow(w, h) Y = Mul(r, X)".replace("r", "s"),
}


test_rewrites = rewrite_tests(MODELS, opset=23, atol=1e-5)


@pytest.mark.parametrize("name", BODIES)
def test_writings(name: str) -> None:
    check_pattern(rms(BODIES[name]), WRITTEN, "RMSNormalization", opset=23, atol=1e-5)


@pytest.mark.parametrize("inverse", ["s = Sqrt(w) r = Reciprocal(s)", "r = Pow(w, half)"])
@pytest.mark.parametrize(
    ("pattern", "opset"), [("RMSNormalization", 23), ("SimplifiedLayerNormalization", 18)]
)
def test_a_scale_multiplies_the_inverse_first(pattern: str, opset: int, inverse: str) -> None:
    """Keras writes it so."""
    before = f"""agraph (float[a, 4] X) => (float[a, 4] Y) <float half = {{-0.5}}, float eps = {{0.001}},
        float[4] c = {{1, 2, 3, 4}}, int64[1] axes = {{-1}}> {{
        q = Mul(X, X) {START} {inverse} f = Mul(c, r) Y = Mul(X, f)
    }}"""
    after = f"""agraph (float[a, 4] X) => (float[a, 4] Y) <float[4] ones = {{1, 1, 1, 1}},
        float[4] c = {{1, 2, 3, 4}}> {{
        n = {pattern}<axis = -1, epsilon = 0.001, stash_type = 1>(X, ones)
        Y = Mul(n, c)
    }}"""
    check_pattern(before, after, pattern, opset=opset, atol=1e-5, reference=opset == 23)


def test_a_scale_stays_between_casts() -> None:
    """The product is in float: the casts stay."""
    rows = "float[4] c = {1, 2, 3, 4}, float[4] ones = {1, 1, 1, 1}"
    body = "q = Mul(x, x) " + START + "s = Sqrt(w) r = Reciprocal(s) f = Mul(c, r) y = Mul(x, f)"
    before = f"""agraph (float16[a, 4] X) => (float16[a, 4] Y) <float eps = {{0.001}}, {rows},
        int64[1] axes = {{-1}}> {{ x = Cast<to = 1>(X) {body} Y = Cast<to = 10>(y) }}"""
    after = f"""agraph (float16[a, 4] X) => (float16[a, 4] Y) <{rows}> {{
        x = Cast<to = 1>(X)
        n = RMSNormalization<axis = -1, epsilon = 0.001, stash_type = 1>(x, ones)
        y = Mul(n, c)
        Y = Cast<to = 10>(y)
    }}"""
    check_pattern(before, after, "RMSNormalization", opset=23, atol=2e-3)


def test_zero_rows() -> None:
    rows = np.zeros((1, 2, 4), dtype=np.float32)
    check_pattern(rms(), WRITTEN, "RMSNormalization", opset=23, feeds=[{"X": rows}])


CASTS = """agraph (float16[a, 4] X) => (float16[a, 4] Y{outputs}) <
    float eps = {{0.00001}}, float two = {{2}}, int64[1] axes = {{-1}}
> {{
    x = Cast<to = 1>(X)
    q = Pow(x, two)
    v = ReduceMean<keepdims = 1>(q, axes)
    w = Add(v, eps)
    s = Sqrt(w)
    r = Reciprocal(s)
    y = Mul(x, r)
    Y = Cast<to = {to}>(y)
    {more}
}}"""


def test_casts() -> None:
    """Both casts go in the operator; 10 bits of precision after the last one."""
    after = """agraph (float16[a, 4] X) => (float16[a, 4] Y) <
        float16[4] scale = {15360, 15360, 15360, 15360}> {
        Y = RMSNormalization<axis = -1, epsilon = 0.00001, stash_type = 1>(X, scale) }"""
    before = CASTS.format(outputs="", to=10, more="")
    check_pattern(before, after, "RMSNormalization", opset=23, atol=2e-3)


def test_cast_used_elsewhere() -> None:
    """The first cast stays for its other use."""
    before = CASTS.format(outputs=", float[a, 4] Z", to=10, more="Z = Neg(x)")
    after = """agraph (float16[a, 4] X) => (float16[a, 4] Y, float[a, 4] Z) <
        float16[4] scale = {15360, 15360, 15360, 15360}> {
        Y = RMSNormalization<axis = -1, epsilon = 0.00001, stash_type = 1>(X, scale)
        x = Cast<to = 1>(X)
        Z = Neg(x) }"""
    check_pattern(before, after, "RMSNormalization", opset=23, atol=2e-3)


def test_other_cast_stays() -> None:
    """The result goes to another type than the one it comes from."""
    before = CASTS.format(outputs="", to=11, more="").replace("(float16[a, 4] Y", "(double[a, 4] Y")
    after = """agraph (float16[a, 4] X) => (double[a, 4] Y) <float[4] scale = {1, 1, 1, 1}> {
        x = Cast<to = 1>(X)
        y = RMSNormalization<axis = -1, epsilon = 0.00001, stash_type = 1>(x, scale)
        Y = Cast<to = 11>(y) }"""
    check_pattern(before, after, "RMSNormalization", opset=23, atol=1e-5)


BARE = """agraph (float[a, 4] X) => (float[a, 4] Y) <
    float two = {2}, float half = {0.5}, float minus = {-0.5}, float one = {1}, float zero = {0},
    int64[1] axes = {-1}> {
    q = Pow(X, two)
    v = ReduceMean<keepdims = 1>(q, axes)
    s = Sqrt(v)
    r = Reciprocal(s)
    Y = Mul(X, r)
}"""
BARE_AFTER = """agraph (float[a, 4] X) => (float[a, 4] Y) <float[4] scale = {1, 1, 1, 1}> {
    Y = RMSNormalization<axis = -1, epsilon = 0.0, stash_type = 1>(X, scale)
}"""
BARE_FORMS = {
    "Reciprocal": BARE,
    "division": BARE.replace("r = Reciprocal(s)\n", "").replace("Mul(X, r)", "Div(X, s)"),
    "power": BARE.replace("s = Sqrt(v)\n", "").replace("Reciprocal(s)", "Pow(v, minus)"),
    "1 / root": BARE.replace("Sqrt(v)", "Pow(v, half)").replace("Reciprocal(s)", "Div(one, s)"),
    "null epsilon": BARE.replace("s = Sqrt(v)", "w = Add(v, zero) s = Sqrt(w)"),
}


@pytest.mark.parametrize("form", BARE_FORMS)
def test_no_epsilon(form: str) -> None:
    """Rows of zeros give NaN, rows whose squares are 0 infinities, as they did."""
    rows = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    rows[0] = 0
    rows[1:4] *= np.array([1e-30, 1e-22, 1e25], dtype=np.float32)[:, None]
    rows[4:7, 2] = np.inf, -np.inf, np.nan
    check_pattern(
        BARE_FORMS[form], BARE_AFTER, "RMSNormalization", opset=23,
        feeds=[{"X": rows}, {"X": rows[:0]}], atol=1e-5, rtol=1e-5,
    )  # fmt: skip


REFUSED = {
    "middle axis": (rms().replace("(q, axes)", "(q, middle)"), "axes are not the last"),
    "two axes": (rms().replace("(q, axes)", "(q, both)"), "not the last one only"),
    "keepdims": (
        rms(dims="4").replace("keepdims = 1", "keepdims = 0"),
        "keepdims is 0",
    ),
    "no epsilon, float16": (
        BARE.replace("float[", "float16[").replace("float two = {2}", "float16 two = {16384}"),
        "not a positive constant",
    ),
    "null epsilon, float16": (
        rms(epsilon="0", elem_type="float16").replace("two = {2}", "two = {16384}"),
        "not a positive constant",
    ),
    "negative epsilon": (rms(epsilon="-0.001"), "not a positive constant"),
    "dynamic": (rms(dims="a, b, c"), "not known integers"),
    "double": (rms(elem_type="double"), "type is not float"),
    "graph input": (
        "agraph (float[a] X) => (float[1] Y) { Y = ReduceMean(X) }",
        "no Pow before ReduceMean",
    ),
    "cube": (rms().replace("two = {2}", "two = {3}"), "'two' cannot be the constant 2"),
    "root is an output": (rms(outputs=", float[a, b, 1] r"), "used elsewhere"),
    "square is an output": (rms(outputs=", float[a, b, 4] q"), "used elsewhere"),
    "another numerator": (
        rms().replace("Mul(X, r)", "Mul(two, r)"),
        "'two' cannot be 'x', which is 'X'",
    ),
}


def test_opset() -> None:
    check_no_match(rms(), "RMSNormalization", "needs opset 23", opset=22)


SCALE_REFUSED = {
    "input": (scaled(NORM + "Y = Mul(n, c)", inputs=", float[2] c"), "not constant"),
    "scalar": (scaled(NORM + "Y = Mul(n, c)", ", float c = {2}"), "shape of the scale"),
    "matrix": (scaled(NORM + "Y = Mul(n, c)", ", float[1, 2] c = {2, 3}"), "shape of the scale"),
    "output": (scaled(NORM + "Y = Mul(n, ones)", outputs=", float[a, b, 2] n"), "only use"),
    "addition": (scaled(NORM + "Y = Add(n, ones)"), "only use"),
}


test_refuses = refusal_tests(
    {"RMSNormalization": REFUSED, "RMSNormalizationMul": SCALE_REFUSED}, opset=23
)


def test_scale_of_ones_takes_any_factor() -> None:
    before = scaled(NORM.replace("scale)", "ones)") + "Y = Mul(c, n)", inputs=", float[2] c")
    after = """agraph (float[a, b, 2] X, float[2] c) => (float[a, b, 2] Y) {
        Y = RMSNormalization<epsilon = 0.001>(X, c) }"""
    check_pattern(before, after, "RMSNormalizationMul", opset=23, atol=1e-5)
