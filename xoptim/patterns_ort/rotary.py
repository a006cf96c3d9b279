"""RotaryEmbedding of onnxruntime, which takes positions and any opset."""

from __future__ import annotations

from onnx import NodeProto

from ..api import NewNode, RewriteContext, rewrite
from ..patterns.rotary import flat_rotary
from ..reading.rotary import HALF_ROTARY, INTERLEAVED_ROTARY, rotary_of
from .cpu_kernels import MICROSOFT, require_kernel

_ROTARY = f"{MICROSOFT}::RotaryEmbedding"


@rewrite(
    "onnxruntime",
    root=(f"intermediate::{HALF_ROTARY}", f"intermediate::{INTERLEAVED_ROTARY}"),
    priority=1,
    precision="rounding",
)
def contrib_rotary_embedding(g: RewriteContext, call: NodeProto) -> dict[str, NewNode]:
    """HalfRotaryEmbedding(x, cos, sin) -> com.microsoft.RotaryEmbedding(x, 0, half cos, half sin).

    1. the halves of the last axis of cos and sin are the same, see
       :func:`xoptim.reading.rotary_tables.half_of`, or they are half as long as x; their shape is
       (1, 1, sequence, length), or (1, sequence, 1, length): row i of the tables is position i, the
       first position is 0;
    2. InterleavedRotaryEmbedding: neighbours are the same;
    3. x is the beginning of the heads, split from the rest, joined again after: the attribute
       `rotary_embedding_dim` says how many elements are turned.
    """
    found = rotary_of(g, call)
    require_kernel(g, "RotaryEmbedding", found.x)
    g.require(found.batch == 1, "there is not one position for all sequences")
    tables = [g.op.Squeeze(half, axes=[0, found.axis]) for half in (found.cos, found.sin)]
    return found.written(g, [[0], *tables], MICROSOFT)


@rewrite("onnxruntime", root=_ROTARY, after="Transpose", name="ContribRotaryEmbedding3D")
def contrib_rotary_embedding_3d(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """RotaryEmbedding between two Transpose(perm=[0, 2, 1, 3]) reads and gives 3 dimensions.

    1. the numbers of heads and of elements of each are known;
    2. the results have no other use.
    """
    return flat_rotary(g, node)
