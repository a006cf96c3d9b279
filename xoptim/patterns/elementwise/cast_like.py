"""CastLike, a conversion to the type of another result, becomes Cast."""

from __future__ import annotations

from onnx import NodeProto

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


@rewrite("default", root="CastLike", priority="first", min_opset=15)
def cast_like(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """CastLike(X, Y) -> Cast(X, T) when the type T of Y is known.

    1. X has the type T: Identity(X).
    2. Otherwise the attributes (`saturate`, `round_mode`) are those of the Cast.

    Y is no longer read, so that the next results are constant when X is.
    """
    x, y = g.inputs(node)
    target = g.type_of(y, "the type to convert to is not known")
    if g.type_or_none(x) == target:
        return x
    return g.op.Cast(x, to=target, **{a.name: a for a in node.attribute})
