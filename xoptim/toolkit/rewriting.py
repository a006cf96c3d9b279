"""Rewrites a model in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from onnx import ModelProto

from xbuilder.builder.graph_builder import GraphBuilder

from ..catalogue.database_query import RewriteDatabaseQuery
from .equilibrium import EquilibriumGraphRewriter

M = TypeVar("M", ModelProto, GraphBuilder)


def rewrite_graph(
    model: M,
    include: str | Iterable[str] = ("default",),
    custom_rewrite: Any = (),
    **query: Any,
) -> M:
    """Rewrites a model until a fixed point, without any pass: constants are not folded.

    :param model: a model, which is not modified, or a builder, which is changed in place
    :param include: names and tags of rewrites, none with `()`
    :param custom_rewrite: a rewriter, a pattern, or several
    :param query: other parameters of :class:`RewriteDatabaseQuery`: `exclude`, `require`...
    :return: the new model, or the builder

    ::

        rewrite_graph(model, include=["canonicalize"], exclude=["approximate"])
        rewrite_graph(model, include=(), custom_rewrite=simplify)
    """
    several = isinstance(custom_rewrite, (list, tuple))
    members: list[Any] = [RewriteDatabaseQuery(include, **query)]
    members.extend(custom_rewrite if several else [custom_rewrite])
    builder = (
        model if isinstance(model, GraphBuilder) else GraphBuilder(model, infer_shapes_options=True)
    )
    EquilibriumGraphRewriter(members, name="rewrite_graph").rewrite(builder)
    return model if isinstance(model, GraphBuilder) else builder.to_onnx(optimize=False)
