"""Moves elementwise operators, and operators along one axis, past nodes that only move elements;
removes repeated ones."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import ELEMENTWISE_UNARY, FLOATS
from xbuilder.runtimes.known_kernels import has_kernel
from xbuilder.tensors.bits import storage_size

from ...analysis.arguments import int_attribute
from ...analysis.axes import axis_of
from ...analysis.permutations import inverse, perm_of
from ...analysis.values.signed_zeros import SEEN, sees_sign_of_zero
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

#: operators that only change the place of the elements and the shape
MOVES = ("Flatten", "Reshape", "Transpose")
#: an Identity is removed anyway
_ROOTS = tuple(sorted(ELEMENTWISE_UNARY - {"Identity"}))


@rewrite(
    "default",
    root=_ROOTS,
    after=MOVES,
    behind=("Identity", "TransposeTranspose", "ReshapeReshape"),
    priority="first",
    sole_use=True,
    aliases="SwitchReshapeActivation",
)
def swap_unary(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """f(move(x)) -> move(f(x)), f applies to each element, move is a Transpose, a Reshape, Flatten.

    1. The other inputs of f are scalars that do not read the move.
    2. If f is Cast, its type is not wider than the one of x, otherwise the move would cost more.

    A constant x is left to constant folding.
    """
    move = g.before(node, *MOVES)
    x, *target = g.inputs(move)
    if g.is_constant(x):
        return g.no("what is moved is constant")
    if g.is_used_more_than_once(move.output[0]):
        return g.no("an inner result is used elsewhere")
    if node.op_type == "Cast":
        unknown = "runtimes may not move this type"
        source, to = g.type_of(x, unknown), int_attribute(node, "to", 0) or 0
        # few operators have kernels for the types that Expand has none for
        known = all(has_kernel("Expand", kind, g.main_opset) for kind in (source, to))
        g.require(known, unknown)
        g.require(storage_size(to, 8) <= storage_size(source, 8), "the new type is wider")
    return g.like(move, g.rewired(node, {move.output[0]: x}), *target)


_ALONG = ("Hardmax", "LogSoftmax", "Softmax")


@rewrite("default", root=(*_ALONG, "Transpose"), after=(*_ALONG, "Transpose"), min_opset=13)
def softmax_axis(g: RewriteContext, node: NodeProto) -> NewNode:
    """Softmax(Transpose(x, p), axis=a) -> Transpose(Softmax(x, axis=p[a]), p), if p[a] > a.

    1. Transpose(Softmax(x, axis=p[a]), p) -> Softmax(Transpose(x, p), axis=a), if a > p[a].
    2. The same for LogSoftmax and Hardmax. Nothing else reads the inner result.

    Runtimes move the axis to the end by themselves: Softmax takes six times longer along the second
    axis of an image than along the third one, as in the heads of YOLOv8.
    """
    is_move = node.op_type == "Transpose"
    inner = g.before(node, *(_ALONG if is_move else ("Transpose",)))
    g.require_sole_use("an inner result is used elsewhere", inner.output[0])
    move, softmax = (node, inner) if is_move else (inner, node)
    perm = g.known(perm_of(g, move), "the permutation is not known")
    found = axis_of(g, softmax, len(perm), -1)
    axis = g.known(found, "the axis is not known")
    place = inverse(perm)[axis] if is_move else perm[axis]
    g.require(place > axis, "the axis does not get closer to the end")
    x = inner.input[0]
    if is_move:
        return g.like(softmax, g.op.Transpose(x, perm=perm), axis=place)
    return g.op.Transpose(g.like(softmax, x, axis=place), perm=perm)


_NOT_NEGATIVE = ("Abs", "Exp", "Relu", "Sigmoid", "Softmax", "Sqrt")
_WHOLE = ("Ceil", "Floor", "Round")
#: operator -> those whose results it does not change, NaN and infinities included
_LEAVES: dict[str, tuple[str, ...]] = {
    "Abs": _NOT_NEGATIVE,
    "Relu": _NOT_NEGATIVE,
    **dict.fromkeys(_WHOLE, _WHOLE),
    "Sign": ("Sign",),
}


@rewrite("default", root=tuple(_LEAVES), after=(*_NOT_NEGATIVE, *_WHOLE, "Sign"), priority="first")
def repeated_unary(g: RewriteContext, node: NodeProto) -> str | Refusal:
    """f(g(X)) -> g(X) when f does not change the results of g.

    1. Relu or Abs of Relu, Abs, Exp, Sqrt, Sigmoid, Softmax. Relu and Sqrt keep -0.0, which Abs
       turns into 0.0: nothing after may tell one from the other.
    2. Ceil, Floor or Round of one of them.
    3. Sign(Sign(X)).

    Floats only, because the absolute value of the lowest integer is negative.
    """
    before = g.before_or_none(node, *_LEAVES[node.op_type])
    if before is None:
        return g.no("what comes before may give other values")
    g.require(g.type_or_none(node.input[0]) in FLOATS, "the type is not a float")
    signed = node.op_type == "Abs" and before.op_type in ("Relu", "Sqrt")
    g.require(not (signed and sees_sign_of_zero(g, node.output[0])), SEEN)
    first: str = before.output[0]
    return first
