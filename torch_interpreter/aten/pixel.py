"""Blocks of pixels moved to channels and back."""

from __future__ import annotations

from onnx import TensorProto

from ..writing.graph_writer import GraphWriter
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import Size, SymScalar, dims_of, int_vector
from .operands import reshape
from .view import permute

# the types for which DepthToSpace has a kernel, with casts if needed
_DEPTH_TO_SPACE = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _times(g: GraphWriter, size: Size, factor: int) -> Size:
    if isinstance(size, int):
        return size * factor
    return SymScalar(g.op.Mul(size, int_vector([factor])))


def _divided(g: GraphWriter, size: Size, factor: int) -> Size:
    if isinstance(size, int):
        return size // factor
    return SymScalar(g.op.Div(size, int_vector([factor])))


@aten("aten.pixel_shuffle.default")
def pixel_shuffle(
    g: GraphWriter, x: str, upscale_factor: int, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> str:
    """DepthToSpace for images of floats, which have a kernel, from opset 11 on, which has the order
    of torch; a transposition otherwise."""
    r, rank = upscale_factor, g.get_rank(x)
    if rank == 4 and g.main_opset >= 11 and g.get_type(x) in _DEPTH_TO_SPACE:
        return g.op.DepthToSpace(x, blocksize=r, mode="CRD")
    *batch, c, h, w = dims_of(g, x)
    n, channels = len(batch), _divided(g, c, r * r)
    split = reshape(g, x, [*batch, channels, r, r, h, w])
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    dims = [*batch, channels, _times(g, h, r), _times(g, w, r)]
    return reshape(g, permute(g, split, order), dims, expected.shape)


@aten("aten.pixel_unshuffle.default")
def pixel_unshuffle(
    g: GraphWriter, x: str, downscale_factor: int, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> str:
    """The inverse of pixel_shuffle, which moves blocks to channels."""
    r = downscale_factor
    *batch, c, h, w = dims_of(g, x)
    n, rows, columns = len(batch), _divided(g, h, r), _divided(g, w, r)
    split = reshape(g, x, [*batch, c, rows, r, columns, r])
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    dims = [*batch, _times(g, c, r * r), rows, columns]
    return reshape(g, permute(g, split, order), dims, expected.shape)
