"""Python arithmetic on sizes and on numbers read from tensors."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F
from ut_torch_interpreter.export_checks import check_export

X = torch.arange(12, dtype=torch.float32).reshape(3, 4)
DYNAMIC = ({0: "a", 1: "b"},)
OTHERS = [(torch.randn(5, 7),), (torch.randn(2, 9),)]
EXPRESSIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: b * 2 - a,
    "mul": lambda a, b: a * b * 3,
    "floordiv": lambda a, b: (a * b) // 2,
    "negative floordiv": lambda a, b: (-a) // 2,
    "mod": lambda a, b: (a * b) % 5,
    "pow": lambda a, b: a**2,
    "neg": lambda a, b: -a + b * 10,
    "max": lambda a, b: torch.sym_max(a, b),
    "min": lambda a, b: torch.sym_min(a, b),
    "truediv": lambda a, b: a / b,
    "float": lambda a, b: torch.sym_float(a) * 0.5,
    "ceil": lambda a, b: math.ceil(a / 2),
    "floor": lambda a, b: math.floor(b / 2),
    "int": lambda a, b: torch.sym_int(a * 1.5),
    "sqrt": lambda a, b: a**0.5,
    "log2": lambda a, b: torch._sym_log2(a * 8),
    "tan": lambda a, b: torch._sym_tan(b),
    "and": lambda a, b: b & 3,
    "or": lambda a, b: a | b,
    "and of a negative": lambda a, b: (a - b - 9) & 7,
    "conditions": lambda a, b: torch.sym_ite((a > 2) & (b > 4), a, b),
    "left shift": lambda a, b: (b << 2) + (1 << a),
    "right shift": lambda a, b: (b >> 1) - ((a - b - 9) >> 1),
    "abs": lambda a, b: abs(a - b),
    "pos": lambda a, b: +a,
    "round": lambda a, b: round(a / 2) + round(b * 0.5),
    "round to decimals": lambda a, b: round(b / 3, 1) + round(b * 7.0, -1),
    "round an integer": lambda a, b: round(a) + round(b, 2),
}


@pytest.mark.parametrize("name", sorted(EXPRESSIONS))
def test_expression(name):
    fct = EXPRESSIONS[name]
    check_export(lambda x: (fct(x.shape[0], x.shape[1]), x + 1), (X,), DYNAMIC, OTHERS)
    check_export(lambda x: x * fct(x.shape[0], x.shape[1]), (X,), DYNAMIC, OTHERS)


def test_item():
    def model(x, n):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0])
        return x[:k]

    check_export(model, (X, torch.tensor(2)), ({0: "a"}, None), [(X, torch.tensor(1))])
    check_export(lambda x: x + x.sum().item(), (X,))


def test_numel():
    check_export(lambda x: x.sum() / x.numel(), (X,), DYNAMIC, OTHERS)


def test_integer_input():
    class Model(torch.nn.Module):
        def forward(self, x, n):
            return x * n, n + 1

    onx = check_export(Model(), (X, 3), ({0: "a"}, "n"), [(X, 5), (X[:1], 2)])
    assert [i.name for i in onx.graph.input] == ["x", "n"]
    assert not onx.graph.input[1].type.tensor_type.shape.dim


def test_static_integer_input_is_a_constant():
    class Model(torch.nn.Module):
        def forward(self, x, n, flag=True, m=None):
            return x * n if flag else x

    onx = check_export(Model(), (X, 3, True, None))
    assert [i.name for i in onx.graph.input] == ["x"]


@pytest.mark.parametrize("name", ["and", "or", "and of a negative", "conditions"])
def test_bits_before_opset_18(name):
    fct = EXPRESSIONS[name]
    check_export(lambda x: x * fct(*x.shape), (X,), DYNAMIC, OTHERS, target_opset=17)


def test_strides():
    check_export(lambda x: x * x.stride(0) + x.stride(1), (X,), DYNAMIC, OTHERS)
    windows = ({0: "a", 1: "b", 2: "c"},)
    others = [(torch.randn(3, 2, 9),), (torch.randn(1, 1, 4),)]
    x = torch.randn(2, 3, 8)

    def strided(x):
        shape = (x.shape[0], x.shape[1], x.shape[2] - 2, 3)
        return x.as_strided(shape, (x.stride(0), x.stride(1), x.stride(2), x.stride(2)))

    check_export(strided, (x,), windows, others)


def _padded(x):
    """Windows of four, the length is padded: torch cannot tell that it is not empty."""
    y = torch.nn.functional.pad(x, (0, (4 - x.shape[1] % 4) % 4)).contiguous()
    return y.as_strided((y.shape[0], y.shape[1] // 4, 4), (y.stride(0), 4, 1))


def _joined(x):
    n, y = x.shape[1], torch.cat([x.flip(1), x], 1)
    return y.as_strided((x.shape[0], n, n), (y.stride(0), 1, 1))


def _permuted(x):
    y = x.transpose(0, 1) * 1
    return y.as_strided((x.shape[1] - 1, 2, x.shape[0]), (y.stride(0), y.stride(0), y.stride(1)))


@pytest.mark.parametrize("function", [_padded, _joined, _permuted])
def test_strides_of_computed_sizes(function):
    others = [(torch.randn(3, 9),), (torch.randn(1, 8),), (torch.randn(2, 2),)]
    check_export(function, (torch.randn(2, 5),), ({0: "a", 1: "b"},), others)


def test_every_size_at_once():
    """torch.gradient reads the whole shape."""
    shapes = ({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},)
    others = [(torch.randn(6, 3),), (torch.randn(3, 8),)]
    check_export(lambda x: torch.gradient(x)[0], (torch.randn(4, 5),), shapes, others)


@pytest.mark.parametrize("size", [lambda n: math.ceil(n / 4), lambda n: int(n / 3) + 1])
def test_a_rounded_quotient_of_sizes_is_known(size):
    def padded(x):
        n = x.shape[1]
        return F.pad(x, (0, 0, 0, size(n) * 4 - n)).reshape(x.shape[0], -1, 4, 2).sum(2)

    others = [(torch.randn(b, n, 2),) for b, n in ((1, 3), (3, 4), (5, 9), (2, 1))]
    model = check_export(padded, (torch.randn(2, 6, 2),), ({0: "b", 1: "n"},), others)
    assert not {"Ceil", "Cast"} & {node.op_type for node in model.graph.node}
