"""Models that call ONNX operators, with torch.onnx.ops."""

from __future__ import annotations

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct, assert_same, check_export, op_types, run_ort

from torch_interpreter import ConversionError, to_onnx

ops = torch.onnx.ops
X = torch.randn(2, 3, 4, 8)


def export(fct, *args, **kwargs):
    return to_onnx(Fct(fct), args, **kwargs)


def test_an_operator_with_attributes():
    """torch computes zeros: the operator is compared with what it should be."""

    def leaky(x):
        return ops.symbolic("LeakyRelu", (x,), {"alpha": 0.3}, dtype=x.dtype, shape=x.shape) + 1

    onx = export(leaky, X)
    assert op_types(onx) == ["LeakyRelu", "Add"]
    expected = torch.nn.functional.leaky_relu(X, 0.3) + 1
    assert_same(expected, run_ort(onx, [X]), 1e-6)


def test_an_operator_that_is_not_given_everything():
    def clip(x, high):
        return ops.symbolic("Clip", (x, None, high), dtype=x.dtype, shape=x.shape)

    high = torch.tensor(0.5)
    onx = export(clip, X, high)
    assert list(onx.graph.node[0].input)[1] == ""
    assert_same(X.clamp(max=0.5), run_ort(onx, [X, high]), 1e-6)


def test_several_results():
    def top(x):
        k = torch.tensor([2])
        shape = (*x.shape[:-1], 2)
        return ops.symbolic_multi_out(
            "TopK", (x, k), {"axis": -1}, dtypes=(x.dtype, torch.int64), shapes=(shape, shape)
        )

    onx = export(top, X, dynamic_shapes=(({0: "batch"},),))
    values, indices = X.topk(2)
    assert_same((values, indices), run_ort(onx, [X]), 1e-6)
    last = export(lambda x: top(x)[1], X)
    assert list(last.graph.node[0].output) == ["", "output_0"]


def test_another_domain_and_properties():
    def gelu(x):
        return ops.symbolic(
            "com.microsoft::Gelu",
            (x,),
            dtype=x.dtype,
            shape=x.shape,
            version=1,
            metadata_props={"from": "me"},
        )

    onx = export(gelu, X)
    (node,) = onx.graph.node
    assert (node.domain, node.op_type) == ("com.microsoft", "Gelu")
    assert {p.key: p.value for p in node.metadata_props}["from"] == "me"
    assert {o.domain: o.version for o in onx.opset_import}["com.microsoft"] == 1
    assert_same(torch.nn.functional.gelu(X), run_ort(onx, [X]), 1e-6)


ATTRIBUTES = {
    "a number": {"a": 3},
    "a boolean": {"a": True},
    "integers": {"a": [1, 2], "b": 1},
    "floats": {"a": [1.5, 2.0], "b": 0.5, "c": [3.0]},
    "texts": {"a": "x", "b": ["y", "z"], "c": "t"},
}


@pytest.mark.parametrize("attributes", ATTRIBUTES.values(), ids=list(ATTRIBUTES))
def test_attributes(attributes):
    from onnx.helper import get_attribute_value

    def call(x):
        return ops.symbolic("any::Thing", (x,), attributes, dtype=x.dtype, shape=x.shape)

    (node,) = export(call, X).graph.node
    found = {a.name: get_attribute_value(a) for a in node.attribute}
    assert sorted(found) == sorted(attributes)
    for name, value in attributes.items():
        listed = [v.decode() if isinstance(v, bytes) else v for v in _listed(found[name])]
        assert listed == _listed(value)


def _listed(value):
    return list(value) if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize("op_type, opset", [("Attention", 18), ("Nothing", 18), ("Clip", 10)])
def test_an_operator_of_another_opset_is_refused(op_type, opset):
    def call(x):
        version = 10 if op_type == "Clip" else None
        return ops.symbolic(op_type, (x,), dtype=x.dtype, shape=x.shape, version=version)

    with pytest.raises(ConversionError, match="in a model of opset 18"):
        export(call, X, target_opset=18)


def test_attention():
    check_export(lambda q: ops.attention(q, q, q)[0], (X,), target_opset=23)
    onx = export(lambda q, m: ops.attention(q, q, q, attn_mask=m, scale=0.5)[0], X, X[0, 0, :, :4],
                 target_opset=23)  # fmt: skip
    mask = X[0, 0, :, :4]
    expected = torch.nn.functional.scaled_dot_product_attention(X, X, X, mask, scale=0.5)
    assert len(onx.graph.node[0].output) == 1
    assert_same(expected, run_ort(onx, [X, mask]), 1e-5)


def attention_of_onnx(q, keys, values, bias, softcap):
    """Attention by its definition: the softcap first, then the mask."""
    scores = q @ keys.transpose(-1, -2) / q.shape[-1] ** 0.5
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    return (scores + bias).softmax(-1) @ values


@pytest.mark.parametrize("read", [(0,), (0, 2)])
def test_attention_with_a_past(read):
    """onnxruntime needs the names of both present results, even if nobody reads them."""

    def attend(q, mask, past):
        results = ops.attention(q, q, q, mask, past, past)
        return tuple(results[i] for i in read)

    args = (X, torch.randn(4, 9), torch.randn(2, 3, 5, 8))
    onx = export(attend, *args, target_opset=23)
    assert_same(attend(*args), run_ort(onx, args), 1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("past", [False, True])
def test_attention_is_the_one_of_onnx_where_torch_has_another_one(causal, past):
    """A softcap under a mask, a causal mask after a past."""

    def attend(q, mask, past_keys):
        state = (past_keys, past_keys) if past else (None, None)
        bias = None if causal else mask
        return ops.attention(q, q, q, bias, *state, softcap=1.5, is_causal=causal)[0]

    n_past = 5 if past else 0
    args = (X, torch.randn(4, 4 + n_past), torch.randn(2, 3, 5, 8))
    keys = torch.cat([args[2], X], 2) if past else X
    bias = args[1]
    if causal:
        seen = torch.ones(4, 4 + n_past, dtype=torch.bool).tril(n_past)
        bias = torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)
    with pytest.warns(UserWarning, match="other values than torch does") as found:
        onx = export(attend, *args, target_opset=23)
    texts = [str(w.message) for w in found if "other values" in str(w.message)]
    assert len(texts) == 1 + (causal and past)
    assert (attend(*args) - attention_of_onnx(X, keys, keys, bias, 1.5)).abs().max() > 0.01
    assert_same(attention_of_onnx(X, keys, keys, bias, 1.5), run_ort(onx, args), 1e-5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(interleaved):
    cos, sin, positions = torch.randn(50, 4), torch.randn(50, 4), torch.arange(4).repeat(2, 1)

    def turn(x, c, s, p):
        return ops.rotary_embedding(x, c, s, position_ids=p, interleaved=interleaved)

    check_export(turn, (X, cos, sin, positions), target_opset=23)
    with pytest.raises(ConversionError, match=r"needs opset 23: use to_onnx\(..., target_opset"):
        export(turn, X, cos, sin, positions)
