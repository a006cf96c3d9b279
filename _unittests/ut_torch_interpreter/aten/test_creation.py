"""New tensors, copies and conversions."""

from __future__ import annotations

import onnx
import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, module_of, op_types, run_ort

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions

X = torch.tensor([[1.5, -2.0, 3.0], [7.25, -5.0, 0.5]])
DYNAMIC = ({0: "a"},)
OTHERS = [(torch.randn(5, 3),), (X[:1],)]
TYPES = [torch.float64, torch.float16, torch.int64, torch.int32, torch.bool, torch.uint8]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_casts(dtype):
    x = X.abs()
    check_export(lambda x: (x.to(dtype), x.type(dtype)), (x,), DYNAMIC, [(x[:1],)])
    check_export(lambda x: x.to("cpu", dtype), (x,))
    check_export(lambda x, y: (x.to(y), x.type_as(y)), (x, x.to(dtype)))
    check_export(lambda x: x.to(dtype), (x,), export_options="nostrict-dec")


def test_cast_from_bool_and_int():
    check_export(lambda x: ((x > 0).float(), (x > 0).long(), x.long().half()), (X,))


def test_bfloat16():
    # onnxruntime has few kernels for bfloat16 on CPU, casts are enough here
    check_export(lambda x: x.to(torch.bfloat16).to(torch.float32), (X / 3,))


@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_filled(name):
    fct = getattr(torch, name)
    check_export(lambda x: x + fct(2, 3), (X,))
    check_export(lambda x: fct(x.shape[0], 2), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: fct(x.shape[0], dtype=torch.int64), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: fct((), dtype=torch.bool) | (x > 0), (X,))


@pytest.mark.parametrize("name", ["zeros_like", "ones_like"])
@pytest.mark.parametrize("dtype", [None, torch.int64, torch.bool, torch.float16], ids=str)
def test_filled_like(name, dtype):
    fct = getattr(torch, name)
    check_export(lambda x: fct(x, dtype=dtype), (X,), DYNAMIC, OTHERS)


def test_full():
    check_export(lambda x: torch.full((x.shape[0], 2), 1.5), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.full((x.shape[0],), 3), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.full((2,), True) & (x[:, 0] > 0), (X,))
    check_export(lambda x: torch.full((2,), x.shape[0]), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.full_like(x, 2), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.full_like(x, 2, dtype=torch.int32), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.full((2, 2), -float("inf"), dtype=torch.float16) + x[:, :1], (X,))


def test_new():
    check_export(lambda x: x.new_zeros(2, x.shape[0]), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: x.new_ones(x.shape[0], dtype=torch.int64), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: x.new_full((x.shape[0],), 3), (X,), DYNAMIC, OTHERS)


def test_empty_then_filled():
    check_export(lambda x: torch.empty_like(x).fill_(2.0), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.empty(x.shape[0], 2).zero_(), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: (x + 1).fill_(x.sum()), (X,), DYNAMIC, OTHERS)


@pytest.mark.parametrize("bounds", [(5,), (1, 6), (1, 8, 3), (5, 0, -2), (0.5, 3.0, 0.5), (0,)])
def test_arange(bounds):
    check_export(lambda x: torch.arange(*bounds) + x.sum(), (X,))
    check_export(lambda x: torch.arange(*bounds, dtype=torch.float32) + x.sum(), (X,))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_arange_of_integers_between_floats(dtype):
    """torch casts the bounds first for int64 only, and no more since 2.15."""
    check_export(lambda x: torch.arange(0.0, -8.000001, -4.0, dtype=dtype) + x, (torch.tensor(1),))
    check_export(
        lambda x: torch.arange(0.0, x.shape[0] + 0.5, 1.0, dtype=dtype), (X,), DYNAMIC, OTHERS
    )


def test_arange_dynamic():
    check_export(lambda x: torch.arange(x.shape[0]), (X,), DYNAMIC, OTHERS)
    long = torch.randn(7, 2)
    check_export(lambda x: torch.arange(1, x.shape[0] + 1, 2), (long,), DYNAMIC, [(long[:4],)])
    check_export(lambda x: torch.arange(x.shape[0], dtype=torch.float32), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.arange(x.shape[0], dtype=torch.float16), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.arange(x.shape[0], 0, -1), (X,), DYNAMIC, OTHERS)


