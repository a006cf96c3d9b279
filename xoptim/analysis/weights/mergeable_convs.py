"""Two convolutions of one input that can be merged into one, because their weights add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.constants.deferred import DEFERRED_BYTES
from xbuilder.files.blocks.block_sources import Blocks
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.files.blocks.summed_blocks import DiagonalBlocks, SummedBlocks, SumTerm

from ...authoring import DerivedConstant, RewriteContext
from ..arguments import optional_input
from ..constants import Ints
from .affine import Channels, normalization_of
from .scaled_convs import NOT_STATIC
from .weights import bias_of, largest, require_weight, weight_blocks


class MergeableConv(NamedTuple):
    """A convolution, or a term that can be written as a convolution of the same input.

    :param weight: its weight
    :param bias: in a wider type than the one of the model
    :param begins: padding before each axis
    :param ends: padding after each axis
    :param named: the constant the bias is derived from, none if it has no bias
    """

    weight: Blocks
    bias: np.ndarray
    begins: Ints
    ends: Ints
    named: str

    @property
    def kernel(self) -> Ints:
        """Shape of the kernel."""
        return self.weight.dims[2:]


class ConvPlace(NamedTuple):
    """The placement of a kernel on the data, which both convolutions must share."""

    strides: Ints
    dilations: Ints
    group: int


def conv_place(g: RewriteContext, conv: NodeProto) -> ConvPlace:
    """Strides, dilations and groups of a convolution; refuses if its padding is not explicit."""
    rank = len(g.static_shape(conv.input[1], NOT_STATIC)) - 2
    mode = g.get_attribute_with_default(conv, "auto_pad", "NOTSET")
    g.require(mode == "NOTSET", "the padding is not written")
    ones = (1,) * rank
    strides = tuple(g.get_attribute_with_default(conv, "strides", ones))
    dilations = tuple(g.get_attribute_with_default(conv, "dilations", ones))
    return ConvPlace(strides, dilations, g.get_attribute_with_default(conv, "group", 1))


def mergeable_conv(g: RewriteContext, conv: NodeProto) -> MergeableConv:
    """A convolution whose weight can be replaced; refuses if it cannot."""
    require_weight(g, conv.input[1])
    weight = weight_blocks(g, conv.input[1])
    rank = len(weight.dims) - 2
    pads = tuple(g.get_attribute_with_default(conv, "pads", (0,) * (2 * rank)))
    g.require(all(p >= 0 for p in pads), "the padding removes elements")
    named = optional_input(conv, 2)
    return MergeableConv(weight, bias_of(g, conv), pads[:rank], pads[rank:], named)


def pointwise_conv(
    g: RewriteContext, name: str, conv: NodeProto, place: ConvPlace
) -> MergeableConv:
    """The input of a convolution, or its normalization, as a pointwise convolution of each channel;
    refuses any other result."""
    x = conv.input[0]
    norm = g.producer_or_none(name, "BatchNormalization")
    same = name == x or (norm is not None and norm.input[0] == x)
    g.require(same, "the other operand is no convolution of the same data")
    shape = g.static_shape(conv.input[1], NOT_STATIC)
    size, rank = shape[0], len(shape)
    g.require(shape[1] * place.group == size, "the convolution changes the number of channels")
    g.require(all(s == 1 for s in place.strides), "the convolution has strides")
    scale, shift, named = np.ones(size), np.zeros(()), ""
    if norm is not None and name != x:
        g.look_at(norm)
        affine = normalization_of(g, norm, x, Channels(rank, 1, size))
        scale, shift, named = np.broadcast_to(affine.scale, (size,)), affine.shift, norm.input[2]
    weight = DiagonalBlocks(scale, place.group, rank, g.type_of(conv.input[1]))
    none = (0,) * (rank - 2)
    return MergeableConv(weight, shift, none, none, named)


def offset_in(g: RewriteContext, small: MergeableConv, big: MergeableConv, dilations: Ints) -> Ints:
    """The offset of a kernel inside a bigger one that reads the same elements and more; refuses if
    there is none."""
    same = small.weight.dims[:2] == big.weight.dims[:2]
    g.require(same, "the convolutions do not have the same channels")
    columns = (small.kernel, big.kernel, small.begins, big.begins, small.ends, big.ends, dilations)
    offset = []
    for k, size, begin, first, end, last, step in zip(*columns, strict=True):
        before, after = first - begin, last - end
        inside = before % step == 0 and 0 <= before // step <= size - k
        fits = inside and before + after == step * (size - k)
        g.require(fits, "a kernel is not inside of the other one")
        offset.append(before // step)
    return (0, 0, *offset)


def summed_weight(
    g: RewriteContext, weight: str, terms: Sequence[MergeableConv], offset: Ints, signs: Ints
) -> DerivedConstant:
    """The weight of the sum of two convolutions, where the kernel of the second lies inside the
    first.

    :param weight: the weight of the first one
    :param terms: both of them
    :param offset: offset of the second kernel in the first one
    :param signs: 1 for a term that is added, -1 for one that is subtracted
    """
    blocks = [term.weight for term in terms]
    data_type, dims = blocks[0].data_type, blocks[0].dims
    offsets = ((0,) * len(dims), offset)
    rows = [SumTerm(*row) for row in zip(blocks, offsets, signs, strict=True)]
    result = BlockTensor(SummedBlocks(rows, data_type, dims))
    with np.errstate(over="ignore"):
        most = np.asarray(sum(largest(b) for b in blocks)).astype(result.dtype)
    g.require(np.isfinite(most.astype(np.float64)), "the new weight is not finite")
    g.graph.constants.budget.spend(result.nbytes, result.size)
    return DerivedConstant(result if result.nbytes > DEFERRED_BYTES else result.array(), weight)
