"""Arguments, names, feeds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torch_interpreter import match_input_parameters, to_onnx
from torch_interpreter.checking.validation import compare
from torch_interpreter.inputs.inputs import (
    distinct_tensors,
    split_arguments,
    to_numpy,
    without_wrapper,
)
from xbuilder.errors import OptionError

X = torch.randn(2, 3)


def fct(x, y=2, *, mask=None, **others):
    return x


def test_split_arguments():
    assert split_arguments((1, 2), {"a": 3}) == ((1, 2), {"a": 3})
    assert split_arguments(None, None) == ((), {})
    assert split_arguments({"a": 3}, {"b": 1}) == ((), {"a": 3, "b": 1})
    assert split_arguments(X, None)[0][0] is X
    with pytest.raises(OptionError, match=r"a file is to_onnx\(..., filename='model.onnx'\)"):
        split_arguments((X,), "model.onnx")


WRAPPERS = {
    "compile": torch.compile,
    "parallel": torch.nn.DataParallel,
    "both": lambda mod: torch.compile(torch.nn.DataParallel(mod)),
}


@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_wrapped_module(name):
    """The names of the arguments and of the weights are those of the module."""
    mod = torch.nn.Linear(3, 2)
    wrapped = WRAPPERS[name](mod)
    onx = to_onnx(wrapped, (X,), dynamic_shapes={"input": {0: "batch"}})
    assert [i.name for i in onx.graph.input] == ["input"]
    assert {i.name for i in onx.graph.initializer} <= {"weight", "bias"}
    wrapped.register_forward_hook(lambda mod, args, result: result + 1)
    assert without_wrapper(wrapped) is wrapped


def test_match_input_parameters():
    found = match_input_parameters(fct, ["mask", "x", "z", "y"], (X,), mask=1, z=4)
    assert list(found) == ["mask", "x", "z", "y"] and found["x"] is X
    assert found["mask"] == 1 and found["z"] == 4 and found["y"] == 2
    model = torch.nn.Linear(3, 2)
    assert match_input_parameters(model, ["input"], (X,))["input"] is X
    with pytest.raises(OptionError, match="do not fit"):
        match_input_parameters(model, ["input"], (X, X, X))


class Weights(torch.nn.Module):
    """A weight with two names, a name with capitals, a weight named as an argument."""

    def __init__(self):
        super().__init__()
        self.Seq = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
        self.tied = torch.nn.Linear(3, 3)
        self.tied.weight = self.Seq[0].weight
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("mask", torch.ones(3))

    def forward(self, x, mask=None):
        x = self.tied(self.Seq(x)) * self.scale
        return x * self.mask if mask is None else x * mask


def test_weights_of_a_graph():
    """The names torch gives to the inputs of its graphs."""
    model, names = Weights().eval(), []
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    exported = torch.export.export(model, (X,)).graph_signature.input_specs
    assert len(exported) > 9
    for spec in exported:
        found = match_input_parameters(model, [spec.arg.name], (X,))
        expected = X if spec.target is None else weights.get(spec.target, model.tied.weight)
        assert found[spec.arg.name] is expected

    def backend(graph, args):
        names.extend(str(n.target) for n in graph.graph.nodes if n.op == "placeholder")
        found = match_input_parameters(model, names, (X,))
        assert len(names) == len(args) and all(found[k] is v for k, v in zip(names, args))  # noqa: B905
        return graph

    torch.compile(model, backend=backend)(X)
    assert "L_x_" in names and len(names) > 6
    lower = match_input_parameters(model, ["l_x_", "l_self_parameters_scale_"], (X,))
    assert lower["l_x_"] is X and lower["l_self_parameters_scale_"] is model.scale
    asked = ["scale", "tied.weight", "x", "mask", "unknown"]
    assert list(match_input_parameters(model, asked)) == ["scale", "tied.weight", "mask"]
    assert match_input_parameters(model, asked, (X, X[0]))["mask"] is not model.mask


def test_two_weights_with_one_name():
    model = torch.nn.Module()
    model.forward = len
    model.a_b, model.a = torch.nn.Linear(2, 2), torch.nn.Module()
    model.a.b_weight = torch.nn.Parameter(X)
    assert not match_input_parameters(model, ["p_a_b_weight"])


def test_distinct_tensors():
    a, (b, c) = distinct_tensors((X, [X, X + 1]))
    assert a is X and b is not X and torch.equal(b, X) and c is not X


def test_contiguous_tensors():
    """A model that asks gets the answer that it has in ONNX."""
    x = X.t().requires_grad_()
    (a,) = distinct_tensors((x,))
    assert a.is_contiguous() and torch.equal(a, x) and not x.is_contiguous()
    b, c = distinct_tensors((x, x))
    assert b.is_contiguous() and c.is_contiguous()
    sparse = torch.eye(2).to_sparse()
    assert distinct_tensors((sparse,))[0] is sparse


def test_to_numpy():
    assert to_numpy(3).dtype == np.int64 and to_numpy(2.5).dtype == np.float32
    assert to_numpy(True).dtype == np.bool_
    half = to_numpy(X.to(torch.bfloat16))
    assert half.dtype.name == "bfloat16"
    np.testing.assert_allclose(half.astype(np.float32), X.to(torch.bfloat16).float().numpy())
    array = np.ones(2)
    assert to_numpy(array) is array
    assert to_numpy(X.t()).shape == (3, 2)


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([X.numpy()], ""),
        ([X.numpy(), X.numpy()], "1 results expected, 2 found"),
        ([X.numpy()[:1]], "output 0: shape (2, 3) became (1, 3)"),
        ([X.numpy().astype(np.float64)], "output 0: type float32 became float64"),
        ([X.numpy() + 1], "output 0: relative difference "),
    ],
)
def test_compare(got, message):
    found = compare([X, None], got)
    assert found.startswith(message) if message else not found


def test_compare_nan():
    nan = torch.tensor([float("nan"), 1.0])
    assert compare([nan], [nan.numpy()]) == ""
    assert compare([nan], [np.array([0.0, 1.0], dtype=np.float32)])
