"""to_onnx on the fx graphs torch.compile gives to a backend."""

from __future__ import annotations

import math

import pytest
import torch
from ut_torch_interpreter.aot_checks import inference_backend, training_backend
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import to_onnx


def test_aot_backend_static():
    from torch._dynamo.backends.common import aot_autograd

    models, compiler = inference_backend()
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Sigmoid()).eval()
    compiled = torch.compile(model, backend=aot_autograd(fw_compiler=compiler), dynamic=False)
    x = torch.randn(5, 4)
    with torch.no_grad():
        assert_same(model(x), [compiled(x).numpy()], 1e-5)
    assert len(models) == 1


def test_aot_backend_with_symbolic_inputs():
    from torch._dynamo.backends.common import aot_autograd

    models, compiler = inference_backend()

    def fct(x):
        return torch.cos(x).reshape(-1) * x.shape[0]

    torch._dynamo.reset()
    compiled = torch.compile(fct, backend=aot_autograd(fw_compiler=compiler), dynamic=True)
    for n in (3, 5):
        x = torch.randn(n, 4)
        assert_same(fct(x), [compiled(x).numpy()], 1e-5)
    assert len(models) == 1
    assert len(models[0].graph.input) > 1


@pytest.mark.parametrize("dynamic", [False, True])
def test_forward_and_backward(dynamic):
    models, backend = training_backend()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 3), torch.nn.Sigmoid(), torch.nn.ReLU(), torch.nn.LayerNorm(3)
    )
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, dynamic=dynamic)
    x = torch.randn(5, 4)
    (model(x) ** 2).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    (compiled(x) ** 2).sum().backward()
    assert len(models) == 2
    for e, p in zip(expected, model.parameters(), strict=True):
        torch.testing.assert_close(e, p.grad, atol=1e-4, rtol=1e-4)


def test_training_of_an_embedding():
    """The decomposition of its gradient has operators which are decomposed too."""
    models, backend = training_backend()
    torch._dynamo.reset()
    model = torch.nn.Embedding(7, 3, padding_idx=0)
    compiled = torch.compile(model, backend=backend, dynamic=True)
    for x in (torch.tensor([[1, 0, 3], [3, 3, 6]]), torch.tensor([[5, 0, 0, 5]] * 3)):
        (model(x) ** 2).sum().backward()
        expected = model.weight.grad.clone()
        model.zero_grad()
        (compiled(x) ** 2).sum().backward()
        torch.testing.assert_close(expected, model.weight.grad)
        model.zero_grad()
    assert len(models) == 2


