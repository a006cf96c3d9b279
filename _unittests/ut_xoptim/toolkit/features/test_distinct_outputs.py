"""Outputs that are inputs, outputs given twice."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import MatchResult, PatternOptimization
from xoptim.testing import model_from_text, run_onnxruntime
from xoptim.toolkit.features import DistinctOutputs
from xoptim.toolkit.features.distinct_outputs import aliases, separate_outputs

TEXT = """agraph (float[a] X) => (float[a] Y, float[1] w) <float[1] w = {1}> {
    n = Neg(X) Y = Relu(n) }"""


def aliased() -> onnx.ModelProto:
    """A model which gives Y twice, its input and an initializer."""
    model = model_from_text(TEXT)
    for info in (model.graph.output[0], model.graph.input[0]):
        copy = onnx.ValueInfoProto()
        copy.CopyFrom(info)
        model.graph.output.append(copy)
    return model


def test_aliases() -> None:
    graph = GraphBuilder(aliased()).graph
    assert list(aliases(graph)) == [
        (1, "output 1 is 'w', which no node gives"),
        (2, "output 2 is 'Y', which is another output"),
        (3, "output 3 is 'X', which no node gives"),
    ]
    assert DistinctOutputs().validate(graph) == "output 1 is 'w', which no node gives"
    assert separate_outputs(graph) == 3 and separate_outputs(graph) == 0
    assert DistinctOutputs().validate(graph) == ""


def test_an_optimized_model_has_no_alias() -> None:
    options = OptimizationOptions(patterns="default", features=[DistinctOutputs()])
    builder = GraphBuilder(aliased(), infer_shapes_options=True, optimization_options=options)
    model = builder.to_onnx()
    onnx.checker.check_model(model, full_check=True)
    names = [output.name for output in model.graph.output]
    assert names == ["Y", "w_output", "Y_output", "X_output"]
    x = np.array([-1, 1], np.float32)
    y, w, again, same = run_onnxruntime(model, {"X": x})
    assert y.tolist() == again.tolist() == [1, 0]
    assert same.tolist() == x.tolist() and w.tolist() == [1]
    shapes = [[d.dim_param for d in o.type.tensor_type.shape.dim] for o in model.graph.output]
    assert shapes == [["a"], [""], ["a"], ["a"]], "they keep the types they had"


class Aliasing(PatternOptimization):
    """Makes an output of the graph an input of it, which no pattern should do."""

    roots = ("Relu",)

    def match(self, g, node, matched):
        return MatchResult(self, [node], self.apply)

    def apply(self, g, node):
        g.graph.output_specs[0].name = "X"
        return [g.make_node("Abs", [node.input[0]], [node.output[0]])]


def test_a_rewrite_that_makes_an_alias_is_refused() -> None:
    options = OptimizationOptions(patterns=[Aliasing()], features=[DistinctOutputs()])
    builder = GraphBuilder(model_from_text(TEXT), optimization_options=options)
    with pytest.warns(UserWarning, match="DistinctOutputs refuses it: output 0 is 'X'"):
        builder.optimize()
    assert [node.op_type for node in builder.nodes][:2] == ["Neg", "Relu"]
