"""BatchNormalization between Transpose nodes becomes a product and a sum on the original axes."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.kernels import require_fast
from ...analysis.permutations import inverse, perm_of
from ...analysis.weights.affine import Channels, normalization_of
from ...analysis.weights.weights import new_constant, source_of
from ...authoring import RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite
from .transpose_binary import CHANNELS, channels_of

#: least number of channels, along the last axis, that a product repeats faster than two moves
_CHANNELS = 128


@rewrite(
    "default",
    "specialize",
    root="BatchNormalization",
    after="Transpose",
    priority="late",
    min_opset=7,
    precision="rounding",
)
def transpose_normalization(g: RewriteContext, norm: NodeProto) -> dict[str, Replacement]:
    """Transpose(BatchNormalization(Transpose(x, p), ...), p^-1) -> x * s + t.

    1. The permutations cancel.
    2. They do not, or there is no Transpose after: Transpose(x * s + t, p) when a product, a
       convolution or a normalization produces x and may absorb s and t, see TransposeAffine.
    3. On CPU, if none of these produces x, there are at least 128 channels where they are last: one
       thread takes 1.1 to 3.4 times longer for fewer, 0.4 to 1.0 for more.

    The normalization is in inference, its parameters are constant, nothing else reads an inner
    result.
    """
    move = g.before(norm, "Transpose")
    x, moved = move.input[0], move.output[0]
    perm = g.known(perm_of(g, move), "the permutation is not known")
    after = g.reader_or_none(norm.output[0], "Transpose")
    back = after if after is not None and perm_of(g, after) == inverse(perm) else None
    g.require_sole_use("what is transposed is used elsewhere", moved)
    (size,) = g.static_shape(norm.input[1], "the number of channels is not known")
    if back is None:
        source = g.known(source_of(g, x, *CHANNELS), "nothing takes the normalization")
        fits = channels_of(source, len(perm), size).axis == perm[1]
        g.require(fits, "the channels are not those of what takes the normalization")
        g.require_sole_use("an inner result is used elsewhere", x)
    affine = normalization_of(g, norm, moved, Channels(len(perm), 1, size))
    if back is not None:
        few = perm[1] == len(perm) - 1 and size < _CHANNELS and g.has_processor("CPU")
        slower = few and source_of(g, x, *CHANNELS) is None
        require_fast(g, not slower, f"there are fewer than {_CHANNELS} channels")
    shape = [-1, *[1] * (len(perm) - 1 - perm[1])]
    scale, shift = (
        new_constant(g, np.asarray(value).reshape(shape), name, x)
        for value, name in zip(affine, norm.input[1:3], strict=True)
    )
    new = g.op.Add(g.op.Mul(x, scale), shift)
    if back is None:
        return {norm.output[0]: g.op.Transpose(new, perm=perm)}
    g.look_at(back)
    return {back.output[0]: new}
