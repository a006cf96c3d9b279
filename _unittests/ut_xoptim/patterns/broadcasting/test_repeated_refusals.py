"""Refusals: batches whose elements differ, or results too large to be written."""

from __future__ import annotations

from ut_xoptim.patterns.broadcasting.repeated_texts import AXES, CUBE, REPEAT, ROWS, graph

from xoptim.testing import refusal_tests

#: pattern -> case -> (model, reason)
REFUSED = {
    "FilledMove": {
        "two dimensions are not known": (
            "g (float[n, m] x) => (float[m, n] y)"
            "{ s = Shape(x) f = ConstantOfShape(s) y = Transpose(f) }",
            "it is not repeated along one axis",
        ),
        "a constant": (
            graph("float[2, n] y", ROWS, f"{REPEAT} y = Transpose(e)"),
            "it is not filled with one number",
        ),
        "Resize mixes elements": (
            graph(
                "float[n, 1, 2, 3] y",
                "int64[3] d = {1, 4, 6}, int64[3] k = {1, 2, 3}",
                "s = Concat<axis = 0>(n, d) t = Concat<axis = 0>(n, k) f = ConstantOfShape(s)"
                ' y = Resize<mode = "linear">(f, , , t)',
            ),
            "elements are mixed, or come from outside",
        ),
        "Resize takes elements from outside": (
            graph(
                "float[n, 1, 2, 3] y",
                "int64[3] d = {1, 4, 6}, int64[3] k = {1, 2, 3}, float[8] r = {0,0,0,0,1,1,2,2}",
                "s = Concat<axis = 0>(n, d) t = Concat<axis = 0>(n, k) f = ConstantOfShape(s)"
                ' y = Resize<coordinate_transformation_mode = "tf_crop_and_resize">(f, r, , t)',
            ),
            "elements are mixed, or come from outside",
        ),
        "one element of the batch": (
            graph(
                "float[4] y",
                "int64[1] four = {4}, int64 z = {0}",
                "s = Concat<axis = 0>(n, four) f = ConstantOfShape(s) y = Gather(f, z)",
            ),
            "the result is not as long",
        ),
        "a shape that may be another one": (
            "g (float[n, 4] x, int64[2] k) => (float[a, b] y) "
            "{ s = Shape(x) f = ConstantOfShape(s) y = Reshape(f, k) }",
            "the result is not as long, or has other dimensions",
        ),
        "it is used elsewhere, the elements are not copied": (
            graph(
                "float[n, 1, 4] y, float[n, 4] v",
                f"int64[1] four = {{4}}, {AXES}",
                "s = Concat<axis = 0>(n, four) f = ConstantOfShape(s) v = Neg(f)"
                " y = Unsqueeze(f, a)",
            ),
            "the inner result is used elsewhere",
        ),
        "it is an output": (
            graph(
                "float[n, 1, 4] y, float[n, 4] f",
                f"int64[1] four = {{4}}, {AXES}",
                "s = Concat<axis = 0>(n, four) f = ConstantOfShape(s) y = Unsqueeze(f, a)",
            ),
            "the inner result is used elsewhere",
        ),
    },
    "RepeatedConstant": {
        "two dimensions are not known": (
            "g (float[n, m] x) => (float[n, m] y) <float[1, 1] c = {1}, float[1] k = {2}>"
            "{ s = Shape(x) e = Expand(c, s) y = Add(e, k) }",
            "nothing is repeated along one axis",
        ),
        "something that is not constant": (
            graph("float[n, 2] y", "int64[1] o = {1}", f"{REPEAT} y = Neg(e)", ", float[1, 2] c"),
            "nothing is repeated along one axis",
        ),
        "a Tile of more than one element": (
            graph(
                "float[m, 2] y",
                "float[2, 2] c = {1, 2, 3, 4}, int64[1] o = {1}",
                "s = Concat<axis = 0>(n, o) e = Tile(c, s) y = Neg(e)",
            ),
            "nothing is repeated along one axis",
        ),
        "a shape of any length": (
            "g (int64[k] s) => (float[n] y) <float[1] c = {1}, float[3] d = {1, 2, 3}>"
            "{ e = Expand(c, s) y = Add(e, d) }",
            "nothing is repeated along one axis",
        ),
        "an operand that is not constant": (
            graph("float[n, 2] y", ROWS, f"{REPEAT} y = Add(e, x)"),
            "an operand is not a small constant, or is not repeated along one axis",
        ),
        "filled with one number": (
            graph("float[2, n] y", "", "r = Shape(x) f = ConstantOfShape(r) y = Transpose(f)"),
            "what is filled with one number stays so",
        ),
        "numbers": (
            graph("float[n, 2] y", "", "r = Shape(x) f = ConstantOfShape(r) y = Sin(f)"),
            "everything is one number",
        ),
        "other times": (
            graph(
                "float[a, 2] y",
                ROWS,
                f"{REPEAT} m = Shape<start = 0, end = 1>(z) t = Concat<axis = 0>(m, o)"
                " f = Expand(c, t) y = Add(e, f)",
                ", float[m] z",
            ),
            "operands are not repeated as many times",
        ),
        "several results": (
            graph(
                "float[n, 2] y, float[n, 1] m",
                "float[1, 2] c = {3, 3}, int64[1] o = {1}, float[2] k = {1, 2}",
                f"{REPEAT} y, m = LayerNormalization(e, k)",
            ),
            "it gives several results",
        ),
        "another axis": (
            graph(
                "float[n, n, 2] y",
                f"{CUBE}, float[1, 1, 2] d = {{1, 2}}, int64[1] a = {{1}}",
                "s = Concat<axis = 0>(n, a, a) t = Concat<axis = 0>(a, n, a)"
                " e = Expand(d, s) f = Expand(d, t) y = Add(e, f)",
            ),
            "the result is not as long",
        ),
        "Softmax of the batch": (
            graph("float[n, 2] y", ROWS, f"{REPEAT} y = Softmax<axis = 0>(e)"),
            "the operator may mix what is repeated",
        ),
        "CumSum of the batch": (
            graph("float[n, 2] y", f"{ROWS}, int64 a = {{0}}", f"{REPEAT} y = CumSum(e, a)"),
            "the operator may mix what is repeated",
        ),
        "CumSum along an axis that is not known": (
            graph("float[n, 2] y", ROWS, f"{REPEAT} y = CumSum(e, a)", ", int64 a"),
            "an operand is not a small constant",
        ),
        "LayerNormalization of the batch": (
            graph(
                "float[n, 2] y",
                f"{ROWS}, float[2] k = {{1, 2}}",
                f"{REPEAT} y = LayerNormalization<axis = 0>(e, k)",
            ),
            "the operator may mix what is repeated",
        ),
        "the scale is repeated": (
            graph(
                "float[n, 2] y",
                ROWS,
                f"{REPEAT} y = LayerNormalization(e, e)",
            ),
            "the operator may mix what is repeated",
        ),
        "the batch is cut": (
            graph("float[m, 2] y", f"{ROWS}, {AXES}", f"{REPEAT} y = Slice(e, a, t, z)"),
            "the result is not as long",
        ),
        "the batch is reversed": (
            graph(
                "float[n, 2] y",
                f"{ROWS}, int64[1] a = {{-1}}, int64[1] b = {{-9223372036854775807}},"
                " int64[1] z = {0}",
                f"{REPEAT} y = Slice(e, a, b, z, a)",
            ),
            "the operator may mix what is repeated",
        ),
        "along the batch": (
            graph("float[m, 2] y", ROWS, f"{REPEAT} y = Concat<axis = 0>(e, e)"),
            "the result is not as long",
        ),
        "rows of all the batch": (
            graph(
                "float[m, 2] y", f"{CUBE}, int64[2] k = {{-1, 2}}", f"{REPEAT} y = Reshape(e, k)"
            ),
            "the result is not as long",
        ),
        "elements are moved": (
            graph(
                "float[2, n, 2] y",
                f"{CUBE}, int64[3] k = {{2, -1, 2}}",
                f"{REPEAT} y = Reshape(e, k)",
            ),
            "the operator may mix what is repeated",
        ),
        "used elsewhere, nothing is copied": (
            graph(
                "float[n, 2] y, float[n, 2, 1] v",
                f"{ROWS}, int64[1] t = {{2}}",
                f"{REPEAT} y = Add(x, e) v = Unsqueeze(e, t)",
            ),
            "the inner result is used elsewhere",
        ),
        "no runtime expands the type": (
            graph("bfloat16[n, 2] y", ROWS, f"{REPEAT} y = Cast<to = 16>(e)"),
            "runtimes do not expand this type",
        ),
        "too big to be computed": (
            graph(
                "float[n, 600, 600] y",
                "int64[2] d = {600, 600}, int64 a = {1}",
                "s = Concat<axis = 0>(n, d) f = ConstantOfShape(s) y = CumSum(f, a)",
            ),
            "one element of the batch takes more than a megabyte",
        ),
        "too big to be written": (
            graph(
                "float[n, 200, 200] y",
                "int64[2] d = {200, 200}, int64 a = {1}",
                "s = Concat<axis = 0>(n, d) f = ConstantOfShape(s) y = CumSum(f, a)",
            ),
            "the model would grow",
        ),
        "integers divided by zero": (
            graph(
                "int64[n, 2] y",
                "int64[1, 2] c = {1, 3}, int64[1] o = {1}, int64[2] k = {1, 0}",
                f"{REPEAT} y = Div(e, k)",
            ),
            "it cannot be computed",
        ),
    },
    "RepeatedProduct": {
        "a sum over what is repeated": (
            graph(
                "float[2, 2] y",
                f"{ROWS}, float[2, 1] d = {{1, 3}}",
                f"{REPEAT} t = Concat<axis = 0>(o, n) f = Expand(d, t) y = MatMul(f, e)",
            ),
            "the result is not as long",
        ),
        "columns": (
            graph(
                "float[1, n] y",
                "float[2, 1] c = {1, 3}, int64[1] o = {1}, float[1, 2] k = {1, 2}",
                "s = Concat<axis = 0>(o, n) e = Expand(c, s) y = MatMul(k, e)",
            ),
            "the operator may mix what is repeated",
        ),
        "a vector": (
            graph("float[n, 2] y", f"{CUBE}, float[2] k = {{1, 2}}", f"{REPEAT} y = MatMul(e, k)"),
            "the operator may mix what is repeated",
        ),
        "the bias is not the same for all rows": (
            graph(
                "float[n, 1] y",
                f"{ROWS}, float[1, 1] d = {{2}}, float[2, 1] k = {{1, 1}}",
                f"{REPEAT} f = Expand(d, s) y = Gemm(e, k, f)",
            ),
            "the operator may mix what is repeated",
        ),
        "a mask": (
            graph(
                "float[n, 1, 2] y",
                "float[1, 1, 2] c = {1, 2}, int64[2] o = {1, 1}, float[1, 1] k = {0}",
                f"{REPEAT} y = Attention<q_num_heads = 1, kv_num_heads = 1>(e, e, e, k)",
            ),
            "the operator may mix what is repeated",
            {"opset": 23},
        ),
    },
    # the queries of an attention, see RepeatedConstant
    "ShapeBasedExpandBroadcastMatMul": {
        "scores": (
            """g (float[1, 4, a, 8] q, float[n, 4, 8, b] k, float m) => (float[n, 4, a, b] y) {
                d = Shape<start = 0, end = 1>(k) r = Shape<start = 1>(q)
                s = Concat<axis = 0>(d, r) e = Expand(q, s)
                p = MatMul(e, k) v = Mul(p, m) y = Softmax(v) }""",
            "the operators of attention read the batch",
        ),
        "weights": (
            """g (float[n, 4, a, b] w, float[1, 4, b, 8] v) => (float[n, 4, a, 8] y) {
                d = Shape<start = 0, end = 1>(w) r = Shape<start = 1>(v)
                s = Concat<axis = 0>(d, r) e = Expand(v, s)
                p = Softmax(w) y = MatMul(p, e) }""",
            "the operators of attention read the batch",
        ),
    },
}


test_refuses = refusal_tests(REFUSED)
