"""Reshape nodes around an operator of two inputs, or before a Squeeze or an Unsqueeze."""

from __future__ import annotations

from itertools import groupby
from math import prod
from typing import TypeAlias

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Shape, is_static, normalize_axes
from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import ARITHMETIC, ELEMENTWISE_BINARY

from ...analysis.arguments import int_attribute, other_input
from ...analysis.axes import axes_of
from ...analysis.constants import int_values
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import positive, proven_equal
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from .reshape_target import concat_of_shape


def same_known_shapes(g: RewriteContext, *names: str) -> bool:
    """Whether results are proven to have one shape, for every size if they are reshaped."""
    first, *others = (moved_shape(g, name) for name in names)
    return first is not None and all(s is not None and proven_equal(g, first, s) for s in others)


@rewrite(
    "default",
    root=ELEMENTWISE_BINARY,
    reads="Reshape",
    min_opset=5,
    sole_use=True,
    aliases="ReshapeReshapeBinary",
)
def reshape_2_of_3(g: RewriteContext, node: NodeProto) -> dict[str, Replacement] | NewNode:
    """Two or three Reshape around an element-wise operator of two inputs -> at most one.

    1. Reshape(op(Reshape(a), Reshape(b))) -> op(a, b)
    2. Reshape(op(Reshape(a), b)) -> op(a, Reshape(b)), and the same for the other operand.
    3. op(Reshape(a), Reshape(b)) -> Reshape(op(a, b))

    Both operands have the same shape, a has the one of the result: nothing is broadcast.
    """
    before = g.before_each(node, "Reshape")
    sources = [reshape.input[0] for reshape in before if reshape is not None]
    g.require(sources, "no Reshape before")
    same = same_known_shapes(g, *node.input)
    g.require(same, "the operands may have different shapes")
    after = g.reader_or_none(node.output[0], "Reshape")
    back = after is not None and after.input[0] == node.output[0]
    if after is not None and back and same_known_shapes(g, after.output[0], *sources):
        g.look_at(after)
        inputs = [
            g.like(after, name, after.input[1]) if reshape is None else reshape.input[0]
            for name, reshape in zip(node.input, before, strict=True)
        ]
        return {after.output[0]: g.like(node, *inputs)}
    first = before[0]
    if first is None or len(sources) == 1:
        g.refuse("no Reshape after, or the result may not have the shape of the data")
    g.require(same_known_shapes(g, *sources), "the data may have different shapes")
    return g.like(first, g.like(node, *sources), first.input[1])


_PRODUCTS = ("Gemm", "MatMul", f"{MICROSOFT}::FusedMatMul")


@rewrite("default", root=ARITHMETIC, reads="Reshape", priority="late", min_opset=7)
def constant_before_reshape(g: RewriteContext, node: NodeProto) -> NewNode:
    """op(Reshape(x @ w, s), c) -> Reshape(op(x @ w, c'), s), c' is c in one dimension.

    1. The Reshape splits the last dimension of the product, as heads are, c has the dimensions it
       is split in, and no other one; a dimension 1 of c is repeated, none of the other operand.
    2. c is a constant, on any side.
    3. Nothing else reads the product, nor what is reshaped.

    A bias by head, as Keras and flax have it, is then the one of the product.
    """
    reshapes = g.before_each(node, "Reshape")
    reshape = g.known(reshapes[0] or reshapes[1], "no Reshape before")
    product, split = reshape.input[0], reshape.output[0]
    g.producer_of(product, *_PRODUCTS, reason="no product before")
    constant = g.constant_of(other_input(node, split))
    g.require_sole_use("the product is used elsewhere", product, split)
    length, shape = g.shape_of(product)[-1:], g.shape_of(split)
    tails = [shape[-n:] for n in range(1, len(shape))]
    heads = [tail for tail in tails if is_static(tail) and (prod(tail),) == length]
    g.require(heads, "the last dimension is not split")
    extra = max(constant.ndim - len(heads[0]), 0)
    outer: tuple[int, ...] = constant.shape[:extra]
    inner: tuple[int, ...] = constant.shape[extra:]
    g.require(all(d == 1 for d in outer), "it varies along another axis")
    sizes = zip(reversed(inner), reversed(heads[0]), strict=False)
    repeats = constant.ndim > len(shape) or any(d not in (1, head) for d, head in sizes)
    g.require(not repeats, "what is split is repeated")
    kept = constant.reshape(inner)
    row = np.ascontiguousarray(np.broadcast_to(kept, heads[0])).reshape(-1)
    inputs = [product if name == split else row for name in node.input]
    return g.like(reshape, g.like(node, *inputs), reshape.input[1])


