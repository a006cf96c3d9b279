"""An attribute that refers to an attribute of a function is not known: patterns refuse."""

from __future__ import annotations

import onnx
import onnx.parser

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
