"""Local functions: inlined, optimized, merged, renamed, inferred through."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import FunctionProto, TensorProto
from ut_xbuilder.graph_checks import (
    assert_same,
    check_stores,
    initializer_names,
    op_types,
    optimized,
    parse,
)

from xbuilder import (
    FunctionOptions,
    GraphBuilder,
    InvalidModelError,
    OptimizationOptions,
    OptionError,
)

HEADER = '<ir_version: 10, opset_import: ["": 18, "f": 1]>\n'


def model(graph, *functions):
    """A model with functions; each function is `name <attributes> (inputs) => (outputs) { nodes }`."""
    text = HEADER + graph
    for function in functions:
        text += f'\n<opset_import: ["": 18, "f": 1], domain: "f"> {function}'
    return parse(text)


SIMPLE = model(
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
    given = model(
        f"agraph (float[N,2] x) => (float[N,2] y) {{ {call} }}",
        "g <alpha> (u) => (v) { v = LeakyRelu<alpha: float = @alpha>(u) }",
    )
    after = optimized(given)
    found = [a.f for a in after.graph.node[0].attribute]
    assert [round(f, 5) for f in found or [0.01]] == [expected]


@pytest.mark.parametrize("call,expected", [("y = f.g <alpha=0.5> (x)", 0.5), ("y = f.g (x)", 0.25)])
def test_default_value_of_an_attribute(call, expected):
    given = model(
        f"agraph (float[N,2] x) => (float[N,2] y) {{ {call} }}",
        "g <alpha: float = 0.25> (u) => (v) { v = LeakyRelu<alpha: float = @alpha>(u) }",
    )
    assert given.functions[0].attribute_proto[0].f == 0.25
    after = optimized(given)
    assert after.graph.node[0].attribute[0].f == expected
    kept = optimized(given, inline=False)
    assert kept.functions[0].attribute_proto[0].f == 0.25


def test_attributes_through_nested_functions():
    given = model(
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
    given = model(
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
    given = model(
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
    given = model(f"agraph (float[2] x, float z) => (float[2] y) {{ y = {call.replace(chr(34)*2, 'EMPTY')} }}", function)
    for node in given.graph.node:
        names = ["" if n == "EMPTY" else n for n in node.input]
        del node.input[:]
        node.input.extend(names)
    after = optimized(given)
    assert op_types(after) == expected


def test_output_that_is_an_input_or_given_twice():
    given = model(
        "agraph (float[2] x) => (float[2] y, float[2] z, float[2] t) { y, z, t = f.g(x) }",
        "g (u) => (v, u, w) { v = Neg(u) w = Identity(v) }",
    )
    after = optimized(given, ort=False)
    assert sorted(op_types(after)) == ["Identity", "Identity", "Neg"]


def test_unused_outputs():
    given = model(
        "agraph (float[2] x) => (float[2] y) { y, _u = f.g(x) }",
        "g (u) => (v, w) { v = Neg(u) w = Exp(u) }",
    )
    assert op_types(optimized(given)) == ["Neg"]


def test_overloads():
    given = model(
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
    given = model(
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


def test_another_version_of_the_opset_is_not_inlined():
    given = model(
        "agraph (float[2] x) => (float[2] y) { y = f.g(x) }", "g (u) => (v) { v = Neg(u) }"
    )
    given.functions[0].opset_import[0].version = 17
    after = optimized(given, run=False)
    assert op_types(after) == ["g"]
    assert [f.name for f in after.functions] == ["g"]


def test_recursion_is_refused():
    given = model(
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
    given = model("agraph (float[2] x) => (float[2] y) { y = f.g39(x) }", *functions)
    builder = GraphBuilder(given, infer_shapes_options=True)
    with pytest.raises(InvalidModelError, match="too many times"):
        builder.to_onnx()
    builder = GraphBuilder(given, optimization_options=OptimizationOptions(patterns=None))
    assert len(builder.to_onnx(inline=False).functions) == 40


def test_bodies_are_optimized():
    given = model(
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


# -- facts through a call


def test_inference_through_a_call():
    given = model(
        "agraph (float[N,2] x, float[2,M] z) => (float[N,M] y) { t = f.g<p=1>(x, z) y = Neg(t) }",
        "g (u, w) => (v) { m = MatMul(u, w) v = f.h(m) }",
        "h (u) => (v) { t = Transpose(u) v = Transpose(t) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    assert builder.get_shape("t") == ("N", "M")
    assert builder.get_type("t") == TensorProto.FLOAT


def test_inference_uses_attributes_constants_and_known_dimensions():
    given = model(
        """
        agraph (float[N,6] x) => (float[A,B,C] y, float[D,E] z)
        <int64[3] s = {0, 2, 3}>
        {
            y = f.reshape(x, s)
            d = Shape<start=0, end=1>(x)
            z0 = f.transpose<perm=[0,1]>(x)
            z = Neg(z0)
            u = f.transpose(x)
        }
        """,
        "reshape (u, s) => (v) { v = Reshape(u, s) }",
        "transpose <perm> (u) => (v) { v = Transpose<perm: ints = @perm>(u) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    assert builder.get_shape("y") == ("N", 2, 3)
    assert builder.get_shape("z0") == ("N", 6)
    assert builder.get_shape("u") == (6, "N")


def test_references_are_not_default_values():
    """Inside a function, perm is not known: nothing is inferred from its absence."""
    given = model(
        "agraph (float[2,3] x) => (float[A,B] y) { y = f.g<perm=[0,1]>(x) }",
        """g <perm> (u) => (v) {
            k = Constant<value = float[2,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}>()
            t = Transpose<perm: ints = @perm>(k)
            v = Add(u, t)
        }""",
    )
    builder = GraphBuilder(given.functions[0], infer_shapes_options=True)
    assert not builder.has_shape("t")
    assert not builder.is_constant("t")
    kept = optimized(given, inline=False)
    assert "Transpose" in op_types(kept.functions[0])


def test_fresh_dimensions_of_a_body_are_not_shared_between_calls():
    given = model(
        "agraph (float[N] x, float[N] z) => (int64[1,A] a, int64[1,B] b) { a = f.g(x) b = f.g(z) }",
        "g (u) => (v) { v = NonZero(u) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    a, b = builder.get_shape("a"), builder.get_shape("b")
    assert a[0] == b[0] == 1
    assert a[1] != b[1]


def test_two_outputs_share_a_fresh_dimension():
    given = model(
        "agraph (float[N] x) => (int64[1,A] a, int64[1,B] b) { a0, b0 = f.g(x) a = Neg(a0) b = Neg(b0) }",
        "g (u) => (v, w) { v = NonZero(u) w = Neg(v) }",
    )
    builder = GraphBuilder(given, infer_shapes_options=True)
    assert builder.get_shape("a0") == builder.get_shape("b0")


# -- making functions


def inner_builder(bias=1.0, local="t"):
    builder = GraphBuilder(18)
    builder.make_tensor_input("a", TensorProto.FLOAT, ("n", 2))
    builder.make_initializer("w", np.array([[1, 2], [3, 4]], dtype=np.float32))
    builder.make_initializer("b", np.array([bias], dtype=np.float32))
    builder.make_node("MatMul", ["a", "w"], [local])
    builder.make_node("Add", [local, "b"], ["r"])
    builder.make_tensor_output("r", TensorProto.FLOAT, ("n", 2))
    return builder


def outer_builder():
    builder = GraphBuilder(18, optimization_options=OptimizationOptions(patterns=None))
    builder.make_tensor_input("x", TensorProto.FLOAT, ("batch", 2))
    return builder


def run(onx, x):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onx).run(None, {"x": x})[0]


X = np.array([[1, 2], [3, -4], [5, 6]], dtype=np.float32)
EXPECTED = X @ np.array([[1, 2], [3, 4]], dtype=np.float32) + 1


def options(**kwargs):
    return FunctionOptions(export_as_function=True, name="Linear", domain="d", **kwargs)


@pytest.mark.parametrize(
    "kwargs,n_inputs,n_constants",
    [
        ({}, 1, 2),
        ({"move_initializer_to_constant": True}, 1, 2),
        ({"return_initializer": True}, 3, 0),
        ({"return_initializer": True, "move_initializer_to_constant": True}, 1, 2),
        (
            {
                "return_initializer": True,
                "move_initializer_to_constant": True,
                "external_threshold": 10,
            },
            2,
            1,
        ),
        ({"external_threshold": 10}, 2, 1),
    ],
)
def test_make_local_function(kwargs, n_inputs, n_constants):
    builder = outer_builder()
    added, key = builder.make_local_function(
        inner_builder(), options(**kwargs), metadata_props={"source": "test"}
    )
    assert key == ("d", "Linear")
    assert len(added) == n_inputs - 1
    assert all(name in builder.initializers_dict for name in added)
    function = builder.functions[key]
    assert len(function.input) == n_inputs
    assert op_types(function).count("Constant") == n_constants
    assert function.metadata_props[0].value == "test"
    builder.make_node(key[1], ["x", *added], ["y"], domain=key[0])
    builder.make_tensor_output("y", TensorProto.FLOAT, ("batch", 2))
    kept = builder.to_onnx(inline=False, optimize=False)
    np.testing.assert_array_equal(run(kept, X), EXPECTED)
    onx = builder.to_onnx()
    assert op_types(onx)[-2:] == ["MatMul", "Add"]
    np.testing.assert_array_equal(run(onx, X), EXPECTED)


def test_make_local_function_names():
    builder = outer_builder()
    with pytest.raises(OptionError, match="export_as_function"):
        builder.make_local_function(inner_builder(), FunctionOptions())
    builder.make_local_function(inner_builder(), options())
    with pytest.raises(OptionError, match="An equal function"):
        builder.make_local_function(inner_builder(), options())
    with pytest.raises(OptionError, match="A different function"):
        builder.make_local_function(inner_builder(2.0), options(merge_allowed=True))
    _, key = builder.make_local_function(inner_builder(), options(merge_allowed=True))
    assert key == ("d", "Linear")
    both = options(merge_allowed=True, rename_allowed=True)
    for _ in range(2):
        _, key = builder.make_local_function(inner_builder(2.0), both)
        assert key == ("d", "Linear_2")
    assert sorted(builder.functions) == [("d", "Linear"), ("d", "Linear_2")]
    assert builder.functions["d", "Linear_2"].name == "Linear_2"


def test_functions_called_by_a_function_come_with_it():
    middle = GraphBuilder(18)
    middle.make_tensor_input("a", TensorProto.FLOAT, ("n", 2))
    _, key = middle.make_local_function(inner_builder(), options())
    middle.make_node(key[1], ["a"], ["c"], domain=key[0])
    middle.make_node("Neg", ["c"], ["r"])
    middle.make_tensor_output("r", TensorProto.FLOAT, ("n", 2))
    builder = outer_builder()
    # another function of the same name is there
    builder.make_local_function(inner_builder(5.0), options())
    opts = FunctionOptions(True, name="Middle", domain="d", rename_allowed=True)
    _, key = builder.make_local_function(middle, opts)
    builder.make_node(key[1], ["x"], ["y"], domain="d")
    builder.make_tensor_output("y", TensorProto.FLOAT, ("batch", 2))
    assert sorted(builder.functions) == [("d", "Linear"), ("d", "Linear_2"), ("d", "Middle")]
    kept = builder.to_onnx(inline=False, optimize=False)
    np.testing.assert_array_equal(run(kept, X), -EXPECTED)
    np.testing.assert_array_equal(run(builder.to_onnx(), X), -EXPECTED)


@pytest.mark.parametrize("prefix,forced", [("", None), ("p_", None), ("", "q_")])
def test_make_nodes(prefix, forced):
    builder = outer_builder()
    builder.make_initializer("w", np.array([9], dtype=np.float32))
    inner = inner_builder()
    result = builder.make_nodes(
        inner, ["x"], ["y"], prefix=prefix, force_rename_with_prefix=forced
    )
    assert result == "y"
    builder.make_tensor_output("y")
    assert builder.get_shape("y") == ("batch", 2)
    check_stores(builder)
    onx = builder.to_onnx()
    np.testing.assert_array_equal(run(onx, X), EXPECTED)
    expected = {"": ["b", "w1"], "p_": ["b", "p_w"]}[prefix] if forced is None else ["q_b", "q_w"]
    assert initializer_names(onx) == expected


def test_make_nodes_twice_and_as_a_function():
    builder = outer_builder()
    builder.make_nodes(inner_builder(), ["x"], ["u"])
    opts = options(move_initializer_to_constant=True)
    builder.make_nodes(inner_builder(), ["u"], ["y"], function_options=opts, optimize=True)
    assert builder.get_type("y") == TensorProto.FLOAT
    builder.make_tensor_output("y")
    expected = EXPECTED @ np.array([[1, 2], [3, 4]], dtype=np.float32) + 1
    kept = builder.to_onnx(inline=False, optimize=False)
    assert op_types(kept) == ["MatMul", "Add", "Linear"]
    np.testing.assert_array_equal(run(kept, X), expected)
    np.testing.assert_array_equal(run(builder.to_onnx(), X), expected)


def test_make_nodes_refuses():
    builder = outer_builder()
    with pytest.raises(OptionError, match="1 inputs"):
        builder.make_nodes(inner_builder(), ["x", "x"], ["y"])
    with pytest.raises(OptionError, match="1 outputs"):
        builder.make_nodes(inner_builder(), ["x"], ["y", "z"])
    with pytest.raises(OptionError, match="'unknown' does not exist"):
        builder.make_nodes(inner_builder(), ["unknown"], ["y"])
    with pytest.raises(OptionError, match="exists already"):
        builder.make_nodes(inner_builder(), ["x"], ["x"])
    other = GraphBuilder(17)
    other.make_tensor_input("a", 1, (2,))
    other.make_node("Neg", ["a"], ["b"])
    other.make_tensor_output("b")
    with pytest.raises(OptionError, match="version 18 in this graph and 17"):
        builder.make_nodes(other, ["x"], ["y"])


def test_make_nodes_with_an_output_that_is_an_input():
    inner = GraphBuilder(18)
    inner.make_tensor_input("a", 1, ("n", 2))
    inner.make_tensor_input("d", 1, (1,), default_initializer=np.array([3], dtype=np.float32))
    inner.make_node("Add", ["a", "d"], ["r"])
    inner.make_tensor_output(["a", "r"])
    builder = outer_builder()
    assert builder.make_nodes(inner, ["x", ""], ["y", "z"]) == ["y", "z"]
    builder.make_tensor_output("z")
    np.testing.assert_array_equal(run(builder.to_onnx(), X), X + 3)


def test_make_nodes_brings_functions():
    inner = GraphBuilder(18)
    inner.make_tensor_input("a", TensorProto.FLOAT, ("n", 2))
    inner.make_local_function(inner_builder(), options())
    inner.make_node("Linear", ["a"], ["c"], domain="d")
    inner.make_tensor_output("c", TensorProto.FLOAT, ("n", 2))
    builder = outer_builder()
    builder.make_local_function(inner_builder(7.0), options())
    builder.make_nodes(inner, ["x"], ["y"])
    builder.make_tensor_output("y")
    assert builder.store.nodes[0].op_type == "Linear_2"
    np.testing.assert_array_equal(run(builder.to_onnx(), X), EXPECTED)


def test_move_initializers_to_constant():
    builder = inner_builder()
    assert builder.move_initializers_to_constant("w") == 1
    assert builder.move_initializers_to_constant("", threshold=4) == 0
    assert builder.move_initializers_to_constant("") == 1
    check_stores(builder)
    onx = builder.to_onnx(optimize=False)
    assert op_types(onx) == ["Constant", "Constant", "MatMul", "Add"]
    assert not onx.graph.initializer
    from onnx.reference import ReferenceEvaluator

    got = ReferenceEvaluator(onx).run(None, {"a": X})[0]
    np.testing.assert_array_equal(got, EXPECTED)


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
    proto = builder.to_onnx(function_options=options())
    assert isinstance(proto, FunctionProto)
    assert op_types(proto) == ["Constant", "Add"]
    assert (proto.domain, proto.name) == ("d", "Linear")
    assert list(proto.input) == ["a"] and list(proto.output) == ["b"]