def test_linspace_eye():
    check_export(lambda x: torch.linspace(0, 1, 5) + x.sum(), (X,))
    check_export(lambda x: torch.eye(3) + x[:1], (X,))
    check_export(lambda x: torch.eye(2, 3) + x, (X,))
    check_export(lambda x: torch.eye(x.shape[0]), (X,), DYNAMIC, OTHERS)


def test_triangle_indices():
    check_export(lambda x: torch.tril_indices(3, 3) + x.sum().long(), (X,))
    check_export(lambda x: torch.triu_indices(3, 4, 1) + x.sum().long(), (X,))


def test_scalar_tensor():
    check_export(lambda x: x + torch.tensor(2.5), (X,))
    check_export(lambda x: x + torch.tensor([1, 2, 3]), (X,))
    check_export(lambda x: torch.scalar_tensor(x.shape[0]) + x, (X,), DYNAMIC, OTHERS)


def test_copy():
    def model(x, y):
        z = x.clone()
        z.copy_(y)
        return z + 1

    check_export(model, (X, X[:1] * 2))
    check_export(model, (X, X.to(torch.int64)))


def test_random_has_the_right_shape():
    def model(x):
        return torch.rand(x.shape[0], 3), torch.randn_like(x), torch.rand(2, 2), torch.rand_like(x)

    options = OptimizationOptions(patterns=None)
    onx = to_onnx(module_of(model, 1), (X,), dynamic_shapes=DYNAMIC, options=options)
    got = run_ort(onx, [torch.randn(50, 3)])
    assert [g.shape for g in got] == [(50, 3), (50, 3), (2, 2), (50, 3)]
    assert got[0].min() >= 0 and got[0].max() <= 1 and got[0].std() > 0.1
    assert got[1].std() > 0.5


def test_random_numbers_are_between_their_bounds():
    def model(x):
        return (
            torch.randint(3, (x.shape[0], 9)),
            torch.randint(-5, -2, (4, 50), dtype=torch.int32),
            torch.randint_like(x, 2, 4),
            torch.randint_like(x, 7, dtype=torch.int64),
            torch.empty(300).uniform_(-3, -1),
            torch.normal(10.0, 0.5, (x.shape[0], 7)),
        )

    options = OptimizationOptions(patterns=None)
    onx = to_onnx(module_of(model, 1), (X,), dynamic_shapes=DYNAMIC, options=options)
    onnx.checker.check_model(onx, full_check=True)
    got = run_ort(onx, [torch.randn(50, 3)])
    assert [g.shape for g in got] == [(50, 9), (4, 50), (50, 3), (50, 3), (300,), (50, 7)]
    assert [g.dtype.name for g in got] == ["int64", "int32", "float32", "int64", *["float32"] * 2]
    values = [sorted(set(g.ravel().tolist())) for g in got[:4]]
    assert values == [[0, 1, 2], [-5, -4, -3], [2, 3], list(range(7))]
    assert -3 <= got[4].min() < -2.5 and -1.5 < got[4].max() <= -1
    assert 9.5 < got[5].mean() < 10.5 and 0.3 < got[5].std() < 0.7


def test_no_node_for_a_copy():
    assert op_types(check_export(lambda x: x.clone().to(torch.float32) + 1, (X,))) == ["Add"]


def test_identity_matrix_of_booleans():
    x = torch.rand(3, 4)
    check_export(lambda x: torch.eye(x.shape[0], dtype=torch.bool), (x,), ({0: "a"},), [(x[:2],)])
    check_export(lambda x: (x, torch.eye(3, 4, dtype=torch.bool)), (x,))


SPACES = {
    "end": lambda n, dtype: torch.linspace(0, n, 5, dtype=dtype),
    "start": lambda n, dtype: torch.linspace(n // 2, -2, 4, dtype=dtype),
    "ratio": lambda n, dtype: torch.linspace(0.5, n / 2, 7, dtype=dtype),
    "one value": lambda n, dtype: torch.linspace(2, n, 1, dtype=dtype),
    "no value": lambda n, dtype: torch.linspace(2, n, 0, dtype=dtype),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("name", sorted(SPACES))
def test_linspace_to_a_size(name, dtype):
    others = [(torch.randn(n, 3),) for n in (1, 2, 9, 100)]
    check_export(lambda x: SPACES[name](x.shape[0], dtype), (torch.randn(8, 3),), DYNAMIC, others)
