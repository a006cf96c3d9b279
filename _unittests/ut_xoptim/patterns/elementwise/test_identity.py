"""Operations that change nothing: what goes, what stays."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

X = "g (float[a, 3] x) => (float[a, 3] y)"
SCALES = "float[2] one = {1, 1}, float[2] zero = {0, 0}"
RELU = f"{X} {{ y = Relu(x) }}"


def _op(op: str, constant: str = "float[3] c = {0, 0, 0}", header: str = X) -> str:
    return f"{header} <{constant}> {{ z = {op} y = Relu(z) }}"


#: operators of any number of operands
COMBINES = ("Max", "Mean", "Min", "Sum")
IMAGE = "g (float[a, 4, b, 6] x) => (float[c, d, e, f] y) {{ {} }}"
MODELS = {
    "Identity": {
        "x xor False": (
            "g (bool[a, 3] x) => (bool[a, 3] y) <bool c = {0}> { y = Xor(c, x) }",
            "g (bool[a, 3] x) => (bool[a, 3] y) { y = Identity(x) }",
        ),
        "x + 0": (_op("Add(x, c)"), RELU),
        "0 + x": (_op("Add(c, x)"), RELU),
        "x - 0": (_op("Sub(x, c)", "float c = {0}"), RELU),
        "x * 1": (_op("Mul(x, c)", "float[1] c = {1}"), RELU),
        "1 * x": (_op("Mul(c, x)", "float[1, 3] c = {1, 1, 1}"), RELU),
        "x / 1": (_op("Div(x, c)", "float[1, 1] c = {1}"), RELU),
        "x and true": (
            "g (bool[a, 3] x) => (bool[a, 3] y) <bool c = {1}> { z = And(x, c) y = Not(z) }",
            "g (bool[a, 3] x) => (bool[a, 3] y) { y = Not(x) }",
        ),
        "x or false": (
            "g (bool[a, 3] x) => (bool[a, 3] y) <bool[1] c = {0}> { z = Or(c, x) y = Not(z) }",
            "g (bool[a, 3] x) => (bool[a, 3] y) { y = Not(x) }",
        ),
        "integers": (
            "g (int64[a] x) => (int64[a] y) <int64 c = {1}> { z = Div(x, c) y = Neg(z) }",
            "g (int64[a] x) => (int64[a] y) { y = Neg(x) }",
        ),
        "a constant plus zero": (
            "g (float[3] x) => (float[3] y) <float[3] u = {1, 2, 3}, float[3] v = {0, 0, 0}>"
            "{ z = Add(u, v) y = Add(x, z) }",
            "g (float[3] x) => (float[3] y) <float[3] u = {1, 2, 3}> { y = Add(x, u) }",
        ),
        "zero plus a constant": (
            "g (float[3] x) => (float[3] y) <float[3] u = {1, 2, 3}, float[3] v = {0, 0, 0}>"
            "{ z = Add(v, u) y = Add(x, z) }",
            "g (float[3] x) => (float[3] y) <float[3] u = {1, 2, 3}> { y = Add(x, u) }",
        ),
        "rank 0": (
            "g (float x) => (float y) <float c = {0}> { z = Add(x, c) y = Relu(z) }",
            "g (float x) => (float y) { y = Relu(x) }",
        ),
        "straight from an input to an output": (
            "g (float[a] x) => (float[a] y) <float c = {0}> { y = Add(x, c) }",
            "g (float[a] x) => (float[a] y) { y = Identity(x) }",
        ),
        "a matrix is flat": (f"{X} {{ z = Flatten(x) y = Relu(z) }}", RELU),
        "a matrix is flat, from the end": (f"{X} {{ z = Flatten<axis=-1>(x) y = Relu(z) }}", RELU),
        "one row is flat": (
            "g (float[1, a] x) => (float[1, a] y) { z = Flatten<axis=0>(x) y = Relu(z) }",
            "g (float[1, a] x) => (float[1, a] y) { y = Relu(x) }",
        ),
        "repeated once": (_op("Tile(x, c)", "int64[2] c = {1, 1}"), RELU),
        "one part": (f"{X} {{ z = Split<axis=1, num_outputs=1>(x) y = Relu(z) }}", RELU),
        **{f"{op} alone": (f"{X} {{ z = {op}(x) y = Relu(z) }}", RELU) for op in COMBINES},
        "no axis to insert": (_op("Unsqueeze(x, c)", "int64[0] c = {}"), RELU),
        "blocks of 1 of depth": (
            IMAGE.format("z = DepthToSpace<blocksize=1>(x) y = Relu(z)"),
            IMAGE.format("y = Relu(x)"),
        ),
        "blocks of 1 of space": (
            IMAGE.format("z = SpaceToDepth<blocksize=1>(x) y = Relu(z)"),
            IMAGE.format("y = Relu(x)"),
        ),
        "identity permutation": (_op("Transpose<perm=[0, 1]>(x)"), RELU),
        "rank 1 without permutation": (
            "g (float[a] x) => (float[a] y) { z = Transpose(x) y = Relu(z) }",
            "g (float[a] x) => (float[a] y) { y = Relu(x) }",
        ),
        "slice to the end": (
            _op("Slice(x, c, e)", "int64[1] c = {0}, int64[1] e = {9223372036854775807}"),
            RELU,
        ),
        "slice of a known dimension": (
            _op("Slice(x, c, e, a)", "int64[1] c = {0}, int64[1] e = {4}, int64[1] a = {-1}"),
            RELU,
        ),
        "slice that reverses one element": (
            "g (float[a, 1] x) => (float[a, 1] y) <int64[1] s = {-1}, int64[1] e = {-9}, int64[1] i = {1}>"
            "{ z = Slice(x, s, e, i, s) y = Relu(z) }",
            "g (float[a, 1] x) => (float[a, 1] y) { y = Relu(x) }",
        ),
        "slice without axes, with steps": (
            _op(
                "Slice(x, c, e, , s)",
                "int64[1] c={0}, int64[1] e={9223372036854775807}, int64[1] s={1}",
            ),
            RELU,
        ),
        "slice with int32 bounds": (
            _op("Slice(x, c, e)", "int32[1] c = {0}, int32[1] e = {2147483647}"),
            RELU,
        ),
        "pads": (_op("Pad(x, c)", "int64[4] c = {0, 0, 0, 0}"), RELU),
        "reflected pads": (
            _op('Pad<mode = "reflect">(x, c)', "int64[4] c = {0, 0, 0, 0}"),
            RELU,
        ),
        "pads along an axis": (
            _op("Pad(x, c, , c)", "int64[2] c = {0, 0}, int64[1] d = {0}").replace(
                "(x, c, , c)", "(x, c, , d)"
            ),
            RELU,
        ),
        "scales": (_op("Resize(x, , c)", "float[2] c = {1, 1}"), RELU),
        "scales, linear": (
            _op(
                'Resize<mode = "linear", coordinate_transformation_mode = "align_corners">(x, , c)',
                "float[2] c = {1, 1}",
            ),
            RELU,
        ),
        "sizes": (
            "g (float[a, 3] x) => (float[a, 3] y)"
            ' { s = Shape(x) z = Resize<mode = "cubic">(x, , , s) y = Relu(z) }',
            RELU,
        ),
        "expand by ones": (_op("Expand(x, c)", "int64[2] c = {1, 1}"), RELU),
        "expand to nothing": (_op("Expand(x, c)", "int64[0] c = {}"), RELU),
        "batch normalization": (
            f"g (float[a, 2, b] x) => (float[a, 2, b] y) <{SCALES}>"
            "{ z = BatchNormalization<epsilon = 0.0>(x, one, zero, zero, one) y = Relu(z) }",
            "g (float[a, 2, b] x) => (float[a, 2, b] y) { y = Relu(x) }",
        ),
    },
    "Dropout": {
        "no training mode": (f"{X} {{ d = Dropout(x) y = Relu(d) }}", RELU),
        "ratio": (f"{X} <float r = {{0.5}}> {{ d = Dropout(x, r) y = Relu(d) }}", RELU),
        "training mode is false": (
            f"{X} <float r = {{0.5}}, bool t = {{0}}> {{ d = Dropout(x, r, t) y = Relu(d) }}",
            RELU,
        ),
        "no ratio": (f"{X} <bool t = {{0}}> {{ d = Dropout(x, , t) y = Relu(d) }}", RELU),
        "unused mask": (f"{X} {{ d, m = Dropout(x) y = Relu(d) }}", RELU),
        "a ratio of 0 in training": (
            f"{X} <float r = {{0}}, bool t = {{1}}> {{ d = Dropout(x, r, t) y = Relu(d) }}",
            RELU,
        ),
        "a ratio of 0, training mode is an input": (
            "g (float[a, 3] x, bool t) => (float[a, 3] y) <float r = {0}>"
            "{ d = Dropout(x, r, t) y = Relu(d) }",
            "g (float[a, 3] x, bool t) => (float[a, 3] y) { y = Relu(x) }",
        ),
    },
    "ShapeBasedIdentity": {
        "the end is the dimension": (
            "g (float[a, 3] x) => (float[a, 3] y) <int64[1] s = {0}, int64[1] i = {0}>"
            "{ e = Shape<start = 0, end = 1>(x) z = Slice(x, s, e, i) y = Relu(z) }",
            RELU,
        ),
        "steps": (
            "g (float[a, 3] x, float[a, 3] u) => (float[a, 3] y) <int64[1] s = {0},"
            " int64[1] i = {-2}, int64[1] t = {1}>"
            "{ e = Shape<start = 0, end = 1>(u) z = Slice(x, s, e, i, t) y = Relu(z) }",
            "g (float[a, 3] x, float[a, 3] u) => (float[a, 3] y) { y = Relu(x) }",
        ),
        "a start from the end": (
            _op("Slice(x, s, e, i)", "int64[1] s = {-3}, int64[1] e = {3}, int64[1] i = {1}"),
            RELU,
        ),
    },
    "BatchNormalization": {
        "inference": (
            f"g (float[a, 2, b] x) => (float[a, 2, b] y) <{SCALES}>"
            "{ z = BatchNormalization<epsilon = 0.0, momentum = 1.0>(x, one, zero, zero, one)"
            "  y = Relu(z) }",
            "g (float[a, 2, b] x) => (float[a, 2, b] y) { y = Relu(x) }",
        ),
    },
}

BATCH = "g (float[a, 2] x) => (float[a, 2] y)"
NORMALIZATIONS = {
    "default epsilon": ("BatchNormalization(x, one, zero, zero, one)", "epsilon"),
    "training": (
        "BatchNormalization<epsilon=0.0, training_mode=1>(x, one, zero, zero, one)",
        "training",
    ),
    "scale": ("BatchNormalization<epsilon=0.0>(x, zero, zero, zero, one)", "parameter"),
    "bias": ("BatchNormalization<epsilon=0.0>(x, one, one, zero, one)", "parameter"),
    "mean": ("BatchNormalization<epsilon=0.0>(x, one, zero, one, one)", "parameter"),
    "variance": ("BatchNormalization<epsilon=0.0>(x, one, zero, zero, zero)", "parameter"),
}

NEAR_MISSES = {
    "an axis is inserted": (
        "g (float[a] x) => (float[b, a] y) <int64[1] c = {0}> { y = Unsqueeze(x, c) }",
        "the axes are not an empty constant",
    ),
    "blocks of 2": (
        IMAGE.format("y = DepthToSpace<blocksize=2>(x)"),
        "the blocks are not of size 1",
    ),
    "flat, of rank 3": (
        "g (float[a, 3, 1] x) => (float[a, 3] y) { z = Flatten(x) y = Relu(z) }",
        "the rank changes",
    ),
    "flat, at axis 0": (
        "g (float[a, 3] x) => (float[1, b] y) { z = Flatten<axis=0>(x) y = Relu(z) }",
        "the shape may change",
    ),
    "repeated": (
        "g (float[a, 3] x) => (float[a, 6] y) <int64[2] c = {1, 2}> { z = Tile(x, c) y = Relu(z) }",
        "something is repeated",
    ),
    "repeats of a run": (
        "g (float[a, 3] x, int64[2] c) => (float[b, d] y) { z = Tile(x, c) y = Relu(z) }",
        "the repeats are not known",
    ),
    "two parts": (
        "g (float[a, 4] x) => (float[a, 2] y) "
        "{ z, u = Split<axis=1, num_outputs=2>(x) v = Relu(z) y = Add(v, u) }",
        "there are several parts",
    ),
    "two operands": (
        f"{X} {{ n = Neg(x) z = Max(x, n) y = Relu(z) }}",
        "there are several operands",
    ),
    "batch normalization, other results": (
        f"{BATCH} <{SCALES}>"
        "{ y, m, v = BatchNormalization<epsilon = 0.0>(x, one, zero, zero, one) }",
        "it is training",
        {"opset": 13},
    ),
    "batch normalization, opset 6": (
        f"{BATCH} <{SCALES}> {{ y = BatchNormalization<epsilon = 0.0>(x, one, zero, zero, one) }}",
        "the opset is too old",
        {"opset": 6},
    ),
    "two inputs": (
        "g (float[a] x, float[a] u) => (float[a] y) { y = Add(x, u) }",
        "'u' cannot be 0, it is not a constant",
    ),
    "an initializer that is an input": (
        "g (float[3] x, float[3] c) => (float[3] y) <float[3] c = {0, 0, 0}> { y = Add(x, c) }",
        "'c' cannot be 0, it is not a constant",
    ),
    "0 - x": (_op("Sub(c, x)"), "'x' cannot be 0, it is not a constant"),
    "1 / x": (_op("Div(c, x)", "float[1] c = {1}"), "'x' cannot be 1, it is not a constant"),
    "one element differs": (
        _op("Add(x, c)", "float[3] c = {0, 0, 1}"),
        "'c' cannot be the constant 0",
    ),
    "x * 0": (_op("Mul(x, c)"), "'c' cannot be the constant 1"),
    "x and false": (
        "g (bool[a] x) => (bool[a] y) <bool c={0}> { y = And(x, c) }",
        "'c' cannot be the constant True",
    ),
    "rank 0 with a vector": (
        "g (float x) => (float[1] y) <float[1] c = {0}> { y = Add(x, c) }",
        "may change the shape",
    ),
    "the constant has a higher rank": (
        "g (float[a] x) => (float[1, a] y) <float[1, 1] c = {0}> { y = Add(x, c) }",
        "may change the shape",
    ),
    "the constant widens x": (
        "g (float[a, 1] x) => (float[a, 3] y) <float[3] c = {0, 0, 0}> { y = Add(x, c) }",
        "may change the shape",
    ),
    "a symbolic dimension may be 1": (
        "g (float[a] x) => (float[b] y) <float[3] c = {0, 0, 0}> { y = Add(x, c) }",
        "may change the shape",
    ),
    "an empty constant": (
        "g (float[a] x) => (float[b] y) <float[0] c = {}> { y = Add(x, c) }",
        "'c' cannot be the constant 0",
    ),
    "permutation": (
        _op("Transpose<perm=[1, 0]>(x)", header="g (float[3, 3] x) => (float[3, 3] y)"),
        "moves axes",
    ),
    "no permutation": (
        _op("Transpose(x)", header="g (float[3, 3] x) => (float[3, 3] y)"),
        "moves axes",
    ),
    "start": (
        "g (float[a] x) => (float[b] y) <int64[1] s={1}, int64[1] e={9223372036854775807}>"
        "{ y = Slice(x, s, e) }",
        "a start is not 0",
    ),
    "end below": (
        "g (float[3] x) => (float[2] y) <int64[1] s={0}, int64[1] e={2}> { y = Slice(x, s, e) }",
        "an end may cut",
    ),
    "end from the end": (
        "g (float[3] x) => (float[2] y) <int64[1] s={0}, int64[1] e={-1}> { y = Slice(x, s, e) }",
        "an end may cut",
    ),
    "end of an unknown dimension": (
        "g (float[a] x) => (float[b] y) <int64[1] s={0}, int64[1] e={4}> { y = Slice(x, s, e) }",
        "an end may cut",
    ),
    "step -1": (
        "g (float[a] x) => (float[a] y) <int64[1] s={0}, int64[1] e={9223372036854775807},"
        "int64[1] axis={0}, int64[1] t={-1}> { y = Slice(x, s, e, axis, t) }",
        "a step is not 1",
    ),
    "bounds given by an input": (
        "g (float[a] x, int64[1] e) => (float[b] y) <int64[1] s={0}> { y = Slice(x, s, e) }",
        "the bounds are not constant",
    ),
    "expand": (
        _op("Expand(x, c)", "int64[2] c = {2, 1}", "g (float[1, 3] x) => (float[2, 3] y)"),
        "the shape may change",
    ),
    "expand, unknown shape": (
        "g (float[a] x, int64[1] s) => (float[b] y) { y = Expand(x, s) }",
        "the shape may change",
    ),
    "expand to a higher rank": (
        "g (float[a] x) => (float[1, a] y) <int64[2] s = {1, 1}> { y = Expand(x, s) }",
        "the shape may change",
    ),
    "a pad": (
        "g (float[a] x) => (float[b] y) <int64[2] c = {0, 1}> { y = Pad(x, c) }",
        "something is padded",
    ),
    "opposite pads": (
        "g (float[a] x) => (float[a] y) <int64[2] c = {-1, 1}> { y = Pad(x, c) }",
        "something is padded",
    ),
    "pads given by an input": (
        "g (float[a] x, int64[2] c) => (float[b] y) { y = Pad(x, c) }",
        "the pads are not known",
    ),
    "a scale": (
        "g (float[a, 3] x) => (float[b, 3] y) <float[2] c = {2, 1}> { y = Resize(x, , c) }",
        "a scale is not 1",
    ),
    "a scale that is rounded": (  # floor(3 * 1.1) is 3, elements may move
        "g (float[3] x) => (float[3] y) <float[1] c = {1.1}>"
        ' { y = Resize<nearest_mode = "ceil">(x, , c) }',
        "a scale is not 1",
    ),
    "scales given by an input": (
        "g (float[a] x, float[1] c) => (float[b] y) { y = Resize(x, , c) }",
        "a scale is not 1",
    ),
    "sizes": (
        "g (float[a] x, int64[1] c) => (float[b] y) { y = Resize(x, , , c) }",
        "the shape may change",
    ),
    "a crop": (
        "g (float[3] x) => (float[3] y) <float[1] c = {1}, float[2] r = {0, 0.5}>"
        ' { y = Resize<coordinate_transformation_mode = "tf_crop_and_resize">(x, r, c) }',
        "it may crop",
    ),
    "batch normalization": (
        f"{BATCH} <{SCALES}> {{ y = BatchNormalization(x, one, zero, zero, one) }}",
        "epsilon",
    ),
}


test_rewrites = rewrite_tests(MODELS)


SLICES = {
    "a step": (
        "g (float[a] x) => (float[a] y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775807},"
        "int64[1] i = {0}> { y = Slice(x, s, e, i, s) }",
        "a start is not 0",
    ),
    "an unknown step": (
        "g (float[a] x, int64[1] t) => (float[b] y) <int64[1] s = {0}, int64[1] i = {0}>"
        "{ e = Shape(x) y = Slice(x, s, e, i, t) }",
        "the bounds are not constant",
    ),
    "another dimension": (
        "g (float[a] x, float[b] u) => (float[c] y) <int64[1] s = {0}>"
        "{ e = Shape(u) y = Slice(x, s, e) }",
        "the bounds are not constant",
    ),
    "the first ones": (
        "g (float[3] x) => (float[2] y) <int64[1] s = {0}, int64[1] e = {2}>{ y = Slice(x, s, e) }",
        "an end may cut",
    ),
}

DROPOUTS = {
    "training": (
        f"{X} <float r = {{0.5}}, bool t = {{1}}> {{ y = Dropout(x, r, t) }}",
        "it may be training",
    ),
    "training mode is an input": (
        "g (float[a] x, bool t) => (float[a] y) <float r = {0.5}> { y = Dropout(x, r, t) }",
        "it may be training",
    ),
    "training mode may be overridden": (
        "g (float[a] x, bool t) => (float[a] y) <float r = {0.5}, bool t = {0}>"
        "{ y = Dropout(x, r, t) }",
        "it may be training",
    ),
    "the ratio may be overridden": (
        "g (float[a] x, float r, bool t) => (float[a] y) <float r = {0}> { y = Dropout(x, r, t) }",
        "it may be training",
    ),
    "the mask is an output": (
        "g (float[a] x) => (float[a] y, bool[a] m) { y, m = Dropout(x) }",
        "another result of Dropout is used",
    ),
    "the mask is read": (
        "g (float[a] x) => (float[a] y, bool[a] z) { y, m = Dropout(x) z = Not(m) }",
        "another result of Dropout is used",
    ),
}

test_refuses = refusal_tests(
    {"Identity": NEAR_MISSES, "ShapeBasedIdentity": SLICES, "Dropout": DROPOUTS}
)


SHORT = "the bounds do not have the same length"


@pytest.mark.parametrize(
    ("bounds", "opset"),
    [
        ("<int64[1] s = {0}, int64[2] e = {3, 3}> { y = Slice(x, s, e) }", 18),
        (
            "<int64[1] s = {0}, int64[2] e = {3, 3}, int64[2] i = {0, 1}> { y = Slice(x, s, e, i) }",
            18,
        ),
        ("<int64[1] s = {0}, int64[1] e = {3}, int64[2] i = {0, 1}> { y = Slice(x, s, e, i) }", 18),
        ("{ y = Slice<starts=[0], ends=[3, 3]>(x) }", 9),
    ],
)
def test_bounds_of_different_lengths(bounds: str, opset: int):
    """No runtime accepts them."""
    check_no_match(f"{X} {bounds}", "Identity", SHORT, opset)


def test_pads_of_opset_1():
    """The attribute has another name."""
    text = "g (float[a] x) => (float[b] y) { y = Pad<paddings=[0, 1]>(x) }"
    check_no_match(text, "Identity", "the opset is too old", opset=1)


def test_pads_and_scales_of_old_opsets():
    text = f"{X} {{ z = Pad<pads=[0, 0, 0, 0]>(x) y = Relu(z) }}"
    check_pattern(text, RELU, "Identity", opset=10)
    check_no_match(text.replace("[0, 0, 0, 0]", "[0, 0, 1, 0]"), "Identity", "padded", opset=10)
    text = f"{X} <float[2] c = {{1, 1}}> {{ z = Resize(x, c) y = Relu(z) }}"
    check_pattern(text, RELU, "Identity", opset=10, reference=False)


@pytest.mark.parametrize("name", ["pads", "reflected pads", "scales", "scales, linear", "sizes"])
def test_special_values_that_nothing_moves(name: str):
    """Infinities and NaN stay where they are, dimensions of 1 as well."""
    values = np.array([[-0.0, np.nan, np.inf], [0.0, -np.inf, 1e-45]], dtype=np.float32)
    feeds = [{"x": values}, {"x": values[:1]}]
    check_pattern(*MODELS["Identity"][name], "Identity", feeds=feeds, reference="Pad" in name)


@pytest.mark.parametrize("name", NORMALIZATIONS)
@pytest.mark.parametrize("pattern", ["Identity", "BatchNormalization"])
def test_batch_normalization_near_misses(pattern: str, name: str):
    node, reason = NORMALIZATIONS[name]
    check_no_match(f"{BATCH} <{SCALES}> {{ y = {node} }}", pattern, reason)


def test_float16_batch_normalization_keeps_the_default_epsilon():
    # the text gives the bits of float16: 15360 is 1
    text = f"{BATCH} <{SCALES}> {{ y = BatchNormalization(x, one, zero, zero, one) }}"
    text = text.replace("float", "float16").replace("{1, 1}", "{15360, 15360}")
    null = text.replace("Normalization(", "Normalization<epsilon=0.0>(")
    check_pattern(null, None, "BatchNormalization", reference=False, runtime=False)
    check_no_match(text, "BatchNormalization", "epsilon")


def test_batch_normalization_of_old_opsets():
    models = MODELS["BatchNormalization"]["inference"]
    check_pattern(*models, "BatchNormalization", opset=9)
    # the reference evaluator runs the operator of opset 6, which trains
    check_pattern(*models, "BatchNormalization", opset=7, reference=False)


@pytest.mark.parametrize("opset", [7, 9])
def test_slice_with_attributes(opset: int):
    text = f"{X} {{ z = Slice<starts=[0], ends=[3], axes=[1]>(x) y = Relu(z) }}"
    check_pattern(text, RELU, "Identity", opset=opset)
    check_no_match(
        text.replace("ends=[3]", "ends=[2]").replace("3] y", "2] y"), "Identity", "cut", opset
    )


def test_broadcast_of_opset_6_is_left_alone():
    node = "y = Add<axis=0, broadcast=1>(x, c)"
    text = f"g (float[2, 3] x) => (float[2, 3] y) <float[2] c = {{0, 0}}> {{ {node} }}"
    check_no_match(text, "Identity", "may change the shape", opset=6)


def test_negative_zero_nan_and_infinities():
    values = np.array([[-0.0, np.nan, np.inf], [0.0, -np.inf, 1e-45]], dtype=np.float32)
    for name in ("x + 0", "0 + x", "x - 0", "x * 1", "x / 1"):
        check_pattern(*MODELS["Identity"][name], "Identity", feeds=[{"x": values}])


def test_empty_tensors():
    for name in ("x + 0", "slice to the end", "expand by ones", "identity permutation"):
        check_pattern(*MODELS["Identity"][name], "Identity", sizes={"a": 0})


def test_unknown_shape_is_no():
    model = model_from_text("g (float[a] x) => (float[b] y) <float[1] c = {0}> { y = Add(x, c) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    check_no_match(model, "Identity", "may change the shape")


def test_an_attribute_of_a_function_is_unknown():
    nodes = [
        oh.make_node("Transpose", ["x"], ["t"]),
        oh.make_node("BatchNormalization", ["t", "s", "z", "z", "s"], ["y"]),
    ]
    for node, name in zip(nodes, ("perm", "epsilon"), strict=True):
        att = node.attribute.add()
        att.name, att.ref_attr_name = name, name
        att.type = onnx.AttributeProto.INTS if name == "perm" else onnx.AttributeProto.FLOAT
    function = oh.make_function(
        "local",
        "moves",
        ["x", "s", "z"],
        ["y"],
        nodes,
        [oh.make_opsetid("", 18)],
        ["perm", "epsilon"],
    )
    check_no_match_function(function)


def check_no_match_function(function: onnx.FunctionProto):
    """No node of a function is taken for one that changes nothing."""
    from xbuilder import GraphBuilder
    from xoptim.catalogue.selection import get_pattern
    from xoptim.engine.optimizer import GraphBuilderPatternOptimization

    optimizer = GraphBuilderPatternOptimization(GraphBuilder(function), ["Identity"])
    pattern = get_pattern("Identity")
    reasons = [optimizer.explain(pattern, n) for n in optimizer.iter_roots(pattern)]
    assert len(reasons) == 2
    assert not any(r.startswith("MatchResult") for r in reasons), reasons


def test_the_engine_terminates_on_outputs():
    model = model_from_text(
        "g (float[a] x) => (float[a] y, float[a] z) <float c = {0}> { y = Add(x, c) z = Add(y, c) }"
    )
    result, _, _ = optimize_with(model, "Identity")
    assert [n.op_type for n in result.graph.node] == ["Identity", "Identity"]


@pytest.mark.parametrize("opset", [7, 10, 12, 13, 22])
def test_dropout_of_any_opset(opset: int):
    text, after = MODELS["Dropout"]["no training mode"]
    check_pattern(text, after, "Dropout", opset=opset)
    check_pattern(text.replace("d =", "d, m ="), after, "Dropout", opset=opset)


def test_dropout_of_opset_6():
    text = f"{X} {{ d = Dropout(x) y = Relu(d) }}"
    check_no_match(text, "Dropout", "it is training", opset=6)
    model = model_from_text(text.replace("Dropout(x)", "Dropout<is_test=1>(x)"), opset=6)
    result, _, _ = optimize_with(model, "Dropout")
    assert [n.op_type for n in result.graph.node] == ["Relu"]
