"""The error of a failed export names the dimension, the argument and the line of the user."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, Fct2

from torch_interpreter import ExportError, to_onnx
from xbuilder.errors import XoptimError

X = torch.randn(3, 8)


def message(model, args, shapes, **options) -> str:
    with pytest.raises(ExportError) as raised:
        to_onnx(model, args, dynamic_shapes=shapes, **options)
    return str(raised.value)


def place(function) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno}, in <"


@pytest.mark.parametrize(
    "dim, text",
    [
        ("n", "'n' (1 of x)"),
        (torch.export.Dim("n"), "'n' (1 of x)"),
        (torch.export.Dim.DYNAMIC, "1 of x"),
    ],
    ids=str,
)
@pytest.mark.parametrize("strategy", ["nostrict", "fallback"])
def test_the_dimension_of_the_user(dim, text, strategy):
    columns = lambda x: sum(x[:, i] for i in range(x.shape[1]))  # noqa: E731
    found = message(Fct1(columns), (X,), ({0: "b", 1: dim},), export_options=strategy)
    assert f"Dimension {text} became 8 at {place(columns)}" in found


def test_nested_arguments():
    class Model(torch.nn.Module):
        def forward(self, x, parts):
            return parts["a"][0] + torch.ones(3, 2)

    shapes = {"parts": {"a": [{0: "rows"}]}}
    found = message(Model(), (X, {"a": [torch.ones(3, 2)]}), shapes)
    assert "Dimension 'rows' (0 of parts['a'][0]) became 3 at " in found


def test_an_argument_that_is_static():
    """The dimension of an argument is tied to one of another argument, which is static."""
    found = message(Fct2(lambda x, y: torch.cat([x, y], 1)), (X, X), ({0: "b"}, None))
    assert "Dimension 'b' (0 of x) became 3 at " in found
    assert "\ny has no dynamic dimension and one of these sizes: give theirs in " in found
    others = message(Fct2(lambda x, y: x + torch.ones(3, 8) + y), (X, X[0]), ({0: "b"}, None))
    assert "has no dynamic dimension" not in others


RAISED = {
    "key of a dictionary": (lambda x: x * {8: 2.0}.get(x.shape[1], 1.0), "no key of a dictionary"),
    "element of a set": (lambda x: x * (x.shape[1] in {8, 9}), "no element of a set"),
    "array": (lambda x: x + torch.from_numpy(np.arange(x.shape[1])), "same function of torch"),
    "no such method": (lambda x: x.no_such_method(), "has no attribute 'no_such_method'"),
}


@pytest.mark.parametrize(
    "name, strategy",
    [*((name, "nostrict") for name in sorted(RAISED)), ("no such method", "fallback")],
)
def test_the_line_that_raises(name, strategy):
    function, text = RAISED[name]
    found = message(Fct1(function), (X,), ({0: "b", 1: "n"},), export_options=strategy)
    assert f"\nIt was raised at {place(function)}" in found and text in found


class Adjacent(torch.nn.Module):
    """Holds a matrix."""

    def __init__(self, matrix):
        super().__init__()
        self.register_buffer("matrix", matrix)

    def forward(self, x):
        return (self.matrix @ x.t()).t()


NOT_DENSE = {
    "coo": (Adjacent(torch.eye(8).to_sparse()), X, r"matrix is a sparse tensor \(torch.sparse_coo"),
    "csr": (Adjacent(torch.eye(8).to_sparse_csr()), X, "call to_dense"),
    "made": (Fct1(lambda x: x.to_sparse().to_dense()), X, "no sparse and no nested tensor"),
    "coo argument": (Fct1(lambda x: x @ torch.ones(8, 3)), X.to_sparse(), "x is a sparse tensor"),
    "csr argument": (Fct1(lambda x: x @ torch.ones(8, 3)), X.to_sparse_csr(), "call to_dense"),
    "read as dense": (Fct1(lambda x: x.to_dense()), X.to_sparse(), "x is a sparse tensor"),
    "nested": (
        Fct1(torch.sin),
        torch.nested.nested_tensor([X, X[:2]], layout=torch.jagged),
        "x is a nested tensor",
    ),
}


@pytest.mark.parametrize("name", sorted(NOT_DENSE))
@pytest.mark.parametrize("dim", ["b", None])
def test_what_is_not_dense(name, dim):
    model, x, text = NOT_DENSE[name]
    with pytest.raises(XoptimError, match=text):
        to_onnx(model, (x,), dynamic_shapes=dim and ({0: dim},))


@pytest.mark.filterwarnings("ignore")
def test_packed_weights():
    linear = torch.nn.Sequential(torch.nn.Linear(8, 4))
    packed = torch.ao.quantization.quantize_dynamic(linear, {torch.nn.Linear}, dtype=torch.qint8)
    assert "export the float model" in message(packed, (X,), None)


def test_a_message_that_has_the_line():
    found = message(Fct1(lambda x: x if x.sum() > 0 else -x), (X,), None)
    assert "It was raised at" not in found and __file__ in found


@pytest.mark.parametrize("verbose", [0, 1])
def test_the_graph_torch_prints(verbose, capsys):
    class Branch(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.max().item() > 0.5 else x

    with pytest.raises(ExportError, match="item"):
        to_onnx(Branch(), (torch.ones(3),), verbose=verbose)
    assert ("def forward" in capsys.readouterr().err) == bool(verbose)
    assert "print" not in vars(torch.export._trace)


def test_weights_without_data():
    """They are inputs of the model, with ``fake``."""
    with torch.device("meta"):
        model = torch.nn.Linear(8, 3)
    found = message(model, (X,), None)
    assert "ExportOptions(fake=True)" in found
    onx = to_onnx(model, (X,), export_options="fake")
    assert [i.name for i in onx.graph.input] == ["input", "weight", "bias"]


def energy_gradient(x):
    return torch.func.grad(lambda x: x.tanh().sum())(x)


def recorded_gradient(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        return torch.autograd.grad(x.tanh().sum(), x)[0]


@pytest.mark.parametrize("function", [energy_gradient, recorded_gradient])
@pytest.mark.parametrize("strategy", ["nostrict", "strict"])
def test_gradients_are_refused(function, strategy):
    found = message(Fct1(function), (X,), None, export_options=strategy)
    assert "torch.export does not compute gradients (torch.func.grad" in found


def test_a_convolution_under_vmap():
    weights = torch.randn(2, 4, 3, 3, 3)

    def modulated(x):
        return torch.vmap(lambda a, w: torch.conv2d(a[None], w)[0])(x, weights)

    onx = to_onnx(Fct1(modulated), (torch.randn(2, 3, 6, 6),))
    assert sum(n.op_type == "Conv" for n in onx.graph.node) == 1
