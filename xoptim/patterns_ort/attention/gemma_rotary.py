"""Rotary embeddings of queries and keys together, in float16, for CUDA: GemmaRotaryEmbedding."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.attention.rotary import HALF_ROTARY
from ...analysis.axes import axes_of
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, NewResult, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel

_CALL = f"intermediate::{HALF_ROTARY}"


@rewrite("onnxruntime", root=_CALL, priority="late", precision="rounding")
def contrib_gemma_rotary_embedding(g: RewriteContext, call: NodeProto) -> dict[str, NewResult]:
    """HalfRotaryEmbedding of q and of k -> com.microsoft.GemmaRotaryEmbedding, on CUDA.

    1. q and k are float16, of four dimensions; they are rotated by the same cosines and sines,
       those of a float result of shape (batch, sequence, length), cast to float16: there is one
       position for each sequence, otherwise ContribRotaryEmbedding comes first;
    2. q and k have the same shape, because the kernel reads them with the same index;
    3. the operator reads the halves swapped, one of them negated: they are computed before.
    """
    q, cos, sin = call.input[:3]
    angles = _angles(g, cos, "Cos")
    g.require(angles == _angles(g, sin, "Sin"), "cos and sin are not those of one result")
    require_kernel(g, "GemmaRotaryEmbedding", angles)
    other = _other(g, call, cos, sin)
    keys = other.input[0]
    for name in (q, keys):
        require_kernel(g, "GemmaRotaryEmbedding", name, index=1)
        shape, rows = g.shape_of(name), g.shape_of(angles)
        known = len(shape) == 4 and proven_equal(g, (shape[0], *shape[2:]), rows)
        g.require(known, "there is not one position for each element of the batch")
    same = proven_equal(g, g.shape_of(q), g.shape_of(keys))
    g.require(same, "queries and keys may not have the same shape")
    turned = [_turned(g, name) for name in (q, keys)]
    inputs = [angles, q, turned[0], keys, turned[1]]
    new = NewNode("GemmaRotaryEmbedding", inputs, {}, MICROSOFT, outputs=2)
    return {call.output[0]: new[0], other.output[0]: new[1]}


def _angles(g: RewriteContext, name: str, op_type: str) -> str:
    """The angles of cosines or sines, computed in float, then cast to float16."""
    found = []
    for _ in range(2):
        node = g.before(name, "Unsqueeze", "Cast")
        found.append(node.op_type)
        if node.op_type == "Unsqueeze":
            g.require(axes_of(g, node) == (1,), "the heads are not the second dimension")
        name = node.input[0]
    g.require(sorted(found) == ["Cast", "Unsqueeze"], "the cosines are not cast to float16")
    angles: str = g.before(name, op_type).input[0]
    return angles


def _other(g: RewriteContext, call: NodeProto, cos: str, sin: str) -> NodeProto:
    """The other call that reads the same cosines and sines."""
    record = g.record(call)
    calls = [r for r in g.store.readers(cos) if r.key == record.key and r is not record]
    same = [r for r in calls if tuple(r.inputs[1:3]) == (cos, sin)]
    g.require(len(same) == 1, "the cosines and the sines are not those of two calls")
    node = g.store.proto(same[0])
    g.look_at(node)
    return node


def _turned(g: RewriteContext, name: str) -> NewNode:
    """(-x2, x1), where x1 and x2 are the halves of x, whose length is known."""
    half = int(g.shape_of(name)[3]) // 2
    halves = g.op.Split(name, [half, half], axis=-1, outputs=2)
    return g.op.Concat(g.op.Neg(halves[1]), halves[0], axis=-1)
