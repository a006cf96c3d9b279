"""Activations and softmax."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export, module_of, op_types, run_ort

from torch_interpreter import to_onnx

X = torch.tensor([[-30.0, -2.0, -0.25, 0.0], [0.3, 1.0, 5.5, 30.0]])
DYNAMIC = ({0: "batch"},)
FUNCTIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "elu": F.elu,
    "elu_alpha": lambda x: F.elu(x, alpha=0.5),
    "celu": lambda x: F.celu(x, alpha=0.7),
    "selu": F.selu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "hardtanh": lambda x: F.hardtanh(x, -2.0, 3.0),
    "relu6": F.relu6,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "softplus": F.softplus,
    "softplus_beta": lambda x: F.softplus(x, beta=2.0, threshold=5.0),
    "logsigmoid": F.logsigmoid,
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.5, -7.0),
    "sigmoid": torch.sigmoid,
    "glu": lambda x: F.glu(x, dim=-1),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_activation(name):
    check_export(FUNCTIONS[name], (X,), DYNAMIC, [(X[:1],), (X[:0],)])


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "softplus", "hardtanh", "leaky_relu"])
def test_activation_float16(name):
    check_export(FUNCTIONS[name], (X.to(torch.float16),), atol=1e-2)


@pytest.mark.parametrize("name", ["elu", "silu", "leaky_relu", "hardtanh", "relu", "hardswish"])
def test_inplace(name):
    check_export(lambda x: getattr(F, name)(x + 1, inplace=True) * 2, (X,))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("opset", [18, 20])
def test_gelu_opset(approximate, opset):
    onx = check_export(lambda x: F.gelu(x, approximate=approximate), (X,), target_opset=opset)
    assert ("Gelu" in op_types(onx)) == (opset >= 20)


@pytest.mark.parametrize("weights", [1, 3])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5)], ids=str)
def test_prelu(weights, shape):
    model = torch.nn.PReLU(weights)
    torch.nn.init.uniform_(model.weight)
    x = torch.randn(shape)
    check_export(model.eval(), (x,), DYNAMIC, [(x[:1],)])


def test_prelu_of_a_scalar():
    check_export(F.prelu, (torch.tensor(-2.0), torch.tensor([0.25])))


def test_glu_axis():
    check_export(lambda x: F.glu(x, dim=0), (X,))
    check_export(lambda x: F.glu(x, dim=0), (X,), None, [])


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name, dim):
    fct = getattr(F, name)
    check_export(lambda x: fct(x, dim=dim), (X,), DYNAMIC, [(X[:1],)])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_types(name):
    fct = getattr(F, name)
    check_export(lambda x: fct(x, dim=-1, dtype=torch.float64), (X,))
    check_export(lambda x: fct(x.to(torch.float16), dim=-1, dtype=torch.float32), (X,), atol=1e-3)
    check_export(lambda x: fct(x, dim=-1), (torch.tensor(2.0),))


def test_softmax_decomposed():
    for fct in (F.softmax, F.log_softmax):
        check_export(lambda x, f=fct: f(x, dim=-1), (X,), export_options="nostrict-dec")


def test_safe_softmax():
    x = X.clone()
    x[0] = -float("inf")
    check_export(lambda x: torch.ops.aten._safe_softmax(x, -1), (x,))


def test_nan_is_not_below_a_threshold():
    x = torch.tensor([float("nan"), 1.0, 0.0, -3.0])
    functions = torch.nn.functional
    check_export(
        lambda x: (functions.threshold(x, 0.5, 7.0), functions.softshrink(x)),
        (x,),
        ({0: "a"},),
        [(x[:1],), (x[:0],)],
    )


COMPUTED = {
    "leaky_relu": lambda x, n: F.leaky_relu(x, 1 / n),
    "elu": lambda x, n: F.elu(x, n / 2),
    "softplus": lambda x, n: F.softplus(x, n / 4, n),
}


@pytest.mark.parametrize("name", sorted(COMPUTED))
def test_a_parameter_computed_from_a_size(name):
    others = [(torch.randn(2, 5),), (torch.randn(3, 9) * 30,)]
    check_export(
        lambda x: COMPUTED[name](x, x.shape[1]), (torch.randn(3, 8),), ({0: "a", 1: "n"},), others
    )


def test_rrelu_in_training():
    """Each negative value has a slope between the bounds, the others are kept."""
    x = torch.linspace(-2, 2, 101)
    model = module_of(lambda x: F.rrelu(x, 0.2, 0.4, training=True), 1)
    onx = to_onnx(model, (x,))
    (found,) = run_ort(onx, [x])
    slopes = found[:50] / x[:50].numpy()
    assert slopes.min() >= 0.2 and slopes.max() <= 0.4 and len(set(slopes.tolist())) > 10
    assert (found[50:] == x[50:].numpy()).all()
