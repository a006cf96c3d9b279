"""Removes, or moves, the dimensions 1 that were added for a convolution or a pooling of one
dimension."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.attributes import has_reference
from xbuilder.operators.op_traits import ARITHMETIC

from ...analysis.axes import moved_axes
from ...analysis.constants import Ints
from ...analysis.kernels import is_faster_as_image, require_fast
from ...analysis.weights.scaled_convs import CONVOLUTIONS, NOT_STATIC
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite

#: operators that slide a window along the dimensions after the first two
_WINDOWS = (*CONVOLUTIONS, "AveragePool", "LpPool", "MaxPool")
#: poolings that onnxruntime computes several elements at a time for images, not for rows
_POOLS = ("AveragePool", "MaxPool")
#: most elements for which these poolings of rows are faster, because a node is saved
_SMALL = 1024
#: functions of one input that runtimes merge into a convolution
_ACTIVATIONS = ("LeakyRelu", "Relu", "Sigmoid", "Tanh")
#: attributes with one value for each of these dimensions
_EACH = ("dilations", "kernel_shape", "strides")
#: attributes of ConvTranspose that choose the size of the result
_SIZES = ("output_padding", "output_shape")


@rewrite("default", root="Squeeze", after=_WINDOWS, sole_use=True)
def squeeze_window(g: RewriteContext, node: NodeProto) -> NewNode:
    """Squeeze(f(Unsqueeze(x, axes)), axes) -> f(x), f slides a window along other axes.

    f is a Conv or a ConvTranspose whose weight is constant, a MaxPool, AveragePool or LpPool, as
    Keras and TensorFlow write those of one dimension. The window has one element along the axes,
    and at least one dimension is left.

    1. A Reshape adds the dimensions 1: Squeeze(f(Reshape(x))) -> f(Squeeze(Reshape(x))).
    2. Nothing is padded along the axes, a MaxPool gives no indices, a ConvTranspose does not choose
       the size of its result.
    3. A convolution that onnxruntime runs faster for images is left as it is on CPU. So is a
       MaxPool or an AveragePool for rows, unless they are known to have at most 1024 elements: the
       kernel for images takes 0.33 to 0.8 of the time above.
    """
    window = g.before(node, *_WINDOWS)
    before = g.before(window, "Unsqueeze", "Reshape")
    g.require_sole_use("what the window reads is used elsewhere", before.output[0])
    g.require(not has_reference(window), "an attribute belongs to the function")
    x, *others = g.inputs(window)
    axes = g.known(moved_axes(g, node) or None, "the axes are not known")
    rank = g.rank_of(x)
    g.require(axes[0] >= 2 and len(axes) < rank - 2, "no dimension is left, or not only those")
    shape = g.shape_of(x)
    g.require(all(shape[a] == 1 for a in axes), "a dimension of what is read is not 1")
    g.require(not any(window.output[1:]), "the indices are used")
    sizes = any(g.get_attribute_with_default(window, name, None) is not None for name in _SIZES)
    g.require(not sizes, "the size of the result is chosen")
    weights: list[Operand] = [*others]
    if weights:
        weights[0] = _squeezed_weight(g, window, axes)
    added = before.op_type == "Unsqueeze" and moved_axes(g, before) == axes
    data = before.input[0] if added else g.op.Squeeze(x, axes=axes)
    kept = _kept(g, window, axes)
    if window.op_type in _POOLS and rank - len(axes) == 3 and g.has_processor("CPU"):
        known = [d for d in shape if isinstance(d, int)]
        small = len(known) == rank and math.prod(known) <= _SMALL
        require_fast(g, small, "the kernel for images is faster")
    new: NewNode = g.like(window, data, *weights, **kept)
    return new


def _squeezed_weight(g: RewriteContext, window: NodeProto, axes: Ints) -> NewNode:
    """The weight of a convolution without some dimensions, proven to be 1."""
    weight = window.input[1]
    g.require(g.is_constant(weight), "the weight is not constant")
    shape = g.static_shape(weight, NOT_STATIC)
    g.require(all(shape[a] == 1 for a in axes), "the window is larger")
    left = [size for a, size in enumerate(shape) if a not in axes]
    group = g.get_attribute_with_default(window, "group", 1)
    transposed = window.op_type == "ConvTranspose"
    slower = is_faster_as_image(left, group, transposed) and g.has_processor("CPU")
    require_fast(g, not slower, "the kernel for images is faster")
    new: NewNode = g.op.Squeeze(weight, axes=axes)
    return new


def _kept(g: RewriteContext, window: NodeProto, axes: Ints) -> dict[str, list[int]]:
    """The attributes of a window for the dimensions that are left."""
    kept = {}
    for name in _EACH:
        values = g.get_attribute_with_default(window, name, None)
        if values is not None:
            kept[name] = [v for i, v in enumerate(values, 2) if i not in axes]
            ones = name != "kernel_shape" or all(values[a - 2] == 1 for a in axes)
            g.require(ones, "the window is larger")
    pads = g.get_attribute_with_default(window, "pads", None)
    if pads is not None:
        half = len(pads) // 2
        moved = any(pads[a - 2] or pads[half + a - 2] for a in axes)
        g.require(not moved, "a dimension is padded")
        kept["pads"] = [p for i, p in enumerate(pads) if i % half + 2 not in axes]
    return kept


@rewrite(
    "default",
    root=(*ARITHMETIC, *_ACTIVATIONS),
    reads="Squeeze",
    min_opset=7,
    sole_use=True,
    behind="SqueezeWindow",
)
def squeeze_behind(g: RewriteContext, node: NodeProto) -> NewNode:
    """f(Squeeze(Conv(...)), c) -> Squeeze(f(Conv(...), c')), the convolution then takes f.

    f is an activation, or a sum, difference, product, quotient by a constant, whose dimensions are
    moved to those of the convolution. Keras and TensorFlow write the bias of a convolution of one
    dimension so; those that onnxruntime runs as images keep the Squeeze (deepcut).
    """
    found = [before for before in g.before_each(node, "Squeeze") if before is not None]
    g.require(len(found) == 1, "no operand, or each of them, is squeezed")
    (squeeze,) = found
    g.producer_of(squeeze.input[0], *CONVOLUTIONS)
    axes = g.known(moved_axes(g, squeeze) or None, "the axes are not known")
    rank = g.rank_of(squeeze.output[0])
    inputs = [
        squeeze.input[0] if name == squeeze.output[0] else _beside(g, name, axes, rank)
        for name in g.inputs(node)
    ]
    return g.op.Squeeze(g.like(node, *inputs), axes=axes)


def _beside(g: RewriteContext, name: str, axes: Ints, rank: int) -> NewNode:
    """A constant operand with the dimensions 1 that its neighbour has at some axes."""
    shape = g.known(g.get_constant_shape(name), "the other operand is not constant")
    g.require(len(shape) <= rank, "the other operand adds dimensions")
    full = [*[1] * (rank - len(shape)), *shape]
    for axis in axes:
        full.insert(axis, 1)
    new: NewNode = g.op.Reshape(name, np.array(full, dtype=np.int64))
    return new
