"""Constant nodes become initializers where this is possible."""

from __future__ import annotations

import onnx
import onnx.helper as oh
import pytest

from xbuilder import GraphBuilder
from xoptim.catalogue.selection import get_pattern
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import (
    check_no_match,
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
)

F = "g (float[a] x) => (float[a] y)"
I = "g (int64[a] x) => (int64[a] y)"  # noqa: E741  (the text of a graph on integers)

MODELS = {
    "ConstantToInitializer": {
        "tensor": (
            f"{F} {{ c = Constant<value = float[1] {{2}}>() y = Mul(x, c) }}",
            f"{F} <float[1] c = {{2}}> {{ y = Mul(x, c) }}",
        ),
        "float": (
            f"{F} {{ c = Constant<value_float = 2.0>() y = Mul(x, c) }}",
            f"{F} <float c = {{2}}> {{ y = Mul(x, c) }}",
        ),
        "floats": (
            f"{F} {{ c = Constant<value_floats = [2.0]>() y = Mul(x, c) }}",
            f"{F} <float[1] c = {{2}}> {{ y = Mul(x, c) }}",
        ),
        "int": (
            f"{I} {{ c = Constant<value_int = 3>() y = Mul(x, c) }}",
            f"{I} <int64 c = {{3}}> {{ y = Mul(x, c) }}",
        ),
        "ints": (
            f"{I} {{ c = Constant<value_ints = [3]>() y = Mul(x, c) }}",
            f"{I} <int64[1] c = {{3}}> {{ y = Mul(x, c) }}",
        ),
        "an output": (
            "g (float[a] x) => (float[1] y) { y = Constant<value = float[1] {2}>() }",
            "g (float[a] x) => (float[1] y) <float[1] c = {2}> { y = Identity(c) }",
        ),
    },
}

NEAR_MISSES = {
    "string": (
        'g () => (string y) { y = Constant<value_string = "a">() }',
        "not a dense tensor of numbers",
    ),
    "strings": (
        'g () => (string[2] y) { y = Constant<value_strings = ["a", "b"]>() }',
        "not a dense tensor of numbers",
    ),
    "tensor of strings": (
        'g () => (string[1] y) { y = Constant<value = string[1] {"a"}>() }',
        "the value holds strings",
    ),
}


def _operators(model: onnx.ModelProto) -> list[str]:
    return [n.op_type for n in model.graph.node]


@pytest.mark.parametrize("name", MODELS["ConstantToInitializer"])
def test_constant(name: str):
    before, after = MODELS["ConstantToInitializer"][name]
    result = check_pattern(before, after, "ConstantToInitializer")
    assert "Constant" not in _operators(result)
    assert len(result.graph.initializer) == 1


test_refuses = refusal_tests({"ConstantToInitializer": NEAR_MISSES})


def test_sparse_tensor():
    values = oh.make_tensor("v", onnx.TensorProto.FLOAT, [1], [2.0])
    indices = oh.make_tensor("i", onnx.TensorProto.INT64, [1], [1])
    sparse = oh.make_sparse_tensor(values, indices, [3])
    model = model_from_text(f"{F} {{ c = Constant<value_float = 1.0>() y = Mul(x, c) }}")
    model.graph.node[0].ClearField("attribute")
    model.graph.node[0].attribute.append(oh.make_attribute("sparse_value", sparse))
    check_no_match(model, "ConstantToInitializer", "not a dense tensor of numbers")


def _function(node: onnx.NodeProto) -> onnx.FunctionProto:
    nodes = [node, oh.make_node("Mul", ["x", "c"], ["y"])]
    return oh.make_function("local", "f", ["x"], ["y"], nodes, [oh.make_opsetid("", 18)], ["k"])


def _reason(function: onnx.FunctionProto, as_function: bool) -> str:
    builder = GraphBuilder(function)
    builder.graph.scope.is_function = as_function
    optimizer = GraphBuilderPatternOptimization(builder, ["ConstantToInitializer"])
    pattern = get_pattern("ConstantToInitializer")
    (root,) = optimizer.iter_roots(pattern)
    return optimizer.explain(pattern, root)


def test_a_function_keeps_its_constants():
    plain = oh.make_node("Constant", [], ["c"], value_float=1.0)
    assert "a function has no initializer" in _reason(_function(plain), True)
    given = oh.make_node("Constant", [], ["c"])
    given.attribute.add(name="value_float", ref_attr_name="k", type=onnx.AttributeProto.FLOAT)
    assert "the value belongs to the function" in _reason(_function(given), False)


def test_a_function_is_still_valid_after():
    """The body of a function that stays is optimized too."""
    info = oh.make_tensor_value_info
    function = oh.make_function(
        "local",
        "f",
        ["x"],
        ["y"],
        [
            oh.make_node("Constant", [], ["c"], value_float=1.0),
            oh.make_node("Mul", ["x", "c"], ["y"]),
        ],
        [oh.make_opsetid("", 18)],
    )
    model = oh.make_model(
        oh.make_graph(
            [oh.make_node("f", ["x"], ["y"], domain="local")],
            "g",
            [info("x", 1, ["a"])],
            [info("y", 1, ["a"])],
        ),
        functions=[function],
        opset_imports=[oh.make_opsetid("", 18), oh.make_opsetid("local", 1)],
        ir_version=9,
    )
    result, _, _ = optimize_with(model, "ConstantToInitializer")
    assert [n.op_type for n in result.functions[0].node] == ["Constant", "Mul"]
    onnx.checker.check_model(result, full_check=True)


def test_constants_of_subgraphs():
    text = (
        "g (float[a] x, bool b) => (float[a] y) { c = Constant<value_float = 1.0>() y = If(b) <"
        "  then_branch = g1 () => (float[a] o1) { d = Constant<value_float=2.0>() e = Mul(d, c)"
        "    o1 = Mul(x, e) },"
        "  else_branch = g2 () => (float[a] o2) { o2 = Mul(x, c) } > }"
    )
    result = check_pattern(text, None, "ConstantToInitializer")
    assert _operators(result) == ["If"]
    for att in result.graph.node[0].attribute:
        assert "Constant" not in [n.op_type for n in att.g.node]


def test_a_name_hidden_by_a_subgraph():
    """Each c is another constant: each reader still reads its own."""
    text = (
        "g (float[a] x, bool b) => (float[a] y) { c = Constant<value_float = 1.0>()"
        "  z = Mul(x, c) w = If(b) <"
        "  then_branch = g1 () => (float[a] o1) { c = Constant<value_float=2.0>() o1 = Mul(x, c) },"
        "  else_branch = g2 () => (float[a] o2) { o2 = Mul(x, c) } > y = Add(z, w) }"
    )
    # onnxruntime refuses a model that hides a name
    check_pattern(text, None, "ConstantToInitializer", runtime=False)


def test_a_big_constant_is_not_copied():
    model = model_from_text(f"{F} {{ c = Constant<value_float = 1.0>() y = Mul(x, c) }}")
    tensor = oh.make_tensor("t", onnx.TensorProto.FLOAT, [4096], b"\0" * 16384, raw=True)
    model.graph.node[0].ClearField("attribute")
    model.graph.node[0].attribute.append(oh.make_attribute("value", tensor))
    _, _, builder = optimize_with(model, "ConstantToInitializer")
    (value,) = builder.constants.initializers.values()
    assert isinstance(value, onnx.TensorProto)
