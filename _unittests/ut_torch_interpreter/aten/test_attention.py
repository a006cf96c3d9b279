"""Scaled dot product attention and the modules which use it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from ut_torch_interpreter.export_checks import check_export, op_types

from xbuilder.operators.opsets import newest_opset

torch.manual_seed(0)
Q, K, V = (torch.randn(2, 4, 5, 8) for _ in range(3))
SHORT = (Q[:, :, :3], K, V)
DYNAMIC = ({0: "a", 2: "q"}, {0: "a", 2: "k"}, {0: "a", 2: "k"})
OTHERS = [(torch.randn(3, 4, 2, 8), torch.randn(3, 4, 7, 8), torch.randn(3, 4, 7, 8))]
sdpa = F.scaled_dot_product_attention


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.25])
def test_attention(causal, scale):
    def model(q, k, v):
        return sdpa(q, k, v, is_causal=causal, scale=scale)

    check_export(model, (Q, K, V))
    check_export(model, SHORT, DYNAMIC, OTHERS)
    check_export(model, tuple(t[0] for t in (Q, K, V)))


def test_float_mask():
    mask = torch.randn(3, 5)
    check_export(lambda *a: sdpa(*a[:3], attn_mask=a[3]), (*SHORT, mask))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.25])
def test_attention_opset_23(causal, scale):
    def model(q, k, v):
        return sdpa(q, k, v, is_causal=causal, scale=scale)

    onx = check_export(model, (Q, K, V), target_opset=23)
    assert op_types(onx) == ["Attention"]
    check_export(model, SHORT, DYNAMIC, OTHERS, target_opset=23)


@pytest.mark.parametrize("patterns", [None, "default+onnxruntime"])
@pytest.mark.parametrize("opset", [24, 25, newest_opset()])
def test_attention_where_it_has_a_kernel(patterns, opset):
    """The runtime replaces Attention of opset 25 by more nodes than those written without it."""
    onx = check_export(sdpa, (Q, K, V), target_opset=opset, options=patterns)
    assert ("Attention" in op_types(onx)) is (opset == 24)


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize(
    "shape", [(1, 5), (3, 1), (1, 1), (4, 1, 5), (2, 4, 1, 5), (2, 1, 1, 5), (1, 4, 3, 1)]
)
def test_mask_that_broadcasts(shape, opset):
    """onnxruntime broadcasts the first dimensions of the mask of Attention only."""
    onx = check_export(
        lambda *a: sdpa(*a[:3], attn_mask=a[3]), (*SHORT, torch.randn(shape)), target_opset=opset
    )
    assert op_types(onx) == ["Expand", "Attention"]


@pytest.mark.parametrize("rows", [1, 3])
def test_dynamic_mask_opset_23(rows):
    def args(batch, q, k, rows):
        q, k = torch.randn(batch, 4, q, 8), torch.randn(batch, 4, k, 8)
        return q, k, torch.randn_like(k), torch.randn(batch, 1, rows, k.shape[2])

    mask = {0: "a", 3: "k"} if rows == 1 else {0: "a", 2: "q", 3: "k"}
    others = [args(3, 2, 7, 1 if rows == 1 else 2), args(1, 1, 1, 1)]

    class Model(torch.nn.Module):
        def forward(self, q, k, v, mask):
            return sdpa(q, k, v, attn_mask=mask)

    onx = check_export(Model(), args(2, 3, 5, rows), (*DYNAMIC, mask), others, target_opset=23)
    assert ("Expand" in op_types(onx)) is (rows == 1)
    assert "Attention" in op_types(onx)


@pytest.mark.parametrize("dynamic", [False, True])
def test_encoder_with_padding_opset_23(dynamic):
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x, padding):
            return self.encoder(x, src_key_padding_mask=padding)

    def args(batch, length):
        padding = torch.zeros(batch, length, dtype=torch.bool)
        padding[0, length - 2 :] = True
        return torch.randn(batch, length, 16), padding

    sizes = ({0: "a", 1: "b"}, {0: "a", 1: "b"}) if dynamic else None
    others = [args(2, 7), args(4, 3)] if dynamic else []
    onx = check_export(Model().eval(), args(3, 5), sizes, others, target_opset=23, atol=1e-4)
    assert "Attention" in op_types(onx)


def test_masks_and_groups_opset_23():
    mask = torch.randn(3, 5)
    onx = check_export(lambda *a: sdpa(*a[:3], attn_mask=a[3]), (*SHORT, mask), target_opset=23)
    assert op_types(onx) == ["Attention"]
    hidden = torch.tensor([[True, False, True, True, False], [False] * 5, [True] * 5])
    check_export(lambda *a: sdpa(*a[:3], attn_mask=a[3]), (*SHORT, hidden), target_opset=23)

    def grouped(q, k, v):
        return sdpa(q, k, v, enable_gqa=True)

    check_export(grouped, (Q, K[:, :2], V[:, :2]), target_opset=23)


def test_boolean_mask():
    mask = torch.tensor([[True, False, True, True, False], [False] * 5, [True] * 5])
    check_export(lambda *a: sdpa(*a[:3], attn_mask=a[3]), (*SHORT, mask))
    check_export(lambda *a: sdpa(*a[:3], attn_mask=a[3]), (*SHORT, mask[None, None]))


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_float_mask_which_hides_everything_from_a_query(opset, rank, dtype):
    mask = torch.zeros(3, 5, dtype=dtype)
    mask[1], mask[2, :3] = -float("inf"), -float("inf")
    tensors = tuple(x[(0,) * (4 - rank)].to(dtype) for x in SHORT)
    expected = sdpa(*tensors, attn_mask=mask)
    assert (expected[..., 1, :] == 0).all()
    atol = 1e-5 if dtype == torch.float32 else 1e-2
    args = (*tensors, mask)
    check_export(lambda *a: sdpa(*a[:3], attn_mask=a[3]), args, target_opset=opset, atol=atol)


def test_grouped_heads():
    def model(q, k, v):
        return sdpa(q, k, v, enable_gqa=True)

    check_export(model, (Q, K[:, :2], V[:, :2]))
    check_export(model, (Q[:, :, :3], K[:, :2], V[:, :2]), DYNAMIC)


def test_float16():
    check_export(sdpa, tuple(t.half() for t in (Q, K, V)), atol=1e-2)


def test_decomposed():
    check_export(sdpa, (Q, K, V), export_options="nostrict-dec", atol=1e-4)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention(batch_first, need_weights):
    attention = torch.nn.MultiheadAttention(16, 4, batch_first=batch_first).eval()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x):
            return self.attention(x, x, x, need_weights=need_weights)[: 1 + need_weights]

    check_export(Model(), (torch.randn(3, 5, 16),), ({0: "a", 1: "b"},), [(torch.randn(2, 7, 16),)])


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(norm_first, activation):
    model = torch.nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation
    ).eval()
    others = [(torch.randn(2, 7, 16),), (torch.randn(1, 1, 16),)]
    check_export(model, (torch.randn(3, 5, 16),), ({0: "a", 1: "b"},), others)


def test_encoder_with_masks():
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, x, mask, padding):
            return self.encoder(x, mask, src_key_padding_mask=padding, is_causal=False)

    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    padding = torch.zeros(3, 5)
    padding[0, 3:] = -float("inf")
    check_export(Model().eval(), (torch.randn(3, 5, 16), mask, padding))


def test_decoder_layer():
    layer = torch.nn.TransformerDecoderLayer(16, 4, 32, batch_first=True).eval()
    x, memory = torch.randn(3, 5, 16), torch.randn(3, 6, 16)
    check_export(layer, (x, memory), {"tgt": {0: "a"}, "memory": {0: "a"}}, [(x[:2], memory[:2])])
