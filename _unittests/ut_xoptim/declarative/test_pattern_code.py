"""The code of a pattern matches the model it comes from."""

from __future__ import annotations

import onnx
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xoptim import to_graph_pattern_matching

HEADER = '<ir_version: 9, opset_import: ["" : 18, "other" : 1]>'
BODY = """
agraph (float[a, 4] X, float[a, 4] def) => (float[a, 4] Y)
<float[1] one = {1}, float[4] weight = {0.5, 2, 3, 4}>
{
   "r.1" = Mul (X, weight)
   r_1 = Add ("r.1", one)
   a, b = Split <axis = 1, num_outputs = 2> (r_1)
   both = Concat <axis = 1> (b, a)
   Y = Sub (both, def)
}
"""


def model_of(body: str) -> onnx.ModelProto:
    model: onnx.ModelProto = onnx.parser.parse_model(HEADER + body)
    return model


def optimized(model: onnx.ModelProto, code: str, name: str = "ModelPattern") -> onnx.ModelProto:
    scope: dict[str, type] = {}
    exec(compile(code, "code.py", "exec"), scope)
    options = OptimizationOptions(patterns=[scope[name]()], constant_folding=False)
    found: onnx.ModelProto = GraphBuilder(model, optimization_options=options).to_onnx()
    return found


def test_a_model_is_matched() -> None:
    model = model_of(BODY)
    code = to_graph_pattern_matching(model)
    assert "r_1_1 = g.op.Add(r_1, np.array([1.0], dtype=np.float32))" in code
    (node,) = optimized(model, code).graph.node
    assert (node.domain, node.op_type, list(node.input)) == ("fused", "ModelPattern", ["X", "def"])
    assert list(node.output) == ["Y"]


def test_larger_weights_are_inputs() -> None:
    model = model_of(BODY)
    code = to_graph_pattern_matching(model, "Scaled", domain="mine", max_elements=1)
    (node,) = optimized(model, code, "Scaled").graph.node
    assert (node.domain, node.op_type) == ("mine", "Scaled")
    assert list(node.input) == ["X", "def", "weight"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float[1] one = {1}", "float[1] one = {2}"),
        ("Sub (both", "Add (both"),
        ("s = 1> (b", "s = 0> (b"),
    ],
    ids=["constant", "operator", "attribute"],
)
def test_another_model_is_not(before: str, after: str) -> None:
    other = model_of(BODY.replace(before, after))
    assert other != model_of(BODY)
    found = optimized(other, to_graph_pattern_matching(model_of(BODY)))
    assert len(found.graph.node) == 5


def test_an_input_with_a_default_value_is_an_input() -> None:
    model = model_of(BODY.replace("float[a, 4] def)", "float[a, 4] def, float[1] one)"))
    (node,) = optimized(model, to_graph_pattern_matching(model)).graph.node
    assert list(node.input) == ["X", "def", "one"]


def test_domains_missing_inputs_and_several_results() -> None:
    model = model_of(
        """
        agraph (float[a, 4] X) => (float[a, 2] Y, float[a, 4] Z)
        {
           Z = other.Special <alpha = 0.5> (X)
           c = Clip (Z, , top)
           first, Y = Split <axis = 1, num_outputs = 2> (c)
        }
        """.replace("agraph (float[a, 4] X)", "agraph (float[a, 4] X, float top)")
    )
    (node,) = optimized(model, to_graph_pattern_matching(model)).graph.node
    assert list(node.input) == ["X", "top"]
    assert list(node.output) == ["Y", "Z"]


@pytest.mark.parametrize(
    ("body", "name", "message"),
    [
        ("agraph (float[a] X) => (float[a] X) { }", "P", "no node"),
        (BODY, "class", "class_name must be"),
        (
            BODY + '<domain: "d", opset_import: ["" : 18]> F (x) => (y) { y = Neg (x) }',
            "P",
            "local",
        ),
    ],
    ids=["empty", "name", "functions"],
)
def test_refused(body: str, name: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        to_graph_pattern_matching(model_of(body), name)
