"""Why patterns decline: one pattern, or every one near a node."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import xoptim
from xbuilder.errors import OptionError
from xoptim import EasyPatternOptimization, rewrite, rule
from xoptim.tasks.explain import NearMiss

#: nearly Gelu: the last factor is not a half
MODEL = """<ir_version: 8, opset_import: ["" : 20]>
g (float[n, 4] x) => (float[n, 4] y) <float r = {1.4142135}, float one = {1}, float k = {0.4}> {
    a = Div(x, r) e = Erf(a) s = Add(e, one) m = Mul(x, s) y = Mul(m, k) }"""


@rewrite(root="Mul")
def nearly(g, node):
    """Declines after five nodes."""
    add = g.before(g.before(node, "Mul"), "Add", index=1)
    g.before(g.before(add, "Erf"), "Div")
    g.require(False, "the last factor is not a half")


@rule("Mul(Mul(x, Add(Erf(Div(Abs(z), r)), one)), k) -> x")
def nearly_rule(g, x):
    """Nearly the graph: there is no Abs."""


@rule("Add(Erf(Div(x, r)), one) -> x")
def declining_rule(g, x):
    """Finds the graph, then declines."""
    g.refuse("never")


@rule("Add(Erf(product(x, 3)), one) -> x")
def nearly_product(g, x):
    """Another factor is found."""


class NearlyEasy(EasyPatternOptimization):
    """Nearly the graph: Div is found where Mul is expected."""

    def match_pattern(self, g, x, r, one):
        return g.op.Add(g.op.Erf(g.op.Mul(x, r)), one)

    def apply_pattern(self, g, x, r, one):
        return g.op.Add(x, one)


NEARLY = nearly()


def parse() -> onnx.ModelProto:
    return onnx.parser.parse_model(MODEL)


def misses(**options) -> list[NearMiss]:
    return xoptim.near_misses(parse(), **options)


def test_one_pattern():
    rows = xoptim.explain(parse(), "Gelu")
    assert [row["result"] for row in rows] == ["e", "m", "y"]
    assert "the factor 0.5 is missing" in rows[0]["answer"]
    assert xoptim.explain(parse(), "CastCast") == []
    with pytest.raises(OptionError, match="one is explained at a time: .* -p default --node NODE"):
        xoptim.explain(parse(), "default")


@pytest.mark.parametrize("name", ["a", "s", "y"])
def test_near_a_node(name):
    """A pattern counts when it visited the node, wherever it starts from: the farthest first."""
    found = misses(node=name, patterns=[NEARLY, "default"])
    first = found[0]
    assert (first.pattern, first.result, first.operator) == ("Nearly", "y", "Mul")
    assert (first.visited, first.count) == (5, 1)
    assert first.reason.startswith("the last factor is not a half (test_explain.py:")
    depths = [m.visited for m in found]
    assert depths == sorted(depths, reverse=True)


@pytest.mark.parametrize(
    "pattern, depth, reason",
    [
        (nearly_rule(), 5, "no Abs before Div"),
        (declining_rule(), 3, "never"),
        (nearly_product(), 3, "the factor 3 is missing"),
        (NearlyEasy(), 2, "no Mul before Erf, Div was found"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_equations_and_graphs(pattern, depth, reason):
    """Those that are declared tell how far they went as well."""
    found = misses(node="a", patterns=[pattern]) if depth > 2 else misses(patterns=[pattern])
    assert [m.visited for m in found] == [depth] and reason in found[0].reason


BODIES = """<ir_version: 8, opset_import: ["" : 20]>
g (float[n, 4] x, bool c) => (float[n, 4] y)
    <float r = {1.4142135}, float one = {1}, float k = {0.4}> {
    y = If (c) <then_branch = p () => (float[n, 4] z) {
                    a = Div(x, r) [erf] e = Erf(a) s = Add(e, one) m = Mul(x, s) z = Mul(m, k) },
                else_branch = q () => (float[n, 4] w) { w = Identity(x) }> }"""


@pytest.mark.parametrize("options", [{"node": "erf"}, {"node": "m"}, {"op_type": "Div"}, {}])
def test_near_a_node_of_a_body(options):
    model = onnx.parser.parse_model(BODIES)
    first = xoptim.near_misses(model, patterns=[NEARLY], **options)[0]
    assert (first.pattern, first.result, first.visited) == ("Nearly", "z", 5)
    assert [row["result"] for row in xoptim.explain(model, "Gelu")] == ["e", "m", "z"]
    assert [row["result"] for row in xoptim.explain(model, "Gelu", ["m"])] == ["m"]
    with pytest.raises(OptionError, match="nope"):
        xoptim.near_misses(model, node="nope")


def test_near_an_operator():
    assert [m.pattern for m in misses(op_type="Div", patterns=[NEARLY])] == ["Nearly"]


def test_the_whole_model():
    """Those that stop at their first node are left out, equal answers are counted."""
    found = misses(patterns=[NEARLY, "default"])
    assert found[0].pattern == "Nearly" and all(m.visited > 1 for m in found)
    assert len({(m.pattern, m.reason) for m in found}) == len(found)


def test_after_an_optimization():
    """The rewrite is done: nothing is missed."""
    model = onnx.parser.parse_model(MODEL.replace("0.4", "0.5"))
    assert xoptim.near_misses(model, patterns=[NEARLY], after="Gelu") == []


def test_refusals():
    with pytest.raises(OptionError, match="The model has no Mull, did you mean Mul"):
        misses(op_type="Mull")
    with pytest.raises(OptionError, match="The optimized model has no Conv, it has"):
        misses(op_type="Conv", after="Gelu")
    with pytest.raises(OptionError, match="nope"):
        misses(node="nope")


def test_bodies_are_tried():
    nodes = "a = Div(x, r) e = Erf(a) s = Add(e, one) m = Mul(x, s) y = Mul(m, k)"
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 20]>
        g (bool c, float[n, 4] x) => (float[n, 4] z)
        <float r = {{1.4142135}}, float one = {{1}}, float k = {{0.4}}> {{
            z = If(c) <then_branch = t () => (float[n, 4] y) {{ {nodes} }},
                       else_branch = e () => (float[n, 4] o) {{ o = Neg(x) }}> }}""")
    (first, *_) = xoptim.near_misses(model, patterns=[NEARLY])
    assert (first.pattern, first.result, first.count) == ("Nearly", "y", 1)


@pytest.mark.parametrize("after", [None, "Gelu"])
def test_local_functions_are_inlined(after: str | None):
    """As they are before an optimization: the nodes of a function are explained."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 20, "local" : 1]>
        g (float[n, 4] x) => (float[n, 4] y) { y = local.f(x) }
        <domain: "local", opset_import: ["" : 20]> f (x) => (y) {
            r = Constant<value_float = 1.4142135>() one = Constant<value_float = 1.0>()
            k = Constant<value_float = 0.4>()
            a = Div(x, r) e = Erf(a) s = Add(e, one) m = Mul(x, s) y = Mul(m, k) }""")
    (row, *_) = xoptim.explain(model, "Gelu", after=after)
    assert "the factor 0.5 is missing" in row["answer"]
    assert [m.pattern for m in xoptim.near_misses(model, op_type="Div", patterns=[NEARLY])]
