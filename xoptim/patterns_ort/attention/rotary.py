"""RotaryEmbedding of onnxruntime, which reads positions and exists in any opset."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.attention.rotary import ROTARIES, Rotary, rotary_of
from ...analysis.attention.rotary_tables import serve_one_call
from ...analysis.shapes import positive
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from ..kernels import require_kernel


@rewrite(
    "onnxruntime",
    root=ROTARIES,
    before="SplitSplit",
    behind="RotaryEmbedding",
    precision="rounding",
)
def contrib_rotary_embedding(g: RewriteContext, call: NodeProto) -> dict[str, NewNode]:
    """HalfRotaryEmbedding(x, cos, sin) -> com.microsoft.RotaryEmbedding(x, 0, half cos, half sin).

    1. the halves of the last axis of cos and sin are the same, see
       :func:`.rotary_tables.half_of`, or they are half as long as x; their shape is
       (1, 1, sequence, length), or (1, sequence, 1, length): row i of the tables is position i, the
       first position is 0;
    2. their first dimension may be the batch: the tables of every sequence follow each other,
       position i of sequence b is b * sequence + i. Several embeddings read the tables, or their
       sizes are known: the positions of one embedding take more nodes than it has;
    3. InterleavedRotaryEmbedding: neighbours are the same;
    4. x is the beginning of the heads, split from the rest, joined again after: the attribute
       `rotary_embedding_dim` is the number of rotated elements;
    5. sines with a sign, and halves that are two results, as in ``RotaryEmbedding``.

    On CUDA, onnxruntime refuses empty batches and sequences.
    """
    found = rotary_of(g, call)
    require_kernel(g, "RotaryEmbedding", found.part)
    if found.batch == 1:
        alone = [g.op.Squeeze(half, axes=[0, found.axis]) for half in (found.cos, found.sin)]
        return found.written(g, [[0], *alone], MICROSOFT)
    sized = all(isinstance(dim, int) for dim in (found.batch, found.shape[3 - found.axis]))
    g.require(sized or not serve_one_call(g, call), "the positions take more nodes than it saves")
    return found.written(g, _positions(g, found), MICROSOFT)


def _positions(g: RewriteContext, found: Rotary) -> list[Operand]:
    """The place of each element of the sequences in concatenated tables, and these tables.

    A sequence of zeros comes after them, unless there is a sequence: onnxruntime requires as many
    rows as elements of one.
    """
    g.require(g.main_opset >= 15, "Shape gives no single dimension before opset 15")
    sized = found.cos if found.axis == 2 else g.op.Squeeze(found.cos, axes=[1])
    shape = g.op.Shape(sized, start=0, end=2)
    positions = g.op.Range(np.array(0), g.op.ReduceProd(shape, keepdims=0), np.array(1))
    tables: list[Operand] = [found.cos, found.sin]
    if not positive(g, found.batch):
        tables = [g.op.Pad(table, [*[0] * 4, 1, 0, 0, 0]) for table in tables]
    rows = [g.op.Flatten(table, axis=3) for table in tables]
    return [g.op.Reshape(positions, shape, allowzero=1), *rows]
