"""An attribute that refers to an attribute of a function is not known: patterns refuse."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import GraphBuilderPatternOptimization, MatchResult, PatternOptimization

TEXT = """<domain: "local", opset_import: ["" : 18]>
F <p> (x) => (y) {
    t = Transpose <perm: ints = @p> (x)
    y = Transpose <perm = [1, 0]> (t)
}"""


class ReadsPerm(PatternOptimization):
    """Reads the attribute of the first Transpose."""

    roots = ("Transpose",)

    def match(self, g, node, matched):
        perm = g.get_attribute_with_default(node, "perm", None)
        if perm == [1, 0]:
            return self.none(node, "a plain value")
        return MatchResult(self, [node], self.apply)


def _builder(patterns) -> GraphBuilder:
    function = onnx.parser.parse_function(TEXT)
    return GraphBuilder(
        function,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=patterns),
    )


def test_the_engine_takes_it_as_a_rejection() -> None:
    builder = _builder([ReadsPerm()])
    optimizer = GraphBuilderPatternOptimization(builder)
    rows = optimizer.optimize()
    assert sum(r.get("instances", 0) for r in rows) == 0
    first, second = builder.nodes
    assert "refers to 'p'" in optimizer.explain(ReadsPerm(), first)
    assert "a plain value" in optimizer.explain(ReadsPerm(), second)


def test_default_patterns_leave_such_nodes() -> None:
    builder = _builder("default+onnxruntime")
    function = builder.to_onnx()
    assert [n.op_type for n in function.node] == ["Transpose", "Transpose"]
    assert function.node[0].attribute[0].ref_attr_name == "p"


#: pattern -> case -> (opset, nodes, reason): the attribute decides
REFUSED = {
    "Identity": {
        "Slice": (
            9,
            "y = Slice<starts = [0], ends: ints = @p>(x)",
            "'ends' of Slice refers to 'p'",
        ),
        "Pad": (9, "y = Pad<pads: ints = @p>(x)", "'pads' of Pad refers to 'p'"),
        "Resize": (
            18,
            'y = Resize<coordinate_transformation_mode: string = @p>(x, "", ones)',
            "'coordinate_transformation_mode' of Resize refers to 'p'",
        ),
        "training": (
            15,
            "y = BatchNormalization<epsilon = 0.0, training_mode: int = @p>"
            "(x, ones, zeros, zeros, ones)",
            "'training_mode' of BatchNormalization refers to 'p'",
        ),
    },
    "MatMulReshape2Of3": {
        "a product": (
            18,
            "a = Reshape(x, two) m = com.microsoft.FusedMatMul<transBatchA: int = @p>(a, x)"
            "y = Reshape(m, two)",
            "'transBatchA' of FusedMatMul refers to 'p'",
        ),
    },
}
#: pattern -> case -> (opset, nodes, what they become): the attribute changes nothing, or stays
REWRITTEN = {
    "Identity": {
        "Pad": (18, "t = Pad<mode: string = @p>(x, none) y = Relu(t)", ["Relu"]),
        "Resize": (18, 't = Resize<mode: string = @p>(x, "", ones) y = Relu(t)', ["Relu"]),
        "BatchNormalization": (
            15,
            "t = BatchNormalization<epsilon = 0.0, momentum: float = @p>"
            "(x, ones, zeros, zeros, ones) y = Abs(t)",
            ["Abs"],
        ),
    },
    "CastOpCast": {
        "Softmax": (
            18,
            "n = Cast<to = 10>(x) w = Cast<to = 1>(n) s = Softmax<axis: int = @p>(w)"
            "y = Cast<to = 10>(s)",
            ["Cast", "Softmax"],
        ),
    },
}


def _cases(table):
    return [(p, *case) for p, cases in table.items() for case in cases.values()]


def _function(opset: int, nodes: str, patterns: str) -> GraphBuilder:
    constants = {"ones": "value_floats = [1.0, 1.0]", "zeros": "value_floats = [0.0, 0.0]"}
    if opset >= 13:
        constants.update(none="value_ints = [0, 0, 0, 0]", two="value_ints = [-1, 2]")
        nodes = "".join(f"{k} = Constant<{v}>() " for k, v in constants.items()) + nodes
    text = f'<domain: "local", opset_import: ["" : {opset}, "com.microsoft": 1]>'
    function = onnx.parser.parse_function(f"{text} F <p> (x) => (y) {{ {nodes} }}")
    options = OptimizationOptions(patterns=patterns)
    return GraphBuilder(function, infer_shapes_options=True, optimization_options=options)


@pytest.mark.parametrize(("pattern", "opset", "nodes", "reason"), _cases(REFUSED))
def test_an_attribute_that_is_read(pattern: str, opset: int, nodes: str, reason: str) -> None:
    builder = _function(opset, nodes, pattern)
    (found,) = builder.optimization_options.patterns
    optimizer = GraphBuilderPatternOptimization(builder, [found])
    reasons = [optimizer.explain(found, n) for n in optimizer.iter_roots(found)]
    assert [reason in r for r in reasons] == [True], reasons


@pytest.mark.parametrize(("pattern", "opset", "nodes", "expected"), _cases(REWRITTEN))
def test_an_attribute_that_stays(pattern: str, opset: int, nodes: str, expected: list[str]) -> None:
    node = list(_function(opset, nodes, pattern).to_onnx().node)
    assert [n.op_type for n in node] == expected
    kept = [a.ref_attr_name for n in node for a in n.attribute if a.ref_attr_name]
    assert kept == (["p"] if "Softmax" in expected else [])
