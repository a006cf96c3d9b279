"""Patterns written as two graphs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from ut_xoptim.easy_models import check_pattern_of, graph
from ut_xoptim.unchecked import optimize_toys

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError, PatternError
from xoptim import (
    EasyPatternOptimization,
    GraphBuilderPatternOptimization,
    OnnxEasyPatternOptimization,
)
from xoptim.testing import check_no_match, check_pattern, model_from_text

F = np.float32


class MulAdd(EasyPatternOptimization):
    """x * y + 1 -> Special(x, y)."""

    def match_pattern(self, g, x, y):
        return g.op.Add(g.op.Mul(x, y), np.array([1], dtype=F))

    def apply_pattern(self, g, x, y):
        return g.op.Sub(x, y)


AFTER = graph("Y = Sub(X, Z)")


@pytest.mark.parametrize(
    "body",
    [
        "m = Mul(X, Z) Y = Add(m, one)",
        "m = Mul(X, Z) Y = Add(one, m)",
        "m = Mul(X, Z) Y = Add(ones, m)",
        "m = Mul(X, Z) k = Constant<value_float = 1.0>() Y = Add(k, m)",
    ],
)
def test_match_in_every_order(body: str) -> None:
    model, _, _ = optimize_toys(model_from_text(graph(body)), [MulAdd()])
    assert [n.op_type for n in model.graph.node] == ["Sub"]
    assert list(model.graph.node[0].input) == ["X", "Z"]


REFUSED = {
    "another constant": (graph("m = Mul(X, Z) Y = Add(m, two)"), "cannot be|is not the result"),
    "another operator": (graph("m = Div(X, Z) Y = Add(m, one)"), "no Mul before Add"),
    "graph input": (graph("Y = Add(X, one)"), "no Mul before Add"),
    "inner result is an output": (
        graph("m = Mul(X, Z) Y = Add(m, one)", outputs=", float[a, 4] m"),
        "an inner result is used elsewhere",
    ),
    "inner result has two uses": (
        graph("m = Mul(X, Z) n = Add(m, one) Y = Sub(n, m)"),
        "an inner result is used elsewhere",
    ),
    "the constant is an input": (
        graph("m = Mul(X, Z) Y = Add(m, K)", "float[a, 4] X, float[a, 4] Z, float K"),
        "cannot be",
    ),
    "a vector constant": (
        graph("m = Mul(X, Z) Y = Add(m, v)", inits=", float[4] v = {1, 1, 1, 1}"),
        "cannot be",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, reason = REFUSED[name]
    check_no_match(text, MulAdd(), reason)


def test_captured_inner_result() -> None:
    body = """m = Mul(X, Z) Y = Add(m, one) C = If(c) <
        then_branch = tg () => (float[a, 4] T) { T = Neg(m) },
        else_branch = eg () => (float[a, 4] E) { E = Neg(X) } >"""
    text = graph(body, "float[a, 4] X, float[a, 4] Z, bool c", ", float[a, 4] C")
    check_no_match(text, MulAdd(), "an inner result is used elsewhere")


def test_the_rank_of_a_constant_matters_on_a_scalar() -> None:
    """x has rank 0: (1,) would give the result one dimension."""
    text = """agraph (float X, float Z) => (float[1] Y) <float[1] one = {1}> {
        m = Mul(X, Z) Y = Add(m, one) }"""

    class OnScalars(MulAdd):
        def match_pattern(self, g, x, y):
            return g.op.Add(g.op.Mul(x, y), np.array(1, dtype=F))

    check_no_match(text, OnScalars())
    check_pattern_of(graph("m = Mul(X, Z) Y = Add(m, ones)"), OnScalars())


def test_same_input_twice() -> None:
    class Square(EasyPatternOptimization):
        def match_pattern(self, g, x):
            return g.op.Neg(g.op.Mul(x, x))

        def apply_pattern(self, g, x):
            return g.op.Neg(g.op.Pow(x, np.array(2, dtype=F)))

    before = "agraph (float[a] X, float[a] Z) => (float[a] Y) { m = Mul(X, X) Y = Neg(m) }"
    after = """agraph (float[a] X, float[a] Z) => (float[a] Y) <float t = {2}> {
        m = Pow(X, t) Y = Neg(m) }"""
    check_pattern(before, after, [Square()], atol=1e-6)
    check_no_match(before.replace("Mul(X, X)", "Mul(X, Z)"), Square(), "cannot be 'x'")


class TwoResults(EasyPatternOptimization):
    """(x + y, x - y) -> the same with another operator."""

    def match_pattern(self, g, x, y):
        return g.op.Add(x, y), g.op.Sub(x, y)

    def apply_pattern(self, g, x, y):
        return g.anyop.AddSub(x, y, domain="toy", outputs=2)


def test_two_results() -> None:
    text = graph("s = Add(X, Z) d = Sub(X, Z) Y = Mul(s, d)")
    model, _, builder = optimize_toys(model_from_text(text), [TwoResults()])
    assert [n.op_type for n in model.graph.node] == ["AddSub", "Mul"]
    assert model.graph.node[0].domain == "toy" and builder.opsets["toy"] == 1


def test_results_that_depend_on_each_other() -> None:
    """s is needed to compute an operand of d: one node cannot give both."""

    class Crossed(TwoResults):
        def match_pattern(self, g, x, y, z):
            return g.op.Add(x, y), g.op.Sub(x, z)

        def apply_pattern(self, g, x, y, z):
            return g.anyop.AddSub(x, y, z, domain="toy", outputs=2)

    text = graph("s = Add(X, Z) r = Relu(s) d = Sub(X, r) Y = Mul(s, d)")
    check_no_match(text, Crossed(), "a result is needed to compute an input")
    optimize_toys(model_from_text(text), [Crossed()])


def test_an_input_that_is_an_inner_result() -> None:
    class Any3(EasyPatternOptimization):
        def match_pattern(self, g, x, y, z):
            return g.op.Sub(g.op.Mul(x, y), z)

        def apply_pattern(self, g, x, y, z):
            return g.anyop.Fused(x, y, z, domain="toy")

    text = graph("m = Mul(X, Z) Y = Sub(m, m)")
    check_no_match(text, Any3(), "one of its inner results")
    check_pattern_of(graph("m = Mul(X, Z) Y = Sub(m, X)"), Any3())


@pytest.mark.parametrize("elem_type", ["float", "double", "float16", "bfloat16"])
def test_constants_have_a_type(elem_type: str) -> None:
    """(x + 1) * 2 with float constants: another type would receive float constants."""

    class Affine(EasyPatternOptimization):
        def match_pattern(self, g, x):
            return g.op.Mul(g.op.Add(x, np.array([1], dtype=F)), np.array([2], dtype=F))

        def apply_pattern(self, g, x):
            return g.op.Add(g.op.Mul(x, np.array([2], dtype=F)), np.array([2], dtype=F))

    bits = {"float16": (15360, 16384), "bfloat16": (16256, 16384)}
    one, two = bits.get(elem_type, (1, 2))
    text = f"""agraph ({elem_type}[a, 4] X) => ({elem_type}[a, 4] Y) <
        {elem_type}[1] one = {{{one}}}, {elem_type}[1] two = {{{two}}}
    > {{ BODY }}"""
    before = text.replace("BODY", "m = Add(X, one) Y = Mul(m, two)")
    after = text.replace("BODY", "m = Mul(X, two) Y = Add(m, two)")
    from_models = OnnxEasyPatternOptimization(
        *(
            model_from_text(
                t.replace(elem_type, "float").replace(f"{one}}}", "1}").replace(f"{two}}}", "2}")
            )
            for t in (before, after)
        )
    )
    if elem_type == "float":
        check_pattern(before, after, Affine(), atol=1e-6)
        check_pattern(before, after, from_models, atol=1e-6)
        return
    check_no_match(before, Affine(), "'two' cannot be")
    for value in from_models.match_model.graph.input:  # the constants alone have a type
        value.type.tensor_type.elem_type = onnx.TensorProto.UNDEFINED
    check_no_match(before, from_models, "'two' cannot be")


def test_annotations_give_types() -> None:
    class Typed(MulAdd):
        def match_pattern(self, g, x: onnx.TensorProto.FLOAT, y: "TensorProto.FLOAT"):  # noqa: F821, UP037
            return g.op.Mul(x, y)

        def apply_pattern(self, g, x, y):
            return g.op.Sub(x, y)

    text = "agraph (float[a] X, float[a] Z) => (float[a] Y) { Y = Mul(X, Z) }"
    check_pattern_of(text, Typed())
    check_no_match(text.replace("float", "double"), Typed(), "cannot be 'x'")


def test_anyop_and_domains() -> None:
    class Contrib(EasyPatternOptimization):
        def match_pattern(self, g, x):
            return g.anyop.FastGelu(x, domain="com.microsoft")

        def apply_pattern(self, g, x):
            return g.op.Relu(x)

    assert Contrib().roots == ("com.microsoft::FastGelu",)
    check_pattern_of(graph("Y = com.microsoft.FastGelu(X)"), Contrib())
    check_no_match(graph("Y = Relu(X)"), Contrib())


class Perm(EasyPatternOptimization):
    """Attributes are compared, defaults included."""

    def match_pattern(self, g, x):
        return g.op.Softmax(g.op.Relu(x), axis=-1)

    def apply_pattern(self, g, x):
        return g.op.Softmax(x, axis=-1)


@pytest.mark.parametrize("attribute", ["", "<axis = -1>"])
def test_default_attribute(attribute: str) -> None:
    check_pattern_of(graph(f"r = Relu(X) Y = Softmax{attribute}(r)"), Perm())


def test_other_attribute() -> None:
    check_no_match(graph("r = Relu(X) Y = Softmax<axis = 0>(r)"), Perm(), "attributes differ")


def test_validate_attribute_mapping() -> None:
    class AnyAxis(Perm):
        def validate_attribute_mapping(self, g, deleted_nodes, pattern_nodes):
            self.add_validate_param("axis", g.get_axis(deleted_nodes[1], -1))
            return True

        def apply_pattern(self, g, x):
            return g.op.Softmax(x, axis=self.get_validate_param("axis"))

    model = check_pattern_of(graph("r = Relu(X) Y = Softmax<axis = 0>(r)"), AnyAxis())
    assert model.graph.node[0].attribute[0].i == 0


class Scaled(EasyPatternOptimization):
    """x * c -> the constant is read while validating, used while applying."""

    def match_pattern(self, g, x, c):
        return g.op.Neg(g.op.Mul(x, c))

    def apply_pattern(self, g, x, c):
        return g.op.Mul(x, np.array(-self.get_validate_param("c"), dtype=F))

    def validate_mapping(self, g, deleted_nodes, pattern_nodes=None):
        assert (
            [n.op_type for n in deleted_nodes]
            == [n.op_type for n in pattern_nodes]
            == ["Mul", "Neg"]
        )
        c = deleted_nodes[0].input[1]
        if not g.is_constant_scalar(c):
            return False
        self.add_validate_param("c", g.get_constant_scalar(c))
        return True


def test_params_belong_to_a_match() -> None:
    """Two matches of one iteration: each one keeps its own parameters."""
    before = graph("a = Mul(X, one) b = Neg(a) c = Mul(X, two) d = Neg(c) Y = Add(b, d)")
    after = """agraph (float[a, 4] X, float[a, 4] Z) => (float[a, 4] Y) <
        float m1 = {-1}, float m2 = {-2}> { b = Mul(X, m1) d = Mul(X, m2) Y = Add(b, d) }"""
    check_pattern(before, after, [Scaled()], atol=1e-6)


def test_validate_mapping_refuses() -> None:
    check_no_match(graph("a = Mul(X, Z) Y = Neg(a)"), Scaled(), "validate_mapping refuses")


def test_unknown_param() -> None:
    with pytest.raises(OptionError, match="has no value 'c'"):
        Scaled().get_validate_param("c")


def test_post_apply_pattern() -> None:
    class Tagged(MulAdd):
        def post_apply_pattern(self, g, matched_nodes, nodes):
            assert [n.op_type for n in matched_nodes] == ["Mul", "Add"]
            for n in nodes:
                n.doc_string = "tagged"
            return nodes

    model = check_pattern_of(graph("m = Mul(X, Z) Y = Add(m, one)"), Tagged())
    assert model.graph.node[0].doc_string == "tagged"


def test_an_input_is_the_result() -> None:
    class Drop(EasyPatternOptimization):
        def match_pattern(self, g, x):
            return g.op.Neg(g.op.Neg(x))

        def apply_pattern(self, g, x):
            return x

    check_pattern(
        "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Neg(n) Y = Relu(m) }",
        "agraph (float[a] X) => (float[a] Y) { Y = Relu(X) }",
        [Drop()],
    )


def test_optional_input() -> None:
    class Clipped(EasyPatternOptimization):
        def match_pattern(self, g, x, high):
            return g.op.Clip(x, None, high)

        def apply_pattern(self, g, x, high):
            return g.op.Min(x, high)

    check_pattern_of(graph("Y = Clip(X, , two)"), Clipped())
    check_no_match(graph("Y = Clip(X, one, two)"), Clipped(), "cannot be ''")
    check_no_match(graph("Y = Clip(X, one)"), Clipped(), "cannot be")


def test_input_that_may_be_missing() -> None:
    class AnyClip(EasyPatternOptimization):
        def match_pattern(self, g, x, low: str | None, high: str | None):
            return g.op.Clip(g.op.Relu(x), low, high)

        def apply_pattern(self, g, x, low, high):
            return g.op.Clip(x, low, high)

    for inputs in ("r", "r, one", "r, , two", "r, one, two"):
        model = check_pattern_of(graph(f"r = Relu(X) Y = Clip({inputs})"), AnyClip())
        found = ["X" if i == "r" else i for i in inputs.split(", ")]
        assert list(model.graph.node[0].input) == [i.strip() for i in found]


def test_a_default_value_lets_an_input_be_missing() -> None:
    class ClipRelu(EasyPatternOptimization):
        def match_pattern(self, g, x, low=None, high=None):
            return g.op.Clip(g.op.Relu(x), low, high)

        def apply_pattern(self, g, x, low=None, high=None):
            return g.op.Clip(x, low, high)

    for inputs in ("r", "r, one", "r, , two", "r, one, two"):
        model = check_pattern_of(graph(f"r = Relu(X) Y = Clip({inputs})"), ClipRelu())
        found = ["X" if i == "r" else i for i in inputs.split(", ")]
        assert list(model.graph.node[0].input) == [i.strip() for i in found]


def test_an_operator_of_another_domain_registers_it() -> None:
    class ToNegRelu(EasyPatternOptimization):
        def match_pattern(self, g, x):
            return g.op.Neg(g.op.Relu(x))

        def apply_pattern(self, g, x):
            return g.op.NegRelu(x, domain="toy")

    model = check_pattern_of(graph("r = Relu(X) Y = Neg(r)"), ToNegRelu())
    assert {o.domain: o.version for o in model.opset_import}["toy"] == 1
    assert [(n.domain, n.op_type) for n in model.graph.node] == [("toy", "NegRelu")]


def test_results_of_split() -> None:
    class SplitSub(EasyPatternOptimization):
        def match_pattern(self, g, x):
            a, b = g.op.Split(x, axis=1, num_outputs=2)
            return g.op.Sub(a, b)

        def apply_pattern(self, g, x):
            return g.anyop.SubHalves(x, domain="toy")

    text = graph("a, b = Split<axis = 1, num_outputs = 2>(X) Y = Sub(a, b)")
    model = check_pattern_of(text.replace("4] Y", "2] Y"), SplitSub())
    assert [n.op_type for n in model.graph.node] == ["SubHalves"]


def test_apply_pattern_is_run_once_when_it_cannot_change() -> None:
    class Counted(MulAdd):
        runs = 0

        def apply_pattern(self, g, x, y):
            type(self).runs += 1
            return g.op.Sub(x, y)

    body = "a = Mul(X, Z) b = Add(a, one) c = Mul(b, Z) Y = Add(c, one)"
    optimize_toys(model_from_text(graph(body)), [Counted()])
    assert Counted.runs == 1


def test_errors_of_the_author() -> None:
    class NoResult(MulAdd):
        def match_pattern(self, g, x):
            g.op.Neg(x)

    class TooMany(MulAdd):
        def apply_pattern(self, g, x, y):
            return x, y

    class Empty(EasyPatternOptimization):
        pass

    with pytest.raises(OptionError, match="must return the names"):
        NoResult().roots  # noqa: B018
    with pytest.raises(NotImplementedError, match="must define match_pattern"):
        Empty().roots  # noqa: B018
    model = model_from_text(graph("m = Mul(X, Z) Y = Add(m, one)"))
    with pytest.raises(PatternError, match="match_pattern gives 1 results, apply_pattern 2"):
        optimize_toys(model, [TooMany()])


def test_display_pattern() -> None:
    text = MulAdd().display_pattern()
    assert "match(x, y) ->" in text and "apply(x, y) ->" in text
    assert "Mul(x, y)" in text and "Sub(x, y)" in text
    assert "apply depends on what validate_mapping keeps" in Scaled().display_pattern()


def test_display_one_graph() -> None:
    pattern, g = MulAdd(), GraphBuilderPatternOptimization(GraphBuilder(18), [])
    matched = pattern.display_pattern(g, pattern.match_pattern)
    written = pattern.display_pattern(g, pattern.apply_pattern)
    assert "Mul(x, y)" in matched and "Sub(x, y)" not in matched
    assert "Sub(x, y)" in written and "Mul(x, y)" not in written
    assert (
        f"{matched}\n{written}" == pattern.display_pattern(g) == pattern.display_pattern(opset=18)
    )
    with pytest.raises(OptionError, match="self.match_pattern or self.apply_pattern"):
        pattern.display_pattern(g, print)


def test_a_big_graph_is_rejected_quickly() -> None:
    """The pattern is not asked when the nodes before the roots are not the expected ones."""
    body = (
        "r0 = Add(X, Z) "
        + " ".join(f"r{i + 1} = Add(r{i}, X)" for i in range(500))
        + " Y = Neg(r500)"
    )
    builder = GraphBuilder(model_from_text(graph(body)), infer_shapes_options=True)
    optimizer = GraphBuilderPatternOptimization(builder, [MulAdd()])
    rows = optimizer.optimize()
    assert "match_MulAdd" not in [r["pattern"] for r in rows]
