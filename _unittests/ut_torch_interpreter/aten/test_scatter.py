"""Writing some elements."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export, op_types

X = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
Z = torch.arange(140, dtype=torch.float32).reshape(7, 4, 5)
I = torch.tensor([2, 0, 1])  # noqa: E741
J = torch.tensor([1, 3, 0])
M = torch.tensor([[0, 1, 2], [2, 0, 0]])
SRC = torch.tensor([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]])
W = torch.zeros(3, 4) + 0.5


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scatter(dim):
    check_export(lambda x, i, s: x.scatter(dim, i, s), (W, M[:1], SRC))
    check_export(lambda x, i: x.scatter(dim, i[:1], 7.0), (W, M))
    check_export(lambda x, i, s: x.scatter_add(dim, i, s), (W, M, SRC))
    check_export(lambda x, i: x.scatter(dim, i[:1], 7), (W.to(torch.int64), M))


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduce, include_self):
    def model(x, i, s):
        return x.scatter_reduce(0, i, s, reduce=reduce, include_self=include_self)

    check_export(model, (W, M, SRC))
    check_export(model, (W.to(torch.int64), M, SRC.to(torch.int64)))
    check_export(model, (W > 0.5, M, SRC > 0))


def test_scatter_inplace_and_reduce():
    check_export(lambda x, i, s: x.clone().scatter_(0, i, s), (W, M[:1], SRC))
    check_export(lambda x, i, s: x.scatter(0, i, s, reduce="add"), (W, M, SRC))
    check_export(lambda x, i, s: x.scatter(0, i, s, reduce="multiply"), (W, M, SRC))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_family(dim):
    index = torch.tensor([1, 0])
    src = X.index_select(dim, index) * 10
    check_export(lambda x, i, s: x.index_add(dim, i, s), (X, index, src))
    check_export(lambda x, i, s: x.index_add(dim, i, s, alpha=2), (X, index, src))
    check_export(lambda x, i, s: x.index_copy(dim, i, s), (X, index, src))
    check_export(lambda x, i: x.index_fill(dim, i, -1.0), (X, index))


def test_index_add_dynamic():
    check_export(
        lambda x, i, s: x.index_add(0, i, s),
        (X, I, X),
        ({0: "a"}, {0: "b"}, {0: "b"}),
        [(Z, torch.tensor([6, 1]), X[:2])],
    )


PUTS = {
    "first": lambda x, i, j: x.index_put((i,), torch.tensor(-1.0)),
    "row": lambda x, i, j: x.index_put((i,), x[0] * 2),
    "two": lambda x, i, j: x.index_put((i, j), torch.ones(3, 5)),
    "broadcast": lambda x, i, j: x.index_put((i, j), torch.ones(5)),
    "accumulate": lambda x, i, j: x.index_put((i * 0, j * 0), torch.ones(3, 5), accumulate=True),
    "three": lambda x, i, j: x.index_put((i, j, i), torch.tensor([1.0, 2.0, 3.0])),
}


@pytest.mark.parametrize("name", sorted(PUTS))
def test_index_put(name):
    check_export(PUTS[name], (X, I, J))
    check_export(PUTS[name], (X, I, J), ({0: "a"}, None, None), [(Z, I, J)])


def _assign(fct):
    def model(x, i, j):
        y = x.clone()
        fct(y, i, j)
        return y

    return model


def _set(key):
    def fct(y, i, j):
        y[key(i, j)] = -1.0

    return fct


ASSIGNMENTS = {
    "column": _set(lambda i, j: (slice(None), 1)),
    "last": _set(lambda i, j: (..., -1)),
    "slice": _set(lambda i, j: slice(1, 3)),
    "negative": _set(lambda i, j: slice(-2, None)),
    "step": _set(lambda i, j: (slice(None), slice(None, None, 2))),
    "block": _set(lambda i, j: (slice(0, 2), slice(1, 3))),
    "index": _set(lambda i, j: i),
    "middle index": _set(lambda i, j: (slice(None), j)),
    "separated": _set(lambda i, j: (i, slice(None), j)),
    "everything": _set(lambda i, j: slice(None)),
}


@pytest.mark.parametrize("name", sorted(ASSIGNMENTS))
def test_assignment(name):
    model = _assign(ASSIGNMENTS[name])
    check_export(model, (X, I, J))
    check_export(model, (X, I, J), ({0: "a"}, None, None), [(Z, I, J)])


def test_assignment_of_values():
    def model(x, y):
        z = x.clone()
        z[:, 1:3] = y
        z[0] += 1
        return z

    check_export(model, (X, X[:, :2] * 3), ({0: "a"}, {0: "a"}), [(Z, Z[:, :2])])


def test_mask_assignment():
    def one(x, m):
        y = x.clone()
        y[m] = -1.0
        return y

    check_export(one, (X, X > 30), ({0: "a"}, {0: "a"}), [(Z, Z > 70)])
    check_export(one, (X, X[:, 0, 0] > 10))

    def several(x, m):
        y = x.clone()
        y[m] = torch.arange(2.0)[:, None]
        return y

    check_export(several, (X[0], torch.tensor([True, False, True, False])))


def test_masked_scatter():
    mask = X > 30
    check_export(lambda x, m, s: x.masked_scatter(m, s), (X, mask, X * -1))
    check_export(lambda x, m, s: x.masked_scatter(m, s), (X, mask[:1], X * -1))


def test_slice_scatter_function():
    src = torch.ones(3, 2, 5)
    check_export(lambda x, s: torch.slice_scatter(x, s, 1, 1, 3), (X, src))
    check_export(lambda x, s: torch.slice_scatter(x, s, 1, 0, 4, 2), (X, src))
    check_export(lambda x, s: torch.select_scatter(x, s, 1, -2), (X, src[:, 0]))


@pytest.mark.parametrize("reduce", ["amax", "amin", "prod"])
def test_index_reduce(reduce):
    index = torch.tensor([1, 0])
    args = X, index, X[:, 2:] - 20
    check_export(lambda x, i, s: x.index_reduce(1, i, s, reduce), args)
    check_export(lambda x, i, s: x.index_reduce(1, i, s, reduce, include_self=False), args)


@pytest.mark.parametrize("accumulate", [True, False])
def test_put(accumulate):
    index = torch.tensor([1, 20])
    check_export(lambda x, i: x.put(i, torch.tensor([9.0, 8.0]), accumulate), (X, index))


@pytest.mark.parametrize("index", [torch.tensor(0), torch.tensor([0])], ids=["0d", "1d"])
def test_index_write_in_a_scalar(index):
    x, y = torch.tensor(2.5), torch.tensor(4.0)
    check_export(lambda x, y: (x.index_fill(0, index, 3.0), x.index_fill(-1, index, y)), (x, y))
    check_export(lambda x, y: x.index_copy(0, index, y), (x, y))
    check_export(lambda x, y: x.index_add(0, index, y, alpha=2), (x, y))


def test_index_copy_of_a_scalar_in_a_vector():
    index = torch.tensor(1)
    args = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
    check_export(lambda x, y: x.index_copy(0, index, y), args)


def test_masked_scatter_broadcasts():
    x, source = torch.rand(3, 4), torch.arange(12.0)
    mask = x > 0.5
    dynamic = ({0: "a"}, None, None)
    check_export(torch.masked_scatter, (x, mask[0], source), dynamic, [(x[:1], mask[1], source)])
    check_export(torch.masked_scatter, (x[:1], mask, source))
    check_export(torch.masked_scatter, (x[0], mask, source), (None, {0: "a"}, None))


def test_masked_scatter_of_nothing():
    x, mask, source = torch.zeros(2, 3), torch.tensor([[True, False, True]] * 2), torch.rand(4)
    others = [
        (x, mask & False, source[:0]),
        (x[:0], mask[:0], source[:0]),
        (x[:, :0], mask[:, :0], source),
    ]
    shapes = ({0: "a", 1: "b"}, {0: "a", 1: "b"}, {0: "c"})
    check_export(torch.masked_scatter, (x, mask, source), shapes, others)
    check_export(torch.masked_scatter, (x[:, :0], mask[:, :0], source))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16])
@pytest.mark.parametrize("include_self", [True, False])
def test_means(include_self, dtype):
    """Integers are rounded down, what receives nothing does not change."""
    options = {"reduce": "mean", "include_self": include_self}
    x, source = (W * 4 - 5).to(dtype), (SRC / 4 - 9).to(dtype)
    for dim in (0, -1):
        check_export(lambda x, i, s, d=dim: x.scatter_reduce(d, i, s, **options), (x, M, source))
    rows = torch.arange(-6, 6).reshape(3, 4).to(dtype)
    places = torch.tensor([2, 0, 2])
    dynamic = ({1: "a"}, None, {1: "a"})
    check_export(
        lambda x, i, s: x.index_reduce(0, i, s, "mean", include_self=include_self),
        (x, places, rows),
        dynamic,
        [(x[:, :1], places, rows[:, :1]), (x[:, :0], places, rows[:, :0])],
    )


@pytest.mark.parametrize("step", [1, 2, 5])
@pytest.mark.parametrize("dim", [0, 1])
def test_unfold_backward(dim, step):
    """Windows overlap, touch, or leave gaps."""

    def fct(x, y):
        sizes = list(y.shape)
        return torch.ops.aten.unfold_backward(x, sizes, dim, 3, step)

    y = torch.zeros(9, 11)
    check_export(fct, (torch.randn(y.unfold(dim, 3, step).shape), y))
    y = torch.zeros(9, 0) if dim == 0 else torch.zeros(0, 11)
    check_export(fct, (torch.randn(y.unfold(dim, 3, step).shape), y))


def test_sums_of_halves():
    """onnxruntime has no kernel for them, it has one without reduction."""
    x, source, index = W.half(), W[:, :3].half() * 3, M[:, :1]
    check_export(lambda x, i, s: x.scatter_add(0, i, s[:2]), (x, index, source), atol=1e-2)
    check_export(lambda x, i, s: x.index_add(0, i, s), (x, torch.tensor([2, 2, 0]), x), atol=1e-2)
    check_export(
        lambda x, i, s: x.index_put((i,), s, accumulate=True), (x, torch.tensor([1, 1, 1]), x)
    )
    onx = check_export(lambda x, i, s: x.scatter(0, i, s), (x, index, source))
    assert "Cast" not in op_types(onx)


def test_positions_from_the_end():
    others = [(torch.randn(3, 9, 5),), (torch.randn(3, 4, 5),)]
    dims = ({1: torch.export.Dim("n", min=4)},)
    x = torch.randn(3, 6, 5)
    check_export(lambda x: torch.select_scatter(x, x[:, 0] * 9, 1, -2), (x,), dims, others)
    check_export(lambda x: torch.select_scatter(x, x[:, 0], 1, 3 - x.shape[1]), (x,), dims, others)
    check_export(
        lambda x: torch.slice_scatter(x, x[:, :2] * 9, 1, 2 - x.shape[1], 4 - x.shape[1] or None),
        (x,),
        ({0: "a"},),
        [(torch.randn(2, 6, 5),)],
    )
