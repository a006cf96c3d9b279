"""Pooling by reductions and crops."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

LP = "g (float[a, 4, b, c] x) => (float[a, 4, 1, 1] y) { y = GlobalLpPool(x) }"
AFTER = (
    "g (float[a, 4, b, c] x) => (float[a, 4, 1, 1] y) <int64[2] axes = {2, 3}>"
    "{ y = ReduceL2<keepdims = 1>(x, axes) }"
)
# indices of images drawn at random are under 5
ROI = """g (float[5, 3, h, w] x, float[r, 4] rois, int64[r] b) => (float[r, 3, 2, 2] y) {
    y = RoiAlign<sampling_ratio = 2, output_height = 2, output_width = 2>(x, rois, b) }"""
#: the reference of onnx does not have GlobalLpPool, onnxruntime does not load the model before
MODELS = {
    "MissingGlobalLpPool": {
        "two": (LP, AFTER),
        "one": (LP.replace("Pool(", "Pool<p = 1>("), AFTER.replace("L2", "L1")),
        "double": (LP.replace("float", "double"), AFTER.replace("float", "double")),
        "bfloat16": (
            LP.replace("float", "bfloat16"),
            """g (bfloat16[a, 4, b, c] x) => (bfloat16[a, 4, 1, 1] y) <int64[2] axes = {2, 3}> {
            f = Cast<to = 1>(x) r = ReduceL2<keepdims = 1>(f, axes) y = Cast<to = 16>(r) }""",
        ),
        "three": (
            LP.replace("Pool(", "Pool<p = 3>("),
            """g (float[a, 4, b, c] x) => (float[a, 4, 1, 1] y)
            <float p = {3}, float q = {0.33333334}, int64[2] axes = {2, 3}> {
                m = Abs(x) k = Pow(m, p) s = ReduceSum<keepdims = 1>(k, axes) y = Pow(s, q) }""",
        ),
    },
    "MissingRoiAlign": (
        ROI.replace("sampling_ratio = 2", "sampling_ratio = 1"),
        """g (float[5, 3, h, w] x, float[r, 4] rois, int64[r] b) => (float[r, 3, 2, 2] y)
        <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}, float half = {0.5}, int64[2] parts = {2, 2},
        float one = {1}, float[2] counts = {2, 2}, float[2] end = {1.5, 1.5},
        int64[2] order = {1, 0}, int32[2] size = {2, 2}> {
            px = Pad<mode = "edge">(x, pads) moved = Sub(rois, half)
            first, second = Split<axis = 1>(moved, parts) sizes = Sub(second, first)
            steps = Div(sizes, counts) start = Add(first, one)
            s0 = Mul(steps, half) p0 = Add(start, s0) g0 = Gather<axis = 1>(p0, order)
            d = Shape<start = 2, end = 4>(x) f = Cast<to = 1>(d) limits = Add(f, one)
            b0 = Div(g0, limits)
            s1 = Mul(steps, end) p1 = Add(start, s1) g1 = Gather<axis = 1>(p1, order)
            b1 = Div(g1, limits) boxes = Concat<axis = 1>(b0, b1) i = Cast<to = 6>(b)
            y = com.microsoft.CropAndResize(px, boxes, i, size)
        }""",
    ),
}
REFUSED = {
    "MissingGlobalLpPool": {
        "a kernel": (LP, "onnxruntime loads", {"opset": 21}),
        "CUDA": (LP, "another processor", {"processor": "CUDA"}),
        "two dimensions": (LP.replace(", b, c", "").replace(", 1, 1", ""), "nothing to reduce"),
        "not a power": (LP.replace("Pool(", "Pool<p = 0>("), "p is not positive"),
    },
    "MissingRoiAlign": {
        "a kernel": (ROI, "onnxruntime loads", {"opset": 21}),
        "CUDA": (ROI, "another processor", {"processor": "CUDA"}),
        "maximum": (ROI.replace("<samp", '<mode = "max", samp'), "not avg"),
        "adaptive": (ROI.replace("sampling_ratio = 2, ", ""), "depends on the region"),
        "double": (ROI.replace("float", "double"), "not float"),
    },
}
test_rewrites = rewrite_tests(MODELS, opset=22, runtime=False, reference=False)
test_refuses = refusal_tests(REFUSED, opset=28)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_as_the_older_pool(p: int) -> None:
    """Null sizes, special values."""
    text = LP.replace("Pool(", f"Pool<p = {p}>(")
    found, _, _ = optimize_with(model_from_text(text, 22), "MissingGlobalLpPool")
    x = np.random.default_rng(0).standard_normal((2, 4, 3, 5)).astype(np.float32)
    x[0, 0, 0, 0], x[0, 1, 0, 0], x[0, 2] = np.inf, np.nan, 0
    for given in (x, x[:0], x[:, :, :1, :1]):
        (expected,) = run_onnxruntime(model_from_text(text, 21), {"x": given})
        (got,) = run_onnxruntime(found, {"x": given})
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_align_in_float16() -> None:
    """As onnxruntime does with the older operator, which computes in float."""
    text = ROI.replace("float[", "float16[")
    found, _, _ = optimize_with(model_from_text(text, 22), "MissingRoiAlign")
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((5, 3, 9, 11)).astype(np.float16),
        "rois": rng.uniform(-3, 12, (6, 4)).astype(np.float16),
        "b": rng.integers(0, 5, 6),
    }
    (expected,) = run_onnxruntime(model_from_text(text, 21), feeds)
    np.testing.assert_allclose(run_onnxruntime(found, feeds)[0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize(("ratio", "scale"), [(1, 1.0), (2, 0.5), (3, 0.25)])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 4)])
def test_as_the_older_align(mode: str, ratio: int, scale: float, height: int, width: int) -> None:
    """Regions outside, on the border, empty, reversed; none."""
    attributes = (
        f'coordinate_transformation_mode = "{mode}", spatial_scale = {scale}, '
        f"sampling_ratio = {ratio}, output_height = {height}, output_width = {width}"
    )
    text = ROI.replace("sampling_ratio = 2, output_height = 2, output_width = 2", attributes)
    text = text.replace("[r, 3, 2, 2]", f"[r, 3, {height}, {width}]")
    found, _, _ = optimize_with(model_from_text(text, 22), "MissingRoiAlign")
    rng = np.random.default_rng(0)
    regions = rng.uniform(-3.7 / scale, 14.3 / scale, (12, 4)).astype(np.float32)
    regions[0], regions[1] = [3, 3, 3, 3], [8, 2, 1, 9]
    x = rng.standard_normal((5, 3, 9, 11)).astype(np.float32)
    for rois in (regions, regions[:1], regions[:0]):
        feeds = {"x": x, "rois": rois, "b": rng.integers(0, 5, len(rois))}
        (expected,) = run_onnxruntime(model_from_text(text, 21), feeds)
        np.testing.assert_allclose(run_onnxruntime(found, feeds)[0], expected, atol=1e-5)


def test_idempotent() -> None:
    options = {"opset": 28, "runtime": False, "reference": False}
    check_pattern(ROI, None, "MissingRoiAlign", **options)
