"""LayerNormalization from elementary operators, then its scale and its bias."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

HALF = {"0.00001": "168", "2": "16384", "1": "15360"}


def layer(
    dims: str = "a, b, 8",
    axes: str = "-1",
    elem_type: str = "float",
    body: str = "",
    epsilon: str = "0.00001",
    outputs: str = "",
    attributes: str = "",
) -> str:
    """Model with the decomposed formula, axes given as inputs (opset 18)."""
    n = len(axes.split(","))
    body = (
        body
        or """m = ReduceMean<keepdims = 1>(X, axes)
    d = Sub(X, m)
    q = Pow(d, two)
    v = ReduceMean<keepdims = 1>(q, axes)
    w = Add(v, eps)
    s = Sqrt(w)
    Y = Div(d, s)"""
    )
    e, two, one = (HALF.get(v, v) if elem_type == "float16" else v for v in (epsilon, "2", "1"))
    return f"""agraph ({elem_type}[{dims}] X) => ({elem_type}[{dims}] Y{outputs}) <
    {elem_type} eps = {{{e}}}, {elem_type} two = {{{two}}}, {elem_type} one = {{{one}}},
    int64[{n}] axes = {{{axes}}}, int64[1] other = {{1}}
> {{
    {body}
}}"""


def written(
    dims: str = "a, b, 8", axis: int = -1, elem_type: str = "float", shape: tuple[int, ...] = (8,)
) -> str:
    """Model with one LayerNormalization."""
    one = "15360" if elem_type == "float16" else "1"
    ones = ", ".join([one] * int(np.prod(shape)))
    return f"""agraph ({elem_type}[{dims}] X) => ({elem_type}[{dims}] Y) <
    {elem_type}[{", ".join(map(str, shape))}] scale = {{{ones}}}
> {{
    Y = LayerNormalization<axis = {axis}, epsilon = 0.00001>(X, scale)
}}"""


SCALED = """agraph (float[a, b, 8] X, float[8] c, float[8] d) => (float[a, b, 8] Y) <
    float[8] scale = {1, 1, 1, 1, 1, 1, 1, 1}