class Convolutions(torch.nn.Module):
    """Convolutions, poolings and a constant made in Python."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3, stride=2, padding=1),
            torch.nn.BatchNorm2d(6),
            torch.nn.MaxPool2d(2, 1),
            torch.nn.ConvTranspose2d(6, 4, 2, stride=2),
            torch.nn.AvgPool2d(3, 2, 1),
            torch.nn.Upsample(scale_factor=2, mode="bilinear"),
            torch.nn.AdaptiveAvgPool2d((2, 3)),
        )

    def forward(self, x):
        return self.body(x).flatten(1)[:, torch.tensor([0, 5, 5, 2])]


@pytest.mark.parametrize("dynamic", [False, True])
def test_training_of_convolutions(dynamic):
    models, backend = training_backend()
    torch.manual_seed(0)
    model = Convolutions().eval()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, dynamic=dynamic)
    x, target = torch.randn(4, 3, 9, 10), torch.tensor([0, 3, -100, 1])
    loss = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0, 0.5]))
    loss(model(x), target).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    loss(compiled(x), target).backward()
    assert len(models) == 2
    for e, p in zip(expected, model.parameters(), strict=True):
        torch.testing.assert_close(e, p.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_training_with_a_loss(reduction):
    models, backend = training_backend()
    torch.manual_seed(0)
    x = torch.randn(4, 3, requires_grad=True)
    target, weight = torch.tensor([0, 2, -100, 1]), torch.tensor([1.0, 2.0, 3.0])
    torch._dynamo.reset()

    def loss(x):
        return torch.nn.functional.cross_entropy(x, target, weight, reduction=reduction)

    loss(x).sum().backward()
    expected, x.grad = x.grad, None
    torch.compile(loss, backend=backend)(x).sum().backward()
    assert len(models) == 2
    torch.testing.assert_close(expected, x.grad)


def test_dynamo_graph():
    models, backend = inference_backend()
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.relu(x).sum(dim=1), backend=backend, dynamic=False)
    x = torch.randn(3, 4)
    assert_same(torch.relu(x).sum(dim=1), [compiled(x).numpy()], 1e-5)
    assert len(models) == 1


def test_symbolic_trace():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 3)

        def forward(self, x):
            return torch.relu(self.linear(x)) + 1

    model = Model()
    x = torch.randn(5, 4)
    onx = to_onnx(torch.fx.symbolic_trace(model), (x,), dynamic_shapes=({0: "batch"},))
    assert_same(model(x[:2]), run_ort(onx, [x[:2]]), 1e-5)


PYTHON_OPERATORS = {
    "arithmetic": lambda x, y: (x + y, x - y, x * y, x / y, x**2, -x),
    "rounded": lambda x, y: (x // y, x % y, 1 - x, 2 / y),
    "comparisons": lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y),
    "logic": lambda x, y: ((x < y) & (x > 0.3), (x < y) | (x > 0.3), (x < y) ^ (x > 0.3)),
}


@pytest.mark.parametrize("fct", PYTHON_OPERATORS.values(), ids=list(PYTHON_OPERATORS))
def test_python_operators_between_tensors(fct):
    models, backend = inference_backend()
    torch._dynamo.reset()
    args = torch.rand(3, 4) + 0.1, torch.rand(3, 4) + 0.1
    compiled = torch.compile(fct, backend=backend, dynamic=False)
    assert_same(fct(*args), [v.numpy() for v in compiled(*args)], 1e-5)
    assert len(models) == 1


_LINEAR = torch.nn.Linear(4, 3)


def _written_in_place(x):
    y = x + 1
    y[0] = x.shape[0]
    return y.mul_(2)


SYMBOLIC = {
    "size": (lambda x: torch.cos(x).reshape(-1) * x.shape[0], [(3, 4), (5, 4)]),
    "weights": (lambda x: _LINEAR(x).relu(), [(3, 4), (5, 4)]),
    "made": (lambda x: x.new_zeros(x.shape[0] // 2, x.size(1)) + 1, [(6, 4), (9, 4)]),
    "in place": (_written_in_place, [(3, 4), (5, 4)]),
    "square root": (lambda x: x / math.sqrt(x.shape[0] + 1), [(3, 4), (5, 4)]),
    "attention": (torch.nn.functional.scaled_dot_product_attention, [(2, 3, 5, 4)] * 2),
}


@pytest.mark.parametrize("fct, shapes", SYMBOLIC.values(), ids=list(SYMBOLIC))
def test_dynamo_graph_with_symbolic_inputs(fct, shapes):
    models, backend = inference_backend()
    torch._dynamo.reset()
    n_args = 3 if fct is torch.nn.functional.scaled_dot_product_attention else 1
    compiled = torch.compile(fct, backend=backend, dynamic=True)
    with torch.no_grad():
        for shape in shapes:
            args = [torch.randn(shape) for _ in range(n_args)]
            assert_same(fct(*args), [compiled(*args).numpy()], 1e-5)
    assert len(models) == 1


PYTHON_ONLY = {
    "a row": lambda x: x[0],
    "a part": lambda x: (x * 2)[:, 1:],
    "a new dimension": lambda x: x[None, ..., -1],
    "abs": abs,
    "product": lambda x: x @ x.T,
    "in place": lambda x: x.clone().__iadd__(1),
    "shift": lambda x: x.long() << 2,
    "complement": lambda x: ~(x > 0),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", sorted(PYTHON_ONLY))
def test_operators_of_python_only(name, dynamic):
    models = []

    def backend(module, args):
        models.append(to_onnx(module, tuple(args)))
        return module.forward

    torch._dynamo.reset()
    x = torch.randn(4, 6)
    expected = torch.compile(PYTHON_ONLY[name], backend=backend, dynamic=dynamic)(x)
    (onx,) = models
    args = [x] if len(onx.graph.input) == 1 else [4, 6, x]
    assert_same(expected, run_ort(onx, args), 1e-5)
