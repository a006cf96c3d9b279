"""The rewrites and the graphs that the tests of rewrites share."""

from __future__ import annotations

from typing import Any

from onnx import NodeProto
from ut_xoptim.unchecked import Unchecked

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization, RewriteContext
from xoptim import rewrite as rewrite_form
from xoptim.testing import model_from_text

NEG_NEG = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) Y = Neg(n) }"
IDENTITY = "agraph (float[a] X) => (float[a] Y) { Y = Identity(X) }"


@rewrite_form(root="Neg", after="Neg")
def neg_neg(g: RewriteContext, outer: NodeProto) -> str:
    """Neg(Neg(x)) -> x"""
    return g.before(outer, "Neg").input[0]


@rewrite_form(root="Neg", after="Neg", sole_use=True)
def sole_neg_neg(g: RewriteContext, outer: NodeProto) -> str:
    """Neg(Neg(x)) -> x"""
    return g.before(outer, "Neg").input[0]


def form(function: Any, **options: Any) -> Any:
    """A function as a rewrite of Neg."""
    return rewrite_form(**{"root": "Neg", **options})(function)


def optimizer(text: str, *patterns: Any, opset: int = 18) -> GraphBuilderPatternOptimization:
    """An optimizer on a graph."""
    builder = GraphBuilder(model_from_text(text, opset), infer_shapes_options=True)
    return GraphBuilderPatternOptimization(
        builder, list(patterns), verifies=True, features=[Unchecked()]
    )


def operators(g: GraphBuilderPatternOptimization) -> list[str]:
    """Operators that are left."""
    return [r.op_type for r in g.store.nodes]


def fresh(opset: int = 18) -> GraphBuilderPatternOptimization:
    """A graph that a test may change."""
    text = "agraph (float[a, 4] X) => (float[a, 4] Y) { Y = Relu(X) }"
    return GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text, opset)), None)
