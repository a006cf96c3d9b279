"""MatMul between Reshape nodes, MatMul that is a product."""

from __future__ import annotations

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

#: accumulation in another order
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
H = "g (float[2, 3, 4, 5] x, float[2, 3, 5, 6] k) => (float[2, 3, 4, 6] y)"
S = "int64[3] s = {6, 4, 5}, int64[3] t = {6, 5, 6}, int64[4] o = {2, 3, 4, 6}"
D = "g (float[a, b, c, 5] x, float[a, b, 5, 6] k) => (float[a, b, c, 6] y)"
THREE = "u = Reshape(x, s) v = Reshape(k, t) m = MatMul(u, v) y = Reshape(m, o)"

THREE_MODELS = {
    "static": (f"{H} <{S}> {{ {THREE} }}", f"{H} {{ y = MatMul(x, k) }}"),
    "no batch dimension inside": (
        "g (float[1, 4, 5] x, float[1, 5, 6] k) => (float[1, 4, 6] y) <int64[2] s = {4, 5},"
        f"  int64[2] t = {{5, 6}}, int64[3] o = {{1, 4, 6}}> {{ {THREE} }}",
        "g (float[1, 4, 5] x, float[1, 5, 6] k) => (float[1, 4, 6] y) { y = MatMul(x, k) }",
    ),
}

#: products of rows
ROWS = """g (float[a, b, 5] x, float[5, c] k) => (float[a, b, c] y)
<int64[2] s = {-1, 5}> {
    u = Reshape(x, s) m = MatMul(u, k)
    i = Shape<start = 0, end = 2>(x) j = Shape<start = 1, end = 2>(k)
    o = Concat<axis = 0>(i, j) y = Reshape<allowzero = 1>(m, o)
}"""

