"""Facts a rewrite may not change: types, ranks and shapes of the results that are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx.reference import ReferenceEvaluator
from ut_xoptim.toy_patterns import NegNeg, Rename, Wrong

from xbuilder import GraphBuilder
from xbuilder.dims import Constraints
from xbuilder.errors import PatternError
from xoptim import GraphBuilderPatternOptimization, MatchResult
from xoptim.engine.guards.dimensions import equal_on_samples
from xoptim.engine.guards.result_facts import ResultFactsGuard
from xoptim.testing import canonical_graph, model_from_text, optimizer_of

FREE = frozenset({"a", "b", "c"})


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (4, 4, True),
        ("a", "a", True),
        ("2*a", "a+a", True),
        ("a//2*2+a%2", "a", True),
        ("a", 4, False),
        (4, "a", False),
        ("a", "b", False),
        ("a+b", "2*b", False),
        ("max(a,b)", "a", False),
        ("a", "unk", True),
        ("c//a", "c//b", False),
        ("max(a-100,0)", "a-100", True),
        ("a//1000", 0, False),
    ],
)
def test_not_refuted(a: Any, b: Any, expected: bool) -> None:
    assert equal_on_samples(a, b, FREE, Constraints()) is expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("a", "b", False),
        ("broadcast(a,b)", "a", False),
        ("broadcast(a,b)", "max(a,b)", True),
        ("a*b", "broadcast(a,b)", False),
        ("a", "c", False),
        ("c", "d", True),
    ],
)
def test_only_sizes_the_graph_accepts_are_tried(a: str, b: str, expected: bool) -> None:
    """a and b are equal or one is 1; d depends on a generated name."""
    constraints = Constraints(["unk"])
    constraints.add_equal_or_one("a", "b")
    constraints.add_equal_or_one("d", "unk")
    assert equal_on_samples(a, b, FREE | {"d"}, constraints) is expected


def test_nodes_that_restrict_sizes_are_not_judged() -> None:
    """Reshape(X, [2, 3]) only runs when X has six elements: b is 2, nothing is changed."""
    model = model_from_text(
        """agraph (float[b, 3] X) => (float[2, 3] Y) <int64[2] s = {2, 3}> {
            n = Neg(X) Y = Reshape(n, s) }"""
    )

    class NegReshape(NegNeg):
        roots = ("Reshape",)

        def match(self, g: Any, node: Any, matched: Any) -> Any:
            return MatchResult(self, [g.node_before(node.input[0]), node], self.apply)

        def apply(self, g: Any, first: Any, second: Any) -> list[Any]:
            return [g.make_node("Neg", [first.input[0]], list(second.output))]

    g = engine(model, NegReshape())
    g.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Neg"]


def test_free_names_are_those_of_the_model() -> None:
    text = """agraph (float[a] X, bool c) => (float[u] Y) {
        Y = If(c) < then_branch = tg () => (float[v] T) { T = Neg(X) },
                    else_branch = eg () => (float[v] E) { E = Abs(X) } > }"""
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    child = next(builder.iter_subgraph_builders())
    assert ResultFactsGuard(child.graph).free_names == {"a"}


def negneg(declared: str, x: str = "b,4", outputs: str = "") -> onnx.ModelProto:
    return model_from_text(
        f"agraph (float[{x}] X) => ({declared} Y{outputs}) {{ n = Neg(X) Y = Neg(n) }}"
    )


def engine(model: onnx.ModelProto, *patterns: Any) -> GraphBuilderPatternOptimization:
    return optimizer_of(model, list(patterns), verifies=True)


def replaced(op_type: str, **kwargs: Any) -> Wrong:
    """Neg(Neg(x)) becomes one node reading x."""
    return Wrong(lambda g, a, b: [g.make_node(op_type, [a.input[0]], list(b.output), **kwargs)])


@pytest.mark.parametrize("declared", ["float[b,4]", "float[]"])
@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (replaced("Cast", to=7), "type float against int64"),
        (replaced("Flatten", axis=2), r"shape \('b', 4\) against \('4\*b', 1\)"),
        (replaced("Shape"), "type float against int64"),
        (replaced("ReduceSum"), r"shape \('b', 4\) against \(1, 1\)"),
    ],
)
def test_an_output_keeps_its_facts(declared: str, pattern: Wrong, reason: str) -> None:
    """Whether the model declares them or not."""
    g = engine(negneg(declared), pattern)
    before = canonical_graph(g.builder.to_onnx(optimize=False).graph)
    with pytest.raises(PatternError, match=f"Wrong changes the type or the shape.*{reason}"):
        g.optimize()
    assert canonical_graph(g.builder.to_onnx(optimize=False).graph) == before
    g.store.check()


@pytest.mark.parametrize("declared", ["float[b,4]", "float[]"])
def test_a_shape_which_is_equal_for_one_size_only(declared: str) -> None:
    """[b, 4] and [4, b] do not contradict each other: the rewrite is refused, others go on."""
    g = engine(negneg(declared), replaced("Transpose", perm=[1, 0]), Rename("Neg", "Abs", 2))
    with pytest.warns(UserWarning, match="dimension 0 of 'Y' would be 4 instead of b"):
        rows = g.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Abs", "Abs"]
    assert g.get_shape("Y") == ("b", 4)
    assert sum("would be 4" in r.get("refusal", "") for r in rows) == 1, "refused once"
    assert not list(g.builder.facts.constraints.items())


def test_a_declaration_that_was_already_wrong_does_not_stop_a_rewrite() -> None:
    model = negneg("float[b,4]", x="b,5")
    with pytest.warns(UserWarning, match="Y"):
        g = engine(model, NegNeg())
        g.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Identity"]


def test_a_result_that_could_not_be_inferred() -> None:
    """The declarations of the model about a custom operator are believed."""
    model = model_from_text(
        "agraph (float[b,4] X) => (float[b,4] Y) { n = Neg(X) m = toy.Swap(n) Y = Abs(m) }",
        domains=("toy",),
    )
    model.graph.value_info.append(oh.make_tensor_value_info("m", 1, ["b", 4]))
    good = Rename("Swap", "Neg")
    good.__class__ = type("InToy", (Rename,), {"roots": ("toy::Swap",)})
    g = engine(model, good)
    g.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Neg", "Neg", "Abs"]
    wrong = Rename("Swap", "Shape")
    wrong.__class__ = type("InToyToo", (Rename,), {"roots": ("toy::Swap",)})
    with pytest.raises(PatternError, match="type float against int64"):
        engine(model, wrong).optimize()


def test_a_cycle_is_undone() -> None:
    """A pattern reads what depends on its own result."""
    model = model_from_text(
        """agraph (float[a] X) => (float[a] Y, float[a] Z) {
            n = Neg(X) m = Neg(n) s = Sin(m) c = Cos(s) Y = Abs(c) Z = Tan(X) }"""
    )
    wrong = Wrong(lambda g, a, b: [g.make_node("Add", [a.input[0], "c"], list(b.output))])
    g = engine(model, Rename("Tan", "Sinh"), wrong)
    before = canonical_graph(g.builder.to_onnx(optimize=False).graph)
    with pytest.raises(PatternError, match=r"Pattern Wrong makes a cycle.*Add\(X, c\) -> m"):
        g.optimize()
    assert canonical_graph(g.builder.to_onnx(optimize=False).graph) == before
    g.store.check()


def test_a_node_reading_its_own_result() -> None:
    wrong = Wrong(lambda g, a, b: [g.make_node("Add", [a.input[0], "Y"], list(b.output))])
    with pytest.raises(PatternError, match="Wrong makes a cycle"):
        engine(negneg("float[b,4]"), wrong).optimize()


@pytest.mark.parametrize("verifies", [False, True])
def test_a_model_that_contradicts_itself(verifies: bool) -> None:
    """Reshape([2, 2]) to [0] cannot run: the rewrite is refused, it is not the pattern's fault."""
    model = model_from_text(
        """agraph (float[u, v] X) => (float[] Y) <int64[2] s = {2, 2}, int64[1] t = {0}> {
            r = Reshape(X, s) Y = Reshape(r, t) }"""
    )
    g = optimizer_of(model, "ReshapeReshape", verifies=verifies)
    if verifies:
        with pytest.raises(PatternError, match="ReshapeReshape changes the type or the shape"):
            g.optimize()
        return
    with pytest.warns(UserWarning, match="the model contradicts itself, 'Y' had shape"):
        g.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Reshape", "Reshape"]


