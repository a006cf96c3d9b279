"""Transpose and its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from ..api.context import RewriteContext
from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..api.rewrite import rewrite
from ..api.right_side import NewNode
from ..reading.movement import (
    Ints,
    axes_of,
    compose,
    inverse,
    normalized,
    perm_of,
    positive,
    producer,
    shape_of,
)

if TYPE_CHECKING:
    from xbuilder.dims import Shape

    from ..engine.optimizer import GraphBuilderPatternOptimization


@rewrite("default", root="Transpose", after="Transpose", priority=0)
def transpose_transpose(g: RewriteContext, second: NodeProto) -> str | NewNode:
    """Transpose(Transpose(x, p), q) -> Transpose(x, p[q]).

    1. The permutations cancel: x.
    2. They do not: one Transpose.
    3. Both are missing: reversing twice cancels whatever the rank is.
    4. The inner result is used elsewhere: the first Transpose stays for the others.
    """
    first = g.before(second, "Transpose")
    x = first.input[0]
    if not first.attribute and not second.attribute:
        return x
    p, q = perm_of(g, first), perm_of(g, second)
    p = g.known(p or perm_of(g, first, q and len(q)), "the permutations are not known")
    q = g.known(q or perm_of(g, second, len(p)), "the permutations are not known")
    g.require(len(p) == len(q), "the permutations are not known")
    perm = compose(p, q)
    return x if perm == tuple(range(len(perm))) else g.op.Transpose(x, perm=perm)


@register_pattern("default", roots=("Transpose",), priority=0, min_opset=13, after=("Unsqueeze",))
class SwapUnsqueezeTransposePattern(PatternOptimization):
    """Transpose(Unsqueeze(x, axes), p) -> Unsqueeze(Transpose(x, p'), p^-1[axes]).

    1. p' moves something: both nodes are swapped, the Transpose has fewer axes and gets closer to
       what it may merge with.
    2. p' is the identity: the Transpose only moves the new axes, one Unsqueeze is enough.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        first = producer(g, node.input[0], *self.after)
        if first is None:
            return self.none(node, "no Unsqueeze before")
        if g.is_used_more_than_once(node.input[0]):
            return self.none(node, "the inner result is used elsewhere")
        perm = perm_of(g, node)
        if perm is None:
            return self.none(node, "the permutation is not known")
        axes = axes_of(g, first)
        if axes is None or normalized(axes, len(perm)) is None:
            return self.none(node, "the axes are not known")
        return MatchResult(self, [first, node], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> list[NodeProto]:
        perm = perm_of(g, second)
        axes = normalized(axes_of(g, first), len(perm))
        place = inverse(perm)
        new_axes = sorted(place[a] for a in axes)
        sources = [i for i in range(len(perm)) if i not in axes]
        inner = tuple(sources.index(p) for p in perm if p not in axes)
        nodes: list[NodeProto] = []
        name = first.input[0]
        if inner != tuple(range(len(inner))):
            nodes.append(g.make_node("Transpose", [name], name=second.name, perm=inner))
            name = nodes[0].output[0]
        unsqueeze = g.make_node_check_opset(
            "Unsqueeze", [name], second.output[:], axes=new_axes, name=first.name
        )
        return [*nodes, unsqueeze]


@register_pattern("default", roots=("Transpose",), priority=1, min_opset=5)
class TransposeEqualReshapePattern(PatternOptimization):
    """Transpose(x, p) -> Reshape(x, shape) when p moves nothing but dimensions 1.

    1. Every dimension of the result is an integer: the shape is a constant.
    2. Dimensions that stay at their place may be unknown: 0 copies them.
    3. One unknown dimension changes its place: it is -1, if no other one may be null (a Reshape to
       -1 fails on an empty tensor).
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        shape = shape_of(g, node.input[0])
        if shape is None:
            return self.none(node, "the shape is not known")
        perm = perm_of(g, node)
        if perm is None or len(perm) != len(shape):
            return self.none(node, "the permutation is not known")
        moving = [p for p in perm if shape[p] != 1]
        if moving != sorted(moving):
            return self.none(node, "it moves dimensions that are not 1")
        if perm == tuple(range(len(perm))):
            return self.none(node, "it does not move anything")
        if self._target(g, shape, perm) is None:
            return self.none(node, "the new shape cannot be a constant")
        return MatchResult(self, [node], self.apply)

    def _target(
        self, g: GraphBuilderPatternOptimization, shape: Shape, perm: Ints
    ) -> list[int] | None:
        """Second input of the Reshape, None if unknown dimensions prevent it."""
        target: list[int] = []
        for i, p in enumerate(perm):
            dim = shape[p]
            if isinstance(dim, int) and dim > 0:
                target.append(dim)
            else:
                target.append(0 if p == i else -1)
        holes = target.count(-1)
        if holes == 0:
            return target
        others = [shape[p] for i, p in enumerate(perm) if target[i] != -1]
        if holes > 1 or not all(positive(g, d) for d in others):
            return None
        return target

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        shape = shape_of(g, node.input[0])
        target = self._target(g, shape, perm_of(g, node))
        name = g.make_initializer("", np.array(target, dtype=np.int64))
        return [g.make_node("Reshape", [node.input[0], name], node.output[:], name=node.name)]