> {
    n = LayerNormalization<axis = -1, epsilon = 0.00001>(X, scale)
    m = Mul(n, c)
    Y = Add(m, d)
}"""

FOLDED = """agraph (float[a, b, 8] X, float[8] c, float[8] d) => (float[a, b, 8] Y) {
    Y = LayerNormalization<axis = -1, epsilon = 0.00001>(X, c, d)
}"""

#: what gradients read besides the result
STATISTICS = ", float[a, b, 1] m, float[a, b, 1] i"

#: what the documentation draws: name -> (before, after)
MODELS = {
    "LayerNormalization": (layer(), written()),
    "LayerNormalizationScale": (SCALED, FOLDED),
}

MEANS = "m = ReduceMean<keepdims = 1>(X, axes) d = Sub(X, m) {square} " + (
    "v = ReduceMean<keepdims = 1>(q, axes) w = Add({sum}) {end}"
)

BODIES = {
    "d*d": MEANS.format(square="q = Mul(d, d)", sum="eps, v", end="s = Sqrt(w) Y = Div(d, s)"),
    "axes are given": MEANS.format(
        square="q = Mul(d, d)", sum="eps, v", end="s = Sqrt(w) Y = Div(d, s)"
    ).replace("keepdims = 1", "keepdims = 1, noop_with_empty_axes = 1"),
    "Reciprocal": MEANS.format(
        square="q = Pow(d, two)",
        sum="v, eps",
        end="s = Sqrt(w) r = Reciprocal(s) Y = Mul(r, d)",
    ),
    "1 / sqrt": MEANS.format(
        square="q = Pow(d, two)", sum="v, eps", end="s = Sqrt(w) r = Div(one, s) Y = Mul(d, r)"
    ),
    "Pow 0.5": MEANS.format(
        square="q = Pow(d, two)",
        sum="v, eps",
        end="half = Constant<value_float = 0.5>() s = Pow(w, half) Y = Div(d, s)",
    ),
    "Pow -0.5": MEANS.format(
        square="q = Pow(d, two)",
        sum="v, eps",
        end="half = Constant<value_float = -0.5>() s = Pow(w, half) Y = Mul(d, s)",
    ),
}


test_rewrites = rewrite_tests(MODELS, atol=1e-5)


@pytest.mark.parametrize("name", BODIES)
def test_writings(name: str) -> None:
    check_pattern(layer(body=BODIES[name]), written(), "LayerNormalization", atol=1e-5)


@pytest.mark.parametrize(
    ("dims", "axes", "axis", "shape"),
    [
        ("a, b, 8", "2", -1, (8,)),
        ("a, 3, 4", "1, 2", -2, (3, 4)),
        ("a, 3, 4", "-1, -2", -2, (3, 4)),
        ("2, 3", "0, 1", -2, (2, 3)),
        ("5", "0", -1, (5,)),
        ("a, 1", "1", -1, (1,)),
    ],
)
def test_axes(dims: str, axes: str, axis: int, shape: tuple[int, ...]) -> None:
    before, after = layer(dims, axes), written(dims, axis, shape=shape)
    check_pattern(before, after, "LayerNormalization", atol=1e-5)


def test_all_axes() -> None:
    """Without axes every dimension is reduced."""
    before = layer("2, 3").replace("(X, axes)", "(X)").replace("(q, axes)", "(q)")
    check_pattern(before, written("2, 3", -2, shape=(2, 3)), "LayerNormalization", atol=1e-5)


def test_axes_as_attributes() -> None:
    """Opset 17: axes are attributes."""
    before = layer().replace("keepdims = 1>(X, axes)", "keepdims = 1, axes = [-1]>(X)")
    before = before.replace("keepdims = 1>(q, axes)", "axes = [2]>(q)")
    check_pattern(before, written(), "LayerNormalization", opset=17, atol=1e-5)


def test_float16() -> None:
    """float16: the operator computes in float, the formula in float16; 10 bits of precision."""
    before, after = layer(elem_type="float16"), written(elem_type="float16")
    after = after.replace("0.00001>", "0.00001001358032>")
    check_pattern(before, after, "LayerNormalization", atol=1e-2, reference=False)


IMAGES = """agraph (float[a, 16, 8] X) => (float[a, 16, 8] Y) <float[16] scale = {{{}}}> {{
    t = Transpose<perm = [0, 2, 1]>(X)
    n = LayerNormalization<axis = -1, epsilon = 0.00001>(t, scale)
    Y = Transpose<perm = [0, 2, 1]>(n) }}""".format(", ".join(["1"] * 16))
BOTH = """agraph (float[4, 4, 8] X) => (float[4, 4, 8] Y) <float[4, 4] scale = {{{}}}> {{
    t = Transpose<perm = [2, 0, 1]>(X)
    n = LayerNormalization<axis = -2, epsilon = 0.00001>(t, scale)
    Y = Transpose<perm = [1, 2, 0]>(n) }}""".format(", ".join(["1"] * 16))


@pytest.mark.parametrize(
    ("before", "after"),
    [(layer("a, 16, 8", "1"), IMAGES), (layer("4, 4, 8", "0, 1"), BOTH)],
    ids=["channels", "two axes"],
)
def test_other_axes(before: str, after: str) -> None:
    """The axes are moved to the end, and back."""
    check_pattern(before, after, "LayerNormalization", atol=1e-5)


@pytest.mark.parametrize("inverse", ["r = Reciprocal(s)", "r = Div(one, s)", "r = Pow(w, minus)"])
def test_the_inverse_is_scaled_first(inverse: str) -> None:
    """flax multiplies the inverse of the deviation by the scale."""
    end = f"s = Sqrt(w) {inverse} t = Mul(c, r) Y = Mul(d, t)"
    if "Pow" in inverse:
        end = end.replace("s = Sqrt(w) ", "")
    body = MEANS.format(square="q = Mul(d, d)", sum="v, eps", end=end)
    before = layer(body=body).replace("8] X", "8] X, float[8] c", 1)
    before = before.replace("float eps", "float minus = {-0.5}, float eps")
    after = written().replace("8] X", "8] X, float[8] c", 1).replace("Y = Layer", "n = Layer")
    after = after.replace("(X, scale)", "(X, scale) Y = Mul(n, c)")
    check_pattern(before, after, "LayerNormalization", atol=1e-5)


def test_a_scale_behind_dimensions_1() -> None:
    """Constants of more dimensions are the scale and the bias, in their dimensions."""
    row = ", ".join(map(str, range(1, 9)))
    before = f"""agraph (float[a, b, 8] X) => (float[a, b, 8] Y) <
        float[8] scale = {{1, 1, 1, 1, 1, 1, 1, 1}}, float[1, 1, 8] c = {{{row}}}, float[1, 8] d = {{{row}}}>
    {{ n = LayerNormalization<axis = -1, epsilon = 0.00001>(X, scale) m = Mul(n, c) Y = Add(m, d) }}"""
    after = f"""agraph (float[a, b, 8] X) => (float[a, b, 8] Y) <
        float[8] c = {{{row}}}, float[8] d = {{{row}}}>
    {{ Y = LayerNormalization<axis = -1, epsilon = 0.00001>(X, c, d) }}"""
    check_pattern(before, after, "LayerNormalizationScale", atol=1e-5)


def test_constant_rows() -> None:
    """A constant row gives zeros in both, thanks to epsilon."""
    rows = np.array([[3.0] * 8, [-1.0] * 8, [0.0] * 8], dtype=np.float32)[None]
    check_pattern(layer(), written(), "LayerNormalization", atol=1e-5, feeds=[{"X": rows}])


def test_empty_batch() -> None:
    rows = np.zeros((0, 2, 8), dtype=np.float32)
    check_pattern(layer(), written(), "LayerNormalization", feeds=[{"X": rows}])


#: the last dimension is b + 1, or 8 as a product of matrices tells
SYMBOLIC = """agraph (float[a, b] X, float[a, 1] Z{inputs}) => (float[a, c] Y) <
    float eps = {{0.00001}}, float one = {{1}}, int64[1] axes = {{-1}}
