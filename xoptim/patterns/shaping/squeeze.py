"""Merges Squeeze and Unsqueeze with each other."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import normalize_axes

from ...analysis.axes import axes_of
from ...analysis.constants import Ints
from ...analysis.shapes import ones_difference
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

Step = tuple[str, Ints]


def merged_steps(first: Step, second: Step, rank: int | None) -> Step | None:
    """One node equal to a Squeeze or an Unsqueeze, then another one.

    :param first: operator and axes
    :param second: operator and axes
    :param rank: rank of the data, may be unknown if no axis is negative
    :return: operator and axes, `("Identity", ())` if they cancel, None if it takes two nodes, or if
        it needs the rank

    >>> merged_steps(("Unsqueeze", (0,)), ("Unsqueeze", (0,)), 2)
    ('Unsqueeze', (0, 1))
    """
    both = (*first[1], *second[1])
    if rank is None and min(both) < 0:
        same = sorted(first[1]) == sorted(second[1]) and len({*both}) == len(first[1])
        return ("Identity", ()) if same and first[0] != second[0] else None
    # axes are counted from the start: they are the same ones for any rank that has them
    known = max(both) + len(both) + 1 if rank is None else rank
    source: list[object] = [f"d{i}" for i in range(known)]
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


@rewrite(
    "default",
    root=("Squeeze", "Unsqueeze"),
    after=("Squeeze", "Unsqueeze"),
    priority="first",
    aliases="UnsqueezeUnsqueeze",
)
def squeeze_unsqueeze(g: RewriteContext, second: NodeProto) -> str | NewNode:
    """Two nodes that are a Squeeze or an Unsqueeze -> one node or none.

    1. Same axes, one adds what the other one removes: x.
    2. Fewer dimensions are restored than removed: a shorter Squeeze.
    3. Fewer dimensions are removed than added: a shorter Unsqueeze.
    4. Squeeze twice: one Squeeze, axes counted in x.
    5. Unsqueeze twice: one Unsqueeze, axes counted in the result.
    6. A Squeeze without axes removes every dimension 1, all dimensions must be known.
    7. Axes that are negative need the rank of x, unless they are the same ones.
    8. If the inner result is used elsewhere, the first node is kept for the others.

    Dimensions removed at a place and added at another one, around something else, are refused.
    """
    first = g.before(second, "Squeeze", "Unsqueeze")
    a, b = (g.known(axes_of(g, n) or None, "the axes are not known") for n in (first, second))
    x = first.input[0]
    step = merged_steps((first.op_type, a), (second.op_type, b), g.rank_or_none(x))
    op_type, axes = g.known(step, "both nodes are needed, or the rank is not known")
    new: str | NewNode = x if op_type == "Identity" else getattr(g.op, op_type)(x, axes=axes)
    return new
