"""Multiplies, joins, splits or reorders weights: conditions, cost in bytes, rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto
from onnx.numpy_helper import from_array

from xbuilder.constants.content import uniform_item
from xbuilder.constants.deferred import DEFERRED_BYTES, blocks_of
from xbuilder.constants.evaluation import predicted_bytes
from xbuilder.files.blocks.block_sources import (
    Blocks,
    Bounds,
    JoinedBlocks,
    OrderedBlocks,
    SlicedBlocks,
    TransposedBlocks,
    full_bounds,
    part_of,
)
from xbuilder.files.blocks.block_tensors import BlockTensor, each_value
from xbuilder.files.blocks.checked_blocks import CheckedProduct, axes_of_factor
from xbuilder.files.blocks.scaled_blocks import ScaledBlocks
from xbuilder.operators.op_traits import FLOATS, RESHAPES
from xbuilder.passes.fold_plans import growth_budget
from xbuilder.passes.rewritten_weights import largest_rewritten
from xbuilder.tensors.amplitude import largest_along, loses_digits
from xbuilder.tensors.bits import element_type

from ...authoring import DerivedConstant, NewNode, RewriteContext
from ..arguments import optional_input
from ..constants import cheap_value, dtype_of
from .affine import wide

#: operators whose result has as many bytes as their first input
_MOVES = RESHAPES | {"Transpose"}
#: smaller products are always checked at once
_LATE_BYTES = 1 << 20


def require_weight(g: RewriteContext, name: str) -> None:
    """Refuses unless another weight may replace this one; its content is not read.

    1. It is a constant, of a float type.
    2. It leaves the file: it is an initializer of this graph, or the value of a Constant, maybe
       transposed or reshaped, and nothing else reads it. Or it is within the bytes a fold may
       add, `constant_size`.
    3. The computation budget of the model is not spent.
    """
    _, reason = _replaced(g, name, 1)
    g.require(not reason, f"{reason}, the model would grow")


def _replaced(g: RewriteContext, name: str, readers: int) -> tuple[int, str]:
    """Size of a weight, and why it would stay in the file beside another one, an empty string if it
    would not or is small; refuses if it is not a weight."""
    size = _require_floats(g, name)
    refusal = g.graph.constants.refusal(size, size)
    g.require(not refusal, refusal)
    small = size <= g.graph.scope.options.constant_size
    return size, "" if small else _why_kept(g, name, readers)


def _growth(g: RewriteContext, name: str, readers: int) -> int:
    """Bytes another weight adds to the file; refuses if folds may not add as much to the model, or
    if the weight is a parameter of a torch model."""
    size, reason = _replaced(g, name, readers)
    if not reason:
        return 0
    parameter = _moved_from(g, name)[-1] in g.graph.constants.parameter_names
    refused = parameter or growth_budget(g.graph).refusal(size)
    g.require(not refused, f"{reason}, the model would grow")
    return size


def source_of(g: RewriteContext, x: str, *op_types: str) -> NodeProto | None:
    """The node that produces a result and may fold a constant in its weights, maybe before a
    constant bias.

    :param x: the result
    :param op_types: operators that may; their second input is their weight
    """
    add = g.producer_or_none(x, "Add")
    if add is not None:
        sides = [i for i in (0, 1) if g.is_constant(add.input[i])]
        x = add.input[1 - sides[0]] if len(sides) == 1 else ""
        if g.is_used_more_than_once(x):
            return None
    found = g.producer_or_none(x, *op_types)
    return found if found is not None and g.is_constant(found.input[1]) else None


def is_scalable_product(g: RewriteContext, x: str) -> bool:
    """Whether a product by weights produces a result, maybe before a constant bias; refuses weights
    that cannot be replaced, see :func:`require_scalable`."""
    source = source_of(g, x, "Gemm", "MatMul")
    if source is None:
        return False
    require_scalable(g, source.input[1])
    return True


def require_scalable(g: RewriteContext, name: str, is_shared: bool = False) -> None:
    """Refuses a weight that cannot be replaced, whatever it is multiplied by.

    :param name: the weight
    :param is_shared: other readers of the weight may take the new one, they are not checked
    """
    other_readers = is_shared and g.is_used_more_than_once(name)
    if other_readers or _filled(g, name) is not None:
        _require_floats(g, name)
    else:
        _growth(g, name, 1)


def _require_floats(g: RewriteContext, name: str) -> int:
    """Size of a weight in bytes; refuses unless it is a constant of a float type."""
    shape = g.known(g.get_constant_shape(name), "the weight is not constant")
    kind = g.type_or_none(name)
    g.require(kind in FLOATS, "the type of the weight is not a float type")
    return predicted_bytes(kind, shape) or 0


def _why_kept(g: RewriteContext, name: str, readers: int) -> str:
    """The reason why the bytes of a constant stay in the file, an empty string if they leave it."""
    names = _moved_from(g, name)
    others = names if readers == 1 else names[1:]
    if any(map(g.is_used_more_than_once, others)) or not _reads_all(g, name, readers):
        return "the weight is used elsewhere"
    constants = g.graph.constants
    producer = constants.computed.get(names[-1])
    made = producer is not None and producer.op_type == "Constant"
    stored = made or names[-1] in constants.initializers
    return "" if stored else "the weight is computed"


def _reads_all(g: RewriteContext, name: str, readers: int) -> bool:
    """Whether a weight has no other readers than this number of nodes."""
    return readers == 1 or (len(g.store.readers(name)) == readers and not g.is_output(name))


def _filled(g: RewriteContext, name: str) -> NodeProto | None:
    """The node that fills a weight with one number, if writing the number costs less than a
    fold."""
    size = _require_floats(g, name)
    big = size > g.graph.scope.options.constant_size
    return g.before_or_none(name, "ConstantOfShape") if big else None


def _moved_from(g: RewriteContext, name: str) -> list[str]:
    """A constant, and those it is transposed or reshaped from; the stored one is last."""
    computed, names = g.graph.constants.computed, [name]
    while (producer := computed.get(names[-1])) is not None and producer.op_type in _MOVES:
        names.append(producer.inputs[0])
    return names


def multiplied_weight(
    g: RewriteContext, name: str, factor: np.ndarray, readers: int = 1
) -> DerivedConstant | NewNode:
    """A weight multiplied by a factor it is broadcast with, rounded once.

    Refused when the result is not finite, or when the elements multiplied by one factor become too
    small to keep their precision. With option `late_checks`, a big weight is not read for that: the
    product is checked when it is written.

    A weight of more than `DEFERRED_BYTES` is computed when the model is written, a block at a time:
    it is never held in memory. A ConstantOfShape multiplied by one number becomes another
    ConstantOfShape: the file does not grow. The Transpose of a weight of another file is kept.

    :param name: the weight, refused as :func:`require_weight` does, unless the folds of the model
        may still add as much as it takes
    :param factor: of the rank of the weight, or of rank 0
    :param readers: number of nodes that read the weight and will read the result
    """
    number = uniform_item(factor)
    filled = None if number is None else _filled(g, name)
    if filled is not None:
        return _filled_with(g, filled, number)
    growth = _growth(g, name, readers)
    blocks = weight_blocks(g, name)
    dtype = element_type(blocks.data_type).dtype
    factor = factor.astype(wide(np.empty(0, dtype)).dtype)
    late = _is_checked_late(g, blocks)
    if late:
        g.require(np.isfinite(factor).all(), "the new weight is not finite")
    else:
        before = _amplitude(blocks, axes_of_factor(factor, len(blocks.dims)))
        _require_precision(g, before, factor, dtype)
    g.graph.scope.totals.growth.spend(growth)
    moved = _stays_moved(g, name, blocks)
    if moved is None or not isinstance(blocks, TransposedBlocks):
        return _product(g, name, blocks, factor, late)
    turned = factor.transpose(np.argsort(blocks.perm)) if factor.ndim else factor
    return g.like(moved, _product(g, name, blocks.operand, turned, late))


def _product(
    g: RewriteContext, name: str, before: Blocks, factor: np.ndarray, late: bool
) -> DerivedConstant:
    """A weight multiplied by factors. A chain of products makes one product, and it alone is
    checked when it is written."""
    before = before.product if isinstance(before, CheckedProduct) else before
    product = ScaledBlocks(before, factor)
    return _computed(g, name, CheckedProduct(product, name) if late else product)


def _stays_moved(g: RewriteContext, name: str, blocks: Blocks) -> NodeProto | None:
    """The Transpose of a big weight of another file. It is kept, because runtimes compute it once,
    when they load the model, and the weight is read and written in the order of its file."""
    big = predicted_bytes(blocks.data_type, blocks.dims) or 0
    if big <= largest_rewritten(g.graph) or not blocks.files():
        return None
    return g.before_or_none(name, "Transpose")


def _computed(g: RewriteContext, name: str, blocks: Blocks) -> DerivedConstant:
    """A weight derived from another one; a big one is computed when the model is written."""
    result = BlockTensor(blocks)
    g.graph.constants.budget.spend(result.nbytes, result.size)
    value = result if result.nbytes > DEFERRED_BYTES else result.array()
    return DerivedConstant(value, _moved_from(g, name)[-1])


def _require_precision(
    g: RewriteContext, before: np.ndarray, factor: np.ndarray, dtype: np.dtype
) -> None:
    """Refuses a product that overflows, or loses digits.

    :param before: the largest absolute value of the elements each factor multiplies
    :param factor: the factors, in a wider type
    :param dtype: type of the product
    """
    after = _multiplied(before, factor, dtype)
    g.require(np.isfinite(after).all(), "the new weight is not finite")
    small = loses_digits(after, factor, dtype) & (after < before)
    g.require(not small.any(), "the new weight is too small for its type")


def _multiplied(before: np.ndarray, factor: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Absolute values multiplied by factors and rounded, as doubles."""
    with np.errstate(all="ignore"):
        after: np.ndarray = (before * np.abs(factor)).astype(dtype).astype(np.float64)
    return after


