"""Sums and normalizations between products of rows."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests


def graph(body: str, outputs: str, x: str = "a, b, 4", constants: str = "") -> str:
    """Two matrices of rows, two sequences."""
    shape = "d = Shape(z) " if ", d)" in body else ""
    return f"""g (float[n, 4] u, float[n, 4] v, float[{x}] x, float[a, b, 4] z) => ({outputs}) <
        int64[2] rows = {{-1, 4}}, float[4] s = {{1.0, 2.0, 0.5, 1.5}}, float two = {{2.0}},
        float[4] c = {{0.1, 0.2, -0.1, 0.3}}{constants}> {{ {shape}{body} }}"""


def pair(before: str, after: str, outputs: str) -> tuple[str, str]:
    """Two bodies of the same graph."""
    return graph(before, outputs), graph(after, outputs)


T = "t = Reshape<allowzero = 1>(u, d) "
W = "w = Reshape<allowzero = 1>(v, d) "
NORM = "k = LayerNormalization(a, s, c) y = Reshape(k, rows) "
FLAT = "y = LayerNormalization(a, s, c) "
Y = "float[n, 4] y"
RESIDUAL = T + "a = Add(t, x) " + NORM

CASES = {
    "a residual sum": pair(
        RESIDUAL + "p = Reshape(x, rows) o = Neg(p)",
        "p = Reshape(x, rows) a = Add(u, p) " + FLAT + "o = Neg(p)",
        Y + ", float[m, 4] o",
    ),
    "what is added becomes rows": pair(
        RESIDUAL,
        "p = Reshape(x, rows) a = Add(u, p) " + FLAT,
        Y,
    ),
    "the sum is read elsewhere": pair(
        RESIDUAL + "p = Reshape(x, rows) o = Neg(p)",
        "p = Reshape(x, rows) f = Add(u, p) y = LayerNormalization(f, s, c) "
        "a = Reshape<allowzero = 1>(f, d) o = Neg(p)",
        Y + ", float[m, 4] o, float[a, b, 4] a",
    ),
    "one Reshape instead of two": pair(
        T + W + "y = Sum(t, w)",
        "f = Sum(u, v) y = Reshape<allowzero = 1>(f, d)",
        "float[a, b, 4] y",
    ),
    "vectors, scalars, operators of one element": pair(
        T + "e = Mul(t, s) f = Div(two, e) h = Relu(f) y = Reshape(h, rows)",
        "e = Mul(u, s) f = Div(two, e) y = Relu(f)",
        Y,
    ),
    "an axis counted from the start": pair(
        T + "k = LayerNormalization<axis = 2>(t, s, c) y = Reshape(k, rows)",
        "y = LayerNormalization<axis = -1>(u, s, c)",
        Y,
    ),
    "several normalizations": pair(
        RESIDUAL + W + "e = Sub(a, w) h = LayerNormalization(e, s, c) o = Reshape(h, rows)",
        "p = Reshape(x, rows) a = Add(u, p) " + FLAT
        + "e = Sub(a, v) o = LayerNormalization(e, s, c)",
        Y + ", float[m, 4] o",
    ),
}  # fmt: skip


def product(body: str) -> str:
    """Rows multiplied by a matrix."""
    return f"""g (float[a, b, 4] x, float[4, 4] m) => (float[n, 4] y) <
        int64[2] rows = {{-1, 4}}, float[4] s = {{1.0, 2.0, 0.5, 1.5}},
        float[4] c = {{0.1, 0.2, -0.1, 0.3}}> {{ r = Reshape(x, rows) u = MatMul(r, m) {body} }}"""


#: what the documentation draws
MODELS = {
    "FlatRows": (product("d = Shape(x) " + RESIDUAL), product("a = Add(u, r) " + FLAT)),
}
SIZES = [{"a": a, "b": b, "n": a * b} for a, b in ((2, 3), (1, 1), (3, 1), (0, 3), (2, 0))]
test_rewrites = rewrite_tests({"FlatRows": CASES}, sizes=SIZES)
test_product = rewrite_tests(MODELS)

BOTH = "p = Reshape(x, rows) q = Reshape(z, rows) o = Add(p, q) "
MORE = ", float[m, 4] o"
REFUSED = {
    "other ranks": (
        graph("k = Neg(x) y = Reshape(k, h)", "float[b, a, 4] y", constants=", int64[3] h = {0, 0, 4}"),
        "it makes no rows",
    ),
    "one normalization": (
        graph("k = LayerNormalization(x, s, c) y = Reshape(k, rows)", Y),
        "no Reshape goes away",
    ),
    "other rows": (
        graph(RESIDUAL.replace("rows", "wide"), "float[n, 8] y", constants=", int64[2] wide = {-1, 8}"),
        "no Reshape goes away|the last dimension changes",
    ),
    "a last dimension that is not known": (
        graph("k = Neg(x) y = Reshape(k, e)", "float[n, 1] y", "a, b, c", ", int64[2] e = {-1, 1}"),
        "the last dimension is not known",
    ),
    "a sequence that is broadcast": (
        graph(RESIDUAL, Y, "1, b, 4"),
        "no Reshape goes away",
    ),
    "another axis": (
        graph(T + "k = Softmax<axis = 1>(t) y = Reshape(k, rows)", Y),
        "no Reshape goes away",
    ),
    "rows twice": (
        graph(RESIDUAL + "o = Reshape(k, six)", Y + ", float[6, 4] o", constants=", int64[2] six = {6, 4}"),
        "becomes rows twice",
    ),
    "nothing gives the shape back": (
        graph(BOTH + "a = Add(x, z) h = Neg(a) l = Reshape(h, rows) k = Abs(a) y = Reshape(k, rows)",
              Y + MORE + ", float[a, b, 4] a, float[m, 4] l"),
        "no Reshape gives the shape back",
    ),
    "nothing makes rows": (
        graph(T + "r = Neg(u) q = Reshape<allowzero = 1>(r, d) e = Add(t, x) f = Add(e, w) "
              "y = Sub(f, q) " + W, "float[a, b, 4] y"),
        "no Reshape makes rows",
    ),
    "a shape that depends on the results": (
        graph(BOTH + "a = Add(x, z) i = Shape(a) r = Reshape<allowzero = 1>(u, i) e = Sub(a, r) "
              "y = Reshape(e, rows) h = Neg(a) l = Reshape(h, rows)",
              Y + MORE + ", float[a, b, 4] e, float[m, 4] l"),
        "a shape is computed from the results",
    ),
}  # fmt: skip
test_refuses = refusal_tests({"FlatRows": REFUSED})
