"""Reductions."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

X = torch.tensor([[[1.5, -2.0], [3.0, 0.5], [1.0, 2.0]], [[7.25, -5.0], [0.5, 1.0], [4.0, 4.5]]])
I = torch.tensor([[7, -7, 5], [-5, 9, 1]])  # noqa: E741
B = torch.tensor([[True, False, True], [True, False, True]])
DYNAMIC = ({0: "a", 1: "b"},)
OTHERS = [(X[:1, :2],)]


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "logsumexp", "std", "var"])
@pytest.mark.parametrize("dim", [0, 1, -1, (0, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_along(name, dim, keepdim):
    fct = getattr(torch, name)
    x = torch.cat([X, X * 0.7 + 1], dim=0)
    check_export(lambda x: fct(x, dim=dim, keepdim=keepdim), (x,), DYNAMIC, [(x[:3, :2],)])


@pytest.mark.parametrize(
    "name", ["sum", "mean", "max", "min", "prod", "std", "var", "argmax", "argmin", "any", "all"]
)
def test_everything(name):
    fct = getattr(torch, name)
    check_export(fct, (X,), DYNAMIC, OTHERS)
    if name not in ("std", "var"):
        check_export(fct, (torch.tensor(2.5),))


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum"])
@pytest.mark.parametrize("values", [I, B, I.to(torch.int32)], ids=["int64", "bool", "int32"])
def test_integers_become_int64(name, values):
    fct = getattr(torch, name)
    check_export(lambda x: fct(x, dim=1), (values,), ({0: "a"},), [(values[:1],)])


@pytest.mark.parametrize("dim", [None, 0, (0, 1)], ids=str)
def test_sum_of_large_products(dim):
    """They wrap around 64 bits as in torch; onnxruntime adds integers in float64."""
    digits = torch.tensor([1000000007, 5915587277]) ** torch.arange(2, 4)

    def hashed(x):
        return (x * digits).sum(dim) % 97

    x = torch.arange(12).reshape(6, 2)
    check_export(hashed, (x,), ({0: "a"},), [(x[:3],), (x[:0],)])


def test_sum_of_products_with_booleans():
    """A mask makes nothing large, one operator adds."""
    proto = check_export(lambda x: (x * (x > 1)).sum(1), (I,))
    assert [n.op_type for n in proto.graph.node].count("ReduceSum") == 1


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "argmax", "argmin"])
@pytest.mark.parametrize("values", [I, I.to(torch.int32)], ids=["int64", "int32"])
def test_extrema_of_integers(name, values):
    fct = getattr(torch, name)
    check_export(lambda x: fct(x, dim=1), (values,))


def test_extrema_of_booleans():
    check_export(lambda x: (x.amax(dim=0), x.amin(dim=1), x.max(), x.min()), (B,))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_extremum_with_index(name, keepdim):
    fct = getattr(torch, name)
    check_export(lambda x: tuple(fct(x, 1, keepdim)), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: fct(x, -1, keepdim)[0], (X,), DYNAMIC, OTHERS)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, -1])
def test_arg(name, keepdim, dim):
    fct = getattr(torch, name)
    check_export(lambda x: fct(x, dim=dim, keepdim=keepdim), (X,), DYNAMIC, OTHERS)


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("values", [B, I, I.float()], ids=["bool", "int64", "float"])
def test_logical(name, values):
    fct = getattr(torch, name)
    empty = values[:0]
    check_export(lambda x: fct(x, dim=0), (values,), ({0: "a"},), [(values[:1],), (empty,)])
    check_export(lambda x: fct(x, dim=1, keepdim=True), (values,), ({0: "a"},), [(values[:1],)])
    check_export(fct, (values,), ({0: "a"},), [(empty,)])


def test_empty_sum():
    check_export(lambda x: (x.sum(), x.sum(dim=0)), (I,), ({0: "a"},), [(I[:0],)])


def test_dtype():
    check_export(lambda x: x.sum(dtype=torch.float64), (X,))
    check_export(lambda x: x.mean(dim=1, dtype=torch.float64), (X,))
    check_export(lambda x: x.sum(dim=1, dtype=torch.float32), (I,))
    check_export(lambda x: x.mean(dim=0, dtype=torch.float32), (I,))
    check_export(lambda x: x.cumsum(0, dtype=torch.float32), (I,))


def test_float16():
    x = X.to(torch.float16)
    check_export(lambda x: (x.sum(dim=1), x.mean(dim=1), x.amax(dim=1)), (x,), atol=1e-2)


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_correction(correction):
    x = torch.cat([X, X * 0.7 + 1, X - 3], dim=0)
    check_export(
        lambda x: (x.std(dim=0, correction=correction), x.var(dim=(0, 1), correction=correction)),
        (x,),
        DYNAMIC,
        [(x[:4, :2],)],
    )


def test_deviation_and_mean():
    check_export(lambda x: torch.var_mean(x, dim=1, correction=0), (X,))
    check_export(lambda x: torch.std_mean(x, dim=1, keepdim=True), (X,))
    check_export(lambda x: x.var(dim=0, unbiased=False), (X,))
    check_export(lambda x: x.std(unbiased=False), (X,))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 1.5, float("inf"), -float("inf")])
def test_vector_norm(order):
    check_export(lambda x: torch.linalg.vector_norm(x, order, dim=-1), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: torch.linalg.vector_norm(x, order, dim=(0, 1), keepdim=True), (X,))


def test_norm():
    check_export(lambda x: (x.norm(), x.norm(dim=1), x.norm(1, dim=(0, 1))), (X,))
    check_export(lambda x: torch.nn.functional.normalize(x, dim=-1), (X,))


def test_nansum_count_nonzero():
    x = X.clone()
    x[0, 0] = float("nan")
    check_export(lambda x: (x.nansum(), x.nansum(dim=1)), (x,))
    check_export(lambda x: (x.count_nonzero(), x.count_nonzero(dim=1)), (I - 1,))


def test_aminmax():
    check_export(lambda x: tuple(torch.aminmax(x)), (X,))
    check_export(lambda x: tuple(torch.aminmax(x, dim=1, keepdim=True)), (X,))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cumsum(dim):
    check_export(lambda x: x.cumsum(dim), (X,), DYNAMIC, OTHERS)


def test_cumsum_scalar():
    check_export(lambda x: x.cumsum(0), (torch.tensor(2.5),))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 1.5, float("inf"), -float("inf")])
def test_vector_norm_of_scalar(order):
    check_export(lambda x: torch.linalg.vector_norm(x, order), (torch.tensor(-2.5),))


def test_norm_of_scalar():
    x = torch.tensor(-2.5)
    check_export(lambda x: (x.norm(), x.norm(p=1), x.var(correction=0), x.logsumexp(0)), (x,))
    check_export(lambda x: torch.nn.functional.normalize(x, dim=0), (x,))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0,)], ids=str)
def test_mean_of_nothing(shape):
    x = torch.empty(shape)
    check_export(lambda x: (x.mean(), x.mean(dim=0), x.mean(dim=-1, keepdim=True)), (x,))
    check_export(lambda x: (*torch.std_mean(x), *torch.var_mean(x, dim=-1)), (x,))
    check_export(torch.nn.functional.mse_loss, (x, x))


def test_reductions_of_nothing():
    x = torch.empty(2, 0)
    check_export(lambda x: (x.norm(dim=-1), x.sum(-1), x.prod(-1), x.logsumexp(-1)), (x,))


MEANS = {
    "all": lambda x: x.mean(),
    "rows": lambda x: x.mean(0),
    "kept": lambda x: x.mean(1, keepdim=True),
    "var": lambda x: torch.var_mean(x, 1),
    "std": lambda x: torch.std_mean(x, correction=0),
    "half": lambda x: x.half().float().mean((0, 1)),
}


@pytest.mark.parametrize("fct", MEANS.values(), ids=list(MEANS))
def test_mean_of_dynamic_dimensions_which_become_empty(fct):
    x = torch.randn(3, 4)
    others = [(x[:0],), (x[:, :0],), (torch.zeros(0, 0),), (x[:1],)]
    check_export(fct, (x,), ({0: "a", 1: "b"},), others)


def _kinds(fct):
    """The operators of a model whose dimensions a and b may be 0."""
    x, dims = torch.randn(2, 3, 4, 5), ({2: "a", 3: "b"},)
    others = [(torch.randn(2, 3, *shape),) for shape in ((0, 5), (4, 0), (0, 0), (3, 7))]
    return op_types(check_export(fct, (x,), dims, others))


def _both_directions(x):
    """The gates of two directions, made together."""
    gates = torch.cat([x.mean(3), x.mean(2)], 2).sigmoid()
    rows, columns = gates.split([x.shape[2], x.shape[3]], 2)
    return x * rows[..., None] * columns[:, :, None]


HIDDEN = {
    "centred": lambda x: x - x.mean((2, 3), keepdim=True),
    "gate": lambda x: x * torch.sigmoid(x.mean((2, 3), keepdim=True) * 2 + 1),
    "repeated": lambda x: x.mean((2, 3))[:, :, None].expand(-1, -1, x.shape[2] * x.shape[3]) + 1,
    "a sum of nothing": lambda x: (x.amin(1) + x.mean((1, 2, 3))[:, None, None]).sum(),
    "two directions": lambda x: _both_directions(x),
    "its size": lambda x: x * x.new_ones(x.mean(3).shape)[..., None] * x.mean(3, keepdim=True),
    "two ways": lambda x: (lambda m: (x + m, x * m.exp()))(x.mean((2, 3), keepdim=True)),
}
SEEN = {
    "a result": lambda x: (lambda m: (x - m, m))(x.mean((2, 3), keepdim=True)),
    "one dimension only": lambda x: x.sum(3) + x.mean((2, 3))[:, :, None],
    "a part": lambda x: x.sum((2, 3)) + x.mean((2, 3)).split(2, 1)[1].sum(1, keepdim=True),
    "a number of results": lambda x: x.mean((2, 3)).isnan().nonzero(),
}


@pytest.mark.parametrize("name", sorted(HIDDEN))
def test_mean_of_nothing_that_only_changes_empty_results(name):
    assert "Where" not in _kinds(HIDDEN[name])


@pytest.mark.parametrize("name", sorted(SEEN))
def test_mean_of_nothing_that_is_seen(name):
    assert "Where" in _kinds(SEEN[name])
