"""No Identity is left on elements that share a byte: onnxruntime has no kernel for it."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.runtimes.sessions import plain_session

NODE = helper.make_node
# every graph makes c from x, then y which is the same as c
SAME = {
    "transposed twice": [
        NODE("Transpose", ["c"], ["t"], perm=[1, 0]),
        NODE("Transpose", ["t"], ["y"], perm=[1, 0]),
    ],
    "transposed for nothing": [NODE("Transpose", ["c"], ["y"], perm=[0, 1])],
}


def _optimized(nodes, itype, outputs, expect_warning):
    values = [helper.make_tensor_value_info(name, itype, [2, 3]) for name in outputs]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph([NODE("Cast", ["x"], ["c"], to=itype), *nodes], "g", [x], values)
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = OptimizationOptions(patterns="default")

    def optimize():
        return GraphBuilder(model, optimization_options=options).to_onnx()

    if expect_warning:
        with pytest.warns(UserWarning, match="no runtime has the Identity output 'y' would need"):
            onx = optimize()
    else:
        onx = optimize()
    onnx.checker.check_model(onx)
    # onnxruntime makes such an Identity itself when it optimizes
    plain_session(onx.SerializeToString())
    return [n.op_type for n in onx.graph.node]


@pytest.mark.parametrize("itype", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("nodes", SAME.values(), ids=list(SAME))
def test_an_output_equal_to_another_one(nodes, itype):
    types = ["Cast", *(n.op_type for n in nodes)]
    assert _optimized(nodes, itype, ["c", "y"], True) == types
    assert _optimized(nodes, TensorProto.INT8, ["c", "y"], False) == ["Cast", "Identity"]
    # the Identity goes: the other result takes its name
    assert _optimized(nodes, itype, ["y"], False) == ["Cast"]


def test_equal_nodes():
    twin = [NODE("Cast", ["x"], ["y"], to=TensorProto.INT4)]
    assert _optimized(twin, TensorProto.INT4, ["c", "y"], True) == ["Cast", "Cast"]
    assert _optimized(twin, TensorProto.INT4, ["y"], False) == ["Cast"]
