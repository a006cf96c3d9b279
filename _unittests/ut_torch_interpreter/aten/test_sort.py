"""Sorting, searching."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export

from torch_interpreter import ConversionError, to_onnx

torch.manual_seed(0)
X = torch.randn(3, 5)
I = torch.tensor([[3, 1, 2, 5, 4], [9, 7, 8, 6, 5]])  # noqa: E741
DYNAMIC = ({0: "a"},)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("values", [X, I], ids=["float", "int64"])
def test_topk(largest, dim, values):
    check_export(lambda x: tuple(torch.topk(x, 2, dim=dim, largest=largest)), (values,))


def test_topk_dynamic():
    check_export(lambda x: torch.topk(x, 2)[0], (X,), DYNAMIC, [(X[:1],)])
    check_export(lambda x: torch.topk(x, x.shape[0])[1], (X,), DYNAMIC, [(X[:2],)])


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("dim", [0, -1])
def test_sort(descending, dim):
    check_export(
        lambda x: tuple(torch.sort(x, dim=dim, descending=descending)), (X,), DYNAMIC, [(X[:2],)]
    )
    check_export(lambda x: torch.argsort(x, dim=dim, descending=descending), (I,))
    check_export(
        lambda x: tuple(torch.sort(x, dim=dim, descending=descending, stable=True)), (I // 3,)
    )


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("int32", [True, False])
def test_bucketize(right, int32):
    boundaries = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    values = torch.cat([X.flatten(), boundaries])
    check_export(
        lambda x, b: torch.bucketize(x, b, right=right, out_int32=int32), (values, boundaries)
    )
    check_export(lambda b, x: torch.searchsorted(b, x, right=right), (boundaries, values))


def test_unique_consecutive():
    x = torch.tensor([1, 1, 2, 2, 2, 3, 1, 1])
    check_export(torch.unique_consecutive, (x,), DYNAMIC, [(x[:2],), (x[4:],)])


def unique_of(function, dim=None):
    return lambda x: function(x, return_inverse=True, return_counts=True, dim=dim)


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_unique_consecutive_with_places_and_counts(dim):
    x = torch.tensor([[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 1, 1], [1, 1, 2, 2]])
    others = [(x[1:],), (x[:1],), *([(x[:0],)] if dim is None else [])]
    check_export(unique_of(torch.unique_consecutive, dim), (x,), DYNAMIC, others)
    check_export(unique_of(torch.unique_consecutive, dim), (x * 0.5,))


def test_torch_gives_a_wrong_shape_to_the_unique_slices_of_a_negative_dimension():
    model = Fct1(unique_of(torch.unique_consecutive, -1))
    with pytest.raises(ConversionError, match=r"rank 2 .* against 4 .* from set_shape"):
        to_onnx(model, (I,))


def test_nan_is_not_nan():
    nan = float("nan")
    x = torch.tensor([nan, nan, 1, 1, nan])
    check_export(unique_of(torch.unique_consecutive), (x,), DYNAMIC, [(x[3:],), (x[:0],)])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices(dim):
    x = torch.tensor([[3, 1, 3, 2], [3, 1, 3, 2], [0, 0, 0, 1], [3, 1, 3, 0]])
    check_export(unique_of(torch.unique, dim), (x,), DYNAMIC, [(x[2:],), (x[:1],)])
    check_export(unique_of(torch.unique, dim), (x.reshape(2, 2, 4) * 0.5,))


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_median_and_kthvalue(dim, keepdim):
    check_export(lambda x: tuple(x.median(dim, keepdim)), (X,))
    check_export(lambda x: tuple(x.kthvalue(2, dim, keepdim)), (X,))


def test_median():
    check_export(torch.median, (X,))
    check_export(lambda x: x.median(0)[0], (X,), DYNAMIC, [(X[:2],)])


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_median_of_nan(keepdim, dtype):
    nan = float("nan")
    x = torch.tensor([[1, 2, nan, 3], [5, 4, 2, 9], [nan, nan, 0, 0]], dtype=dtype)
    check_export(lambda x: tuple(x.median(1, keepdim)), (x,), DYNAMIC, [(x[:2],)])
    check_export(torch.median, (x,), DYNAMIC, [(x[1:2],)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_median_of_nothing(dtype):
    check_export(torch.median, (torch.zeros((0, 3), dtype=dtype),))
    check_export(lambda x: tuple(x.median(1)), (torch.zeros((0, 3), dtype=dtype),))


def test_unique():
    check_export(torch.unique, (I // 3,))
    check_export(lambda x: torch.unique(x, return_inverse=True, return_counts=True), (I // 3,))


def test_counts():
    values = torch.tensor([0, 3, 3, 5])
    check_export(torch.bincount, (values,), DYNAMIC, [(values[:2],), (values[:0],)])
    check_export(lambda x: torch.bincount(x, minlength=9), (values,))
    check_export(torch.bincount, (values, torch.rand(4)))
    check_export(torch.bincount, (values, values))
    check_export(lambda x: torch.histc(x, 4, -1, 1), (torch.cat([X.flatten(), torch.ones(1)]),))


def test_repeat_interleave():
    repeats = torch.tensor([1, 2, 0])
    check_export(lambda x, r: x.repeat_interleave(r, dim=0), (X, repeats), None, [(X, repeats + 1)])
    check_export(lambda x: x.repeat_interleave(torch.tensor([1, 2, 1]), dim=0, output_size=4), (X,))


@pytest.mark.parametrize("right", [False, True])
def test_search_in_nothing_and_for_nothing(right):
    x, nothing = torch.rand(2, 3), torch.empty(0)
    dynamic = ({0: "a", 1: "b"}, {0: "c"})

    def search(x, bounds):
        return (
            torch.bucketize(x, bounds, right=right),
            torch.searchsorted(bounds, x, right=right),
        )

    check_export(search, (x, nothing))
    check_export(search, (x[:0], torch.tensor([0.2, 0.7])))
    others = [(x, nothing), (x[:0], nothing), (x[:0], torch.tensor([0.5]))]
    check_export(search, (x, torch.tensor([0.2, 0.7])), dynamic, others)


def test_histc_of_its_own_bounds():
    x = torch.tensor([1.0, 2.0, 5.0, 3.0])
    same = torch.tensor([2.0, 2.0])
    check_export(lambda x: torch.histc(x, bins=5), (x,), ({0: "a"},), [(same,), (x[:0],)])
    check_export(lambda x: torch.histc(x, bins=5), (x[:0],))
    check_export(lambda x: torch.histc(x, bins=4, min=2, max=2), (x,))


@pytest.mark.parametrize("right", [False, True])
def test_boundaries_with_several_dimensions_and_special_values(right):
    x = torch.tensor([[float("nan"), 1, float("inf")], [0, -float("inf"), 3]])
    bounds = torch.tensor([[0.0, 1, 2, 3], [1, 2, 3, 4]])
    check_export(lambda b, x: torch.searchsorted(b, x, right=right), (bounds, x))
    check_export(lambda b, x: torch.bucketize(x, b[0], right=right), (bounds, x))


def test_searchsorted_with_a_sorter_or_a_number():
    bounds, order = torch.tensor([2.0, 3, 1]), torch.tensor([2, 0, 1])
    x = torch.rand(4) * 4
    check_export(lambda b, x, s: torch.searchsorted(b, x, sorter=s), (bounds, x, order))
    check_export(lambda b: torch.searchsorted(b, 1.5), (bounds.sort().values,))
    check_export(lambda b: torch.bucketize(1.5, b), (bounds.sort().values,))


N = float("nan")
GAPS = torch.tensor([[N, 1.0, N, 4.0, 2.0], [N] * 5, [3.0, float("inf"), N, float("inf"), 5.0]])


@pytest.mark.parametrize("keepdim", [True, False])
def test_nanmedian(keepdim):
    check_export(lambda x: torch.nanmedian(x, -1, keepdim)[0], (GAPS,), DYNAMIC, [(GAPS[:1],)])
    check_export(lambda x: torch.nanmedian(x, 0, keepdim)[0], (GAPS,), ({1: "a"},))
    check_export(lambda x: tuple(torch.nanmedian(x, 1, keepdim)), (X,), DYNAMIC, [(X[:1],)])
    check_export(lambda x: tuple(torch.nanmedian(x, 1, keepdim)), (I,))


def test_nanmedian_of_everything():
    check_export(torch.nanmedian, (GAPS,), DYNAMIC, [(GAPS[1:2],), (GAPS[2:],)])
    check_export(torch.nanmedian, (GAPS[:0],))
    check_export(lambda x: tuple(torch.nanmedian(x, 0)), (X[0, 0],))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.int32])
@pytest.mark.parametrize("dim", [0, -1])
def test_mode(dim, dtype):
    x = torch.tensor([[3, 1, 1, 2, 3], [5, 4, 4, 5, 7], [2, 2, 0, 1, 9], [3, 2, 0, 1, 9]]).to(dtype)
    check_export(lambda x: tuple(torch.mode(x, dim)), (x,), DYNAMIC, [(x[:1],), (x[1:],)])
    check_export(lambda x: tuple(torch.mode(x, dim, True)), (x,))


def test_mode_of_booleans_and_scalar():
    check_export(lambda x: tuple(torch.mode(x)), (X > 0,))
    check_export(lambda x: tuple(torch.mode(x)), (X[0, 0],))