MODELS = {
    "ReshapeMatMulReshape": {
        **THREE_MODELS,
        "dynamic": (
            "g (float[a, 3, 4, 5] x, float[a, 3, 5, 6] k) => (float[a, 3, 4, 6] y)"
            "<int64[3] s = {-1, 4, 5}, int64[3] t = {-1, 5, 6}, int64[4] o = {-1, 3, 4, 6}>"
            f"{{ {THREE} }}",
            "g (float[a, 3, 4, 5] x, float[a, 3, 5, 6] k) => (float[a, 3, 4, 6] y)"
            "{ y = MatMul(x, k) }",
        ),
    },
    "RowsMatMul": {
        "symbols": (
            ROWS,
            "g (float[a, b, 5] x, float[5, c] k) => (float[a, b, c] y) { y = MatMul(x, k) }",
            {
                "sizes": [
                    {"a": 2, "b": 3, "c": 4},
                    {"a": 1, "b": 7, "c": 1},
                    {"a": 0, "b": 2, "c": 3},
                ]
            },
        ),
        "numbers, the rows are used elsewhere": (
            """g (float[2, 3, 4, 5] x, float[5, 6] k) => (float[2, 3, 4, 6] y, float[24, 5] z)
            <int64[2] s = {-1, 5}, int64[4] o = {2, 3, 4, 6}> {
                u = Reshape(x, s) m = MatMul(u, k) y = Reshape(m, o) z = Neg(u)
            }""",
            """g (float[2, 3, 4, 5] x, float[5, 6] k) => (float[2, 3, 4, 6] y, float[24, 5] z)
            <int64[2] s = {-1, 5}> { u = Reshape(x, s) y = MatMul(x, k) z = Neg(u) }""",
        ),
    },
    "MatMulReshape2Of3": {
        **THREE_MODELS,
        "left and right": (
            "g (float[2, 3, 4, 5] x, float[2, 3, 5, 6] k) => (float[6, 4, 6] y)"
            f"<{S}> {{ u = Reshape(x, s) v = Reshape(k, t) y = MatMul(u, v) }}",
            "g (float[2, 3, 4, 5] x, float[2, 3, 5, 6] k) => (float[6, 4, 6] y)"
            "<int64[3] o = {6, 4, 6}> { m = MatMul(x, k) y = Reshape(m, o) }",
        ),
        "left and after": (
            "g (float[2, 3, 4, 5] x, float[6, 5, 6] k) => (float[2, 3, 4, 6] y)"
            f"<{S}> {{ u = Reshape(x, s) m = MatMul(u, k) y = Reshape(m, o) }}",
            "g (float[2, 3, 4, 5] x, float[6, 5, 6] k) => (float[2, 3, 4, 6] y)"
            "<int64[4] t = {2, 3, 5, 6}> { v = Reshape(k, t) y = MatMul(x, v) }",
        ),
        "right and after": (
            "g (float[6, 4, 5] x, float[2, 3, 5, 6] k) => (float[2, 3, 4, 6] y)"
            f"<{S}> {{ v = Reshape(k, t) m = MatMul(x, v) y = Reshape(m, o) }}",
            "g (float[6, 4, 5] x, float[2, 3, 5, 6] k) => (float[2, 3, 4, 6] y)"
            "<int64[4] s = {2, 3, 4, 5}> { u = Reshape(x, s) y = MatMul(u, k) }",
        ),
        "one matrix on the right": (
            "g (float[2, 3, 4, 5] x, float[1, 1, 5, 6] k) => (float[2, 3, 4, 6] y)"
            f"<int64[3] s = {{6, 4, 5}}, int64[3] t = {{1, 5, 6}}, int64[4] o = {{2, 3, 4, 6}}>"
            f"{{ {THREE} }}",
            "g (float[2, 3, 4, 5] x, float[1, 1, 5, 6] k) => (float[2, 3, 4, 6] y)"
            "{ y = MatMul(x, k) }",
        ),
        "one matrix on the left, never reshaped": (
            "g (float[4, 5] x, float[a, 3, 5, 6] k) => (float[a, 3, 4, 6] y)"
            "<int64[3] t = {-1, 5, 6}, int64[4] o = {-1, 3, 4, 6}>"
            "{ v = Reshape(k, t) m = MatMul(x, v) y = Reshape(m, o) }",
            "g (float[4, 5] x, float[a, 3, 5, 6] k) => (float[a, 3, 4, 6] y) { y = MatMul(x, k) }",
        ),
        "one matrix, the other operand is not reshaped": (
            "g (float[1, 1, 4, 5] x, float[6, 5, 7] k) => (float[2, 3, 4, 7] y)"
            "<int64[3] s = {1, 4, 5}, int64[4] o = {2, 3, 4, 7}>"
            "{ u = Reshape(x, s) m = MatMul(u, k) y = Reshape(m, o) }",
            "g (float[1, 1, 4, 5] x, float[6, 5, 7] k) => (float[2, 3, 4, 7] y)"
            "<int64[4] t = {2, 3, 5, 7}> { v = Reshape(k, t) y = MatMul(x, v) }",
        ),
        "one matrix squeezed": (
            "g (float[1, 1, 4, 5] x, float[a, 3, 5, 6] k) => (float[a, 3, 4, 6] y)"
            "<int64[1] z = {0}, int64[3] t = {-1, 5, 6}, int64[4] o = {-1, 3, 4, 6}>"
            "{ u = Squeeze(x, z) v = Reshape(k, t) m = MatMul(u, v) y = Reshape(m, o) }",
            "g (float[1, 1, 4, 5] x, float[a, 3, 5, 6] k) => (float[a, 3, 4, 6] y)"
            "{ y = MatMul(x, k) }",
        ),
        "one matrix, the result is not reshaped": (
            "g (float[1, 1, 4, 5] x, float[2, 3, 5, 7] k) => (float[6, 4, 7] y)"
            "<int64[3] s = {1, 4, 5}, int64[3] t = {6, 5, 7}>"
            "{ u = Reshape(x, s) v = Reshape(k, t) y = MatMul(u, v) }",
            "g (float[1, 1, 4, 5] x, float[2, 3, 5, 7] k) => (float[6, 4, 7] y)"
            "<int64[3] o = {6, 4, 7}> { m = MatMul(x, k) y = Reshape(m, o) }",
        ),
        "FusedMatMul": (
            "g (float[2, 3, 5, 4] x, float[2, 3, 5, 6] k) => (float[2, 3, 4, 6] y)"
            "<int64[3] s = {6, 5, 4}, int64[3] t = {6, 5, 6}, int64[4] o = {2, 3, 4, 6}>"
            "{ u = Reshape(x, s) v = Reshape(k, t)"
            "  m = com.microsoft.FusedMatMul<alpha=2.0, transA=1>(u, v) y = Reshape(m, o) }",
            "g (float[2, 3, 5, 4] x, float[2, 3, 5, 6] k) => (float[2, 3, 4, 6] y)"
            "{ y = com.microsoft.FusedMatMul<alpha=2.0, transA=1>(x, k) }",
        ),
    },
    "TransposeReshapeMatMul": {
        "left": (
            "g (float[2, 3, 5, a] x, float[6, 5, b] k) => (float[6, a, b] y)"
            "<int64[3] s = {6, -1, 5}>"
            "{ t = Transpose<perm=[0, 1, 3, 2]>(x) r = Reshape(t, s) y = MatMul(r, k) }",
            "g (float[2, 3, 5, a] x, float[6, 5, b] k) => (float[6, a, b] y)"
            "<int64[3] s = {6, 5, -1}>"
            "{ r = Reshape(x, s) t = Transpose<perm=[0, 2, 1]>(r) y = MatMul(t, k) }",
        ),
        "right, no batch dimension after": (
            "g (float[a, 5] x, float[1, 4, 5] k) => (float[a, 4] y) <int64[2] s = {5, 4}>"
            "{ t = Transpose<perm=[0, 2, 1]>(k) r = Reshape(t, s) y = MatMul(x, r) }",
            "g (float[a, 5] x, float[1, 4, 5] k) => (float[a, 4] y) <int64[2] s = {4, 5}>"
            "{ r = Reshape(k, s) t = Transpose<perm=[1, 0]>(r) y = MatMul(x, t) }",
        ),
    },
    "ShapeBasedMatMulToMul": {
        "matrices": (
            "g (float[a, 1] x, float[1, b] k) => (float[a, b] y) { y = MatMul(x, k) }",
            "g (float[a, 1] x, float[1, b] k) => (float[a, b] y) { y = Mul(x, k) }",
        ),
        "batch dimensions": (
            "g (float[c, a, 1] x, float[d, 1, 1, b] k) => (float[d, c, a, b] y) { y ="
            " MatMul(x, k) }",
            "g (float[c, a, 1] x, float[d, 1, 1, b] k) => (float[d, c, a, b] y) { y = Mul(x, k) }",
        ),
        "integers": (
            "g (int64[a, 1] x, int64[1, b] k) => (int64[a, b] y) { y = MatMul(x, k) }",
            "g (int64[a, 1] x, int64[1, b] k) => (int64[a, b] y) { y = Mul(x, k) }",
        ),
    },
}

