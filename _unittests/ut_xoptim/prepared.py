"""Functions of domain `intermediate`, seen before the other patterns take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from xbuilder import GraphBuilder
from xbuilder.graph.graph_check import check_graph
from xoptim.engine.intermediate_functions import inline_back
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text
from xoptim.testing.graphs import canonical_graph


def check_prepared(before: str, after: str, patterns: str, opset: int = 18) -> None:
    """Checks the graph patterns make for others, and that inlining back restores it.

    :param before: a graph, as text
    :param after: the same with calls
    :param patterns: patterns making functions
    :param opset: main opset
    """
    model = model_from_text(before, opset)
    builder = GraphBuilder(model, infer_shapes_options=True)
    optimizer = GraphBuilderPatternOptimization(builder, patterns, verifies=True)
    optimizer.keeps_functions = True
    optimizer.optimize()
    check_graph(builder.graph)
    made = builder.to_onnx(optimize=False, inline=False)
    expected = model_from_text(after, opset)
    assert canonical_graph(made.graph) == canonical_graph(expected.graph)
    assert made.functions, "the functions are there"
    assert inline_back(builder.graph, ())
    check_graph(builder.graph)
    again = builder.to_onnx(optimize=False)
    assert canonical_graph(again.graph) == canonical_graph(model.graph)
    assert not again.functions
    assert "intermediate" not in {o.domain for o in again.opset_import}


def prepared_tests(table: Mapping[str, tuple[str, str]]) -> Callable[..., None]:
    """Makes tests out of a table: name of a pattern -> (graph, the same with calls)."""

    @pytest.mark.parametrize("name", table)
    def test_prepared(name: str) -> None:
        check_prepared(*table[name], name)

    return test_prepared
