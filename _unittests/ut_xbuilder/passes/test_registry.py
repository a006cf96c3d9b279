"""The table of passes."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest
from ut_xbuilder.graph_checks import op_types, optimized, parse

from xbuilder import GraphBuilder, OptimizationOptions, OptionError
from xbuilder.graph.features import Feature
from xbuilder.graph.graph import Graph
from xbuilder.graph.graph_check import check_graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.options import DEFAULT_PASSES
from xbuilder.passes import PassReport, get_pass, pass_names, register_pass, run_pass

MODEL = parse("agraph (float[N] x) => (float[N] y) { a = Identity(x) y = Neg(a) }")


def test_default_passes_exist():
    assert set(DEFAULT_PASSES) <= set(pass_names())
    assert "control_flow" in pass_names()


def test_unknown_pass():
    with pytest.raises(OptionError, match="did you mean remove_unused"):
        get_pass("remove_unuse")
    with pytest.raises(OptionError, match="known"):
        get_pass("zzz")
    options = OptimizationOptions()
    options.passes = ["unknown_one"]
    with pytest.raises(OptionError, match="'unknown_one'"):
        GraphBuilder(MODEL, optimization_options=options).optimize()


def test_names_are_taken_once():
    with pytest.raises(OptionError, match="already registered"):
        register_pass("order")(lambda graph: PassReport())


def test_rows():
    (report,) = run_pass(GraphBuilder(MODEL).graph, "remove_identity")
    assert report.changed
    (row,) = report.rows
    assert row["pattern"] == "remove_identity"
    assert (row["removed"], row["added"], row["changed"]) == (1, 0, 1)
    assert row["time_in"] >= 0


@pytest.mark.parametrize(
    "passes,expected", [((), ["Identity", "Neg"]), (["remove_identity"], ["Neg"])]
)
def test_passes_are_chosen(passes, expected):
    assert op_types(optimized(MODEL, passes=passes)) == expected


@pytest.mark.parametrize(
    "switch", ["remove_identity", "remove_unused", "constant_folding", "constant_fusing"]
)
def test_switches(switch):
    builder = GraphBuilder(
        MODEL, optimization_options=OptimizationOptions(patterns=None, **{switch: False})
    )
    name = {"constant_fusing": "remove_duplicated_initializer"}.get(switch, switch)
    assert name not in {row["pattern"] for row in builder.optimize()}


class KeepsIdentity(Feature):
    """Wants an Identity, is told what comes and goes."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def on_import(self, graph: Graph, node: NodeRecord) -> None:
        self.rows.append(f"+{node.op_type}")

    def on_prune(self, graph: Graph, node: NodeRecord) -> None:
        self.rows.append(f"-{node.op_type}")

    def validate(self, graph: Graph) -> str:
        return "" if graph.store.bucket("", "Identity") else "an Identity is needed"


def test_a_pass_a_feature_refuses_is_undone() -> None:
    feature = KeepsIdentity()
    options = OptimizationOptions(patterns="default", features=[feature])
    builder = GraphBuilder(MODEL, optimization_options=options)
    before = builder.to_onnx(optimize=False).SerializeToString()
    with pytest.warns(UserWarning, match="Pass remove_identity is undone: KeepsIdentity refuses"):
        rows = builder.optimize()
    assert builder.to_onnx(optimize=False).SerializeToString() == before
    check_graph(builder.graph)
    refused = [r for r in rows if r.get("refusal")]
    assert refused[0]["pattern"] == "remove_identity" and not refused[0]["changed"]
    assert feature.rows.count("-Identity") == feature.rows.count("+Identity") > 0
    assert Counter(r["pattern"] for r in refused) == {"remove_identity": 3, "patterns": 1}, (
        "what is undone makes nothing run again"
    )


def test_a_pass_is_not_judged_when_a_feature_refuses_the_graph_already() -> None:
    feature = KeepsIdentity()
    text = "agraph (float[N] x) => (float[N] y) { u = Abs(x) y = Neg(x) }"
    options = OptimizationOptions(features=[feature])
    builder = GraphBuilder(parse(text), optimization_options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.optimize()
    assert [n.op_type for n in builder.nodes] == ["Neg"]
