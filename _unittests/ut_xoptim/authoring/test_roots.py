"""Where patterns look: the whole graph, a few nodes near a change."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import Silent, toy_optimizer

from xbuilder import GraphBuilder
from xoptim import GraphBuilderPatternOptimization, MatchResult, rewrite
from xoptim.authoring.roots import Candidates, Roots, Sweep, parse_root
from xoptim.catalogue.registry import all_patterns
from xoptim.engine.dispatch import Dispatch, candidate_roots
from xoptim.engine.matching import Claims, match_pattern
from xoptim.testing import model_from_text


@pytest.fixture
def g() -> Any:
    return toy_optimizer()


def declare(pattern: Silent, **names: tuple[str, ...]) -> None:
    """Declares attributes of one instance."""
    vars(pattern).update(names)


ROOTS = {
    ("Neg",): ["r0", "r3", "r7", "r8", "Y"],
    ("Abs", "Neg"): ["r0", "r2", "r3", "r7", "r8", "Y"],
    ("toy::LocalAttention",): ["r4"],
    ("toy::LocalAttention*",): ["r1", "r4"],
    ("toy::LocalAttention*", "Abs"): ["r1", "r2", "r4"],
    ("LocalAttention*",): ["r6"],
    ("Missing",): [],
    ("*",): ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "Y"],
}


@pytest.mark.parametrize("roots", ROOTS)
def test_sweep(g: Any, roots: tuple[str, ...]) -> None:
    assert [r.outputs[0] for r in Sweep(g.store).of(roots)] == ROOTS[roots]


@pytest.mark.parametrize("roots", ROOTS)
def test_candidates(g: Any, roots: tuple[str, ...]) -> None:
    """The same roots, among a few nodes, dead ones left out."""
    hidden = ("r0", "r5")
    records = [r for r in g.store.nodes if r.outputs[0] not in hidden]
    g.store.replace([g.store.producers["r8"]], [g.make_node("Relu", ["r7"], ["r8"])])
    found = Candidates(g.store, reversed(records)).of(roots)
    expected = [n for n in ROOTS[roots] if n not in (*hidden, "r8")]
    assert [r.outputs[0] for r in found] == expected


def test_parse_root() -> None:
    assert parse_root("Neg") == ("", "Neg")
    assert parse_root("com.microsoft::FusedMatMul") == ("com.microsoft", "FusedMatMul")


@pytest.mark.parametrize("sweep", [True, False], ids=["sweep", "near"])
@pytest.mark.parametrize(
    "after, expected",
    [((), 5), (("Neg",), 2), (("Abs",), 1), (("Abs", "Neg"), 3), (("LocalAttention_a",), 0)],
)
def test_after_refuses_roots_at_once(
    g: Any, after: tuple[str, ...], expected: int, sweep: bool
) -> None:
    """`match` is only called where a node of these types, of the main domain, comes first."""
    seen: list[str] = []

    class Watcher(Silent):
        def match(self, g: Any, node: onnx.NodeProto, matched: list[MatchResult]) -> None:
            seen.append(node.output[0])

    pattern = Watcher()
    declare(pattern, roots=("Neg",), after=after)
    roots: Roots = Sweep(g.store) if sweep else Candidates(g.store, g.store.nodes)
    run = match_pattern(g, pattern, roots, Claims(), [])
    assert len(seen) == run.visited == expected
    pattern.listener = print
    seen.clear()
    match_pattern(g, pattern, roots, Claims(), [])
    assert len(seen) == 5, "somebody wants to know every reason"


#: a value for an attribute of each type
SOME = {"INT": "1", "FLOAT": "1.0", "STRING": '"LEFT"', "INTS": "[1]", "FLOATS": "[1.0]"}


def test_after_says_what_matches() -> None:
    """Nodes that `after`, `reads`, `beyond` and `read_by` refuse are refused by `match` as well, because no
    node of these types is around."""
    declared = ("after", "reads", "beyond", "read_by")
    patterns = [c() for c in all_patterns().values() if any(getattr(c, d) for d in declared)]
    assert any(p.reads for p in patterns) and any(p.read_by for p in patterns)
    assert len(patterns) > 20
    for pattern in patterns:
        for root in (root.replace("*", "Mean") for root in pattern.roots):
            # onnx has no schema for the operators of onnxruntime, the first input decides
            known = onnx.defs.has(root)
            inputs = ", ".join(["x"] * (onnx.defs.get_schema(root).min_input if known else 2))
            schema = onnx.defs.get_schema(root).attributes.values() if known else ()
            required = ", ".join(f"{a.name} = {SOME[a.type.name]}" for a in schema if a.required)
            attributes = f"<{required}>" if required else ""
            text = f"""<ir_version: 8, opset_import: ["" : 20, "com.microsoft" : 1]>
                agraph (float[2] X) => (Y) {{
                    x = Asinh(X)
                    Y = {root.replace("::", ".")} {attributes} ({inputs})
                }}"""
            builder = GraphBuilder(onnx.parser.parse_model(text), infer_shapes_options=False)
            g = GraphBuilderPatternOptimization(builder, [pattern])
            node = g.node_before("Y")
            assert pattern.match(g, node, []) is None, f"{pattern.name} on {root}"


def test_reads_refuses_roots_at_once() -> None:
    """Any input counts, a root that reads two such nodes is there once, in graph order."""
    text = """agraph (float[a] x, float[a] z) => (float[a] y) {
        n = Neg(x) b = Abs(z)
        p = Add(x, n) q = Add(b, n) r = Add(x, z) s = Add(p, q)
        y = Add(s, r)
    }"""
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    g = GraphBuilderPatternOptimization(builder, None)
    for roots in (Sweep(g.store), Candidates(g.store, g.store.nodes)):
        found = [r.outputs[0] for r in roots.reading(("Add",), ("Neg",))]
        assert found == ["p", "q"]
        assert [r.outputs[0] for r in roots.reading(("Add",), ("Abs", "Neg"))] == ["p", "q"]
        assert roots.reading(("Add",), ("Exp",)) == []


def test_each_root_reads_its_own_operators() -> None:
    """A sum of a product is refused at once, in the graph and near a change."""
    builder = GraphBuilder(
        model_from_text("""agraph (float[a] x, float[a] z) => (float[a] y) {
            p = Mul(x, z) q = Add(p, z) r = Mul(q, x) s = Mul(r, z) t = Add(s, q)
            y = Neg(t)
        }"""),
        infer_shapes_options=True,
    )
    g = GraphBuilderPatternOptimization(builder, None)
    pattern = rewrite(root=("Add", "Mul"), reads={"Add": ("Add",), "Mul": ("Mul",)})(
        lambda g, node: g.no("it is only asked")
    )()
    assert pattern.reads == ("Add", "Mul")
    for roots in (Sweep(g.store), Candidates(g.store, g.store.nodes)):
        assert [r.outputs[0] for r in candidate_roots(roots, pattern)] == ["s", "t"]
        pattern.listener = print
        assert len(candidate_roots(roots, pattern)) == 5, "every reason is asked for"
        pattern.listener = None
    only_mul = Candidates(g.store, [r for r in g.store.nodes if r.outputs[0] in ("q", "r")])
    ranks = Dispatch([pattern], g.main_opset, False).starting_from(only_mul, False)
    assert ranks == 0, "r reads a sum, q a product"


def test_roots_of_another_rank_are_refused_at_once() -> None:
    """One whose rank is not known is not refused."""
    builder = GraphBuilder(
        model_from_text("""agraph (float[a] x, float[a, b] z, float u) => (y, t, v) {
            y = Neg(x) t = Neg(z) w = custom.Any(u) v = Neg(w)
        }"""),
        infer_shapes_options=True,
    )
    g = GraphBuilderPatternOptimization(builder, None)
    pattern = rewrite(root="Neg", rank=2)(lambda g, node: g.no("it is only asked"))()
    for roots in (Sweep(g.store), Candidates(g.store, g.store.nodes)):
        found = candidate_roots(roots, pattern, g.facts)
        assert [r.outputs[0] for r in found] == ["t", "v"]
        assert match_pattern(g, pattern, roots, Claims(), []).visited == 2
        assert len(candidate_roots(roots, pattern)) == 3, "without facts"


@pytest.mark.parametrize(
    "read_by, after, expected",
    [
        (("Abs",), (), "p q"),
        (("Split",), (), "q"),
        (("Abs", "Split"), ("Neg",), "q"),
        (("Exp",), (), ""),  # there is none
        (("Selu",), (), ""),  # of another domain
        (("custom::Selu",), (), "r"),
        (("If",), (), "s"),  # in a subgraph: the node owning it is the reader
    ],
)
def test_read_by_refuses_roots_at_once(
    read_by: tuple[str, ...], after: tuple[str, ...], expected: str
) -> None:
    """Any reader of any result counts."""
    text = """agraph (float[4] x, bool c) => (float[4] y, float[4] z, float[2] u, float[4] v) {
        p = Neg(x) q = Neg(p) r = Neg(x) s = Neg(x)
        y = Abs(p) t = Abs(q) u, v0 = Split<num_outputs = 2>(q)
        v = custom.Selu(r)
        z = If(c) < then_branch = t () => (float[4] T) { T = Abs(s) },
                    else_branch = e () => (float[4] E) { E = Abs(x) } >
    }"""
    seen: list[str] = []

    class Watcher(Silent):
        def match(self, g: Any, node: onnx.NodeProto, matched: list[MatchResult]) -> None:
            seen.append(node.output[0])

    pattern = Watcher()
    declare(pattern, roots=("Neg",), after=after, read_by=read_by)
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=False)
    g = GraphBuilderPatternOptimization(builder, None)
    for roots in (Sweep(g.store), Candidates(g.store, g.store.nodes)):
        seen.clear()
        match_pattern(g, pattern, roots, Claims(), [])
        assert seen == expected.split()
    pattern.listener = print
    seen.clear()
    match_pattern(g, pattern, Sweep(g.store), Claims(), [])
    assert seen == ["p", "q", "r", "s"], "somebody wants to know every reason"


@pytest.mark.parametrize(
    "after, reads, beyond, expected",
    [
        (("Abs",), (), ("Neg",), "r s"),
        ((), ("Abs",), ("Neg",), "r s"),
        ((), ("Abs", "Neg"), ("Neg",), "r s"),
        ((), (), ("Neg",), "q r s"),  # any producer
        (("Abs",), (), ("Exp",), ""),  # there is none
        (("Abs",), (), ("Selu",), ""),  # of another domain
        (("Abs",), (), ("custom::Selu",), "t"),
        (("custom::Selu",), (), ("Neg",), "q"),
        ((), ("Abs", "custom::Selu"), ("Neg",), "q r s"),
    ],
)
def test_beyond_refuses_roots_at_once(
    after: tuple[str, ...], reads: tuple[str, ...], beyond: tuple[str, ...], expected: str
) -> None:
    """The producer of an input reads the result of an operator."""
    text = """agraph (float[4] x) => (float[4] y) {
        n = Neg(x) a = Abs(n) b = Abs(x) c = custom.Selu(n) d = Abs(c)
        p = Add(n, b) q = Add(c, x) r = Add(a, x) s = Add(b, a) t = Add(d, x)
        y = Sum(p, q, r, s, t)
    }"""
    pattern = Silent()
    declare(pattern, roots=("Add",), after=after, reads=reads, beyond=beyond)
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=False)
    g = GraphBuilderPatternOptimization(builder, None)
    for roots in (Sweep(g.store), Candidates(g.store, g.store.nodes)):
        found = [r.outputs[0] for r in candidate_roots(roots, pattern)]
        assert found == expected.split()
    pattern.listener = print
    assert len(candidate_roots(Sweep(g.store), pattern)) == 5, "somebody wants every reason"


@pytest.mark.parametrize("few", [False, True])
def test_kinds_of_nodes(few: bool) -> None:
    """Nodes of one type that read different operators, found together in graph order."""
    body = """a = Abs(X) b = Exp(X) c = toy.Abs(X) m = Add(a, b) n = Add(b, X) o = Add(c, X)
              p = Add(a, a) q = Mul(b, a) Y = Sum(m, n, o, p, q)"""
    text = f"agraph (float[a] X) => (float[a] Y) {{ {body} }}".replace("toy.", "")
    model = model_from_text(text)
    model.graph.node[2].domain = "toy"
    store = GraphBuilder(model).store
    roots: Roots = Candidates(store, store.nodes) if few else Sweep(store)

    def reading(names: tuple[str, ...], *types: str) -> list[str]:
        return [r.outputs[0] for r in roots.reading(names, types)]

    assert reading(("Add",), "Abs") == ["m", "p"]
    assert reading(("Add",), "Exp", "Abs") == ["m", "n", "p"]
    assert reading(("Add",), "toy::Abs") == reading(("Add", "Mul"), "toy::Abs", "Neg") == ["o"]
    assert reading(("Mul", "Add"), "Abs") == ["m", "p", "q"]
    assert reading(("A*",), "Exp") == ["m", "n"] and reading(("Sum",), "Mul", "Abs") == ["Y"]
    assert reading(("Add",), "Neg") == []
    assert [r.outputs[0] for r in roots.after(("Add", "Mul"), ("Exp",))] == ["n", "q"]
    assert [r.outputs[0] for r in roots.after(("Add", "Mul"), ("toy::Abs",))] == ["o"]
    assert [r.outputs[0] for r in roots.kinds(("", "Add"))["Abs"]] == ["m", "p"]
