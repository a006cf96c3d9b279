"""Linear attention, one step or several ones, exported, then optimized."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torch_interpreter import to_onnx
from xbuilder import OptimizationOptions
from xoptim.testing import run_onnxruntime

# transformers does not register its types in pytree if it is imported during an export
qwen3_next = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")


class _Step(torch.nn.Module):
    """The computation of Qwen3-Next when it generates one token."""

    def forward(self, query, key, value, decay, beta, state):
        return qwen3_next.torch_recurrent_gated_delta_rule(
            query,
            key,
            value,
            decay,
            beta,
            initial_state=state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )


def _inputs(batch: int) -> tuple[torch.Tensor, ...]:
    shapes = (batch, 1, 4, 8), (batch, 1, 4, 8), (batch, 1, 4, 6), (batch, 1, 4), (batch, 1, 4)
    query, key, value, decay, beta = (torch.rand(*shape) for shape in shapes)
    return query, key, value, -decay, beta, torch.randn(batch, 4, 8, 6)


def test_step() -> None:
    torch.manual_seed(0)
    model = to_onnx(
        _Step(),
        _inputs(2),
        dynamic_shapes=({0: "batch"},) * 6,
        options=OptimizationOptions(patterns="default+onnxruntime"),
    )
    assert [n.op_type for n in model.graph.node].count("LinearAttention") == 1
    names = [i.name for i in model.graph.input]
    for batch in (2, 1, 5):
        inputs = _inputs(batch)
        expected = _Step()(*inputs)
        got = run_onnxruntime(model, dict(zip(names, (i.numpy() for i in inputs), strict=True)))
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a.numpy(), b, atol=1e-5)


class _Scan(torch.nn.Module):
    """The same rule over any number of steps, (batch, heads, steps, length)."""

    def forward(self, query, key, value, decay, beta, state):
        from torch._higher_order_ops.scan import scan

        def step(state, rows):
            q, k, v, g, b = rows
            state = state * g.exp()[..., None, None]
            read = (state * k.unsqueeze(-1)).sum(-2)
            change = (v - read) * b.unsqueeze(-1)
            state = state + k.unsqueeze(-1) * change.unsqueeze(-2)
            return state, (state * q.unsqueeze(-1)).sum(-2)

        rows = [x.movedim(2, 0) for x in (query, key, value, decay, beta)]
        state, result = scan(step, state, tuple(rows))
        return result.movedim(0, 2), state


def _sequences(batch: int, steps: int) -> tuple[torch.Tensor, ...]:
    lengths = (8,), (8,), (6,), (), ()
    query, key, value, decay, beta = (torch.rand(batch, 4, steps, *n) for n in lengths)
    return query, key, value, -decay, beta, torch.randn(batch, 4, 8, 6)


def test_scan() -> None:
    """The batch and the number of steps are dynamic."""
    torch.manual_seed(0)
    model = to_onnx(
        _Scan(),
        _sequences(2, 5),
        dynamic_shapes=({0: "batch", 2: "steps"},) * 5 + ({0: "batch"},),
        options=OptimizationOptions(patterns="default+onnxruntime"),
    )
    types = [n.op_type for n in model.graph.node]
    assert types.count("LinearAttention") == 1 and "Scan" not in types
    names = [i.name for i in model.graph.input]
    for batch, steps in ((2, 5), (1, 1), (3, 70)):
        inputs = _sequences(batch, steps)
        expected = _Scan()(*inputs)
        got = run_onnxruntime(model, dict(zip(names, (i.numpy() for i in inputs), strict=True)))
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a.numpy(), b, atol=1e-5)


def test_unrolled() -> None:
    """As transformers writes the rule, the number of steps is known."""
    torch.manual_seed(0)
    inputs = tuple(
        x[:, [0, 0, 0]] * 0.5 if x.dim() > 2 and x.shape[1] == 1 else x for x in _inputs(2)
    )
    model = to_onnx(
        _Step(),
        inputs,
        dynamic_shapes=({0: "batch"},) * 6,
        options=OptimizationOptions(patterns="default+onnxruntime"),
    )
    assert [n.op_type for n in model.graph.node].count("LinearAttention") == 1
    names = [i.name for i in model.graph.input]
    for batch in (2, 1):
        rows = tuple(x[:batch] for x in inputs)
        expected = _Step()(*rows)
        got = run_onnxruntime(model, dict(zip(names, (i.numpy() for i in rows), strict=True)))
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a.numpy(), b, atol=1e-5)