def _is_checked_late(g: RewriteContext, blocks: Blocks) -> bool:
    """Whether a product is checked when it is written: it is not computed now, and reading it takes
    longer than a second optimization is likely to."""
    size = predicted_bytes(blocks.data_type, blocks.dims) or 0
    return g.graph.scope.options.late_checks and size >= _LATE_BYTES


def _filled_with(g: RewriteContext, filled: NodeProto, factor: np.floating) -> NewNode:
    """A filled tensor whose number is multiplied by a factor."""
    value = g.get_attribute_with_default(filled, "value", np.zeros(1, np.float32))
    g.require(value.size == 1, "the weight is not filled with one number")
    before = wide(value)
    _require_precision(g, np.abs(before).astype(np.float64), np.asarray(factor), value.dtype)
    new = from_array((before * factor).astype(value.dtype), "value")
    return g.like(filled, filled.input[0], value=new)


def joined_weight(g: RewriteContext, names: Sequence[str], axis: int) -> DerivedConstant:
    """Weights concatenated into one; a big one is computed when the model is written.

    :param names: weights :func:`require_weight` accepts, of one type
    :param axis: the axis; the other dimensions are equal
    """
    return _computed(g, names[0], JoinedBlocks([weight_blocks(g, n) for n in names], axis))


def split_weight(g: RewriteContext, name: str, lengths: Sequence[int]) -> list[DerivedConstant]:
    """Consecutive columns of a weight; big parts are computed when the model is written.

    :param name: a weight :func:`require_weight` accepts
    :param lengths: number of columns of each part
    """
    blocks, begin, parts = weight_blocks(g, name), 0, []
    for length in lengths:
        bounds = list(full_bounds(blocks.dims))
        bounds[1] = (begin, begin + length)
        parts.append(_computed(g, name, SlicedBlocks(blocks, tuple(bounds))))
        begin += length
    return parts


