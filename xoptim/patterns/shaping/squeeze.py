"""Merges Squeeze and Unsqueeze with each other, and with a Flatten."""

from __future__ import annotations

from math import prod

from onnx import NodeProto

from xbuilder.dims import Shape, is_static, normalize_axes

from ...analysis.arguments import int_attribute
from ...analysis.axes import axes_of
from ...analysis.constants import Ints
from ...analysis.shapes import ones_difference
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

Step = tuple[str, Ints]


def step_node(g: RewriteContext, step: Step, name: str) -> str | NewNode:
    """A Squeeze or an Unsqueeze of a result, or the result itself if there is nothing to do."""
    op_type, axes = step
    return name if op_type == "Identity" else getattr(g.op, op_type)(name, axes=axes)


def merged_unsqueeze(first: Ints, second: Ints, rank: int | None) -> Ints | None:
    """Axes of one Unsqueeze equal to two of them.

    :param first: axes of the first one
    :param second: axes of the second one
    :param rank: rank of the data, may be unknown if no axis is negative
    :return: axes in `[0, rank of the result[`, None if they are not valid or need the rank

    >>> merged_unsqueeze((0,), (0,), 2)
    (0, 1)
    """
    middle = None if rank is None else rank + len(first)
    last = None if middle is None else middle + len(second)
    a, b = normalize_axes(first, middle), normalize_axes(second, last)
    if a is None or b is None:
        return None
    size = max((*a, *b)) + len(a) + len(b) + 1 if last is None else last
    free = [i for i in range(size) if i not in b]
    return tuple(sorted([*b, *(free[i] for i in a)]))


def merged_steps(first: Step, second: Step, rank: int) -> Step | None:
    """One node equal to a Squeeze or an Unsqueeze, then another one.

    :param first: operator and axes
    :param second: operator and axes
    :param rank: rank of the data
    :return: operator and axes, `("Identity", ())` if they cancel, None if it takes two nodes
    """
    source: list[object] = [f"d{i}" for i in range(rank)]
    result: list[object] = list(source)
    for op_type, raw in (first, second):
        axes = normalize_axes(raw, len(result) + (len(raw) if op_type == "Unsqueeze" else 0))
        if axes is None:
            return None
        if op_type == "Unsqueeze":
            for axis in sorted(axes):
                result.insert(axis, 1)
            continue
        removed = {result[a] for a in axes}
        source = [1 if d in removed else d for d in source]
        result = [d for i, d in enumerate(result) if i not in axes]
    return ones_difference(source, result, lambda a, b: a == b)


@rewrite("default", root="Unsqueeze", after="Unsqueeze", priority="first")
def unsqueeze_unsqueeze(g: RewriteContext, second: NodeProto) -> NewNode:
    """Unsqueeze(Unsqueeze(x, a), b) -> Unsqueeze(x, a and b merged).

    1. Axes are counted in the result: those of a are shifted when b inserts dimensions before them.
    2. Negative axes need the rank of x.
    3. If the inner result is used elsewhere, the first Unsqueeze is kept for the others.
    """
    first = g.before(second, "Unsqueeze")
    x, unknown = first.input[0], "the axes or the rank are not known"
    a, b = g.known(axes_of(g, first) or None, unknown), g.known(axes_of(g, second) or None, unknown)
    return g.op.Unsqueeze(x, axes=g.known(merged_unsqueeze(a, b, g.rank_or_none(x)), unknown))


@rewrite("default", root=("Squeeze", "Unsqueeze"), after=("Squeeze", "Unsqueeze"), priority="first")
def squeeze_unsqueeze(g: RewriteContext, second: NodeProto) -> str | NewNode:
    """Squeeze(Unsqueeze(x)), Unsqueeze(Squeeze(x)) or Squeeze(Squeeze(x)) -> one node or none.

    1. Same axes, one adds what the other one removes: x.
    2. Fewer dimensions are restored than removed: a shorter Squeeze.
    3. Fewer dimensions are removed than added: a shorter Unsqueeze.
    4. Squeeze twice: one Squeeze, axes counted in x.
    5. A Squeeze without axes removes every dimension 1, all dimensions must be known.
    6. If the inner result is used elsewhere, the first node is kept for the others.

    Dimensions removed at a place and added at another one, around something else, are refused.
    """
    first = g.before_or_none(second, "Squeeze", "Unsqueeze")
    if first is None or (first.op_type, second.op_type) == ("Unsqueeze", "Unsqueeze"):
        g.refuse("no Squeeze nor Unsqueeze before")
    a = g.known(axes_of(g, first) or None, "the axes are not known")
    b = g.known(axes_of(g, second) or None, "the axes are not known")
    rank = g.rank_or_none(first.input[0])
    if rank is not None:
        step = merged_steps((first.op_type, a), (second.op_type, b), rank)
    else:
        same = sorted(a) == sorted(b) and len(set(a)) == len(a)
        step = ("Identity", ()) if same and first.op_type != second.op_type else None
    step = g.known(step, "both nodes are needed, or the rank is not known")
    return step_node(g, step, first.input[0])


@rewrite("default", root="Flatten", after=("Reshape", "Squeeze", "Unsqueeze"), min_opset=5)
def squeeze_flatten(g: RewriteContext, node: NodeProto) -> NewNode:
    """Flatten(Squeeze(x)) -> Reshape(x, (-1, n)), the same after an Unsqueeze or a Reshape.

    1. The dimensions after the axis are known and not null: n is their product.
    2. Those before it are: Reshape(x, (n, -1)).
    """
    before = g.before(node, "Reshape", "Squeeze", "Unsqueeze")
    dims = g.shape_of(node.input[0])
    axis = int_attribute(node, "axis", 1)
    axis = g.known(
        axis if axis is not None and -len(dims) <= axis <= len(dims) else None, "no axis"
    )
    axis = axis + len(dims) if axis < 0 else axis
    rows, columns = _elements(dims[:axis]), _elements(dims[axis:])
    g.require(rows or columns, "the dimensions are not known, or may be null")
    return g.op.Reshape(before.input[0], [-1, columns] if columns else [rows, -1])


def _elements(dims: Shape) -> int:
    """Product of known dimensions, 0 if one is not known."""
    return prod(dims) if is_static(dims) else 0
