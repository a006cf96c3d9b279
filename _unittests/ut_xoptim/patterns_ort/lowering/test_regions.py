"""Regions of images by crops and products."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

# indices of images drawn at random are under 5
ROI = """g (float[5, 3, h, w] x, float[r, 4] rois, int64[r] b) => (float[r, 3, 2, 2] y) {
    y = RoiAlign<sampling_ratio = 2, output_height = 2, output_width = 2>(x, rois, b) }"""
MODELS = {
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
    "MissingRoiAlign": {
        "a kernel": (ROI, "onnxruntime loads", {"opset": 21}),
        "CUDA": (ROI, "another processor", {"processor": "CUDA"}),
        "maximum": (ROI.replace("<samp", '<mode = "max", samp'), "not avg"),
    },
}
test_rewrites = rewrite_tests(MODELS, opset=22, runtime=False, reference=False)
test_refuses = refusal_tests(REFUSED, opset=28)


def with_sizes(regions: np.ndarray) -> np.ndarray:
    """The regions turned so that none is reversed: onnxruntime fails on those if it has to count
    the samples."""
    return np.sort(regions.reshape((-1, 2, 2)), axis=1).reshape((-1, 4))


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
@pytest.mark.parametrize(("ratio", "scale"), [(0, 1.0), (1, 1.0), (2, 0.5), (0, 0.5), (3, 0.25)])
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
    if ratio == 0:
        regions = with_sizes(regions)
    x = rng.standard_normal((5, 3, 9, 11)).astype(np.float32)
    for rois in (regions, regions[:1], regions[:0]):
        feeds = {"x": x, "rois": rois, "b": rng.integers(0, 5, len(rois))}
        (expected,) = run_onnxruntime(model_from_text(text, 21), feeds)
        np.testing.assert_allclose(run_onnxruntime(found, feeds)[0], expected, atol=1e-5)


def test_idempotent() -> None:
    options = {"opset": 28, "runtime": False, "reference": False}
    check_pattern(ROI, None, "MissingRoiAlign", **options)


@pytest.mark.parametrize("ratio", [0, 3])
def test_align_in_double(ratio: int) -> None:
    """The same as in float, with more digits."""
    text = ROI.replace("sampling_ratio = 2", f"sampling_ratio = {ratio}, spatial_scale = 0.5")
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((5, 3, 9, 11)),
        "rois": with_sizes(rng.uniform(-3, 24, (6, 4))),
        "b": rng.integers(0, 5, 6),
    }
    found, _, _ = optimize_with(model_from_text(text.replace("float[", "double["), 22), "fix")
    (got,) = run_onnxruntime(found, feeds)
    single = {n: v.astype(np.float32) if v.dtype == np.float64 else v for n, v in feeds.items()}
    (expected,) = run_onnxruntime(model_from_text(text, 21), single)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, atol=2e-5)


def test_adaptive_in_bfloat16() -> None:
    """In a branch as well: the scan reads a result of the graph outside."""
    text = """g (bfloat16[n, 2, h, w] x, bfloat16[r, 4] rois, int64[r] b, bool c)
    => (bfloat16[r, 2, 2, 3] y) { k = Neg(x) y = If(c) <
        then_branch = t () => (bfloat16[r, 2, 2, 3] u) {
            u = RoiAlign<output_height = 2, output_width = 3>(k, rois, b) },
        else_branch = e () => (bfloat16[r, 2, 2, 3] v) {
            v = RoiAlign<output_height = 2, output_width = 3>(x, rois, b) } > }"""
    found, _, _ = optimize_with(model_from_text(text, 28), "default+onnxruntime")
    kind = oh.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    rng = np.random.default_rng(0)
    x, rois = rng.standard_normal((2, 2, 5, 6)).astype(kind), rng.uniform(0, 6, (3, 4)).astype(kind)
    feeds = {"x": x, "rois": rois, "b": np.array([1, 0, 1])}
    one, other = (run_onnxruntime(found, {**feeds, "c": np.array(c)})[0] for c in (True, False))
    np.testing.assert_array_equal(one, -other)
    assert np.abs(one.astype(np.float32)).max() > 0.1
