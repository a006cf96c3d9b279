"""Calls to local functions replaced by their bodies."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx.helper as oh
import pytest
from onnx import FunctionProto
from ut_xbuilder.graph_checks import (
    assert_same,
    check_stores,
    functions_model,
    op_types,
    optimized,
    parse,
)

from xbuilder import (
    FunctionOptions,
    GraphBuilder,
    InvalidModelError,
    OptimizationOptions,
)
from xbuilder.nested import inlining
from xbuilder.nodes.functions import inlined_growth

SIMPLE = functions_model(
    "agraph (float[N,2] x) => (float[N,2] y) { a = f.g(x) y = f.g(a) }",
    "g (u) => (v) { n = Neg(u) v = Exp(n) }",
)


def test_kept_or_inlined():
    kept = optimized(SIMPLE, inline=False)
    assert op_types(kept) == ["g", "g"]
    assert [f.name for f in kept.functions] == ["g"]
    inlined = optimized(SIMPLE)
    assert op_types(inlined) == ["Neg", "Exp", "Neg", "Exp"]
    assert not inlined.functions


def test_inline_counts_and_names():
    builder = GraphBuilder(SIMPLE)
    assert builder.inline_functions() == 2
    assert builder.inline_functions() == 0
    check_stores(builder)
    assert [r.outputs[0] for r in builder.store.nodes] == ["n", "a", "n1", "y"]
    assert not builder.functions


@pytest.mark.parametrize(
    "call,expected",
    [
        ("y = f.g <alpha=0.5> (x)", 0.5),
        ("y = f.g (x)", 0.01),  # default value of the operator
    ],
)
def test_attribute_by_reference(call, expected):
    given = functions_model(
        f"agraph (float[N,2] x) => (float[N,2] y) {{ {call} }}",
        "g <alpha> (u) => (v) { v = LeakyRelu<alpha: float = @alpha>(u) }",
    )
    after = optimized(given)
    found = [a.f for a in after.graph.node[0].attribute]
    assert [round(f, 5) for f in found or [0.01]] == [expected]


@pytest.mark.parametrize("call,expected", [("y = f.g <alpha=0.5> (x)", 0.5), ("y = f.g (x)", 0.25)])
def test_default_value_of_an_attribute(call, expected):
    given = functions_model(
        f"agraph (float[N,2] x) => (float[N,2] y) {{ {call} }}",
        "g <alpha: float = 0.25> (u) => (v) { v = LeakyRelu<alpha: float = @alpha>(u) }",
    )
    assert given.functions[0].attribute_proto[0].f == 0.25
    after = optimized(given)
    assert after.graph.node[0].attribute[0].f == expected
    kept = optimized(given, inline=False)
    assert kept.functions[0].attribute_proto[0].f == 0.25


def test_attributes_through_nested_functions():
    given = functions_model(
        "agraph (float[N,2] x) => (float[N,2] y) { y = f.outer<beta=0.75>(x) }",
        "outer <beta> (u) => (v) { t = f.inner<alpha: float = @beta>(u) v = Neg(t) }",
        "inner <alpha> (u) => (v) { v = LeakyRelu<alpha: float = @alpha>(u) }",
    )
    after = optimized(given)
    assert op_types(after) == ["LeakyRelu", "Neg"]
    assert after.graph.node[0].attribute[0].f == 0.75
    kept = optimized(given, inline=False)
    assert sorted(f.name for f in kept.functions) == ["inner", "outer"]


def test_subgraph_inside_a_function():
    given = functions_model(
        "agraph (float[2] x, bool c) => (float[2] y) { u = Abs(x) y = f.g<alpha=0.5>(u, c) }",
        """g <alpha> (u, c) => (v) {
            w = Neg(u)
            v = If (c) <
                then_branch = a () => (r) { k = LeakyRelu<alpha: float = @alpha>(w) r = Add(k, u) },
                else_branch = b () => (s) { s = Exp(w) }
            >
        }""",
    )
    after = optimized(given)
    assert op_types(after) == ["Abs", "Neg", "If", "LeakyRelu", "Add", "Exp"]
    kept = optimized(given, inline=False)
    assert op_types(kept) == ["Abs", "g"]


def test_call_inside_a_subgraph():
    given = functions_model(
        """
        agraph (float[2] x, bool c) => (float[2] y) {
            z = Neg(x)
            y = If (c) <
                then_branch = a () => (float[2] r) { t = f.g(z) r = f.g(t) },
                else_branch = b () => (float[2] s) { s = f.g(z) }
            >
        }""",
        "g (u) => (v) { n = Neg(u) v = Exp(n) }",
    )
    after = optimized(given)
    assert op_types(after) == ["Neg", "If", "Neg", "Exp", "Neg", "Exp", "Neg", "Exp"]
    assert not after.functions


@pytest.mark.parametrize(
    "function,expected",
    [
        ("g (u, lo, hi) => (v) { v = Clip(u, lo, hi) }", ["Clip"]),
        ("g (u, lo, hi) => (v) { n = Neg(u) v = Clip(n, lo, hi) }", ["Neg", "Clip"]),
    ],
)
@pytest.mark.parametrize("call", ["f.g(x)", 'f.g(x, "", z)', "f.g(x, z)"])
def test_optional_inputs(function, expected, call):
    given = functions_model(
        f"agraph (float[2] x, float z) => (float[2] y) {{ y = {call.replace(chr(34) * 2, 'EMPTY')} }}",
        function,
    )
    for node in given.graph.node:
        names = ["" if n == "EMPTY" else n for n in node.input]
        del node.input[:]
        node.input.extend(names)
    after = optimized(given)
    assert op_types(after) == expected


def test_output_that_is_an_input_or_given_twice():
    given = functions_model(
        "agraph (float[2] x) => (float[2] y, float[2] z, float[2] t) { y, z, t = f.g(x) }",
        "g (u) => (v, u, w) { v = Neg(u) w = Identity(v) }",
    )
    after = optimized(given, ort=False)
    assert sorted(op_types(after)) == ["Identity", "Identity", "Neg"]


def test_unused_outputs():
    given = functions_model(
        "agraph (float[2] x) => (float[2] y) { y, _u = f.g(x) }",
        "g (u) => (v, w) { v = Neg(u) w = Exp(u) }",
    )
    assert op_types(optimized(given)) == ["Neg"]


def test_overloads():
    given = functions_model(
        "agraph (float[2] x) => (float[2] y) { a = f.g(x) y = f.g(a) }",
        "g (u) => (v) { v = Neg(u) }",
    )
    other = FunctionProto()
    other.CopyFrom(given.functions[0])
    other.overload = "second"
    other.node[0].op_type = "Exp"
    given.functions.append(other)
    given.graph.node[1].overload = "second"
    after = optimized(given, run=False)
    assert op_types(after) == ["Neg", "Exp"]
    kept = optimized(given, run=False, inline=False)
    assert sorted((f.name, f.overload) for f in kept.functions) == [("g", ""), ("g", "second")]
    assert_same(given, after)


def test_local_names_of_the_caller_do_not_collide():
    given = functions_model(
        """
        agraph (float[2] u, bool c) => (float[2] y) {
            n = Abs(u)
            v = f.g(n)
            y = If (c) <
                then_branch = a () => (float[2] r) { r = Add(n, v) },
                else_branch = b () => (float[2] s) { s = Exp(n) }
            >
        }""",
        "g (u) => (v) { n = Neg(u) v = Exp(n) }",
    )
    assert op_types(optimized(given)) == ["Abs", "Neg", "Exp", "If", "Add", "Exp"]


@pytest.mark.parametrize(
    "body,version,inlined",
    [
        ("v = Neg(u)", 13, True),
        ("v = Neg(u)", 12, False),
        ("t = Neg(u) v = ReduceMax<axes=[0]>(t)", 17, False),
        (
            "t = Constant <value = bool {1}> () v = If (t) "
            "<then_branch = a () => (r) { r = Neg(u) }, else_branch = b () => (s) { s = Exp(u) }>",
            17,
            True,
        ),
        (
            "t = Constant <value = bool {1}> () v = If (t) "
            "<then_branch = a () => (r) { r = Split(u) }, else_branch = b () => (s) { s = Exp(u) }>",
            17,
            False,
        ),
        ("v = f.h(u)", 17, True),
    ],
)
def test_functions_of_another_version(body, version, inlined):
    """A function is inlined if its operators are the same in the version of the model."""
    functions = [f"g (u) => (v) {{ {body} }}"]
    if "f.h" in body:
        functions.append("h (u) => (v) { v = Neg(u) }")
    given = functions_model("agraph (float[2] x) => (float[A] y) { y = f.g(x) }", *functions)
    given.functions[0].opset_import[0].version = version
    builder = GraphBuilder(given, infer_shapes_options=True)
    after, statistics = builder.to_onnx(return_optimize_report=True)
    assert ("g" not in op_types(after)) == inlined
    assert [f.name for f in after.functions] == ([] if inlined else ["g"])
    rows = {r["pattern"]: r for r in statistics if r["pattern"].startswith("inline_functions")}
    assert rows.pop("inline_functions")["changed"] == inlined + ("f.h" in body)
    assert len(rows) == (not inlined)
    for name, row in rows.items():
        assert row["skipped"] == 1
        assert f"may change between version {version} of domain 'ai.onnx'" in name


def test_a_domain_without_schema_needs_the_same_version():
    given = functions_model(
        "agraph (float[2] x) => (float[2] y) { y = f.g(x) }", "g (u) => (v) { v = other.Op(u) }"
    )
    given.opset_import.add(domain="other", version=1)
    given.functions[0].opset_import.add(domain="other", version=2)
    assert op_types(optimized(given, run=False)) == ["g"]
    given.functions[0].opset_import[-1].version = 1
    assert op_types(optimized(given, run=False)) == ["Op"]


def test_recursion_is_refused():
    given = functions_model(
        "agraph (float[2] x) => (float[2] y) { y = f.g(x) }",
        "g (u) => (v) { t = f.h(u) v = Neg(t) }",
        "h (u) => (v) { v = f.g(u) }",
    )
    with pytest.raises(InvalidModelError, match="without end"):
        GraphBuilder(given, infer_shapes_options=True).to_onnx()


def test_exponential_inlining_is_refused():
    functions = ["g0 (u) => (v) { v = Neg(u) }"]
    for i in range(1, 40):
        functions.append(f"g{i} (u) => (v) {{ t = f.g{i - 1}(u) v = f.g{i - 1}(t) }}")
    given = functions_model("agraph (float[2] x) => (float[2] y) { y = f.g39(x) }", *functions)
    builder = GraphBuilder(given, infer_shapes_options=True)
    with pytest.raises(InvalidModelError, match="too many times"):
        builder.to_onnx()
    builder = GraphBuilder(given, optimization_options=OptimizationOptions(patterns=None))
    assert len(builder.to_onnx(inline=False).functions) == 40


def test_bodies_are_optimized():
    given = functions_model(
        "agraph (float[2] x, bool c) => (float[2] y) { y = f.g(x, c) }",
        """g (u, c) => (v) {
            k = Constant<value = float[2] {1.0, 2.0}>()
            n = Neg(k)
            i = Identity(u)
            dead = Exp(i)
            w = Add(i, n)
            v = If (c) <
                then_branch = a () => (r) { q = Identity(w) r = Neg(q) dead = Exp(q) },
                else_branch = b () => (s) { s = Exp(w) }
            >
        }""",
    )
    kept = optimized(given, inline=False)
    assert op_types(kept.functions[0]) == ["Constant", "Add", "If", "Neg", "Exp"]


def test_function_of_the_main_domain_keeps_it():
    given = parse(
        '<ir_version: 10, opset_import: ["": 18]> '
        "agraph (float[2] x) => (float[2] y) { y = Mine(x) } "
        '<opset_import: ["": 18], domain: ""> Mine (u) => (v) { v = Neg(u) }'
    )
    builder = GraphBuilder(given, optimization_options=OptimizationOptions(patterns=None))
    kept = builder.to_onnx(inline=False)
    assert kept.functions[0].domain == ""
    inlined = GraphBuilder(given).to_onnx()
    assert op_types(inlined) == ["Neg"]


def test_function_proto_in_and_out():
    function = oh.make_function(
        "d",
        "F",
        ["a"],
        ["b"],
        [oh.make_node("Identity", ["a"], ["t"]), oh.make_node("Neg", ["t"], ["b"])],
        [oh.make_opsetid("", 18)],
    )
    content = function.SerializeToString()
    builder = GraphBuilder(function, optimization_options=OptimizationOptions(patterns=None))
    after = builder.to_onnx()
    assert isinstance(after, FunctionProto)
    assert (after.domain, after.name) == ("d", "F")
    assert op_types(after) == ["Neg"]
    assert function.SerializeToString() == content


def test_as_function_builder():
    builder = GraphBuilder(18, as_function=True)
    builder.make_tensor_input("a")
    builder.make_initializer("w", np.array([3], dtype=np.float32))
    builder.make_node("Add", ["a", "w"], ["b"])
    builder.make_tensor_output("b")
    proto = builder.to_onnx(
        function_options=FunctionOptions(export_as_function=True, name="Linear", domain="d")
    )
    assert isinstance(proto, FunctionProto)
    assert op_types(proto) == ["Constant", "Add"]
    assert (proto.domain, proto.name) == ("d", "Linear")
    assert list(proto.input) == ["a"] and list(proto.output) == ["b"]


def chain(levels, calls):
    """Functions of a chain, each one calls the next one a number of times."""
    functions = [f"g{levels} (u) => (v) {{ v = Neg(u) }}"]
    for i in range(levels):
        names = ["u", *(f"t{j}" for j in range(calls - 1)), "v"]
        body = " ".join(f"{b} = f.g{i + 1}({a})" for a, b in pairwise(names))
        functions.append(f"g{i} (u) => (v) {{ {body} }}")
    return functions_model("agraph (float[2] x) => (float[2] y) { y = f.g0(x) }", *functions)


def growth_of(given):
    return inlined_growth(GraphBuilder(given).functions, given.graph.node)


@pytest.mark.parametrize(
    "levels,calls,expected",
    [
        (0, 1, (2, 0)),
        (5, 1, (7, 0)),
        (3000, 1, (3002, 0)),
        (3, 2, (8, 7)),
        (12, 2, (26, 4095)),
    ],
)
def test_growth(levels, calls, expected):
    """A function called once adds nothing; one called twice adds its body, at each level."""
    assert growth_of(chain(levels, calls)) == expected


def test_growth_without_end():
    given = chain(2, 1)
    given.functions[0].node[0].CopyFrom(given.functions[-1].node[0])
    given.functions[0].node[0].op_type = "g0"
    assert growth_of(given)[1] > 10**6


def test_functions_called_once_are_inlined():
    """3,000 functions, each called by the one before: nothing grows."""
    builder = GraphBuilder(chain(3000, 1), infer_shapes_options=True)
    assert [n.op_type for n in builder.to_onnx(optimize=False).graph.node] == ["Neg"]


def test_calls_that_double_are_refused_before_inlining(monkeypatch):
    """17 levels of two calls are 36 nodes in the file, and 131,072 once inlined."""
    builder = GraphBuilder(chain(17, 2))
    monkeypatch.setattr(inlining, "splice", None)
    with pytest.raises(InvalidModelError, match=r"adds more than 13600 nodes to the 36"):
        builder.to_onnx()