> {{
    W = Concat<axis = -1>(X, Z)
    {body}
}}"""
SYMBOLIC_FORMULA = """m = ReduceMean(W, axes) d = Sub(W, m) q = Mul(d, d)
    v = ReduceMean(q, axes) w = Add(v, eps) s = Sqrt(w) {end}"""
CENTERED = "LayerNormalization<axis = -1, epsilon = 0.00001>"


def test_a_symbolic_dimension_that_is_not_null() -> None:
    """The scale is expanded to the last dimension."""
    before = SYMBOLIC.format(inputs="", body=SYMBOLIC_FORMULA.format(end="Y = Div(d, s)"))
    after = SYMBOLIC.format(
        inputs="",
        body=f"t = Shape<start = -1>(W) o = Expand(one, t) Y = {CENTERED}(W, o)",
    )
    sizes = [{"a": 3, "b": 4}, {"a": 0, "b": 2}, {"a": 2, "b": 0}]
    check_pattern(before, after, "LayerNormalization", atol=1e-5, sizes=sizes)


def test_a_scale_on_a_symbolic_dimension() -> None:
    """It takes the place of the ones."""
    extra = ", float[b] k, float[1] l"
    kept = "K = Concat<axis = 0>(k, l)"
    end = f"n = Div(d, s) {kept} Y = Mul(n, K)"
    before = SYMBOLIC.format(inputs=extra, body=SYMBOLIC_FORMULA.format(end=end))
    after = SYMBOLIC.format(inputs=extra, body=f"{kept} Y = {CENTERED}(W, K)")
    patterns = ["LayerNormalization", "LayerNormalizationScale"]
    check_pattern(before, after, patterns, atol=1e-5, sizes=[{"a": 3, "b": 4}, {"a": 2, "b": 0}])


def test_a_dimension_another_node_tells() -> None:
    """A product with a weight says that the last dimension is 4."""
    head = """agraph (float[a, b] W) => (float[a, b] Y, float[a, 2] P) <
        float eps = {0.00001}, int64[1] axes = {-1}, float[4] ones = {1, 1, 1, 1},
        float[4, 2] k = {1, 2, 3, 4, 5, 6, 7, 8}> { P = MatMul(W, k) """
    before = head + SYMBOLIC_FORMULA.format(end="Y = Div(d, s) }")
    after = f"{head} Y = {CENTERED}(W, ones) }}"
    check_pattern(before, after, "LayerNormalization", atol=1e-5, sizes={"a": 3, "b": 4})


NO_EPSILON = layer().replace("w = Add(v, eps)\n", "").replace("Sqrt(w)", "Sqrt(v)")

REFUSED = {
    "no epsilon": (NO_EPSILON, "Add was expected, Sqrt was found"),
    "null epsilon": (layer(epsilon="0"), "not a positive constant"),
    "negative epsilon": (layer(epsilon="-1"), "not a positive constant"),
    "middle axis, short rows": (layer("a, 15, 8", "1"), "the rows are short"),
    "middle axis, a symbol": (layer("a, b, 8", "1"), "not known integers"),
    "middle axis, the inverse of the deviation is read": (
        layer("a, 16, 8", "1", outputs=", float[a, 1, 8] i").replace(
            "Y = Div(d, s)", "i = Reciprocal(s) Y = Mul(d, i)"
        ),
        "axes are not the last",
    ),
    "keepdims of the first": (
        layer("8", "0").replace("ReduceMean<keepdims = 1>(X", "ReduceMean<keepdims = 0>(X"),
        "keepdims is 0",
    ),
    "keepdims of the second": (
        layer("8", "0").replace("ReduceMean<keepdims = 1>(q", "ReduceMean<keepdims = 0>(q"),
        "keepdims is 0",
    ),
    "other axes": (layer().replace("(q, axes)", "(q, other)"), "the two means have different axes"),
    "nothing is reduced": (
        layer().replace("keepdims = 1>(X, axes)", "noop_with_empty_axes = 1>(X)"),
        "nothing is reduced",
    ),
    "difference is an output": (layer(outputs=", float[a, b, 8] d"), "used elsewhere"),
    "mean is an output": (layer(outputs=", float[a, b, 1] m"), "used elsewhere"),
    "root is an output": (layer(outputs=", float[a, b, 1] s"), "used elsewhere"),
    "variance is an output": (layer(outputs=", float[a, b, 1] v"), "used elsewhere"),
    "no dimension": (
        layer(
            "",
            body="""m = ReduceMean<keepdims = 1>(X) d = Sub(X, m) q = Pow(d, two)
            v = ReduceMean<keepdims = 1>(q) w = Add(v, eps) s = Sqrt(w) Y = Div(d, s)""",
        ).replace("float[]", "float"),
        "there is no dimension",
    ),
    "nothing to normalize": (layer("a, b, 0"), "not known integers"),
    "dynamic dimension": (layer("a, b, c"), "not known integers"),
    "double": (layer(elem_type="double"), "type is not float"),
    "mean minus x": (layer().replace("Sub(X, m)", "Sub(m, X)"), "'m' cannot be 'x', which is 'X'"),
    "inverse": (layer().replace("Div(d, s)", "Div(s, d)"), "'d' cannot be 's'"),
    "a Pow of another domain": (
        layer().replace("Pow(", "com.microsoft.Pow("),
        "Pow was expected, com.microsoft::Pow was found",
    ),
    "cube": (
        layer().replace("float two = {2}", "float two = {3}"),
        "'two' cannot be the constant 2",
    ),
    "x over s": (
        layer().replace("Div(d, s)", "Div(X, s)").replace("Pow(d, two)", "Mul(d, d)"),
        "'X' cannot be",
    ),
    "graph input": (
        "agraph (float[a] X) => (float[1] Y) { Y = ReduceMean(X) }",
        "Sub was expected",
    ),
    "axes are an input": (
        layer().replace("[a, b, 8] X", "[a, b, 8] X, int64[1] ax").replace("(X, axes)", "(X, ax)"),
        "axes are not constant",
    ),
    "epsilon is an input": (
        layer().replace("[a, b, 8] X", "[a, b, 8] X, float ep").replace("eps)", "ep)"),
        "epsilon is not a scalar constant",
    ),
    "epsilon changes the rank": (
        layer("8", "0").replace("float eps", "float[1, 1] eps").replace("[8] Y", "[1, 8] Y"),
        "epsilon is not a scalar constant or may change the shape",
    ),
}


def test_opset() -> None:
    # before opset 18, the axes of ReduceMean are an attribute
    text = layer().replace("keepdims = 1", "keepdims = 1, axes = [-1]").replace(", axes)", ")")
    check_no_match(text, "LayerNormalization", "needs opset 17", opset=16)


# -- scale


def scale_model(
    after: str, params: str = "", constants: str = "", outputs: str = "", norm: str = "(X, scale)"
) -> str:
    """A LayerNormalization of (a, 2) with a scale (2, 3) and what comes after."""
    return f"""agraph (float[a, 2] X{params}) => (float[a, 2] Y{outputs}) <
    float[2] scale = {{2, 3}}, float[2] ones = {{1, 1}}, float[2] zeros = {{0, 0}}{constants}
> {{
    n = LayerNormalization<axis = -1, epsilon = 0.001>{norm}
    {after}
}}"""


SCALE_CASES = {
    "constants": (
        scale_model("Y = Mul(n, c)", constants=", float[2] c = {5, 7}"),
        ("float[2] s = {10, 21}", "(X, s)"),
    ),
    "bias is scaled": (
        scale_model(
            "Y = Mul(c, n)",
            constants=", float[2] c = {5, 7}, float[2] b = {1, -1}",
            norm="(X, scale, b)",
        ),
        ("float[2] s = {10, 21}, float[2] b = {5, -7}", "(X, s, b)"),
    ),
    "null bias": (
        scale_model(
            "m = Mul(c, n) Y = Add(d, m)",
            constants=", float[2] c = {5, 7}, float[2] d = {1, 2}",
            norm="(X, scale, zeros)",
        ),
        ("float[2] s = {10, 21}, float[2] d = {1, 2}", "(X, s, d)"),
    ),
    "addition alone": (
        scale_model("Y = Add(n, d)", params=", float[2] d"),
        ("float[2] scale = {2, 3}", "(X, scale, d)"),
    ),
    "a scalar": (
        scale_model("Y = Mul(n, c)", constants=", float c = {5}"),
        ("float[2] s = {10, 15}", "(X, s)"),
    ),
    "a scalar of rank 2, a bias": (
        scale_model(
            "Y = Mul(c, n)",
            constants=", float[1, 1] c = {5}, float[2] b = {1, -1}",
            norm="(X, scale, b)",
        ),
        ("float[2] s = {10, 15}, float[2] b = {5, -5}", "(X, s, b)"),
    ),
    "ones and a scalar": (
        scale_model("Y = Mul(n, c)", constants=", float c = {5}", norm="(X, ones)"),
        ("float[2] s = {5, 5}", "(X, s)"),
    ),
    "a scalar product and a scalar sum": (
        scale_model("m = Mul(n, c) Y = Add(m, d)", constants=", float c = {5}, float d = {7}"),
        ("float[2] s = {10, 15}, float[2] d = {7, 7}", "(X, s, d)"),
    ),
    "ones as factor": (
        scale_model("m = Mul(n, ones) Y = Relu(m)"),
        None,
    ),
}


@pytest.mark.parametrize("name", SCALE_CASES)
def test_scale(name: str) -> None:
    before, after = SCALE_CASES[name]
    expected = None
    if after is not None:
        head = before.split("=> (", 1)[0]
        expected = f"""{head}=> (float[a, 2] Y) <{after[0]}> {{
            Y = LayerNormalization<axis = -1, epsilon = 0.001>{after[1]} }}"""
    check_pattern(before, expected, "LayerNormalizationScale", atol=1e-5)


def test_formula_then_scale() -> None:
    """Both patterns, one after the other."""
    body = BODIES["d*d"].replace("Y =", "n =") + " k = Mul(n, c) Y = Add(k, c)"
    before = layer(body=body).replace("[a, b, 8] X", "[a, b, 8] X, float[8] c")
    after = FOLDED.replace(", float[8] d", "").replace("(X, c, d)", "(X, c, c)")
    patterns = ["LayerNormalization", "LayerNormalizationScale"]
    check_pattern(before, after, patterns, atol=1e-5)


SCALE_REFUSED = {
    # X[1, 1] * gamma[2] gives [1, 2]
    "gamma is wider": (
        """agraph (float[1, 1] X, float[2] c) => (float[1, 2] Y) <float[1] scale = {1}> {
            n = LayerNormalization<axis = -1>(X, scale) Y = Mul(n, c) }""",
        "shape of the scale",
    ),
    "gamma is wider and an output": (
        """agraph (float[1, 1] X, float[2] c) => (float[1, 2] Y, float[1, 2] m)
            <float[1] scale = {1}> {
            n = LayerNormalization<axis = -1>(X, scale) m = Mul(n, c) Y = Relu(m) }""",
        "shape of the scale",
    ),
    "a scalar, a scale that is an input": (
        scale_model(
            "Y = Mul(n, c)", params=", float[2] k", constants=", float c = {5}", norm="(X, k)"
        ),
        "shape of the scale",
    ),
    "a scalar that is an input": (
        scale_model("Y = Mul(n, c)", params=", float c"),
        "shape of the scale",
    ),
    "a scalar of a higher rank": (
        scale_model("Y = Mul(n, c)", constants=", float[1, 1, 1] c = {5}").replace(
            "=> (float[a, 2] Y", "=> (float[1, a, 2] Y"
        ),
        "shape of the scale",
    ),
    "one by row": (scale_model("Y = Mul(n, c)", params=", float[a, 2] c"), "shape of the scale"),
    "squared": (scale_model("Y = Mul(n, n)"), "shape of the scale"),
    "not constant": (scale_model("Y = Mul(n, c)", params=", float[2] c"), "not constant"),
    "bias is not constant": (
        scale_model(
            "Y = Mul(n, c)",
            params=", float[2] b",
            constants=", float[2] c = {5, 7}",
            norm="(X, scale, b)",
        ),
        "not constant",
    ),
    "there is a bias": (
        scale_model("Y = Add(n, d)", params=", float[2] d, float[2] b", norm="(X, ones, b)"),
        "shape of the scale",
    ),
    "inner result is an output": (
        scale_model("Y = Mul(n, ones)", outputs=", float[a, 2] n"),
        "shape of the scale",
    ),
    "two uses": (scale_model("m = Mul(n, ones) Y = Add(m, n)"), "shape of the scale"),
    "overflow": (
        scale_model("Y = Mul(n, c)", constants=", float[2] c = {3e38, 1}"),
        "not constant",
    ),
    "subtraction": (scale_model("Y = Sub(n, ones)"), "shape of the scale"),
    "last node": (scale_model("Y = Relu(n)"), "shape of the scale"),
}


test_refuses = refusal_tests(
    {"LayerNormalization": REFUSED, "LayerNormalizationScale": SCALE_REFUSED}
)


def test_product_is_an_output() -> None:
    """The product ends the rewrite: the addition cannot go in."""
    before = scale_model(
        "m = Mul(n, c) Y = Add(m, d)",
        params=", float[2] d",
        constants=", float[2] c = {5, 7}",
        outputs=", float[a, 2] m",
    )
    after = """agraph (float[a, 2] X, float[2] d) => (float[a, 2] Y, float[a, 2] m) <
        float[2] s = {10, 21}> {
        m = LayerNormalization<axis = -1, epsilon = 0.001>(X, s)
        Y = Add(m, d)
    }"""
    check_pattern(before, after, "LayerNormalizationScale", atol=1e-5)


@pytest.mark.parametrize("outputs", [STATISTICS, STATISTICS[:18], STATISTICS[18:]], ids=str)
@pytest.mark.parametrize("inverse", ["Reciprocal(s)", "Div(one, s)"])
def test_gradients_read_the_mean_and_the_inverse(outputs: str, inverse: str) -> None:
    """They are the second and the third results."""
    body = f"""m = ReduceMean<keepdims = 1>(X, axes) d = Sub(X, m) q = Mul(d, d)
        v = ReduceMean<keepdims = 1>(q, axes) w = Add(v, eps) s = Sqrt(w) i = {inverse}
        Y = Mul(d, i)"""
    after = written().replace("Y = ", "Y, m, i = ").replace("b, 8] Y)", f"b, 8] Y{outputs})")
    check_pattern(layer(outputs=outputs, body=body), after, "LayerNormalization", atol=1e-5)
    half = layer(outputs=outputs.replace("float", "float16"), body=body, elem_type="float16")
    found = check_pattern(half, None, "LayerNormalization", atol=4e-3, rtol=4e-3, reference=False)
    types = [n.op_type for n in found.graph.node]
    assert types == ["LayerNormalization"] + ["Cast"] * outputs.count("float")
    names = ["LayerNormalization", "LayerNormalizationScale", "CastLayerNormalizationCast"]
    mixed = layer(outputs=outputs, body="x = Cast<to = 1>(H) " + body.replace("X", "x"))
    mixed = mixed.replace("float[a, b, 8] X", "float16[a, b, 8] H")
    mixed = mixed.replace("float[a, b, 8] Y", "float16[a, b, 8] Y").replace("Y = ", "y = ")
    mixed = mixed.rstrip("}") + "Y = Cast<to = 10>(y) }"
    found = check_pattern(mixed, None, names, atol=2e-3, reference=False)
    assert [n.op_type for n in found.graph.node] == ["LayerNormalization"]
