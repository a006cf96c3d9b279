"""Training of scaled dot product attention: logsumexp and the gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.aot_checks import training_backend
from ut_torch_interpreter.export_checks import assert_same, check_export, op_types

from torch_interpreter import ConversionError, to_onnx
from xbuilder import OptimizationOptions

forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
sdpa = F.scaled_dot_product_attention
HIDDEN = torch.tensor([[True, False, True, True, False], [False] * 5, [True] * 5])
SHARED = torch.randn(2, 2, 2, 5, 8, generator=torch.Generator().manual_seed(3))
ADDED = torch.where(HIDDEN, 0.5, -float("inf"))
# a boolean mask, as torch gives it to the operator, hides everything from the second query
OPTIONS = {
    "none": {},
    "scale": {"scale": 0.3},
    "causal": {"is_causal": True},
    "mask": {"attn_mask": torch.randn(3, 5, generator=torch.Generator().manual_seed(0))},
    "hidden": {"attn_mask": ADDED},
    "heads": {"attn_mask": ADDED.expand(2, 4, 3, 5), "scale": 0.3},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))


def _tensors(batch=2, queries=3, keys=5, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return tuple(
        torch.randn(batch, 4, n, 8, generator=generator).to(dtype) for n in (queries, keys, keys)
    )


class Attention(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, q, k, v):
        return forward(q, k, v, **self.options)


class Gradients(Attention):
    def forward(self, grad, q, k, v, out, logsumexp):
        options = dict(self.options)
        causal = options.pop("is_causal", False)
        return backward(grad, q, k, v, out, logsumexp, 0.0, causal, **options)


def _for_backward(options, *tensors):
    generator = torch.Generator().manual_seed(2)
    out, logsumexp = forward(*tensors, **options)
    grad = torch.randn(out.shape, generator=generator).to(out.dtype)
    return grad, *tensors, out, logsumexp


@pytest.mark.parametrize("opset", [18, 23])
@every_option
def test_logsumexp(options, opset):
    onx = check_export(Attention(**options), _tensors(), target_opset=opset)
    assert "ReduceLogSumExp" in op_types(onx)


class First(Attention):
    def forward(self, *args):
        return super().forward(*args)[0]


@every_option
def test_logsumexp_only_when_it_is_read(options):
    onx = check_export(First(**options), _tensors())
    assert "ReduceLogSumExp" not in op_types(onx)
    assert ("IsNaN" in op_types(onx)) is ("attn_mask" in options)
    onx = check_export(First(**options), _tensors(), target_opset=23)
    assert op_types(onx) == ["Attention"]


@every_option
def test_gradients(options):
    check_export(Gradients(**options), _for_backward(options, *_tensors()))


@pytest.mark.parametrize("dtype, atol", [(torch.float64, 1e-10), (torch.float16, 1e-2)])
def test_types(dtype, atol):
    """onnxruntime moves the scale to an attribute, a float: its square root is exact here."""
    tensors, options = _tensors(dtype=dtype), {"scale": 0.25}
    check_export(Attention(**options), tensors, atol=atol)
    check_export(Gradients(**options), _for_backward(options, *tensors), atol=atol)


def test_dynamic_sizes():
    sizes = ({0: "a", 2: "q"}, {0: "a", 2: "k"}, {0: "a", 2: "k"})
    others = _tensors(3, 2, 7)
    check_export(Attention(is_causal=True), _tensors(), sizes, [others])
    query = {0: "a", 2: "q"}
    check_export(
        Gradients(is_causal=True),
        _for_backward({"is_causal": True}, *_tensors()),
        (query, *sizes, query, query),
        [_for_backward({"is_causal": True}, *others)],
    )


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"scale": 0.3}, {"is_causal": True}, {"attn_mask": HIDDEN}, {"enable_gqa": True}],
    ids=["none", "scale", "causal", "hidden", "shared heads"],
)
def test_training(options, dynamic):
    models, backend = training_backend()
    torch._dynamo.reset()
    compiled = torch.compile(lambda *a: sdpa(*a, **options), backend=backend, dynamic=dynamic)
    results = []
    for fct in (lambda *a: sdpa(*a, **options), compiled):
        tensors = (_tensors()[0], *SHARED.clone()) if "enable_gqa" in options else _tensors()
        tensors = [t.requires_grad_() for t in tensors]
        out = fct(*tensors)
        (out**2).sum().backward()
        results.append([out.detach(), *(t.grad for t in tensors)])
    assert_same(results[0], [t.numpy() for t in results[1]], 1e-5)
    assert len(models) == 2


@pytest.mark.parametrize("opset", [18, 23])
@every_option
def test_shared_heads(options, opset):
    """Two heads of the query read one head of the key and of the value."""
    tensors = (_tensors()[0], *SHARED)
    check_export(First(**options), tensors, target_opset=opset)
    check_export(Attention(**options), tensors, target_opset=opset)
    check_export(Gradients(**options), _for_backward(options, *tensors), target_opset=opset)


def test_shared_heads_of_dynamic_sizes():
    sizes = ({0: "a", 2: "q"}, {0: "a", 2: "k"}, {0: "a", 2: "k"})
    others = (
        _tensors(3, 2, 7)[0],
        SHARED[0, :1].expand(3, 2, 5, 8),
        SHARED[1, :1].expand(3, 2, 5, 8),
    )
    options = {"is_causal": True}
    check_export(Attention(**options), (_tensors()[0], *SHARED), sizes, [others])
    query = {0: "a", 2: "q"}
    check_export(
        Gradients(**options),
        _for_backward(options, _tensors()[0], *SHARED),
        (query, *sizes, query, query),
        [_for_backward(options, *others)],
    )


def test_gradients_that_are_none_keep_their_place():
    models, backend = training_backend()
    torch._dynamo.reset()
    compiled = torch.compile(sdpa, backend=backend, dynamic=False)
    results = []
    for fct in (sdpa, compiled):
        q, k, v = _tensors()
        q.requires_grad_()
        v.requires_grad_()
        fct(q, k, v).sum().backward()
        assert k.grad is None
        results.append([q.grad, v.grad])
    assert_same(results[0], [t.numpy() for t in results[1]], 1e-5)
    assert [o.name for o in models[1].graph.output] == ["output_0", "output_2"]


def test_dropout_is_refused():
    """torch refuses it too, when it computes."""
    with pytest.raises(ConversionError, match="dropout_p is 0.5"):
        to_onnx(Attention(dropout_p=0.5), _tensors(), options=OptimizationOptions(patterns=None))
    q, k, v = _tensors()
    with pytest.raises(RuntimeError, match="dropout"):
        forward(q, k, v, 0.5)
