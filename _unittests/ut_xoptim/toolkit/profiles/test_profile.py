"""The lines of the profile of a run."""

from __future__ import annotations

import dataclasses

import pytest
from ut_xoptim.toy_patterns import NegNeg, Rename
from ut_xoptim.whole_models.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xbuilder.graph.graph import Graph
from xbuilder.store.graph_store import GraphStore
from xbuilder.support.rows import Row
from xoptim import GraphBuilderPatternOptimization, PatternOptimization, rewrite
from xoptim.testing import model_from_text, optimizer_of
from xoptim.toolkit import GraphRewriter, SequentialGraphRewriter
from xoptim.toolkit.features import Feature
from xoptim.toolkit.profiles import Profile

TEXT = """agraph (float[a, 2] X) => (float[a, 2] Y, float[a, 2] Z) {
    i = Identity(X) n = Neg(i) m = Neg(n) Y = Relu(m) p = Neg(Y) q = Neg(p) Z = Add(q, p) }"""
BODY = """agraph (float[2] X, bool c) => (float[2] Y) {
    Y = If(c) < then_branch = tg () => (float[2] T) { i = Neg(X) T = Neg(i) },
                else_branch = eg () => (float[2] E) { E = Abs(X) } > }"""


class Never(PatternOptimization):
    """Looks at every Relu and never applies."""

    roots = ("Relu",)

    def match(self, g, node, matched):
        return self.none(node, "never")


@rewrite(root="Neg", after="Neg")
def neg_neg(g, outer):
    """Neg(Neg(x)) -> x."""
    return g.before(outer, "Neg").input[0]


class NoAdd(Feature):
    """Refuses a graph without Add."""

    def validate(self, graph: Graph) -> str:
        return "" if graph.store.bucket("", "Add") else "an Add is needed"


def profiled(text: str, patterns: list, *features: Feature) -> tuple[Profile, GraphBuilder]:
    profile = Profile()
    options = OptimizationOptions(patterns=patterns, features=[profile, *features])
    builder = GraphBuilder(
        model_from_text(text), infer_shapes_options=True, optimization_options=options
    )
    builder.optimize()
    return profile, builder


def row(profile: Profile, name: str) -> Row:
    (found,) = [r for r in profile.rows() if r["name"] == name]
    return found


def test_rewriters() -> None:
    profile, builder = profiled(TEXT, [NegNeg(), Never()])
    neg = row(profile, "NegNeg")
    assert neg["path"] == "model/patterns/priority 1/NegNeg" and neg["depth"] == 4
    assert (neg["kind"], neg["applications"], neg["refused"]) == ("rewriter", 2, 0)
    assert (neg["created"], neg["removed"], neg["matches"]) == (3, 4, 2)
    assert neg["visited"] >= 4 and neg["nodes_start"] == 6 and neg["nodes_end"] <= 6
    assert 0 < neg["validation"] < neg["time"] < row(profile, "patterns")["time"]
    assert neg["vain_calls"] == 1, "the fixed point is confirmed"
    never = row(profile, "Never")
    assert never["vain_calls"] == never["calls"] > 0
    assert never["vain_time"] == never["time"] > 0
    assert [r["name"] for r in profile.in_vain()] == ["Never"]
    assert len(builder.nodes) == 3


def test_passes() -> None:
    profile, builder = profiled(TEXT, [NegNeg()])
    rows = {r["name"]: r for r in profile.rows()}
    model = rows["model"]
    assert (model["nodes_start"], model["nodes_max"]) == (7, 7)
    assert model["nodes_end"] == len(builder.nodes) == rows["optimize"]["nodes_end"]
    identity = rows["remove_identity"]
    assert identity["calls"] == 3 and identity["removed"] == 1 and identity["nodes_start"] == 7
    assert identity["callbacks"] > 0
    assert {"order", "constant_folding", "clean", "prepare"} <= set(rows)
    assert 0 < rows["prepare"]["time"] < rows["patterns"]["time"]
    assert rows["clean"]["kind"] == "step" and rows["clean"]["removed"] == 2
    assert model["removed"] - model["created"] == 4
    assert model["time"] >= sum(r["time"] for r in rows.values() if r["kind"] == "pass")
    assert rows["optimize"]["time"] >= model["time"]
    assert set(profile.listeners) == {"ConstantTable", "FactTable", "Worklist"}


