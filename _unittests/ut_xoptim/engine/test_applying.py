"""One match at a time, then the cleaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto
from ut_xoptim.toy_patterns import NegNeg, Rename, Wrong

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.facts.facts import DECLARED, ResultFacts
from xbuilder.graph.graph_check import check_graph
from xbuilder.operators.opsets import newest_ml
from xbuilder.store.events import StoreEvent
from xoptim import GraphBuilderPatternOptimization, MatchResult
from xoptim.authoring import RewriteContext
from xoptim.catalogue import rewrite
from xoptim.engine.applying import Applier
from xoptim.testing import canonical_graph, check_pattern, model_from_text, optimizer_of

TEXT = """agraph (float[a] X) => (float[a] Y, float[a] Z) {
    n = Neg(X) m = Neg(n) Y = Abs(m)
    u = Sin(X) v = Cos(u) w = Neg(v) Z = Neg(w)
}"""


@pytest.fixture
def g() -> Any:
    return optimizer_of(TEXT)


def matches(g: Any, pattern: Any) -> list[MatchResult]:
    return list(pattern.enumerate_matches(g))


def types(g: Any) -> list[str]:
    return [r.op_type for r in g.store.nodes]


def test_apply(g: Any) -> None:
    applier = Applier(g)
    done = applier.apply(matches(g, NegNeg())[0])
    assert not done.refusal and done.time_in > 0
    assert [r.op_type for r in done.removed] == ["Neg", "Neg"]
    assert [r.op_type for r in done.added] == ["Identity"]
    assert applier.done == [done]
    touched = [*done.removed, *done.added]
    assert {n for r in touched for n in (*r.inputs, *r.outputs)} == {"X", "n", "m"}
    g.store.check()
    assert types(g) == ["Identity", "Abs", "Sin", "Cos", "Neg", "Neg"], "the place is kept"


def test_clean(g: Any) -> None:
    applier = Applier(g)
    done = [applier.apply(m) for m in matches(g, NegNeg())]
    assert g.cleaning.after(g.graph, done) == 2
    g.store.check()
    assert types(g) == ["Abs", "Sin", "Cos"]
    assert list(g.node_before("Z").input) == ["u"], "the result takes the name of the output"


def test_clean_removes_what_nothing_uses(g: Any) -> None:
    def zero(g: Any, a: Any, b: Any) -> list[Any]:
        return [g.make_node("Relu", ["X"], list(b.output))]

    applier = Applier(g)
    last = matches(g, Wrong(zero))[1]
    done = [applier.apply(last)]
    assert g.cleaning.after(g.graph, done) == 2
    assert types(g) == ["Neg", "Neg", "Abs", "Relu"]
    assert not g.has_shape("v"), "its facts are forgotten"
    g.store.check()


def test_clean_keeps_what_the_user_wants() -> None:
    builder = GraphBuilder(18)
    builder.make_tensor_input("X", 1, ("a",))
    kept = builder.make_node("Sin", ["X"], do_not_remove=True)
    builder.op.Neg(builder.op.Neg(kept, outputs=["n"]), outputs=["m"])
    builder.op.Abs("m", outputs=["Y"])
    builder.make_tensor_output("Y")
    g = GraphBuilderPatternOptimization(builder, None)
    applier = Applier(g)
    wrong = Wrong(lambda g, a, b: [g.make_node("Relu", ["X"], list(b.output))])
    done = [applier.apply(m) for m in matches(g, wrong)]
    g.cleaning.after(g.graph, done)
    assert types(g) == ["Sin", "Relu", "Abs"]


def test_a_node_that_changed_is_skipped(g: Any) -> None:
    first = matches(g, NegNeg())[0]
    second = matches(g, NegNeg())[0]
    applier = Applier(g)
    applier.apply(first)
    done = applier.apply(second)
    assert done.refusal == "a node changed since it was matched"
    assert not done.added and not done.removed


def test_a_neighbour_that_changed_is_skipped() -> None:
    """The second match reads a result that the first one took away."""
    text = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Neg(n) Y = Abs(m) }"
    g = optimizer_of(text)
    drop = Wrong(lambda g, a, b: [g.make_node("Identity", [a.input[0]], list(b.output))])

    class ReadsN(Rename):
        def apply(self, g: Any, node: Any) -> list[Any]:
            return [g.make_node("Sin", ["n"], list(node.output))]

    late = matches(g, ReadsN("Abs", "Sin"))[0]
    applier = Applier(g)
    applier.apply(matches(g, drop)[0])
    done = applier.apply(late)
    assert "changed its neighbours" in done.refusal
    g.store.check()
    assert types(g) == ["Identity", "Abs"]


def test_a_returned_node_is_copied(g: Any) -> None:
    """A node of the match may be returned: the store keeps its own objects apart."""
    first = g.node_before("n")
    applier = Applier(g)
    wrong = Wrong(lambda g, a, b: [a, g.make_node("Identity", [a.input[0]], list(b.output))])
    done = applier.apply(matches(g, wrong)[0])
    assert g.node_before("n") is not first
    assert [r.op_type for r in done.added] == ["Neg", "Identity"]
    g.store.check()


def test_insert_at(g: Any) -> None:
    pattern = Rename("Sin", "Tan")
    abs_node = g.node_before("Y")
    match = MatchResult(pattern, [g.node_before("u")], pattern.apply, insert_at=abs_node)
    Applier(g).apply(match)
    assert types(g)[:4] == ["Neg", "Neg", "Abs", "Tan"]
    g.store.check()


def test_facts_of_new_results(g: Any) -> None:
    made: list[str] = []

    def two(g: Any, a: Any, b: Any) -> list[Any]:
        made.append(g.unique_name("inner"))
        return [
            g.make_node("Shape", [a.input[0]], [made[0] + "s"]),
            g.make_node("Reshape", [a.input[0], made[0] + "s"], list(b.output)),
        ]

    Applier(g).apply(matches(g, Wrong(two))[0])
    assert g.get_type(made[0] + "s") == onnx.TensorProto.INT64
    assert g.get_shape("m") == ("a",)


def test_nothing_changes_after_an_error(g: Any) -> None:
    before = canonical_graph(g.builder.to_onnx(optimize=False).graph)
    wrong = Wrong(lambda g, a, b: [g.make_node("Cast", [a.input[0]], list(b.output), to=7)])
    with pytest.raises(PatternError, match="changes the type or the shape"):
        Applier(g).apply(matches(g, wrong)[0])
    assert canonical_graph(g.builder.to_onnx(optimize=False).graph) == before
    assert g.get_type("m") == onnx.TensorProto.FLOAT


@pytest.mark.parametrize("answer", [["Identity"], None, "Identity", [None]])
def test_apply_must_return_nodes(g: Any, answer: Any) -> None:
    wrong = Wrong(lambda g, a, b: answer)
    with pytest.raises(
        PatternError, match="apply of pattern Wrong must return a list of NodeProto"
    ):
        Applier(g).apply(matches(g, wrong)[0])


@pytest.mark.parametrize(
    ("op_type", "domain", "version"),
    [
        ("Binarizer", "other", 1),
        ("Gelu", "com.microsoft", 1),
        ("Binarizer", "ai.onnx.ml", newest_ml()),
    ],
)
def test_a_domain_is_registered(g: Any, op_type: str, domain: str, version: int) -> None:
    made = Wrong(
        lambda g, a, b: [g.make_node(op_type, [a.input[0]], list(b.output), domain=domain)]
    )
    Applier(g).apply(matches(g, made)[0])
    assert g.opsets[domain] == version


def test_the_copy_of_a_constant_is_constant_at_once() -> None:
    text = """agraph (float[2,2] x, float[2,2] y) => (float[2,2] z) {
        c = Constant <value_float = 0.5> ()
        a = Mul(x, c) b = Mul(y, c) z = MatMul(a, b)
    }"""
    g = optimizer_of(text, "ConstantToInitializer,MulMulMatMul")
    found = [m for p in g.patterns for m in matches(g, p)]
    assert [m.pattern.name for m in found] == ["ConstantToInitializer", "MulMulMulScalar"]
    applier = Applier(g)
    applier.apply(found[0])
    assert g.is_constant_scalar("c", 0.5)
    assert not applier.apply(found[1]).refusal


BRANCHES = """agraph (float[a] X, bool c) => (float[a] Y, float[a] Z) <float[1] w = {1}> {
    s = Sin(X) k = Cos(X)
    Y = If(c) < then_branch = t () => (float[a] T) { u = Neg(s) v = Neg(u) T = Abs(v) },
                else_branch = e () => (float[a] E) { E = Abs(s) } >
    Z = Tan(Y)
}"""


@pytest.mark.parametrize(
    ("inputs", "other", "message"),
    [
        (["s"], "T", "already has a producer"),
        (["s"], "s", "gives 's', which is an input, an initializer or an outer result"),
        (["s"], "X", "gives 'X', which is an input, an initializer or an outer result"),
        (["s"], "w", "gives 'w', which is an input, an initializer or an outer result"),
        (["nothing"], None, "reads 'nothing', which does not exist"),
        (["k"], None, ""),
        (["Y"], None, "reads 'Y', which depends on the node owning the subgraph"),
        (["Z"], None, "reads 'Z', which depends on the node owning the subgraph"),
    ],
)
def test_edges_in_a_subgraph(inputs: list[str], other: str | None, message: str) -> None:
    def make(g: Any, a: Any, b: Any) -> list[Any]:
        new = [g.make_node("Neg", inputs, list(b.output))]
        return new if other is None else [*new, g.make_node("Sin", inputs, [other])]

    builder = GraphBuilder(model_from_text(BRANCHES), infer_shapes_options=True)
    before = canonical_graph(builder.to_onnx(optimize=False).graph)
    g = GraphBuilderPatternOptimization(builder, [Wrong(make)], recursive=True)
    if not message:
        g.optimize()
        assert onnx.checker.check_model(builder.to_onnx(optimize=False)) is None
        return
    with pytest.raises(PatternError, match=f"Pattern Wrong breaks the graph.*{message}"):
        g.optimize()
    assert canonical_graph(builder.to_onnx(optimize=False).graph) == before


def test_a_subgraph_reading_an_unknown_name(g: Any) -> None:
    branch = onnx.helper.make_graph(
        [onnx.helper.make_node("Neg", ["nowhere"], ["T"])],
        "t",
        [],
        [onnx.helper.make_tensor_value_info("T", 1, ["a"])],
    )

    def make(g: Any, a: Any, b: Any) -> list[Any]:
        c = g.make_initializer("", np.array(True))
        return [g.make_node("If", [c], list(b.output), then_branch=branch, else_branch=branch)]

    before = canonical_graph(g.builder.to_onnx(optimize=False).graph)
    with pytest.raises(PatternError, match="Wrong breaks the graph: If reads 'nowhere'"):
        Applier(g).apply(matches(g, Wrong(make))[0])
    assert canonical_graph(g.builder.to_onnx(optimize=False).graph) == before


def test_what_was_known_comes_back() -> None:
    """The results of a match that is undone, those the pattern dropped too."""
    builder = GraphBuilder(model_from_text(TEXT), infer_shapes_options=True)
    builder.make_initializer("w0", np.ones(3, dtype=np.float32))
    builder.make_node("Neg", ["w0"], ["n0"])
    builder.make_node("Neg", ["n0"], ["m0"])
    builder.make_tensor_output("m0")
    builder.facts.refine("n", ResultFacts(1, ("a",), None), DECLARED)
    builder.set_device("n", -1)
    g = GraphBuilderPatternOptimization(builder, None)
    for name in ("n0", "m0"):
        assert builder.constants.uniform_value(name) is not None
    known = {name: builder.facts[name] for name in ("n", "m", "n0", "m0")}
    wrong = Wrong(lambda g, a, b: [g.make_node("Cast", [a.input[0]], list(b.output), to=7)])
    for match in matches(g, wrong):
        with pytest.raises(PatternError, match="changes the type or the shape"):
            Applier(g).apply(match)
        check_graph(builder.graph)
    assert {name: builder.facts[name] for name in known} == known
    assert builder.get_device("n") == -1
    assert builder.is_constant("n0") and builder.is_constant("m0")
    assert builder.constants.uniform_value("n0") == -1


@rewrite(root="Not", after="Not")
def no_double_not(g: RewriteContext, node: NodeProto) -> str:
    """Not(Not(x)) -> x"""
    return g.before(node, "Not").input[0]


class _Added:
    """Remembers the types of the nodes a store receives."""

    def __init__(self) -> None:
        self.op_types: list[str] = []

    def store_changed(self, event: StoreEvent) -> None:
        self.op_types.extend(record.op_type for record in event.added)


def _nots(n: int, ends: str = "float[a] y") -> str:
    nodes = "\n".join(f"x{i + 1} = Not(x{i})" for i in range(n))
    return f"agraph (bool[a] x0) => ({ends}) {{ {nodes}\n y = Cast<to=1>(x{n}) }}"


def test_readers_of_a_result_read_another_one_without_identity() -> None:
    builder = GraphBuilder(model_from_text(_nots(6)), infer_shapes_options=True)
    added = _Added()
    builder.store.subscribe(added)
    optimizer = GraphBuilderPatternOptimization(builder, [no_double_not], verifies=True)
    rows = optimizer.optimize()
    assert added.op_types == []
    applied = [r for r in rows if r["pattern"] == "apply_NoDoubleNot"]
    assert sum(r["removed"] - r["added"] for r in applied) == 6
    assert [(n.op_type, list(n.input)) for n in builder.nodes] == [("Cast", ["x0"])]


def test_what_is_redirected_to_a_new_constant_is_constant() -> None:
    """The first CastLike makes the quotient constant while the second one is redirected to it."""
    text = """g (float[n] x) => (float[n] y) <float a = {16}, float b = {1}> {
        c = CastLike(a, x) d = Div(c, b) e = CastLike(d, x) s = Sqrt(e) y = Mul(x, s)
    }"""
    builder = GraphBuilder(model_from_text(text, 18), infer_shapes_options=True)
    assert not builder.is_constant("s")
    optimizer = GraphBuilderPatternOptimization(builder, patterns=["CastLike"])
    optimizer.optimize()
    assert builder.store.producers["s"].inputs == ("d",)
    assert builder.is_constant("s")
    assert builder.graph.constants.value("s") == 4


def test_outputs_keep_their_names() -> None:
    text = _nots(4, "float[a] y, bool[a] x2, bool[a] x4")
    result = check_pattern(text, None, [no_double_not])
    assert [o.name for o in result.graph.output] == ["y", "x2", "x4"]
    assert "Not" not in {n.op_type for n in result.graph.node}


def merging(op_type: str) -> Any:
    """Two nodes of one type become one, between Concat and Split."""

    @rewrite(root=op_type, name=f"Merge{op_type}")
    def merge(g: RewriteContext, node: NodeProto) -> Any:
        both = [g.store.proto(r) for r in g.store.bucket("", op_type)]
        g.require(len(both) == 2, "there are not two of them")
        g.look_at(*both)
        joined = g.op.Concat(*[n.input[0] for n in both], axis=0)
        new = g.op.Split(getattr(g.op, op_type)(joined), outputs=2, num_outputs=2)
        return {n.output[0]: new[i] for i, n in enumerate(both)}

    return merge


def test_a_cycle_two_rewrites_make_together() -> None:
    """Each is right alone: one of them is not applied, nothing fails."""
    text = """agraph (float[2] X) => (float[2] Y, float[2] Z) {
        n1 = Neg(X) c1 = Abs(n1) c2 = Abs(X) n2 = Neg(c2) Y = Sin(c1) Z = Sin(n2) }"""
    g = optimizer_of(text, [merging("Neg"), merging("Abs")])
    with pytest.warns(UserWarning, match="MergeAbs was not applied: with other rewrites"):
        g.optimize()
    check_graph(g.graph)
    assert sorted(types(g)) == ["Abs", "Abs", "Concat", "Neg", "Sin", "Sin", "Split"]
