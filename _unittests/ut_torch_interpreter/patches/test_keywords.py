"""The arguments ``**kwargs`` receives have dynamic dimensions like the others."""

from __future__ import annotations

import functools
import inspect

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct, assert_same, run_ort

from torch_interpreter import ExportOptions, to_onnx
from torch_interpreter.patches.keywords import name_keywords
from xbuilder import OptimizationOptions

X = torch.randn(5, 6)


class Keywords(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x, *, scale=2, **others):
        return self.linear(x) * scale + others["pair"][0] - others["y"]


def renamed(forward):
    """The decorator of transformers when the name of an argument changes."""

    @functools.wraps(forward)
    def wrapper(*args, **kwargs):
        if "past" in kwargs:
            kwargs["cache"] = kwargs.pop("past")
        return forward(*args, **kwargs)

    return wrapper


class Renamed(torch.nn.Module):
    @renamed
    def forward(self, x, cache=None, **others):
        return x if cache is None else torch.cat([cache, x])


def names(mod):
    return list(inspect.signature(mod.forward).parameters)


@pytest.mark.parametrize(
    "options",
    [{}, {"strategy": "strict"}, {"tracing": True}, {"fake": True}, {"validate_ep": True}],
    ids=str,
)
def test_keywords(options):
    model = Keywords()
    kwargs = {"y": X + 1, "pair": (X + 2, X), "scale": 3}
    spec = {"x": {0: "a"}, "y": {0: "a"}, "pair": [{0: "a"}, None]}
    onx = to_onnx(
        model,
        (X,),
        kwargs,
        dynamic_shapes=spec,
        export_options=ExportOptions(**options),
        options=OptimizationOptions(patterns=None),
    )
    shapes = [
        [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in onx.graph.input
    ]
    assert shapes == [["a", 6]] * 3 + [[5, 6]]
    assert {i.name for i in onx.graph.initializer} >= {"linear.weight", "linear.bias"}
    assert "forward" not in model.__dict__
    if "fake" not in options:
        z = torch.randn(7, 6)
        expected = model(z, y=z + 1, pair=(z + 2, X), scale=3)
        assert_same([expected], run_ort(onx, [z, z + 1, z + 2, X]), 1e-5)


def test_renamed_argument():
    model, past = Renamed(), torch.randn(2, 6)
    onx = to_onnx(model, (X,), {"past": past}, dynamic_shapes={"past": {0: "length"}})
    assert [i.name for i in onx.graph.input] == ["x", "past"]
    longer = torch.randn(4, 6)
    assert_same([torch.cat([longer, X])], run_ort(onx, [X, longer]), 0)


def test_named_keywords():
    model = Keywords()
    with name_keywords(model, ["scale", "y"]):
        assert names(model) == ["x", "scale", "y", "others"]
        with name_keywords(model, ["pair", "x"]):
            assert names(model) == ["x", "scale", "y", "pair", "others"]
        assert names(model) == ["x", "scale", "y", "others"]
    assert names(model) == ["x", "scale", "others"]
    assert "forward" not in model.__dict__


def test_forward_put_back_after_an_error():
    model = Keywords()
    own = Fct(torch.neg).forward
    model.forward = own
    with pytest.raises(ValueError, match="stop"), name_keywords(model, ["y"]):
        raise ValueError("stop")
    assert model.__dict__["forward"] is own


def test_nothing_hidden():
    model = Keywords()
    with name_keywords(model, ["x", "scale"]):
        assert "forward" not in model.__dict__