def ordered_weight(g: RewriteContext, name: str, axis: int, order: np.ndarray) -> DerivedConstant:
    """A weight with its rows, or columns, reordered; a big one is computed when the model is
    written.

    :param name: a weight :func:`require_weight` accepts
    :param axis: the axis
    :param order: index of the old row, or column, for each new one
    """
    return _computed(g, name, OrderedBlocks(weight_blocks(g, name), axis, order))


def is_finite(g: RewriteContext, name: str) -> bool:
    """Whether every element of a constant is finite; it is read a block at a time."""
    blocks = weight_blocks(g, name)
    found = _amplitude(blocks, tuple(range(len(blocks.dims))))
    return bool(np.isfinite(found).all())


def weight_blocks(g: RewriteContext, name: str) -> Blocks:
    """The content of a constant, a block at a time; refuses if it cannot be read."""
    return g.known(blocks_of(g.graph.constants, name), "the weight cannot be read")


def _inside(blocks: TransposedBlocks, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes, as they are numbered before the transposition."""
    return tuple(sorted(blocks.perm[i] for i in axes))


def _amplitude(blocks: Blocks, axes: tuple[int, ...]) -> np.ndarray:
    """Largest absolute value along some axes, nan if there is one."""
    if isinstance(blocks, TransposedBlocks):  # read in the order of the file
        return _amplitude(blocks.operand, _inside(blocks, axes)).transpose(blocks.perm)
    found = np.zeros([1 if i in axes else d for i, d in enumerate(blocks.dims)])
    for bounds, value in each_value(blocks, lambda _, block: largest_along(block, axes)):
        place = tuple(slice(*b) if i not in axes else slice(1) for i, b in enumerate(bounds))
        found[place] = np.maximum(found[place], value)
    return found


def largest(blocks: Blocks) -> float:
    """Largest absolute value of a tensor, nan if there is one."""
    return float(_amplitude(blocks, tuple(range(len(blocks.dims)))).max(initial=0.0))


def largest_in(g: RewriteContext, name: str) -> float:
    """Largest absolute value of a constant, nan if it holds one. Cost: a big one is read once, a
    block at a time."""
    value = cheap_value(g, name)
    if value is None:
        return largest(weight_blocks(g, name))
    return float(np.abs(value.astype(np.float64)).max(initial=0.0))


def largest_norm(g: RewriteContext, name: str, axis: int) -> float:
    """Largest norm of the vectors of a constant matrix along an axis, nan if it holds one. Cost: it
    is read once, a block at a time."""
    blocks = weight_blocks(g, name)
    total = np.zeros(blocks.dims[1 - axis])
    for bounds, value in each_value(blocks, lambda _, block: (wide(block) ** 2).sum(axis=axis)):
        total[slice(*bounds[1 - axis])] += value
    return float(np.sqrt(total).max(initial=0.0))


def sum_over(blocks: Blocks, shift: np.ndarray, axis: int) -> np.ndarray:
    """`sum(weight * shift)` over every axis but one, in a wider type.

    :param blocks: the weight
    :param shift: an array the weight is broadcast with, as many dimensions
    :param axis: the remaining axis
    """
    others = tuple(i for i in range(len(blocks.dims)) if i != axis)
    total = np.zeros(blocks.dims[axis], shift.dtype)

    def product(bounds: Bounds, block: np.ndarray) -> np.ndarray:
        value: np.ndarray = (wide(block) * part_of(shift, bounds)).sum(axis=others)
        return value

    for bounds, value in each_value(blocks, product):
        total[slice(*bounds[axis])] += value
    return total


def rounded(g: RewriteContext, value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A vector in the type of the model; refuses when it is not finite."""
    with np.errstate(over="ignore"):
        result: np.ndarray = value.astype(dtype)
    g.require(np.isfinite(result.astype(np.float64)).all(), "the new bias is not finite")
    return result


def new_constant(
    g: RewriteContext, value: np.ndarray, name: str, like: str = ""
) -> DerivedConstant:
    """A constant derived from another one; refuses numbers that are not finite.

    :param value: its value, in a wider type
    :param name: the other one
    :param like: a result of its type, that of the other one by default
    """
    return DerivedConstant(rounded(g, value, dtype_of(g, like or name)), name)


def bias_of(g: RewriteContext, node: NodeProto) -> np.ndarray:
    """The bias of a node in a wider type, 0 if it has none; refuses if it is not constant."""
    name = optional_input(node, 2)
    return wide(g.constant_of(name, "the bias is not constant")) if name else np.zeros(())