BATCH = "the batch dimensions outside are not proven equal"
NEAR_MISSES = {
    "RowsMatMul": {
        "the last dimension": (
            """g (float[4, 10] x, float[5, 3] k) => (float[4, 2, 3] y)
            <int64[2] s = {-1, 5}, int64[3] o = {4, 2, 3}> {
                u = Reshape(x, s) m = MatMul(u, k) y = Reshape(m, o)
            }""",
            "the last dimension may change",
        ),
        "other first dimensions": (
            """g (float[2, 4, 5] x, float[5, 3] k) => (float[4, 2, 3] y)
            <int64[2] s = {-1, 5}, int64[3] o = {4, 2, 3}> {
                u = Reshape(x, s) m = MatMul(u, k) y = Reshape(m, o)
            }""",
            "the last Reshape may not restore the first dimensions",
        ),
        "batches": (
            """g (float[2, 4, 4, 5] x, float[5, 3] k) => (float[2, 4, 4, 3] y)
            <int64[3] s = {-1, 4, 5}, int64[4] o = {2, 4, 4, 3}> {
                u = Reshape(x, s) m = MatMul(u, k) y = Reshape(m, o)
            }""",
            "it is not a product of two matrices",
        ),
        "a vector": (
            """g (float[5] x, float[5, 3] k) => (float[3] y)
            <int64[2] s = {-1, 5}, int64[1] o = {3}> {
                u = Reshape(x, s) m = MatMul(u, k) y = Reshape(m, o)
            }""",
            "it is not a product of two matrices",
        ),
        "another use": (
            """g (float[2, 4, 5] x, float[5, 3] k) => (float[2, 4, 3] y, float[8, 3] z)
            <int64[2] s = {-1, 5}, int64[3] o = {2, 4, 3}> {
                u = Reshape(x, s) m = MatMul(u, k) y = Reshape(m, o) z = Neg(m)
            }""",
            "Reshape is not the only use",
        ),
    },
    "ReshapeMatMulReshape": {
        "batch dimensions in another order": (
            "g (float[1, 6, 4, 5] x, float[6, 1, 5, 6] k) => (float[2, 3, 4, 6] y)"
            f"<{S}> {{ {THREE} }}",
            BATCH,
        ),
        "dynamic batch dimensions that may differ": (
            "g (float[a, b, 4, 5] x, float[b, a, 5, 6] k, float[c, d] z) => (float[c, d, 4, 6] y)"
            "<int64[3] s = {-1, 4, 5}, int64[3] t = {-1, 5, 6}, int64[2] e = {4, 6}>"
            f"{{ n = Shape(z) o = Concat<axis = 0>(n, e) {THREE} }}",
            "is broadcast|are broadcast|not proven equal|not known",
        ),
        "the last dimensions change": (
            "g (float[2, 3, 5, 4] x, float[2, 3, 5, 6] k) => (float[2, 3, 4, 6] y)"
            f"<{S}> {{ {THREE} }}",
            "changes the last two dimensions",
        ),
        "the result is reshaped otherwise": (
            "g (float[2, 3, 4, 5] x, float[2, 3, 5, 6] k) => (float[2, 3, 6, 4] y)"
            f"<int64[3] s = {{6, 4, 5}}, int64[3] t = {{6, 5, 6}}, int64[4] o = {{2, 3, 6, 4}}>"
            f"{{ {THREE} }}",
            "changes the last two dimensions",
        ),
        "broadcast inside": (
            "g (float[2, 3, 4, 5] x, float[1, 3, 5, 6] k) => (float[2, 3, 4, 6] y)"
            f"<int64[4] s = {{2, 3, 4, 5}}, int64[3] t = {{3, 5, 6}}, int64[4] o = {{2, 3, 4, 6}}>"
            f"{{ {THREE} }}",
            "the batch dimensions are broadcast",
        ),
        "a matrix with more dimensions": (
            "g (float[6, 4, 5] x, float[1, 1, 1, 5, 6] k) => (float[6, 4, 6] y)"
            f"<int64[4] s = {{2, 3, 4, 5}}, int64[3] t = {{1, 5, 6}}, int64[3] o = {{6, 4, 6}}>"
            f"{{ {THREE} }}",
            "the matrix has more batch dimensions",
        ),
        "a vector": (
            "g (float[2, 5] x, float[10, 6] k) => (float[1, 6] y)"
            "<int64[1] s = {-1}, int64[2] t = {10, 6}, int64[2] o = {1, 6}>"
            f"{{ {THREE} }}",
            "a shape is not known",
        ),
    },
    "MatMulReshape2Of3": {
        "batch dimensions known as symbols": (
            """g (float[a, b, 4, 5] x, float[6, 5, 3] k) => (float[a, b, 4, 3] y)
            <int64[3] s = {6, 4, 5}, int64[2] last = {4, 3}> {
                r = Reshape(x, s) m = MatMul(r, k) n = Shape<start=0, end=2>(x)
                t = Concat<axis=0>(n, last) y = Reshape<allowzero=1>(m, t)
            }""",
            "the shape of the new Reshape is not static",
        ),
        "one of three": (
            "g (float[2, 3, 4, 5] x, float[6, 5, 6] k) => (float[6, 4, 6] y)"
            f"<{S}> {{ u = Reshape(x, s) y = MatMul(u, k) }}",
            "there are not two Reshape",
        ),
        "dynamic": (
            "g (float[a, 3, 4, 5] x, float[a, 3, 5, 6] k) => (float[b, 4, 6] y)"
            "<int64[3] s = {-1, 4, 5}, int64[3] t = {-1, 5, 6}>"
            "{ u = Reshape(x, s) v = Reshape(k, t) y = MatMul(u, v) }",
            "is not static",
        ),
        "no element": (
            "g (float[2, 0, 4] x, float[3, 4, 5] k) => (float[2, 0, 5] y) <int64[3] s = {3, 0, 4},"
            "  int64[3] o = {2, 0, 5}> { u = Reshape<allowzero=1>(x, s) m = MatMul(u, k)"
            "  y = Reshape<allowzero=1>(m, o) }",
            "is not static",
        ),
        "transposed batch dimensions": (
            "g (float[2, 3, 4, 5] x, float[2, 3, 4, 6] k) => (float[5, 4, 6] y)"
            "<int64[3] s = {4, 6, 5}, int64[3] t = {6, 4, 6}> { u = Reshape(x, s) v = Reshape(k, t)"
            "  y = com.microsoft.FusedMatMul<transBatchA=1>(u, v) }",
            "the batch dimensions are transposed",
        ),
    },
    "TransposeReshapeMatMul": {
        "no shape": (
            "g (float[] x, float[6, 5, b] k, int64[3] s) => (float[6, a, b] y)"
            "{ t = Transpose(x) r = Reshape(t, s) y = MatMul(r, k) }",
            "its shape is not known",
        ),
        "no Reshape": (
            "g (float[a, b] x, float[b, c] k) => (float[a, c] y) { y = MatMul(x, k) }",
            "no Reshape for this node only",
        ),
        "no Transpose": (
            "g (float[2, 3, a, 5] x, float[5, b] k) => (float[6, a, b] y) <int64[3] s = {6, -1, 5}>"
            "{ r = Reshape(x, s) y = MatMul(r, k) }",
            "no Transpose before",
        ),
        "the Transpose is an output": (
            "g (float[2, 3, 5, a] x, float[5, b] k) => (float[6, a, b] y, float[2, 3, a, 5] t)"
            "<int64[3] s = {6, -1, 5}>"
            "{ t = Transpose<perm=[0, 1, 3, 2]>(x) r = Reshape(t, s) y = MatMul(r, k) }",
            "no Transpose before for this Reshape only",
        ),
        "other dimensions move": (
            "g (float[2, 5, 3, a] x, float[5, b] k) => (float[6, a, b] y) <int64[3] s = {6, -1, 5}>"
            "{ t = Transpose<perm=[0, 2, 3, 1]>(x) r = Reshape(t, s) y = MatMul(r, k) }",
            "may not go first",
        ),
        "the Reshape changes the last dimensions": (
            "g (float[2, 3, 4, 5] x, float[4, b] k) => (float[c, b] y) <int64[2] s = {-1, 4}>"
            "{ t = Transpose<perm=[0, 1, 3, 2]>(x) r = Reshape(t, s) y = MatMul(r, k) }",
            "may not go first",
        ),
        "two dynamic dimensions": (
            "g (float[c, 3, 5, a] x, float[5, b] k) => (float[d, a, b] y, int64[1] n)"
            "{ t = Transpose<perm=[0, 1, 3, 2]>(x) n = Shape<start=3, end=4>(x)"
            "  f = Constant<value_ints=[5]>() m = Constant<value_ints=[-1]>()"
            "  s = Concat<axis=0>(m, n, f) r = Reshape(t, s) y = MatMul(r, k) }",
            "may not go first",
        ),
    },
    "ShapeBasedMatMulToMul": {
        "unknown shape": (
            "g (float[a, 1] x) => (float[b, c] y) { u = com.unknown.Op(x) y = MatMul(x, u) }",
            "a shape is not known",
        ),
        "a vector": (
            "g (float[1] x, float[1, b] k) => (float[b] y) { y = MatMul(x, k) }",
            "an operand is a vector",
        ),
        "inner dimension": (
            "g (float[a, c] x, float[c, b] k) => (float[a, b] y) { y = MatMul(x, k) }",
            "the inner dimension is not 1",
        ),
    },
}


test_rewrites = rewrite_tests(MODELS, **CLOSE)


test_refuses = refusal_tests(NEAR_MISSES)


def test_empty_batch():
    before, after = MODELS["ReshapeMatMulReshape"]["dynamic"]
    check_pattern(before, after, "ReshapeMatMulReshape", sizes={"a": 0})
    before, after = MODELS["ShapeBasedMatMulToMul"]["matrices"]
    check_pattern(before, after, "ShapeBasedMatMulToMul", sizes={"a": 0, "b": 3})


def test_opset_6():
    text = "g (float[a, 1] x, float[1, b] k) => (float[a, b] y) { y = MatMul(x, k) }"
    check_no_match(text, "ShapeBasedMatMulToMul", "needs opset 7", opset=6)
