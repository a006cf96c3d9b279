"""Computations that are the same for each element of a batch."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto
from onnx.numpy_helper import from_array
from ut_xoptim.patterns.broadcasting.repeated_texts import AXES, CUBE, REPEAT, ROWS, graph, repeated

from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    refusal_tests,
    rewrite_tests,
)

#: none, one, many
SIZES = {"sizes": [{"n": 0}, {"n": 1}, {"n": 3}]}
#: some runtimes refuse to make something of nothing
FULL = {"sizes": [{"n": 1}, {"n": 3}]}

#: pattern -> case -> (before, after)
MODELS = {
    "FilledMove": {
        "Unsqueeze": (
            graph(
                "float[1, n, 4, 6] y",
                "int64[2] d = {4, 6}, int64[1] a = {0}",
                "s = Concat<axis = 0>(n, d) f = ConstantOfShape<value = float[1] {2}>(s)"
                " y = Unsqueeze(f, a)",
            ),
            graph(
                "float[1, n, 4, 6] y",
                "int64[1] a = {1}, int64[2] d = {4, 6}",
                "s = Concat<axis = 0>(a, n, d) y = ConstantOfShape<value = float[1] {2}>(s)",
            ),
            SIZES,
        ),
        "Resize, the nearest element": (
            graph(
                "float[n, 1, 2, 3] y",
                "int64[3] d = {1, 4, 6}, int64[3] k = {1, 2, 3}",
                "s = Concat<axis = 0>(n, d) t = Concat<axis = 0>(n, k)"
                " f = ConstantOfShape<value = float[1] {2}>(s)"
                ' y = Resize<mode = "nearest">(f, , , t)',
            ),
            graph(
                "float[n, 1, 2, 3] y",
                "int64[3] k = {1, 2, 3}",
                "s = Concat<axis = 0>(n, k) y = ConstantOfShape<value = float[1] {2}>(s)",
            ),
            FULL,
        ),
        "Expand of a number, which has fewer dimensions then": (
            graph(
                "float[n] y",
                "float[1, 1] c = {5}, int64[1] o = {1}",
                f"{REPEAT} y = Squeeze(e, o)",
            ),
            graph("float[n] y", "float c = {5}", "y = Expand(c, n)"),
            SIZES,
        ),
        "its shape is read, and is the one of something else": (
            """g (float[n, 2] x) => (float[2, n] y, int64[2] s) {
                r = Shape(x) f = ConstantOfShape(r) s = Shape(f) y = Transpose(f) }""",
            """g (float[n, 2] x) => (float[2, n] y, int64[2] s)
                <int64[1] z = {0}, int64[1] t = {2}> {
                r = Shape(x) f = ConstantOfShape(r) s = Shape(f)
                n = Gather<axis = 0>(r, z) q = Concat<axis = 0>(t, n) y = ConstantOfShape(q) }""",
            SIZES,
        ),
        "it is used elsewhere, the elements are copied anyway": (
            graph(
                "float[n, 1] y, float[n, 4] v",
                f"int64[1] four = {{4}}, {AXES}",
                "s = Concat<axis = 0>(n, four) f = ConstantOfShape(s) v = Neg(f)"
                " y = Slice(f, z, a, a)",
            ),
            graph(
                "float[n, 1] y, float[n, 4] v",
                "int64[1] four = {4}, int64[1] a = {1}",
                "s = Concat<axis = 0>(n, four) f = ConstantOfShape(s) v = Neg(f)"
                " t = Concat<axis = 0>(n, a) y = ConstantOfShape(t)",
            ),
            SIZES,
        ),
    },
    "RepeatedConstant": {
        "one element of the batch in a constant": (
            graph("float[n, 2] y", f"{ROWS}, float[2] k = {{10, 20}}", f"{REPEAT} y = Add(k, e)"),
            repeated("1, 2", "11, 23"),
            SIZES,
        ),
        "more dimensions in a constant": (
            graph(
                "float[2, n, 2] y",
                f"{ROWS}, float[2, 1, 1] k = {{1, 2}}",
                f"{REPEAT} y = Mul(k, e)",
            ),
            graph(
                "float[2, n, 2] y",
                "float[2, 1, 2] c = {1, 3, 2, 6}, int64[1] o = {1}",
                "s = Concat<axis = 0>(o, n, o) y = Expand(c, s)",
            ),
            SIZES,
        ),
        "repeated by Tile and Expand": (
            graph(
                "bool[n, 2] y",
                f"{ROWS}, float[1, 2] d = {{2, 2}}",
                f"{REPEAT} f = Tile(d, s) y = Less(e, f)",
            ),
            repeated("1, 2", "1, 0", "bool"),
            SIZES,
        ),
        "one number, a constant with fewer dimensions": (
            graph(
                "int64[n, 2] y",
                "int64[1] t = {2}, int64[2] k = {4, 5}",
                "s = Concat<axis = 0>(n, t) f = ConstantOfShape<value = int64[1] {3}>(s)"
                " y = Sub(f, k)",
            ),
            graph(
                "int64[n, 2] y",
                "int64[2] c = {-1, -2}, int64[1] o = {1}",
                "s = Concat<axis = 0>(n, o) y = Expand(c, s)",
            ),
            SIZES,
        ),
        "a constant is expanded along other axes too": (
            graph(
                "float[n, 3, 2] y",
                "float[1, 1, 2] c = {1, 3}, int64[2] o = {3, 1}, float[2] k = {10, 20}",
                f"{REPEAT} y = Add(e, k)",
            ),
            graph(
                "float[n, 3, 2] y",
                "float[1, 1, 2] c = {11, 23}, int64[2] o = {3, 1}",
                "s = Concat<axis = 0>(n, o) y = Expand(c, s)",
            ),
            SIZES,
        ),
        "one operand": (
            graph("float[n, 2] y", ROWS, f"{REPEAT} y = Neg(e)"),
            repeated("1, 2", "-1, -3"),
            SIZES,
        ),
        "Where": (
            graph(
                "float[n, 2] y",
                f"{ROWS}, bool[2] b = {{1, 0}}, float k = {{5}}",
                f"{REPEAT} y = Where(b, e, k)",
            ),
            repeated("1, 2", "1, 5"),
            SIZES,
        ),
        "used elsewhere": (
            graph(
                "float[n, 2] y, float[n, 2] v",
                f"{ROWS}, float[2] k = {{10, 20}}",
                f"{REPEAT} v = Add(x, e) y = Add(e, k)",
            ),
            graph(
                "float[n, 2] y, float[n, 2] v",
                f"{ROWS}, float[1, 2] k = {{11, 23}}",
                f"{REPEAT} v = Add(x, e) y = Expand(k, s)",
            ),
            SIZES,
        ),
        "CumSum of one number": (
            graph(
                "float[n, 2, 3] y",
                "int64[2] d = {2, 3}, int64 a = {2}",
                "s = Concat<axis = 0>(n, d) f = ConstantOfShape<value = float[1] {1}>(s)"
                " y = CumSum<exclusive = 1, reverse = 1>(f, a)",
            ),
            repeated("1, 2, 3", "2, 1, 0, 2, 1, 0"),
            FULL,
        ),
        "CumSum, integers, the first axis counted from the end": (
            graph(
                "int64[n, 2] y",
                "int64[1, 2] c = {1, 3}, int64[1] o = {1}, int64 a = {-1}",
                f"{REPEAT} y = CumSum(e, a)",
            ),
            repeated("1, 2", "1, 4", "int64"),
            FULL,
        ),
        "Slice": (
            graph("float[n, 1, 2] y", f"{CUBE}, {AXES}", f"{REPEAT} y = Slice(e, a, t, a)"),
            repeated("1, 1, 2", "3, 4"),
            SIZES,
        ),
        "Concat": (
            graph(
                "float[n, 4] y",
                f"{ROWS}, float[1, 2] d = {{5, 6}}",
                f"{REPEAT} f = Tile(d, s) y = Concat<axis = 1>(e, f)",
            ),
            repeated("1, 4", "1, 3, 5, 6"),
            SIZES,
        ),
        "Transpose": (
            graph("float[2, n, 2] y", CUBE, f"{REPEAT} y = Transpose<perm = [2, 0, 1]>(e)"),
            graph(
                "float[2, n, 2] y",
                "float[2, 1, 2] c = {1, 3, 2, 4}, int64[1] o = {1}",
                "s = Concat<axis = 0>(o, n, o) y = Expand(c, s)",
            ),
            SIZES,
        ),
        "Reshape": (
            graph("float[n, 4] y", f"{CUBE}, int64[2] k = {{0, 4}}", f"{REPEAT} y = Reshape(e, k)"),
            repeated("1, 4", "1, 2, 3, 4"),
            FULL,
        ),
        "Reshape, the batch comes after": (
            graph(
                "float[4, n] y",
                "float[2, 2, 1] c = {1, 2, 3, 4}, int64[2] o = {2, 2}, int64[2] k = {4, -1}",
                "s = Concat<axis = 0>(o, n) e = Expand(c, s) y = Reshape(e, k)",
            ),
            graph(
                "float[4, n] y",
                "float[4, 1] c = {1, 2, 3, 4}, int64[1] o = {1}",
                "s = Concat<axis = 0>(o, n) y = Expand(c, s)",
            ),
            SIZES,
        ),
        "Unsqueeze, Squeeze": (
            graph(
                "float[n, 2] y",
                f"{ROWS}, {AXES}",
                f"{REPEAT} u = Unsqueeze(e, z) y = Squeeze(u, z)",
            ),
            repeated("1, 2", "1, 3"),
            SIZES,
        ),
        "Softmax": (
            graph(
                "float[n, 2] y",
                "float[1, 2] c = {3, 3}, int64[1] o = {1}",
                f"{REPEAT} y = Softmax(e)",
            ),
            repeated("1, 2", "0.5, 0.5"),
            FULL,
        ),
        "LayerNormalization": (
            graph(
                "float[n, 2] y",
                "float[1, 2] c = {3, 3}, int64[1] o = {1}, float[2] k = {1, 2}",
                f"{REPEAT} y = LayerNormalization(e, k, k)",
            ),
            repeated("1, 2", "1, 2"),
            FULL,
        ),
    },
    "RepeatedProduct": {
        "MatMul, the batch of the first operand": (
            graph(
                "float[n, 2, 1] y",
                f"{CUBE}, float[2, 1] k = {{1, 1}}",
                f"{REPEAT} y = MatMul(e, k)",
            ),
            repeated("1, 2, 1", "3, 7"),
            SIZES,
        ),
        "MatMul, the batch of both": (
            graph(
                "float[n, 2, 2] y",
                f"{CUBE}, float[1, 2, 2] d = {{1, 0, 0, 2}}",
                f"{REPEAT} f = Expand(d, s) y = MatMul(f, e)",
            ),
            repeated("1, 2, 2", "1, 2, 6, 8"),
            SIZES,
        ),
        "MatMul, the batch of the second one": (
            graph(
                "float[n, 1, 2] y",
                f"{CUBE}, float[1, 2] k = {{1, 1}}",
                f"{REPEAT} y = MatMul(k, e)",
            ),
            repeated("1, 1, 2", "4, 6"),
            SIZES,
        ),
        "MatMul, rows": (
            graph(
                "float[2, n, 1] y",
                f"{ROWS}, float[2, 2, 1] k = {{1, 1, 1, 2}}",
                f"{REPEAT} y = MatMul(e, k)",
            ),
            graph(
                "float[2, n, 1] y",
                "float[2, 1, 1] c = {4, 7}, int64[1] o = {1}",
                "s = Concat<axis = 0>(o, n, o) y = Expand(c, s)",
            ),
            SIZES,
        ),
        "Gemm": (
            graph(
                "float[n, 1] y",
                f"{ROWS}, float[1, 2] k = {{1, 1}}, float[1] b = {{1}}",
                f"{REPEAT} y = Gemm<transB = 1>(e, k, b)",
            ),
            repeated("1, 1", "5"),
            FULL,
        ),
        "Gemm, transposed": (
            graph(
                "float[n, 1] y",
                "float[2, 1] c = {1, 3}, int64[1] o = {1}, float[2, 1] k = {1, 1}",
                "s = Concat<axis = 0>(o, n) e = Expand(c, s) y = Gemm<transA = 1>(e, k)",
            ),
            repeated("1, 1", "4"),
            FULL,
        ),
        "Attention": (
            graph(
                "float[n, 1, 2] y",
                "float[1, 1, 2] c = {1, 2}, int64[2] o = {1, 1}",
                f"{REPEAT} y = Attention<q_num_heads = 1, kv_num_heads = 1>(e, e, e)",
            ),
            repeated("1, 1, 2", "1, 2"),
            {**FULL, "opset": 23},
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)


def big_constant(body: str, more: str) -> ModelProto:
    """A model that repeats a constant of 120,000 bytes, more than what folds may add."""
    outputs = f"float[n, 200, 150] y{more}"
    model = model_from_text(graph(outputs, CUBE, f"{REPEAT} {body}"))
    (c,) = [i for i in model.graph.initializer if i.name == "c"]
    c.CopyFrom(from_array(np.arange(30_000, dtype=np.float32).reshape(1, 200, 150), "c"))
    return model


def test_what_goes_away_makes_room() -> None:
    check_pattern(big_constant("y = Neg(e)", ""), None, "RepeatedConstant", **SIZES)
    twice = big_constant("y = Neg(e) v = Relu(c)", ", float[1, 200, 150] v")
    check_no_match(twice, "RepeatedConstant", "the model would grow")


# -- refusals: batches whose elements differ, or results too large to be written

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
