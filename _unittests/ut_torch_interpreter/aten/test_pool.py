"""Poolings."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export, op_types

torch.manual_seed(0)
IMAGE = {1: torch.randn(2, 3, 12), 2: torch.randn(2, 3, 12, 8), 3: torch.randn(1, 3, 4, 6, 8)}
OPTIONS = {
    "default": {},
    "stride": {"stride": 1},
    "padding": {"padding": 1},
    "ceil": {"stride": 2, "ceil_mode": True},
}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_max_pool(n, name):
    fct = getattr(F, f"max_pool{n}d")
    x = IMAGE[n]
    check_export(lambda x: fct(x, 3, **OPTIONS[name]), (x,), ({0: "a"},), [(torch.cat([x, x]),)])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("include", [True, False])
def test_avg_pool(n, name, include):
    fct = getattr(F, f"avg_pool{n}d")
    x = IMAGE[n]

    def model(x):
        return fct(x, 3, count_include_pad=include, **OPTIONS[name])

    check_export(model, (x,), ({0: "a"},), [(torch.cat([x, x]),)])


def test_max_pool_dilation():
    check_export(lambda x: F.max_pool2d(x, 2, dilation=2), (IMAGE[2],))


@pytest.mark.parametrize("n", [2, 3])
def test_max_pool_with_indices(n):
    fct = getattr(F, f"max_pool{n}d")
    check_export(lambda x: fct(x, 2, return_indices=True), (IMAGE[n],))
    check_export(lambda x: fct(x, 2, return_indices=True), (IMAGE[n][0],))


def test_divisor_override():
    check_export(lambda x: F.avg_pool2d(x, 2, divisor_override=3), (IMAGE[2],))


def test_without_batch():
    check_export(lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2)), (IMAGE[2][0],))


def test_dynamic_sizes():
    check_export(
        lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2)),
        (IMAGE[2],),
        ({0: "a", 2: "h", 3: "w"},),
        [(torch.randn(1, 3, 20, 16),)],
    )


ADAPTIVE = {
    1: [1, 12, 4, 5],
    2: [1, (6, 4), (12, 1), (5, 3), (None, 2)],
    3: [1, (2, 3, 4), (3, 4, 5)],
}


@pytest.mark.parametrize(("n", "size"), [(n, s) for n, sizes in ADAPTIVE.items() for s in sizes])
def test_adaptive_avg_pool(n, size):
    fct = getattr(F, f"adaptive_avg_pool{n}d")
    x = IMAGE[n]
    check_export(lambda x: fct(x, size), (x,), ({0: "a"},), [(torch.cat([x, x]),)])
    check_export(lambda x: fct(x, size), (x[0],))


@pytest.mark.parametrize(("n", "size"), [(n, s) for n, sizes in ADAPTIVE.items() for s in sizes])
def test_adaptive_max_pool(n, size):
    fct = getattr(F, f"adaptive_max_pool{n}d")
    check_export(lambda x: fct(x, size), (IMAGE[n],), ({0: "a"},))


@pytest.mark.parametrize(("size", "target"), [(64, 7), (12, 11), (12, 4)])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_windows_that_are_alike_are_one_pooling(kind, size, target):
    fct = getattr(F, f"adaptive_{kind}_pool2d")
    model = check_export(lambda x: fct(x, (target, 1)), (torch.randn(2, 3, size, size),))
    (node,) = model.graph.node
    assert node.op_type == {"avg": "AveragePool", "max": "MaxPool"}[kind]


@pytest.mark.parametrize("size", [(6, 4), (11, 4)])
def test_adaptive_max_pool_indices(size):
    check_export(lambda x: F.adaptive_max_pool2d(x, size, return_indices=True), (IMAGE[2],))


def test_global_pooling_with_dynamic_sizes():
    onx = check_export(
        lambda x: F.adaptive_avg_pool2d(x, 1),
        (IMAGE[2],),
        ({2: "h", 3: "w"},),
        [(torch.randn(2, 3, 5, 7),)],
    )
    assert op_types(onx) == ["ReduceMean"]


@pytest.mark.parametrize(
    "kernel, stride, padding", [(4, (2, 3), 1), ((6, 6), 3, (2, 3)), (3, 2, 0)]
)
def test_divisor_override_with_ceil_mode(kernel, stride, padding):
    x = torch.rand(1, 3, 9, 9)
    check_export(
        lambda x: F.avg_pool2d(x, kernel, stride, padding, True, False, divisor_override=2), (x,)
    )


@pytest.mark.parametrize("kernel, stride, padding", [(3, 2, 1), (2, 3, 1), (1, 3, 0), (4, 3, 0)])
def test_divisor_override_with_ceil_mode_and_dynamic_sizes(kernel, stride, padding):
    check_export(
        lambda x: F.avg_pool2d(x, kernel, stride, padding, True, divisor_override=2),
        (torch.rand(1, 3, 9, 9),),
        ({2: "h", 3: "w"},),
        [(torch.rand(1, 3, height, width),) for height, width in [(4, 5), (6, 7), (8, 10)]],
    )


def test_indices_of_an_empty_tensor():
    check_export(lambda x: F.adaptive_max_pool1d(x, 3, return_indices=True), (torch.zeros(0, 3),))


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("size, kernel, stride", [(4, 2, 3), (5, 2, 2), (5, 3, 3), (7, 3, 2)])
def test_windows_that_start_after_the_end(size, kernel, stride, padding):
    """torch and onnxruntime forget them, the inference of onnx does not."""
    options = {"stride": stride, "padding": padding, "ceil_mode": True}
    args = (torch.randn(1, 2, size, 6),)
    check_export(lambda x: F.max_pool2d(x, kernel, **options), args)
    check_export(lambda x: F.max_pool2d(x, kernel, return_indices=True, **options), args)
    check_export(lambda x: F.avg_pool2d(x, kernel, **options), args)
    square = torch.randn(1, 2, size, size)
    check_export(lambda x: F.avg_pool2d(x, kernel, **options), (square,))


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("kernel, stride", [(3, 2), (2, 2), (2, 3), ((2, 3), (4, 2))])
def test_avg_pool_with_ceil_mode(kernel, stride, padding, include):
    """Each dimension goes over its end, or not, or has a window torch forgets."""
    for shape in [(4, 5), (5, 6), (6, 7), (7, 4), (6, 10)]:
        x = torch.randn(1, 2, *shape)
        check_export(lambda x: F.avg_pool2d(x, kernel, stride, padding, True, include), (x,))


# torch itself needs static images for adaptive_max_pool2d with None
@pytest.mark.parametrize(
    "name,size",
    [
        ("adaptive_avg_pool2d", (3, 5)),
        ("adaptive_avg_pool2d", (None, 1)),
        ("adaptive_avg_pool2d", (4, None)),
        ("adaptive_max_pool2d", (3, 5)),
        ("adaptive_max_pool2d", (1, 5)),
    ],
)
def test_adaptive_pool_of_dynamic_images(name, size):
    fct = getattr(F, name)
    shapes = ({0: "batch", 2: "height", 3: "width"},)
    others = [(torch.randn(1, 3, 9, 16),), (torch.randn(2, 3, 2, 3),)]
    check_export(lambda x: fct(x, size), (IMAGE[2],), shapes, others)


def test_adaptive_pool_to_a_dynamic_size():
    def model(x, y):
        return F.interpolate(x, size=y.shape, mode="area")

    shapes = ({2: "height"}, {0: "a", 1: "b"})
    other = torch.randn(2, 3, 7, 8), torch.zeros(9, 2)
    check_export(model, (IMAGE[2], torch.zeros(5, 3)), shapes, [other])


def test_an_infinity_stays_in_its_windows() -> None:
    """The length is only known when the model runs: no product makes NaN of the other windows."""
    x = torch.randn(1, 2, 12)
    other = torch.randn(1, 2, 10)
    other[0, 0, 0], other[0, 1, 9] = float("inf"), float("nan")
    check_export(lambda x: F.adaptive_avg_pool1d(x, 3), (x,), ({2: "n"},), [(other,)])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_indices_of_windows_of_several_sizes(n):
    pool = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}[n]
    sizes = (3, 2, 4)[:n]
    image = torch.randint(0, 3, (2, 3, *(7, 5, 6)[:n])).float()
    dynamic = ({0: "batch", **{2 + i: f"d{i}" for i in range(n)}},)
    others = [(torch.randn(1, 3, *(8, 3, 9)[:n]),)]

    def model(x):
        return pool(x, sizes, return_indices=True)

    check_export(model, (image,), None)
    check_export(model, (image,), dynamic, others)
    special = image.clone()
    special[special == 0] = -torch.inf
    special[0, 0, 1] = torch.nan
    check_export(model, (special[:, :2] * 1.0,), None)
