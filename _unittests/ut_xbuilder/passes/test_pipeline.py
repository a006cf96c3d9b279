"""The order of the passes, what their reports decide."""

from __future__ import annotations

import pytest
from ut_xbuilder.graph_checks import op_types, parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.passes import registry
from xbuilder.passes.pipeline import is_enabled, optimize_graph
from xbuilder.passes.registry import PassReport, register_pass, run_pass

MODEL = parse(
    """agraph (float[N] x) => (float[N] y) <bool c = {1}> {
        y = If (c) < then_branch = a () => (float[N] p) { p = Exp(x) },
                     else_branch = b () => (float[N] q) { q = Neg(x) } > }"""
)


def patterns_of(rows):
    return [row["pattern"] for row in rows if not row.get("graph")]


def test_control_flow_runs_under_its_own_name() -> None:
    builder = GraphBuilder(
        MODEL, optimization_options=OptimizationOptions(passes=["constant_folding"])
    )
    rows = builder.optimize()
    names = patterns_of(rows)
    assert names.index("control_flow") < names.index("constant_folding")
    (row,) = [r for r in rows if r["pattern"] == "control_flow" and r["changed"]]
    assert row["changed"] == 1
    assert "control_flow: constant_if" in names
    assert op_types(builder.to_onnx(optimize=False)) == ["Exp"]


def test_rows_of_the_single_pass() -> None:
    reports = run_pass(GraphBuilder(MODEL).graph, "constant_folding")
    names = patterns_of([row for report in reports for row in report.rows])
    assert names[:1] == ["control_flow"] and "constant_folding" in names


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two passes that say when they run; the first one once pretends nodes came in the graph."""
    monkeypatch.setattr(registry, "_PASSES", dict(registry._PASSES))
    ran: list[str] = []

    @register_pass("late_for_test")
    def late(graph: object) -> PassReport:
        ran.append("late")
        return PassReport(True, [{"pattern": "anything"}], has_new_nodes=ran.count("late") == 1)

    @register_pass("misleading_for_test")
    def misleading(graph: object) -> PassReport:
        ran.append("misleading")
        return PassReport(False, [{"pattern": "constant_if", "changed": 1}])

    return ran


def optimize_with(*names: str) -> None:
    options = OptimizationOptions(patterns=[], passes=["patterns", *names])
    optimize_graph(
        GraphBuilder(
            parse("agraph (float[N] x) => (float[N] y) { y = Neg(x) }"),
            optimization_options=options,
        ).graph
    )


def test_new_nodes_are_seen_by_the_patterns(passes: list[str]) -> None:
    optimize_with("late_for_test")
    assert passes == ["late", "late"]


def test_rows_decide_nothing(passes: list[str]) -> None:
    optimize_with("misleading_for_test")
    assert passes == ["misleading"]


def test_switches() -> None:
    options = OptimizationOptions(patterns=None, constant_folding=False)
    assert not is_enabled(options, "patterns") and not is_enabled(options, "constant_folding")
    assert is_enabled(options, "order") and is_enabled(options, "remove_unused")
