"""torch.compile with models: results and gradients are those of eager."""

from __future__ import annotations

import copy

import onnx
import pytest
import torch

from torch_interpreter import Dispatcher, OnnxBackend
from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError

nn = torch.nn


@pytest.fixture(autouse=True)
def _fresh_torch():
    torch.manual_seed(0)
    torch._dynamo.reset()


def assert_trains(model, *calls, dynamic=None, backend=None, tolerance=1e-4):
    """Compares results, gradients and buffers with eager, call after call."""
    backend = backend or OnnxBackend()
    twin = copy.deepcopy(model)
    compiled = torch.compile(twin, backend=backend, dynamic=dynamic, fullgraph=True)
    for args in calls:
        results = []
        for one in (model, compiled):
            one.zero_grad()
            results.append(one(*args))
            (results[-1].float() ** 2).mean().backward()
        torch.testing.assert_close(*results, atol=tolerance, rtol=tolerance)
        for (name, p), q in zip(model.named_parameters(), twin.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None), name
            if p.grad is not None:
                torch.testing.assert_close(p.grad, q.grad, atol=tolerance, rtol=tolerance)
        for p, q in zip(model.buffers(), twin.buffers(), strict=True):
            torch.testing.assert_close(p, q)
    return backend


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (t.view(*x.shape[:2], 4, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(x.shape))


def perceptron():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 4, 3, stride=2),
        nn.GroupNorm(2, 4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )


MODELS = {
    "perceptron": (perceptron, [(5, 4), (7, 4)]),
    "attention": (Attention, [(2, 5, 16), (3, 7, 16)]),
    "convolutions": (convolutions, [(2, 3, 16, 16)]),
}


CASES = [("convolutions", False), *((n, d) for n in ("perceptron", "attention") for d in (0, 1))]


@pytest.mark.parametrize("name, dynamic", CASES)
def test_training(name, dynamic):
    make, shapes = MODELS[name]
    calls = [(torch.randn(s),) for s in (shapes if dynamic else shapes[:1] * 2)]
    backend = assert_trains(make(), *calls, dynamic=bool(dynamic))
    assert list(backend.models) == ["forward_0", "backward_0"]


def test_a_size_that_changes_becomes_dynamic():
    calls = [(torch.randn(n, 4),) for n in (5, 7, 9)]
    backend = assert_trains(perceptron(), *calls)
    assert list(backend.models) == ["forward_0", "backward_0", "forward_1", "backward_1"]
    shapes = [
        [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim]
        for i in backend.models["forward_1"].graph.input
    ]
    assert any(isinstance(shape[0], str) for shape in shapes if shape)


class Frozen(nn.Module):
    """A layer without gradient, another without use, a number that depends on a size."""

    def __init__(self):
        super().__init__()
        self.trained = nn.Linear(4, 4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.unused = nn.Linear(2, 2)

    def forward(self, x, mask):
        y = self.trained(x)
        return torch.where(mask, self.frozen(y), y) * x.shape[0]


def test_what_has_no_gradient_keeps_its_place():
    calls = [(torch.randn(n, 4), torch.rand(n, 4) > 0.5) for n in (3, 5)]
    backend = assert_trains(Frozen(), *calls, dynamic=True)
    assert len(backend.models) == 2


class Several(nn.Module):
    """Results with other strides, arguments, numbers, None."""

    def forward(self, x):
        y = x.t() + 1
        return y, y.t(), x, x.shape[0], None, y.t().reshape(-1), x[0], y.sum()


@pytest.mark.parametrize("dynamic", [False, True])
def test_every_output_has_its_place(dynamic):
    x = torch.randn(3, 4)
    expected = Several()(x)
    got = torch.compile(Several(), backend=OnnxBackend(), dynamic=dynamic)(x)
    assert len(expected) == len(got)
    for a, b in zip(expected, got, strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b)
            assert a.stride() == b.stride()
        else:
            assert a == b and type(a) is type(b)
    assert got[2] is x


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        self.seen.add_(x.mean(0).detach())
        y = x * self.weight
        y[0] = 0
        return y.abs_()


def test_buffers_are_updated():
    assert_trains(InPlace(), (torch.randn(4, 3),), (torch.randn(4, 3),))


def test_bfloat16():
    model = nn.Linear(4, 3).to(torch.bfloat16)
    assert_trains(model, (torch.randn(5, 4).to(torch.bfloat16),), tolerance=1e-2)


def test_an_empty_batch():
    backend = OnnxBackend()
    compiled = torch.compile(nn.Linear(4, 3), backend=backend)
    compiled(torch.randn(0, 4)).sum().backward()
    assert compiled._orig_mod.weight.grad.abs().sum() == 0
    assert list(backend.models) == ["forward_0", "backward_0"]


def test_dropout_drops_the_same_elements_backward():
    x = torch.ones(50, 20, requires_grad=True)
    dropped = torch.compile(nn.Dropout(0.5), backend=OnnxBackend())(x)
    dropped.sum().backward()
    assert torch.equal(dropped, x.grad)
    assert 300 < (dropped == 0).sum() < 700


def test_nothing_to_compute():
    backend = OnnxBackend()
    x = torch.randn(3)
    assert torch.compile(lambda x: (x, None), backend=backend)(x)[0] is x
    assert backend.models == {}


def test_inference_and_folder(tmp_path, capsys):
    backend = OnnxBackend(folder=tmp_path, verbose=1)
    model = perceptron().eval()
    with torch.no_grad():
        x = torch.randn(3, 4)
        torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))
    assert [p.name for p in tmp_path.iterdir()] == ["inference_0.onnx"]
    saved = onnx.load(tmp_path / "inference_0.onnx")
    assert saved == backend.models["inference_0"]
    assert capsys.readouterr().out == f"[OnnxBackend] inference_0: {len(saved.graph.node)} nodes\n"


def test_patterns_are_chosen():
    def gelu(options):
        torch._dynamo.reset()
        backend = OnnxBackend(options)
        torch.compile(torch.nn.GELU(), backend=backend)(torch.randn(3))
        return [n.op_type for n in backend.models["inference_0"].graph.node]

    assert gelu(None) == ["Gelu"]
    assert len(gelu(OptimizationOptions(patterns=None))) > 1


def test_dispatcher_and_opset():
    def relu(g, sts, outputs, x):
        return g.op.Max(x, g.op.Sub(x, x), outputs=outputs)

    backend = OnnxBackend(
        OptimizationOptions(patterns=None), Dispatcher({"aten::relu": relu}), target_opset=20
    )
    x = torch.randn(3)
    torch.testing.assert_close(torch.compile(torch.relu, backend=backend)(x), x.relu())
    (onx,) = backend.models.values()
    assert [n.op_type for n in onx.graph.node] == ["Sub", "Max"]
    assert onx.opset_import[0].version == 20


def test_options_are_checked(tmp_path):
    with pytest.raises(OptionError, match="is not an existing folder"):
        OnnxBackend(folder=tmp_path / "missing")
    with pytest.raises(OptionError, match="options expects OptimizationOptions"):
        OnnxBackend(["default"])
    assert len(OnnxBackend("default").options.patterns) > 100
    with pytest.raises(OptionError, match="dispatcher expects Dispatcher"):
        OnnxBackend(dispatcher={})


def test_another_device_is_refused():
    graph = torch.fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(OptionError, match=r"runs on CPU, some tensors are on \['meta'\]"):
        OnnxBackend().compile_graph("g", graph, [torch.empty(3, device="meta")], None)