def test_readers_that_move() -> None:
    """The nodes that the cleaning removes for a rewrite count for the rewrite."""
    profile, _ = profiled(TEXT, [neg_neg])
    found = row(profile, neg_neg().name)
    assert (found["applications"], found["created"], found["removed"]) == (2, 0, 3)
    assert row(profile, "clean")["removed"] == 0
    assert row(profile, "model")["removed"] == 4


def test_what_is_refused() -> None:
    with pytest.warns(UserWarning, match="NoAdd refuses it: an Add is needed"):
        profile, _ = profiled(TEXT, [Rename("Add", "Sub")], NoAdd())
    refused = row(profile, "AddToSub")
    assert (refused["applications"], refused["refused"]) == (0, 1)
    assert refused["created"] == refused["removed"] == 0, "it was taken back"
    assert refused["vain_time"] > 0
    assert [r["name"] for r in profile.in_vain()] == ["AddToSub"]


def test_bodies() -> None:
    profile, _ = profiled(BODY, [NegNeg()])
    paths = [r["path"] for r in profile.rows()]
    assert "model/body/patterns/priority 1/NegNeg" in paths
    assert row(profile, "body")["calls"] == 2
    assert {r["graph"] for r in profile.iterations} == {"model", "body"}


def test_iterations() -> None:
    profile, _ = profiled(TEXT, [NegNeg()])
    first, second = profile.iterations[:2]
    assert (first["iteration"], first["nodes"], first["applications"]) == (0, 6, 2)
    assert (second["iteration"], second["nodes"], second["applications"]) == (1, 3, 0)
    assert first["time"] > 0 and first["priority"] == 1


def test_the_engine_alone() -> None:
    profile = Profile()
    optimizer_of(TEXT, [NegNeg()], features=[profile]).optimize()
    assert row(profile, "NegNeg")["path"] == "model/patterns/priority 1/NegNeg"
    assert row(profile, "patterns")["time"] > 0


class DropAllNegNeg(GraphRewriter):
    """Works on the whole graph."""

    def apply(self, graph) -> None:
        for node in graph.find("Neg"):
            before = graph.node_before(node.input[0])
            if before is not None and before.op_type == "Neg":
                graph.replace({node.output[0]: before.input[0]})


class WalkRelu(GraphRewriter):
    """Looks, changes nothing."""

    def apply(self, graph) -> None:
        assert len(list(graph.find("Relu"))) == 1


def test_rewriters_of_whole_graphs() -> None:
    profile, _ = profiled(TEXT, [DropAllNegNeg(), Never()])
    found = row(profile, "DropAllNegNeg")
    assert found["path"].endswith("/priority 1/DropAllNegNeg")
    assert found["applications"] == 2 and found["calls"] == 2
    assert found["vain_calls"] == 1 and 0 < found["vain_time"] < found["time"]
    assert row(profile, "priority 1")["time"] >= found["time"]


def test_rewriters_inside_others() -> None:
    profile, builder = profiled(TEXT, [SequentialGraphRewriter(DropAllNegNeg(), WalkRelu())])
    rows = {r["name"]: r for r in profile.rows() if r["kind"] == "rewriter"}
    outer, inner = rows["SequentialGraphRewriter"], rows["DropAllNegNeg"]
    assert inner["path"].endswith("/SequentialGraphRewriter/DropAllNegNeg")
    assert outer["applications"] == inner["applications"] == 2, "what is inside is included"
    assert outer["time"] >= inner["time"] + rows["WalkRelu"]["time"]
    assert len(builder.nodes) == 3


