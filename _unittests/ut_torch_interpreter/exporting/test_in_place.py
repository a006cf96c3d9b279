"""Operators in place become functional ones without running the program again."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import check_export

from torch_interpreter import to_onnx
from torch_interpreter.exporting import decompositions
from torch_interpreter.exporting.in_place import NotRewritten, functional_form, make_functional

X, OTHER = torch.randn(3, 4), torch.randn(5, 4)
DYNAMIC = ({0: "n"},)
ops = torch.ops.aten


def _views_of_one_tensor(x):
    y = x * 2
    flat, turned = y.view(-1), y.t()
    flat.add_(1)
    turned[1] = 5
    z = y + flat.reshape(-1, 4)
    y.mul_(3)
    return y, flat, turned, z


def _pieces(x):
    y = x * 2
    a, b = y.chunk(2, 1)
    turned = b.t()
    a.add_(1)
    b.mul_(3)
    return a, b, y, turned + 1, turned


def _named_pieces(x):
    y = x * 2
    first, second, third = y.split([1, 2, 1], dim=1)
    second.mul_(third)
    y.unbind(1)[3].zero_()
    return y, first, third


def _parts(x):
    y = torch.zeros(x.shape[0], 6)
    y[:, 1:5] = x
    y[:, 0] = x[:, 0]
    y[y > 0.5] = 0.1
    y[..., -1].copy_(x[:, 1].int())
    y.narrow(1, 2, 2).neg_()
    return y


def _moved(x):
    y = x * 2
    y.permute(1, 0)[0].fill_(7)
    y.unsqueeze(0).squeeze(0).add_(1)
    y.flatten().sub_(1)
    torch.diagonal(y).zero_()
    return y


def _an_input(x):
    x.add_(1)
    return x, x * 2


def _shapes(x):
    y = x * 2
    y.t_()
    z = y + 1
    y.unsqueeze_(0)
    return y, z, y.transpose_(0, 1)


def _types(x):
    y = x.half() * 1
    y.add_(x)
    y *= 2
    y -= x[0]
    return y.float()


def _copies(x):
    y = x * 2
    copied, turned = y.t().contiguous(), y.t().reshape(-1)
    y.add_(1)
    return copied, turned, y, x.to(torch.float64).add_(y).float()


def _and_or(x):
    y = x > 0
    y &= x > 1
    y.logical_not_()
    return y


FUNCTIONS = {
    f.__name__.strip("_"): f
    for f in (
        _views_of_one_tensor,
        _pieces,
        _named_pieces,
        _parts,
        _moved,
        _an_input,
        _shapes,
        _types,
        _copies,
        _and_or,
    )
}


@pytest.fixture
def runs(monkeypatch):
    """The tables of the decompositions torch runs."""
    tables = []
    original = decompositions._decomposed

    def count(program, table):
        tables.append(table)
        return original(program, table)

    monkeypatch.setattr(decompositions, "_decomposed", count)
    return tables


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_equal_to_eager_without_another_run(name, runs):
    atol = 1e-2 if name == "types" else 1e-5
    # a column is contiguous: what copies a matrix does not copy it
    others = [(OTHER,)] if name == "copies" else [(OTHER,), (X[:1],)]
    check_export(FUNCTIONS[name], (X,), DYNAMIC, others, atol=atol)
    assert runs == []


def test_an_operator_after_a_change_of_shape_is_left_to_torch(runs):
    def model(x):
        y = x * 2
        y.t_()
        y.add_(1)
        return y

    check_export(model, (X,), DYNAMIC, [(OTHER,)])
    assert runs == [{}]


def test_branches(runs):
    class Model(torch.nn.Module):
        def forward(self, x):
            def positive(y):
                z = y * 2
                z.add_(1)
                return z

            def negative(y):
                z = y - 2
                z[0] = 1
                return z

            return torch.cond(x.sum() > 0, positive, negative, (x,))

    check_export(Model(), (X.abs(),), DYNAMIC, [(-OTHER.abs(),), (OTHER.abs(),)])
    assert runs == []


def test_a_buffer_keeps_its_value():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x):
            self.total += x.sum(0)
            return x + self.total

    onx = to_onnx(Model(), (X,), dynamic_shapes=DYNAMIC)
    assert [o.name for o in onx.graph.output] and len(onx.graph.output) == 1


def test_the_program_of_the_user_is_unchanged():
    class Model(torch.nn.Module):
        def forward(self, input):
            return (input * 2).add_(1)

    program = torch.export.export(Model(), (X,))
    before = str(program.graph)
    to_onnx(program, (X,))
    assert str(program.graph) == before


@pytest.mark.parametrize(
    "op,expected",
    [
        (ops.add_.Tensor, ops.add.Tensor),
        (ops.__iand__.Tensor, ops.__and__.Tensor),
        (ops.transpose_.default, ops.transpose.int),
        (ops.resize_.default, None),
        (ops.add.out, None),
        (ops._foreach_add_.Scalar, None),
    ],
)
def test_functional_form(op, expected):
    assert functional_form(op) is expected


def _graph(model):
    class Model(torch.nn.Module):
        def forward(self, x):
            return model(x)

    return torch.export.export(Model(), (X,)).graph


def test_refusals():
    def comparison(x):
        y = x * 2
        y.gt_(0)
        return y

    def three_types(x):
        y = x.half()
        y.addcmul_(x, x.double())
        return y

    def base_of_an_expansion(x):
        y = x * 2
        y.expand(1, 3, 4)[0, :1].add_(1)
        return y

    for model, message in (
        (comparison, "writes booleans"),
        (three_types, "operands of several types"),
        (base_of_an_expansion, "is read after one of its views was modified"),
    ):
        with pytest.raises(NotRewritten, match=message):
            make_functional(_graph(model))
    with pytest.raises(NotRewritten, match="modifies an input"):
        make_functional(_graph(lambda x: x.add_(1)), inputs_change=False)
