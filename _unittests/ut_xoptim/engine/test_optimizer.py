"""The engine: priorities, overlaps, limits, subgraphs, protections, oscillation."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from ut_xoptim.chains import applied, chain, engine, types
from ut_xoptim.toy_patterns import Grow, NegNeg, Rename, Wrong

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import PatternError
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import canonical_graph, model_from_text

# -- the loop


def test_fixed_point() -> None:
    optimizer = engine(chain("Neg", "Neg", "Neg", "Neg", "Neg", "Relu"), [NegNeg()])
    rows = optimizer.optimize()
    assert types(optimizer) == ["Neg", "Relu"]
    assert applied(rows) == ["NegNeg", "NegNeg"]
    assert applied(optimizer.optimize()) == [], "a second run finds nothing"


def test_the_model_is_not_changed() -> None:
    model = chain("Neg", "Neg", "Relu")
    copy = model.SerializeToString()
    engine(model, [NegNeg()]).optimize()
    assert model.SerializeToString() == copy


def test_priorities() -> None:
    """A higher number is tried only when nothing lower matches any more."""
    late = Rename("Relu", "Tanh", priority=5)
    first = Rename("Neg", "Relu", priority=0)
    optimizer = engine(chain("Neg", "Abs", "Neg"), [late, first])
    rows = optimizer.optimize()
    assert applied(rows) == ["NegToRelu", "NegToRelu", "ReluToTanh", "ReluToTanh"]
    assert [p.name for p in optimizer.patterns] == ["NegToRelu", "ReluToTanh"]


def test_lower_priority_goes_again_after_a_higher_one() -> None:
    patterns = [Rename("Abs", "Neg", priority=3), NegNeg()]
    optimizer = engine(chain("Neg", "Abs", "Relu"), patterns)
    assert applied(optimizer.optimize()) == ["AbsToNeg", "NegNeg"]
    assert types(optimizer) == ["Relu"]


def test_order_of_patterns_of_one_priority() -> None:
    """The first match to claim a node keeps it."""
    for target in ("Tanh", "Sigmoid"):
        other = {"Tanh": "Sigmoid", "Sigmoid": "Tanh"}[target]
        optimizer = engine(chain("Relu"), [Rename("Relu", target), Rename("Relu", other)])
        rows = optimizer.optimize()
        assert types(optimizer) == [target]
        assert applied(rows) == [f"ReluTo{target}"]


def test_overlapping_matches_are_dropped() -> None:
    """Three Neg: the second match shares a node with the first one."""
    optimizer = engine(chain("Neg", "Neg", "Neg", "Relu"), [NegNeg()])
    rows = optimizer.optimize()
    first = next(r for r in rows if r["pattern"] == "match_NegNeg")
    assert first["instances"] == 1 and first["visited"] == 3
    assert types(optimizer) == ["Neg", "Relu"]


def test_min_opset() -> None:
    pattern = NegNeg(min_opset=19)
    optimizer = engine(chain("Neg", "Neg", "Relu"), [pattern])
    assert applied(optimizer.optimize()) == []
    assert "needs opset 19" in optimizer.explain(pattern, optimizer.node_before("r1"))


@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_max_iter(max_iter: int) -> None:
    patterns = [Rename("Abs", "Neg"), Rename("Neg", "Relu", priority=1), Rename("Relu", "Tanh")]
    optimizer = engine(chain("Abs"), patterns)
    rows = optimizer.optimize(max_iter=max_iter)
    assert len(applied(rows)) == max_iter
    assert len({r["iteration"] for r in rows} - {None}) == max_iter


def test_endless_growth_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xoptim.engine.optimizer.FREE_ITERATIONS", 3)
    optimizer = engine(chain("Abs"), [Grow()])
    with pytest.raises(
        PatternError, match="No fixed point after 5 iterations, the last one applied Grow"
    ):
        optimizer.optimize()
    assert types(optimizer) == ["Abs"]


@pytest.mark.parametrize("stop_after", [0, 1, 2])
def test_stop_after(stop_after: int) -> None:
    optimizer = engine(chain("Relu", "Relu", "Relu", "Neg"), [Rename()])
    assert len(applied(optimizer.optimize(stop_after=stop_after))) == stop_after
    assert types(optimizer) == ["Sigmoid"] * stop_after + ["Relu"] * (3 - stop_after) + ["Neg"]


def test_no_pattern() -> None:
    for patterns in ([], None):
        optimizer = engine(chain("Neg", "Neg"), patterns if patterns is not None else "")
        assert applied(optimizer.optimize()) == []
        assert types(optimizer) == ["Neg", "Neg"]


def test_patterns_of_the_options() -> None:
    options = OptimizationOptions(patterns=[NegNeg()])
    builder = GraphBuilder(chain("Neg", "Neg", "Relu"), optimization_options=options)
    assert GraphBuilderPatternOptimization(builder).patterns == [NegNeg()]
    builder.optimize_with_patterns()
    assert [n.op_type for n in builder.nodes] == ["Relu"]


def test_cleaning_can_be_disabled() -> None:
    optimizer = engine(chain("Neg", "Neg", "Relu"), [NegNeg()])
    optimizer.optimize(remove_identity=False)
    assert types(optimizer) == ["Identity", "Relu"]
    text = "agraph (float[a] X) => (float[a] Y) { u = Abs(X) v = Neg(X) w = Neg(v) Y = Relu(w) }"
    optimizer = engine(model_from_text(text), [NegNeg()])
    optimizer.optimize(remove_unused=False)
    assert types(optimizer) == ["Abs", "Relu"]
    optimizer.optimize()
    assert types(optimizer) == ["Relu"]


def test_duplicated_shapes() -> None:
    text = """agraph (float[a] X) => (int64[1] Y) {
        s = Shape(X) t = Shape(X) u = Neg(s) v = Neg(u) Y = Add(v, t) }"""
    optimizer = engine(model_from_text(text), [NegNeg()])
    optimizer.optimize(remove_duplicated_shape=False)
    assert types(optimizer) == ["Shape", "Shape", "Add"]
    optimizer.optimize()
    assert types(optimizer) == ["Shape", "Add"]


def test_a_match_far_from_a_change_is_not_missed() -> None:
    """Two priorities: what the second one writes is tried by the first one, wherever it is."""
    names = ["Abs"] * 30
    patterns = [Rename("Abs", "Neg", priority=2), NegNeg()]
    optimizer = engine(chain(*names, "Relu"), patterns)
    optimizer.optimize()
    assert types(optimizer) == ["Relu"]


# -- subgraphs

NESTED = """agraph (float[2] X, bool c) => (float[2] Y) {
    Y = If(c) <
        then_branch = tg () => (float[2] T) {
            a = Neg(X) b = Neg(a) d = Relu(b)
            T = If(c) <
                then_branch = tt () => (float[2] TT) { e = Neg(d) f = Neg(e) TT = Abs(f) },
                else_branch = te () => (float[2] TE) { TE = Abs(d) }
            >
        },
        else_branch = eg () => (float[2] E) { E = Relu(X) }
    >
}"""

NESTED_AFTER = """agraph (float[2] X, bool c) => (float[2] Y) {
    Y = If(c) <
        then_branch = tg () => (float[2] T) {
            d = Relu(X)
            T = If(c) <
                then_branch = tt () => (float[2] TT) { TT = Abs(d) },
                else_branch = te () => (float[2] TE) { TE = Abs(d) }
            >
        },
        else_branch = eg () => (float[2] E) { E = Relu(X) }
    >
}"""

LOOP = """agraph (float[2] X, int64 n, bool c) => (float[2] Y) {
    Y = Loop(n, c, X) <
        body = bg (int64 i, bool k, float[2] S) => (bool kk, float[2] SS) {
            kk = Identity(k) a = Neg(S) b = Neg(a) SS = Add(b, X)
        }
    >
}"""


def test_recursive_if() -> None:
    optimizer = engine(model_from_text(NESTED), [NegNeg()], recursive=True)
    assert applied(optimizer.optimize()) == ["NegNeg", "NegNeg"]
    optimizer.store.check()
    found = optimizer.builder.to_onnx(optimize=False)
    expected = model_from_text(NESTED_AFTER)
    assert canonical_graph(found.graph) == canonical_graph(expected.graph)


def test_recursive_loop() -> None:
    optimizer = engine(model_from_text(LOOP), [NegNeg()], recursive=True)
    optimizer.optimize()
    found = optimizer.builder.to_onnx(optimize=False)
    onnx.checker.check_model(found)
    body = found.graph.node[0].attribute[0].g
    assert [n.op_type for n in body.node if n.op_type != "Identity"] == ["Add"]


@pytest.mark.parametrize("text", [NESTED, LOOP])
def test_not_recursive(text: str) -> None:
    for optimizer, kwargs in (
        (engine(model_from_text(text), [NegNeg()]), {}),
        (engine(model_from_text(text), [NegNeg()], recursive=True), {"recursive": False}),
    ):
        assert applied(optimizer.optimize(**kwargs)) == []


def test_captured_result_is_protected() -> None:
    text = """agraph (float[2] X, bool c) => (float[2] Y, float[2] Z) {
        a = Neg(X) b = Neg(a) Z = Relu(b)
        Y = If(c) <
            then_branch = tg () => (float[2] T) { T = Abs(a) },
            else_branch = eg () => (float[2] E) { E = Abs(b) }
        >
    }"""
    optimizer = engine(model_from_text(text), [NegNeg()])
    assert applied(optimizer.optimize()) == ["NegNeg"]
    found = optimizer.builder.to_onnx(optimize=False)
    onnx.checker.check_model(found, full_check=True)
    assert "a" in {o for n in found.graph.node for o in n.output}


# -- protections

IDENTITY = {
    "output": chain("Neg", "Neg", outputs=", float[a] r0"),
    "shared": model_from_text(
        "agraph (float[a] X) => (float[a] Y) { r0 = Neg(X) r1 = Neg(r0) Y = Add(r0, r1) }"
    ),
    "captured": model_from_text(
        """agraph (float[2] X, bool c) => (float[2] Y, float[2] Z) {
            r0 = Neg(X) Z = Neg(r0)
            Y = If(c) < then_branch = tg () => (float[2] T) { T = Abs(r0) },
                        else_branch = eg () => (float[2] E) { E = Abs(X) } > }"""
    ),
}


def _drops_first(g: Any, first: onnx.NodeProto, second: onnx.NodeProto) -> list[onnx.NodeProto]:
    return [g.make_node("Identity", [first.input[0]], list(second.output))]


@pytest.mark.parametrize("name", IDENTITY)
def test_a_needed_result_cannot_be_dropped(name: str) -> None:
    optimizer = engine(IDENTITY[name], [Wrong(_drops_first)])
    before = canonical_graph(optimizer.builder.to_onnx(optimize=False).graph)
    with pytest.raises(PatternError, match=r"Wrong.*r0") as caught:
        optimizer.optimize()
    assert "breaks the graph" in str(caught.value)
    optimizer.store.check()
    assert canonical_graph(optimizer.builder.to_onnx(optimize=False).graph) == before


BREAKS = {
    "type": (
        lambda g, a, b: [g.make_node("Cast", [a.input[0]], list(b.output), to=11)],
        "changes the type or the shape",
    ),
    "shape": (
        lambda g, a, b: [g.make_node("Concat", [a.input[0], a.input[0]], list(b.output), axis=0)],
        "changes the type or the shape",
    ),
    "last result": (lambda g, a, b: [a], "breaks the graph"),
    "two producers": (
        lambda g, a, b: [g.make_node("Neg", ["X"], list(b.output)) for _ in range(2)],
        "breaks the graph",
    ),
    "produced elsewhere": (
        lambda g, a, b: [a, b, g.make_node("Neg", ["X"], ["Y"])],
        "breaks the graph",
    ),
    "removed result is read": (
        lambda g, a, b: [g.make_node("Neg", [a.output[0]], list(b.output))],
        "breaks the graph",
    ),
    "not a list": (lambda g, a, b: None, "must return a list"),
    "exception": (lambda g, a, b: 1 / 0, "failed while rewriting: ZeroDivisionError"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_rule_raises(name: str) -> None:
    make, message = BREAKS[name]
    optimizer = engine(chain("Neg", "Neg", "Relu", dims="3"), [Wrong(make)])
    before = canonical_graph(optimizer.builder.to_onnx(optimize=False).graph)
    with pytest.raises(PatternError, match=message):
        optimizer.optimize()
    optimizer.store.check()
    assert canonical_graph(optimizer.builder.to_onnx(optimize=False).graph) == before


def test_unknown_input_raises() -> None:
    """A new node reads a result that nothing gives."""
    wrong = Wrong(lambda g, a, b: [g.make_node("Neg", ["nowhere"], list(b.output))])
    optimizer = engine(chain("Neg", "Neg", "Relu", dims="3"), [wrong])
    with pytest.raises(PatternError, match="nowhere"):
        optimizer.optimize()
    optimizer.store.check()


def test_output_keeps_its_name() -> None:
    optimizer = engine(chain("Neg", "Neg"), [NegNeg()])
    optimizer.optimize()
    found = optimizer.builder.to_onnx(optimize=False)
    onnx.checker.check_model(found)
    assert [o.name for o in found.graph.output] == ["Y"]
    assert [n.op_type for n in found.graph.node] == ["Identity"]


def test_a_match_that_fails_while_matching() -> None:
    class Crash(NegNeg):
        def match(self, g: Any, node: Any, matched: Any) -> Any:
            raise KeyError("oops")

    with pytest.raises(
        PatternError, match=r"Crash failed while looking at .*remove it with '-Crash'"
    ):
        engine(chain("Neg"), [Crash()]).optimize()


# -- oscillation


def test_oscillation_is_detected_and_named() -> None:
    patterns = [Rename("Relu", "Sigmoid"), Rename("Sigmoid", "Relu"), NegNeg()]
    optimizer = engine(chain("Relu", "Abs"), patterns)
    with pytest.warns(UserWarning, match="ReluToSigmoid, SigmoidToRelu undo each other"):
        rows = optimizer.optimize()
    assert len(rows) < 1000
    optimizer.store.check()


def test_possible_patterns() -> None:
    """The others may not match: the graph has no such root, or lacks another operator."""
    model = model_from_text("g (float[a,b] x) => (float[a,b] y) { t = Neg(x) y = Neg(t) }")
    assert engine(model, ["CastCast", NegNeg(), "NotNot"]).possible_patterns() == [NegNeg()]
