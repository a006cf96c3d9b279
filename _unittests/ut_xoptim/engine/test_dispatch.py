"""Patterns without a root, or without the operators they need, are not tried; a dispatch is made
once for the selections that declare the same."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import NodeProto, TensorProto
from ut_xoptim.toy_patterns import NegNeg, Silent, toy_optimizer

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xoptim import RewriteContext, get_pattern_list, rewrite
from xoptim.authoring.roots import Candidates, Roots, Sweep
from xoptim.engine.dispatch import Dispatch, dispatch_of, ranks_in
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.engine.patterns_pass import run_patterns
from xoptim.engine.schedule import Schedule
from xoptim.testing import model_from_text


@pytest.fixture
def g() -> Any:
    return toy_optimizer()


@pytest.mark.parametrize("sweep", [True, False], ids=["sweep", "near"])
@pytest.mark.parametrize(
    "declared, expected",
    [
        ({"roots": ("Neg",)}, True),
        ({"roots": ("Missing", "Neg")}, True),
        ({"roots": ("Missing",)}, False),
        ({"roots": ("*",)}, True),
        ({"roots": ("toy::LocalAttention*",)}, True),
        ({"roots": ("toy::Missing*",)}, False),
        ({"roots": ("Neg",), "after": ("Missing", "Abs")}, True),
        ({"roots": ("Neg",), "after": ("Missing",)}, False),
        ({"roots": ("*",), "after": ("Missing",)}, False),
        ({"roots": ("Neg",), "reads": ("Missing",)}, False),
        ({"roots": ("Neg",), "after": ("Abs",), "read_by": ("Missing",)}, False),
        ({"roots": ("Neg",), "after": ("Abs",), "beyond": ("Missing",)}, False),
    ],
)
def test_sees_something(g: Any, declared: dict[str, Any], expected: bool, sweep: bool) -> None:
    pattern = Silent()
    for attribute, value in declared.items():
        setattr(pattern, attribute, value)
    roots: Roots = Sweep(g.store) if sweep else Candidates(g.store, g.store.nodes)
    assert _looks(pattern, g, roots) is expected
    pattern.listener = print
    may_be_asked = bool(roots.of(pattern.roots))
    assert _looks(pattern, g, roots) is may_be_asked, "every reason is asked for"
    assert not _looks(pattern, g, Candidates(g.store, []))


def _looks(pattern: Silent, g: Any, roots: Roots) -> bool:
    return bool(_possible([pattern], g, roots))


def _possible(patterns: list[Silent], g: Any, roots: Roots) -> list[Silent]:
    """The patterns that have something to look at."""
    dispatch = Dispatch(patterns, g.main_opset, False)
    every_reason = any(p.listener is not None for p in patterns)
    keys = frozenset(g.store.bucket_keys())
    types = {op_type for domain, op_type in keys if not domain}
    ranks = ranks_in(dispatch.starting_from(roots, every_reason))
    return [patterns[r] for r in ranks if dispatch.may_match(r, patterns, keys, types)]


@pytest.mark.parametrize("others, expected", [((), []), ((TensorProto.DOUBLE,), [0])])
def test_a_pattern_of_rare_types_waits_for_one(
    g: Any, others: tuple[int, ...], expected: list[int]
) -> None:
    pattern = Silent()
    pattern.roots, pattern.usual = ("Neg",), frozenset(g.facts.all_types())
    g.facts.types.update(others)
    dispatch = Dispatch([pattern], g.main_opset, False)
    ranks = dispatch.starting_from(Sweep(g.store), False)
    assert dispatch.possible(ranks, [pattern], g.store, g.facts) == expected
    assert dispatch.possible(ranks, [pattern], g.store) == [0]
    pattern.listener = print
    assert dispatch.possible(ranks, [pattern], g.store, g.facts) == [0]


def _schedule(g: Any, *patterns: Silent) -> Schedule:
    return Schedule(g.store, Dispatch(patterns, g.main_opset, False), patterns)


def test_a_pattern_is_asked_with_the_operators_of_the_graph(g: Any) -> None:
    class Asked(Silent):
        roots = ("Neg",)
        after = ("Celu",)  # the method prevails

        def may_match(self, keys: Any) -> bool:
            asked.append(keys)
            return ("", "Abs") in keys

    asked: list[Any] = []
    assert _looks(Asked(), g, Sweep(g.store))
    assert asked == [set(g.store.bucket_keys())]
    for record in list(g.store.bucket("", "Abs")):
        relu = NodeProto(op_type="Relu", input=record.inputs, output=record.outputs)
        g.store.replace([record], [relu])
    assert not _looks(Asked(), g, Sweep(g.store))


def test_it_follows_the_operators() -> None:
    g = toy_optimizer()
    first, after = Silent(), Silent()
    after.after = ("Abs",)
    for pattern in (first, after):
        pattern.roots = ("Neg",)
    schedule = _schedule(g, first, after)
    assert [p for p, _ in schedule.looking()] == [first, after]
    for record in list(g.store.bucket("", "Abs")):
        relu = NodeProto(op_type="Relu", input=record.inputs, output=record.outputs)
        g.store.replace([record], [relu])
    assert [p for p, _ in schedule.looking()] == [first]


def test_priorities() -> None:
    """Patterns of a higher priority wait."""
    g = toy_optimizer()
    first, last = Silent(), Silent(priority=5)
    first.roots = last.roots = ("Neg",)
    schedule = _schedule(g, first, last)
    assert [p for p, _ in schedule.looking()] == [first]
    assert schedule.found_nothing()
    assert [p for p, _ in schedule.looking()] == [last]


def test_links() -> None:
    """Patterns whose roots are not after what they want have nothing to look at; a sweep is kept as
    long as the graph is the same."""
    text = """agraph (float[a] x, float[a] z) => (float[a] y) {
        n = Neg(x) b = Abs(z) p = Add(n, z) y = Mul(p, b)
    }"""
    g = GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), None)
    declared: list[dict[str, Any]] = [
        {"roots": ("Add",), "after": ("Neg",)},
        {"roots": ("Mul",), "after": ("Neg",)},
        {"roots": ("Mul",), "reads": ("Abs",)},
        {"roots": ("Add", "Neg"), "reads": ("Abs", "Add")},
    ]
    patterns = [Silent() for _ in declared]
    for pattern, values in zip(patterns, declared, strict=True):
        for attribute, value in values.items():
            setattr(pattern, attribute, value)
    schedule = _schedule(g, *patterns)
    looking = schedule.looking()
    assert [p for p, _ in looking] == [patterns[0], patterns[2]]
    assert schedule.looking()[0][1] is looking[0][1], "nothing changed"
    (neg,) = g.store.bucket("", "Neg")
    g.store.replace([neg], [NodeProto(op_type="Abs", input=["x"], output=["n"])])
    assert [p for p, _ in schedule.looking()] == [patterns[2], patterns[3]]


def _order(selection: Any, opset: int = 18, prepares: bool = False) -> list[Any]:
    return [selection[i] for i in dispatch_of(selection, opset, prepares).patterns]


def test_made_once() -> None:
    selection = get_pattern_list([Silent(priority=2), NegNeg()])
    assert [p.name for p in _order(selection)] == ["NegNeg", "Silent"]
    assert dispatch_of(selection, 18) is dispatch_of(selection, 18)
    assert dispatch_of(selection, 18).is_for(18, False)
    assert not dispatch_of(selection, 18).is_for(18, True)
    assert not dispatch_of(selection, 17).is_for(18, False)


def test_made_again_after_a_change() -> None:
    first, second = Silent(), NegNeg()
    selection = get_pattern_list([first, second])
    dispatch = dispatch_of(selection, 18)
    first.priority = 5
    changed = dispatch_of(selection, 18)
    assert changed is not dispatch
    assert [p.name for p in _order(selection)] == ["NegNeg", "Silent"]
    first.after = ("Abs",)
    assert dispatch_of(selection, 18) is not changed
    first.after = "Abs"
    with pytest.raises(OptionError, match="must be a tuple of operator types"):
        dispatch_of(selection, 18)


def test_instances_nobody_has_declare_what_their_class_does() -> None:
    selection = get_pattern_list("NotNot,CastCast")
    dispatch = dispatch_of(selection, 18)
    assert dispatch_of(get_pattern_list("NotNot,CastCast"), 18) is dispatch
    assert dispatch_of(get_pattern_list("NotNot"), 18) is not dispatch
    first = selection[0]
    assert dispatch_of(selection, 18) is dispatch, "it declares the same"
    first.priority = 5
    assert dispatch_of(selection, 18).levels[-1] == (5, 1, 2)
    other = get_pattern_list("NotNot,CastCast")
    assert dispatch_of(other, 18) is dispatch and other[0] is not first
    assert other[0].priority != 5


def test_an_instance_may_change_its_place() -> None:
    silent = Silent()
    selection = get_pattern_list([NegNeg(), silent])
    silent.before = ("NegNeg",)
    assert [p.name for p in _order(selection)] == ["Silent", "NegNeg"]
    silent.before, silent.behind = (), ("NegNeg",)
    assert [p.name for p in _order(selection)] == ["NegNeg", "Silent"]


def test_selections_declaring_the_same_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, other = (get_pattern_list([Silent(priority=p), NegNeg()]) for p in (2, 2, 0))
    found = [dispatch_of(s, 18) for s in (one, two, other)]
    assert found[0] is found[1] and found[0] is not found[2]
    monkeypatch.setattr(NegNeg, "roots", ("Abs",))
    assert dispatch_of(one, 18) is not found[0], "the class changed"


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xoptim.engine.dispatch._KEPT", 2)
    monkeypatch.setattr("xoptim.engine.dispatch._DISPATCHES", {})
    selection = [NegNeg()]
    first = dispatch_of(selection, 16)
    assert dispatch_of(selection, 17) is not dispatch_of(selection, 18)
    assert dispatch_of(selection, 16) is not first


def test_lists_instead_of_tuples() -> None:
    pattern = Silent()
    pattern.roots = ["Neg"]
    assert dispatch_of([pattern], 18).running == [0]


def test_opset_and_preparation() -> None:
    late = Silent(min_opset=15)
    optimizer = GraphBuilderPatternOptimization(
        GraphBuilder(18), [NegNeg(), late, "FunctionAttention"]
    )
    selection, patterns = optimizer._selection, optimizer.patterns

    def running(opset: int, prepares: bool) -> set[str]:
        return {patterns[i].name for i in dispatch_of(selection, opset, prepares).running}

    assert running(14, False) == {"NegNeg"}, "nothing starts from what FunctionAttention prepares"
    assert running(18, True) == {"NegNeg", "Silent", "FunctionAttention"}


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each selection that is made ready."""
    made: list[str] = []

    def noted(selection: Any, *args: Any) -> Dispatch:
        made.append(",".join(p.name for p in selection))
        return dispatch_of(selection, *args)

    monkeypatch.setattr("xoptim.engine.dispatch.dispatch_of", noted)
    return made