@rewrite(
    "default",
    root=("Squeeze", "Unsqueeze"),
    after="Reshape",
    min_opset=5,
    aliases="ReshapeUnsqueeze",
)
def reshape_squeeze(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Squeeze(Reshape(x, shape), axes) -> Reshape(x, shape without the axes).

    1. The shape is constant, or joins vectors: every dimension that is removed is written 1 in it.
    2. Unsqueeze(Reshape(x, shape), axes) -> Reshape(x, shape with 1 at the axes). Several Unsqueeze
       read the inner result: each becomes a Reshape, nothing else reads it.
    3. A 0 before the first axis still copies the same dimension, one after it must be known; what
       is computed at run time there must be proven positive.
    4. If something else reads what is squeezed, the first Reshape is kept for it.
    """
    reshape = g.before(node, "Reshape")
    x, result = reshape.input[0], reshape.output[0]
    readers = [node]
    if node.op_type == "Unsqueeze":
        readers = [*g.next_nodes(result)]
        alone = all(n.op_type == "Unsqueeze" and not n.domain for n in readers)
        g.require(alone and g.is_used_only_by(result, *readers), "the result is used elsewhere")
        g.look_at(*readers)
    return {n.output[0]: g.op.Reshape(x, _target_after(g, reshape, n)) for n in readers}


#: an element of a target: its value, or the vector that holds it and its place there
_Element: TypeAlias = int | tuple[str, int]


def _elements(g: RewriteContext, reshape: NodeProto) -> list[_Element]:
    """The elements of the target of a Reshape, which is constant or joins vectors."""
    target = int_values(g, reshape.input[1])
    if target is not None:
        return list(target)
    concat = g.known(concat_of_shape(g, reshape), "the shape is not constant")
    elements: list[_Element] = []
    for name in concat.input:
        known = int_values(g, name)
        if known is None:
            (length,) = g.static_shape(name, "the length of the shape is not known")
            elements += [(name, i) for i in range(length)]
        else:
            elements += known
    return elements


def _joined(g: RewriteContext, elements: list[_Element]) -> list[int] | NewNode:
    """A target of these elements: vectors are read whole, or the rewrite is refused."""
    known = [e for e in elements if isinstance(e, int)]
    if len(known) == len(elements):
        return known
    pieces: list[Operand] = []
    for name, group in groupby(elements, lambda e: "" if isinstance(e, int) else e[0]):
        values = list(group)
        whole = not name or g.shape_of(name) == (len(values),)
        g.require(whole, "an axis is between elements that are computed together")
        pieces.append(name or [e for e in values if isinstance(e, int)])
    return g.op.Concat(*pieces, axis=0)


def _target_after(g: RewriteContext, reshape: NodeProto, node: NodeProto) -> list[int] | NewNode:
    """The target of a Reshape, with the dimensions 1 the next node removes, or adds."""
    target = _elements(g, reshape)
    adds, written = node.op_type == "Unsqueeze", axes_of(g, node) or ()
    axes = normalize_axes(written, len(target) + len(written) * adds) or ()
    g.require(axes, "the axes are not known")
    g.require(adds or all(target[a] == 1 for a in axes), "a dimension is not 1 in the shape")
    may_copy = any(not isinstance(d, int) or d == 0 for d in target)
    copied = not may_copy or int_attribute(reshape, "allowzero", 0) == 0
    shape, first = moved_shape(g, reshape.output[0]) or (), min(axes)
    new = [_shifted(g, d, shape[i : i + 1]) if i >= first else d for i, d in enumerate(target)]
    g.require(copied and None not in new, "a 0 would copy another dimension")
    elements = [d for i, d in enumerate(new) if d is not None and (adds or i not in axes)]
    for axis in sorted(axes) if adds else ():
        elements.insert(axis, 1)
    return _joined(g, elements)


def _shifted(g: RewriteContext, element: _Element, dim: Shape) -> _Element | None:
    """An element of a target at another position, where 0 would copy another dimension; None if it
    may be 0."""
    known = dim[0] if dim else None
    if not isinstance(element, int):
        return element if known is not None and positive(g, known) else None
    if element:
        return element
    return known if isinstance(known, int) and known else None
