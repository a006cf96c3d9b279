"""Arguments and dynamic dimensions from real calls."""

from __future__ import annotations

import copy

import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, run_ort

from torch_interpreter import observe_calls, to_onnx
from xbuilder.errors import OptionError

pytree = torch.utils._pytree
#: numbers that integers are added to without rounding
X = torch.randint(-8, 8, (2, 4)).to(torch.float32)


class Model(torch.nn.Module):
    def forward(self, x, others, mask=None, *, scale=1.0):
        y = x * scale + others["a"] + others["b"][0]
        return y if mask is None else torch.where(mask, y, -y)


def called(*calls, model=None):
    model = model or Model()
    with observe_calls(model) as seen:
        for args, kwargs in calls:
            model(*args, **kwargs)
    return seen


def arguments(n, m=4):
    return (torch.randn(n, m), {"a": torch.randn(n, 1), "b": [torch.randn(m)]})


def test_dynamic_dimensions():
    seen = called((arguments(2), {}), (arguments(5), {}))
    found = seen.export_arguments()
    assert found["dynamic_shapes"] == {"x": {0: "x_0"}, "others": {"a": {0: "x_0"}, "b": [None]}}
    assert found["kwargs"] == {} and found["args"][0].shape == (5, 4)


def test_equal_sizes_share_a_name():
    seen = called(*((arguments(n, m), {"scale": 2.0}) for n, m in ((2, 4), (5, 4), (5, 7))))
    found = seen.export_arguments()
    assert found["dynamic_shapes"] == {
        "x": {0: "x_0", 1: "x_1"},
        "others": {"a": {0: "x_0"}, "b": [{0: "x_1"}]},
        "scale": None,
    }
    onx = to_onnx(seen.mod, **found)
    for call in seen.alike():
        tensors = [v for v in pytree.tree_leaves((call.args,)) if isinstance(v, torch.Tensor)]
        assert_same(seen.mod(*call.args, **call.kwargs), run_ort(onx, tensors), 1e-5)


def test_only_calls_alike_are_compared():
    mask = torch.ones(3, 4, dtype=torch.bool)
    calls = [
        (arguments(2), {}),
        (arguments(3), {"mask": mask}),
        (arguments(5), {"scale": 3.0}),
        ((), dict(zip(("x", "others"), arguments(7), strict=True))),
    ]
    seen = called(*calls)
    assert len(seen.calls) == 4
    assert [len(c.args) for c in seen.alike()] == [2, 0], "given by position or by name"
    assert seen.export_arguments()["dynamic_shapes"]["x"] == {0: "x_0"}
    assert called(*calls[:3]).alike()[0].kwargs == {"scale": 3.0}, "the last of sets as large"


def test_arguments_are_copied_and_the_hook_is_removed():
    class Writes(torch.nn.Module):
        def forward(self, x):
            return x.zero_()

    x = torch.ones(3)
    seen = called(((x,), {}), model=Writes())
    assert torch.equal(seen.calls[0].args[0], torch.ones(3)) and not x.any()
    seen.mod(x)
    assert len(seen.calls) == 1


def test_static_when_nothing_changes():
    found = called((arguments(2), {})).export_arguments()
    assert found["dynamic_shapes"] == {"x": None, "others": {"a": None, "b": [None]}}
    assert to_onnx(Model(), **found).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2


def test_a_module_that_is_not_called():
    with observe_calls(Model()) as seen:
        pass
    with pytest.raises(OptionError, match="Model was not called while it was observed"):
        seen.export_arguments()


def test_generate():
    """The steps of a decoder: a cache, lengths and a batch that change."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    with observe_calls(model) as seen:
        for batch, length in ((2, 5), (3, 7)):
            model.generate(
                torch.randint(3, 99, (batch, length)),
                attention_mask=torch.ones(batch, length, dtype=torch.int64),
                max_new_tokens=4,
                do_sample=False,
            )
    found = seen.export_arguments()
    shapes = found["dynamic_shapes"]
    batch = shapes["input_ids"][0]
    # the name of this argument depends on the version of transformers
    (name,) = (k for k, v in found["kwargs"].items() if isinstance(v, transformers.Cache))
    cache = {str(s) for s in pytree.tree_leaves(shapes[name], is_leaf=_is_spec)}
    assert len(cache) == 1, "keys and values of every layer have the same dimensions"
    assert f"0: '{batch}', 2: " in cache.pop()
    onx = to_onnx(model, **found)
    for call in seen.alike():
        leaves = pytree.tree_leaves((call.args, call.kwargs))
        tensors = [v for v in leaves if isinstance(v, torch.Tensor)]
        with torch.no_grad():
            expected = model(*copy.deepcopy(call.args), **copy.deepcopy(call.kwargs))
        got = run_ort(onx, tensors[: len(onx.graph.input)])
        torch.testing.assert_close(torch.from_numpy(got[0]), expected.logits, atol=1e-4, rtol=1e-4)


def _is_spec(value):
    return isinstance(value, dict) and all(isinstance(k, int) for k in value)


def test_results():
    """Those of a call that fails are None, a module may call itself."""

    class Again(torch.nn.Module):
        def forward(self, x, times=2):
            if times > 5:
                raise ValueError("too many")
            return self(x, times - 1).add_(1) if times else x.clone()

    model = Again()
    with observe_calls(model) as seen:
        found = model(X)
        with pytest.raises(ValueError, match="too many"):
            model(X, 6)
    found.add_(10)
    results = [call.result for call in seen.calls]
    assert all(torch.equal(r, X + n) for r, n in zip(results, (2, 1, 0), strict=False))
    assert len(results) == 4 and results[3] is None