def test_bodies_share_a_plan(plans: list[str]) -> None:
    branches = """
        r = If (c) <
            then_branch = t () => (float[2] u) { a = Neg(X) b = Neg(a) u = Abs(b) },
            else_branch = e () => (float[2] v) { d = Neg(X) f = Neg(d) v = Exp(f) }
        >"""
    model = model_from_text(f"main (bool c, float[2] X) => (float[2] r) {{ {branches} }}")
    pattern = NegNeg()
    options = OptimizationOptions(patterns=[pattern])
    builder = GraphBuilder(model, optimization_options=options)
    rows = builder.optimize()
    assert sum(row["pattern"] == "apply_NegNeg" for row in rows) == 2
    assert plans == ["NegNeg"], "one for the two bodies and the model"
    pattern.priority = 5
    builder.optimize()
    assert len(plans) == 2, "it may declare something else"
    run_patterns(builder.graph)
    assert len(plans) == 3, "another run on the model"


@pytest.mark.parametrize(
    "declared",
    [
        {"after": "toy::Keep"},
        {"reads": ("Exp", "toy::Keep")},
        {"reads": {"Neg": ("toy::Keep",)}},
        {"after": "toy::Keep", "beyond": "toy::Make"},
        {"read_by": "toy::Use"},
    ],
    ids=str,
)
def test_neighbours_of_another_domain(declared: dict[str, Any]) -> None:
    """A rewrite may declare an operator of another domain before, beyond and after its root."""
    model = model_from_text(
        "agraph (float[a] X) => (float[a] Y) { m = Make(X) k = Keep(m) n = Neg(k) Y = Use(n) }"
    )
    for i in (0, 1, 3):
        model.graph.node[i].domain = "toy"
    model.opset_import.add(domain="toy", version=1)

    @rewrite(root="Neg", name="WithoutNeg", **declared)
    def without_neg(_g: RewriteContext, root: NodeProto) -> str:
        return str(root.input[0])

    options = OptimizationOptions(patterns=[without_neg])
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    optimized = builder.to_onnx(optimize=True)
    assert [n.op_type for n in optimized.graph.node] == ["Make", "Keep", "Use"]