TWO_INPUTS = "agraph (float[N, 4] X, float[M, 4] Z, int64[2] d) => (float[?, ?] Y)"


@pytest.mark.parametrize(
    ("body", "root", "new"),
    [
        ("Y = Neg(X)", "Neg", lambda g, n: ("Reshape", ["X", vector(g, 4, -1)], {})),
        ("Y = Neg(X)", "Neg", lambda g, n: ("Reshape", ["X", vector(g, 3, 4)], {})),
        ("Y = Neg(X)", "Neg", lambda g, n: ("Expand", ["X", vector(g, 3, 4)], {})),
        (
            "s = Constant<value_ints = [-1, 4]>() Y = Reshape(X, s)",
            "Reshape",
            lambda g, n: ("Transpose", ["X"], {"perm": [1, 0]}),
        ),
        (
            "s = Shape(Z) Y = Expand(X, s)",
            "Expand",
            lambda g, n: ("Identity", ["X"], {}),
        ),
        ("Y = Add(X, Z)", "Add", lambda g, n: ("Neg", ["Z"], {})),
        ("Y = Concat<axis = 0>(X, X)", "Concat", lambda g, n: ("Neg", ["X"], {})),
    ],
)
def test_right_for_some_sizes_only(body: str, root: str, new: Any) -> None:
    class Guess(Rename):
        def apply(self, g: Any, node: Any) -> list[Any]:
            op_type, inputs, attributes = new(g, node)
            return [g.make_node(op_type, inputs, list(node.output), **attributes)]

    g = engine(model_from_text(f"{TWO_INPUTS} {{ {body} }}"), Guess(root))
    with pytest.warns(UserWarning, match="would be .* not proven equal"):
        g.optimize()
    assert root in [r.op_type for r in g.store.nodes]


def vector(g: Any, *values: int) -> str:
    return g.make_initializer("", np.array(values, dtype=np.int64))


def test_facts_of_a_refused_rewrite_are_forgotten() -> None:
    def make(g: Any, a: Any, b: Any) -> list[Any]:
        first = g.make_node("Transpose", [a.input[0]], ["fresh"], perm=[1, 0])
        return [first, g.make_node("Neg", ["fresh"], list(b.output))]

    g = engine(negneg("float[b,4]"), Wrong(make))
    with pytest.warns(UserWarning, match="not applied"):
        g.optimize()
    assert not g.has_shape("fresh") and not g.has_type("fresh")
    x = np.ones((2, 4), dtype=np.float32)
    got = ReferenceEvaluator(g.builder.to_onnx()).run(None, {"X": x})
    np.testing.assert_array_equal(got[0], x)