def test_the_option_makes_a_profile() -> None:
    options = OptimizationOptions(patterns=[NegNeg()], profile=True)
    assert isinstance(options.profile, Profile) and options.features == (options.profile,)
    GraphBuilder(
        model_from_text(TEXT), infer_shapes_options=True, optimization_options=options
    ).optimize()
    assert row(options.profile, "NegNeg")["applications"] == 2
    again = dataclasses.replace(options, max_iter=1)
    assert again.features == (options.profile,), "it is attached once"
    mine = Profile()
    assert OptimizationOptions(profile=mine, features=[mine]).features == [mine]
    assert OptimizationOptions().features == ()


def test_phases() -> None:
    """One row for each, those with a name first and in their order, whatever the graph."""
    text = """agraph (float[2] X, bool c) => (float[2] Y) {
        N = Neg(X) M = Neg(N) P = Abs(M) Q = Abs(M) R = Add(P, Q)
        Y = If(c) < then_branch = tg () => (float[2] T) { i = Neg(R) T = Neg(i) },
                    else_branch = eg () => (float[2] E) { E = Abs(R) } > }"""
    profile, _ = profiled(text, [NegNeg(), "SameChildren", Never(), "default&canonicalize"])
    rows = {r["phase"]: r for r in profile.phases()}
    assert next(iter(rows)) == "merge" and list(rows)[-1] == "priority 1"
    own = [r for r in profile.rows() if r["name"] == "priority 1"]
    assert len(own) == 2, "the model and the body"
    assert rows["priority 1"]["applications"] == 2
    for measure in ("time", "visited", "vain_time", "created", "removed"):
        assert rows["priority 1"][measure] == pytest.approx(sum(r[measure] for r in own))
    assert rows["merge"]["removed"] == 1


def test_a_run_that_fails_is_measured() -> None:
    class Broken(PatternOptimization):
        roots = ("Relu",)

        def match(self, g, node, matched):
            raise ValueError("broken")

    profile = Profile()
    options = OptimizationOptions(patterns=[Broken()], features=[profile])
    builder = GraphBuilder(model_from_text(TEXT), optimization_options=options)
    with pytest.raises(PatternError, match="broken"):
        builder.optimize()
    assert type(builder.store) is GraphStore
    assert row(profile, "patterns")["time"] > 0
    assert profile._frames == []


def test_the_result_is_the_same() -> None:
    for seed in range(3):
        models = []
        for features in ([], [Profile()]):
            options = OptimizationOptions(patterns="default+onnxruntime", features=features)
            builder = GraphBuilder(
                RandomModel(seed, 25).branching_model(),
                infer_shapes_options=True,
                optimization_options=options,
            )
            models.append(builder.to_onnx().SerializeToString(deterministic=True))
        assert models[0] == models[1]


def test_two_runs_add_up() -> None:
    profile = Profile()
    for _ in range(2):
        builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
        GraphBuilderPatternOptimization(builder, [NegNeg()], features=[profile]).optimize()
    assert row(profile, "NegNeg")["applications"] == 4
    assert row(profile, "optimize")["calls"] == 2


def test_rows_make_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    profile, _ = profiled(TEXT, [NegNeg(), Never()])
    table = pandas.DataFrame(profile.rows())
    passes = table[table.kind == "pass"].groupby("name").agg({"time": "sum", "removed": "sum"})
    assert passes.loc["remove_identity", "removed"] == 1
    assert not table.isna().any().any()


def test_notebook() -> None:
    profile, _ = profiled(TEXT, [NegNeg(), Never()])
    text = profile._repr_html_()
    assert "nodes</b>" in text and "<td>NegNeg</td>" in text and "<td>Never</td>" in text
    assert str(profile) == profile.to_text() and "NegNeg" in str(profile)
    assert Profile()._repr_html_().startswith("<p><b>Profile: 0.000 s, 0 -&gt; 0 nodes")
