"""Resize with the channels last, or with products."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

TO_LAST = "perm = [0, 2, 3, 1]"
TO_SECOND = "perm = [0, 3, 1, 2]"
LINEAR = 'mode = "linear"'
CUBIC = 'mode = "cubic"'


def model(body: str, x: str = "n, 16, 8, 8", y: str = "n, 16, 16, 16", opset: int = 18) -> str:
    """One picture in, one out."""
    return (
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{x}] x) => (float[{y}] y) '
        "<float[4] twice = {1, 1, 2, 2}, float[4] turned = {1, 2, 2, 1}, float[2] two = {2, 2},"
        " float[4] half = {1, 1, 2, 0.5}, float[4] shrunk = {1, 2, 0.5, 1}, int64[2] sides = {16, 16},"
        " int64[4] last = {0, 2, 3, 1}, float[4] batch = {2, 1, 2, 2}, float[4] row = {1, 1, 2, 1},"
        " int64[1] channels = {16}, int64[4] picture = {0, 16, 8, 8}> { " + body + " }"
    )


def after_it(attributes: str, inputs: str) -> str:
    """The Transpose behind a Resize."""
    return f"r = Resize<{attributes}>(x, {inputs}) y = Transpose<{TO_SECOND}>(r)"


def before_it(attributes: str, inputs: str = ", twice") -> str:
    """The Transpose in front of a Resize."""
    return f"t = Transpose<{TO_SECOND}>(x) y = Resize<{attributes}>(t, {inputs})"


def around(attributes: str, inputs: str = ", twice") -> str:
    """One on each side."""
    moved = f"t = Transpose<{TO_SECOND}>(x) r = Resize<{attributes}>(t, {inputs})"
    return f"{moved} y = Transpose<{TO_LAST}>(r)"


def cubic(
    more: str = "", inputs: str = ", , , sizes", x: str = "1, 2, 3, 6", y: str = "1, 2, 6, 3"
) -> str:
    """A cubic Resize to known sides, nothing moves the channels."""
    return (
        f'<ir_version: 8, opset_import: ["" : 19]> g (float[{x}] x) => (float[{y}] y) '
        "<int64[4] sizes = {1, 2, 6, 3}, float[4] third = {1, 1, 1.3, 1}, float[4] row = {1, 1, 2, 1}>"
        f"{{ y = Resize<{CUBIC}{more}>(x{inputs}) }}"
    )


#: weights of a side of two pixels that becomes four
ROWS = (
    "1.10546875, -0.10546875, 0.7734375, 0.2265625, 0.2265625, 0.7734375, -0.10546875, 1.10546875"
)


def plain(attributes: str, inputs: str = ", twice") -> str:
    """One Resize."""
    return f"y = Resize<{attributes}>(x, {inputs})"


LAST = "n, 8, 8, 16"
ANY = ("n, h, w, 3", "n, a, b, 3")
SIZES = "m = Shape<start = 0, end = 1>(x) s = Concat<axis = 0>(m, channels, sides)"
NEAREST = 'mode = "nearest"'
#: what the documentation draws: name -> (before, after)
MODELS = {
    "ResizeChannelsLast": {
        "linear, one Transpose": (
            model(before_it(LINEAR), LAST),
            model(after_it(LINEAR, ", turned"), LAST),
        ),
        "cubic, sides of any length": (
            model(before_it(CUBIC), "n, h, w, 3", "n, 3, a, b"),
            model(after_it(CUBIC, ", turned"), "n, h, w, 3", "n, 3, a, b"),
        ),
        "nearest, both Transpose": (
            model(around(NEAREST), *ANY),
            model(f"y = Resize<{NEAREST}>(x, , turned)", *ANY),
        ),
    },
    "ResizeCubicProducts": {
        "rows": (
            cubic(inputs=", , row", x="n, 3, 2, 5", y="n, 3, 4, 5"),
            "g (float[n, 3, 2, 5] x) => (float[n, 3, 4, 5] y)"
            f"<float[4, 2] w = {{{ROWS}}}> {{ y = MatMul(w, x) }}",
        ),
    },
}
#: pattern -> case -> (before, after)
CASES = {
    "ResizeChannelsLast": {
        "computed sizes, known sides": (
            model(f"{SIZES} {before_it(LINEAR, ', , s')}", LAST),
            model(after_it(f"{LINEAR}, axes = [1, 2]", ", , sides"), LAST),
        ),
        "computed sizes of the result of the Transpose": (
            model(
                f"t = Transpose<{TO_SECOND}>(x) m = Shape<end = 2>(t) s = Concat<axis = 0>(m, sides)"
                f" y = Resize<{LINEAR}>(t, , , s)",
                LAST,
            ),
            model(after_it(f"{LINEAR}, axes = [1, 2]", ", , sides"), LAST),
        ),
        "the sides only": (
            model(before_it(f"{LINEAR}, axes = [2, 3]", ", two"), LAST),
            model(after_it(f"{LINEAR}, axes = [1, 2]", ", two"), LAST),
        ),
        "computed sizes, before axes": (
            model(f"{SIZES} {before_it(LINEAR, ', , s')}", LAST, opset=17),
            model(f"{SIZES} q = Gather(s, last) {after_it(LINEAR, ', , q')}", LAST, opset=17),
        ),
        "a Transpose after it": (
            model(
                f"r = Resize<{LINEAR}>(x, , twice) y = Transpose<{TO_LAST}>(r)",
                "n, 16, h, w",
                "n, a, b, 16",
            ),
            model(
                f"t = Transpose<{TO_LAST}>(x) y = Resize<{LINEAR}>(t, , turned)",
                "n, 16, h, w",
                "n, a, b, 16",
            ),
        ),
        "rows of a picture": (
            model(
                "t = Transpose<perm = [0, 2, 1]>(x) p = Reshape(t, picture)"
                f" y = Resize<{LINEAR}>(p, , twice)",
                "n, 64, 16",
            ),
            model(
                "t = Transpose<perm = [0, 2, 1]>(x) p = Reshape(t, picture)"
                f" u = Transpose<{TO_LAST}>(p) r = Resize<{LINEAR}>(u, , turned)"
                f" y = Transpose<{TO_SECOND}>(r)",
                "n, 64, 16",
            ),
        ),
        "linear, 8 channels, both Transpose": (
            model(around(LINEAR, ", half"), "n, h, w, 8", "n, a, b, 8"),
            model(f"y = Resize<{LINEAR}>(x, , shrunk)", "n, h, w, 8", "n, a, b, 8"),
        ),
    },
}
#: pattern -> case -> (model, reason)
REFUSED = {
    "ResizeCubicProducts": {
        "linear": (model(plain(LINEAR)), "it is not cubic"),
        "sides of any length": (
            model(plain(CUBIC), "n, 3, h, w", "n, 3, a, b"),
            "the sides are not known",
        ),
        "a size that is rounded": (
            cubic(inputs=", , third", y="1, 2, 3, 6"),
            "the size is rounded",
        ),
        "a large matrix": (
            model(plain(CUBIC), "1, 1, 8, 1024", "1, 1, 16, 2048"),
            "the matrix would be large",
        ),
        "another way to place the pixels": (
            cubic(', coordinate_transformation_mode = "half_pixel_symmetric"'),
            "the pixels are placed in another way",
        ),
        "a single pixel": (
            cubic(
                ', coordinate_transformation_mode = "pytorch_half_pixel"', y="1, 2, 1, 1"
            ).replace("{1, 2, 6, 3}", "{1, 2, 1, 1}"),
            "runtimes place a single pixel in two ways",
        ),
        "pictures are repeated": (
            model(plain(CUBIC, ", batch"), "3, 16, 8, 8", "6, 16, 16, 16"),
            "the first two dimensions may change",
        ),
        "smoothed": (cubic(", antialias = 1"), "it crops, smooths or keeps the ratio"),
        "doubles": (
            cubic()
            .replace("(float[1, 2, 3", "(double[1, 2, 3")
            .replace("(float[1, 2, 6", "(double[1, 2, 6"),
            "the elements are not float",
        ),
        "a volume": (
            '<ir_version: 8, opset_import: ["" : 18]> g (float[1, 2, 3] x) => (float[1, 2, 6] y)'
            f"<float[3] s = {{1, 1, 2}}> {{ y = Resize<{CUBIC}>(x, , s) }}",
            "it is not a picture",
        ),
        "infinities": (
            cubic()
            .replace("{ y = Resize", "{ m = Where(c, x, low) y = Resize")
            .replace(">(x, , , sizes", ">(m, , , sizes")
            .replace(" x) =>", " x, bool[1, 2, 3, 6] c) =>")
            .replace("<int64[4] sizes", "<float low = {-inf}, int64[4] sizes"),
            "the picture holds infinities",
        ),
    },
    "ResizeChannelsLast": {
        "no Transpose": (model(f"y = Resize<{CUBIC}>(x, , twice)"), "no Transpose would be saved"),
        "the Transpose is used elsewhere": (
            model(
                f"t = Transpose<{TO_SECOND}>(x) r = Resize<{LINEAR}>(t, , twice)"
                " q = ReduceSum(t) y = Add(r, q)",
                LAST,
            ),
            "no Transpose would be saved",
        ),
        "another Transpose": (
            model(
                f"t = Transpose<perm = [0, 1, 3, 2]>(x) y = Resize<{LINEAR}>(t, , twice)",
                "n, 16, 8, 8",
            ),
            "no Transpose would be saved",
        ),
        "rows of a picture, used elsewhere": (
            model(
                "t = Transpose<perm = [0, 2, 1]>(x) p = Reshape(t, picture)"
                f" r = Resize<{LINEAR}>(p, , twice) q = ReduceSum(p) y = Add(r, q)",
                "n, 64, 16",
            ),
            "no Transpose would be saved",
        ),
        "nearest, one Transpose": (model(before_it(NEAREST), LAST), "one Transpose is missing"),
        "few channels": (
            model(before_it(LINEAR), "n, 8, 8, 8", "n, 8, 16, 16"),
            "there are fewer than 16 channels",
        ),
        "an unknown number of channels": (
            model(before_it(LINEAR), "n, 8, 8, c", "n, c, 16, 16"),
            "there are fewer than 16 channels",
        ),
        "few channels, both Transpose": (
            model(around(LINEAR), *ANY),
            "there are fewer than 8 channels",
        ),
        "sides of any length": (
            model(before_it(LINEAR), "n, h, w, 16", "n, 16, a, b"),
            "too small, too large, or not known",
        ),
        "a large result": (
            model(before_it(LINEAR), "n, 64, 64, 64", "n, 64, 128, 128"),
            "too small, too large, or not known",
        ),
        "a small result": (
            model(before_it(LINEAR), "n, 2, 2, 16", "n, 16, 4, 4"),
            "too small, too large, or not known",
        ),
        "a side shrinks, linear": (
            model(before_it(LINEAR, ", half"), LAST, "n, 16, 16, 4"),
            "a side may shrink",
        ),
        "a side shrinks, cubic, both Transpose": (
            model(around(CUBIC, ", half"), *ANY),
            "a side may shrink",
        ),
        "unknown sizes, cubic": (
            model(
                f"s = Shape(w) {around(CUBIC, ', , s')}",
                "n, h, w, 3, float[n, 3, a, b] w",
                "n, a, b, 3",
            ).replace("3, float[n, 3, a, b] w] x", "3] x, float[n, 3, a, b] w"),
            "a side may shrink",
        ),
        "the last side stays": (
            model(before_it(CUBIC, ", row"), LAST, "n, 16, 16, 8"),
            "the last dimension may not change",
        ),
        "pictures are repeated": (
            model(around(NEAREST, ", batch"), "3, 8, 8, 16", "6, 16, 16, 16"),
            "the first two dimensions may change",
        ),
        "smoothed": (
            model(before_it(f"{LINEAR}, antialias = 1"), LAST),
            "it crops, smooths or keeps the ratio of both sides",
        ),
        "weights inside only": (
            model(before_it(f"{CUBIC}, exclude_outside = 1"), LAST),
            "it crops, smooths or keeps the ratio of both sides",
        ),
        "a row": (
            '<ir_version: 8, opset_import: ["" : 18]> g (float[n, 8, 16] x) => (float[n, 16, 16] y)'
            "<float[3] s = {1, 1, 2}> { t = Transpose<perm = [0, 2, 1]>(x)"
            f" y = Resize<{LINEAR}>(t, , s) }}",
            "it is not a picture",
        ),
        "doubles": (
            model(before_it(LINEAR), LAST)
            .replace("(float[n, 8", "(double[n, 8")
            .replace("(float[n, 16", "(double[n, 16"),
            "the elements are not float",
        ),
    },
}
test_rewrites = rewrite_tests(MODELS, atol=1e-5)
test_cases = rewrite_tests(CASES, atol=1e-5)
test_refused = refusal_tests(REFUSED)


@pytest.mark.parametrize("sizes", ["1, 2, 6, 3", "1, 2, 7, 9", "1, 2, 2, 2", "1, 2, 3, 13"])
@pytest.mark.parametrize("more", ["", ", cubic_coeff_a = -0.5"])
@pytest.mark.parametrize(
    "transformation", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
)
def test_same_pixels_with_products(transformation, more, sizes):
    """Larger, smaller and equal sides, as onnxruntime and the reference compute them."""
    text = cubic(f'{more}, coordinate_transformation_mode = "{transformation}"', y=sizes)
    text = text.replace("{1, 2, 6, 3}", f"{{{sizes}}}")
    x = np.random.default_rng(0).standard_normal((1, 2, 3, 6)).astype(np.float32)
    check_pattern(text, None, "ResizeCubicProducts", feeds=[{"x": x}], atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(
    "transformation",
    ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"],
)
def test_same_pixels(mode, transformation):
    """Every way to place the pixels, scales that are not whole."""
    attributes = f'mode = "{mode}", coordinate_transformation_mode = "{transformation}"'
    text = model(around(attributes, ", , last"), "2, 9, 5, 16", "2, 16, 13, 16", 19)
    text = text.replace("{0, 2, 3, 1}", "{2, 16, 16, 13}")
    x = np.random.default_rng(0).standard_normal((2, 9, 5, 16)).astype(np.float32)
    check_pattern(text, None, "ResizeChannelsLast", feeds=[{"x": x}], atol=1e-5)
