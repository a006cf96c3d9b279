"""Additions before a LayerNormalization, which onnxruntime would fuse where it is slower."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from xbuilder.processors import processors_of

from ..api import NewNode, RewriteContext, rewrite
from ..api.gates import find_gate

#: what measures call the kernel of onnxruntime for an addition and a LayerNormalization
ON_CPU = "SkipLayerNormalization(on_cpu=True)"


@rewrite(
    "default",
    root="LayerNormalization",
    after="Add",
    behind="LeadingUnsqueeze",
    min_opset=8,
    priority="last",
    sole_use=True,
)
def sum_layer_normalization(g: RewriteContext, node: NodeProto) -> NewNode:
    """LayerNormalization(a + b) -> LayerNormalization(Sum(a, b)), which onnxruntime does not fuse.

    When it loads a model, onnxruntime makes a SkipLayerNormalization of the first two: on a CPU it
    takes 3 to 6 times what they take. The shapes other rewrites make known let it do so.

    1. the model is only meant for processors where SkipLayerNormalization was measured slower;
    2. a and b have the same shape, of rank 3: onnxruntime does not fuse the others;
    3. they are in float or in double, which every runtime adds with Sum.
    """
    measured = [find_gate(ON_CPU, p, g.processor) for p in processors_of(g.processor)]
    slower = all(gate is not None and not gate.kept for gate in measured)
    g.require(slower, "SkipLayerNormalization was not measured slower")
    add = g.before(node, "Add")
    rank = len(g.shape_of(add.output[0]))
    g.require(rank == 3 and g.same_shape(*add.input), "onnxruntime does not fuse this addition")
    in_float = g.try_infer_type(add.input[0]) in (TensorProto.FLOAT, TensorProto.DOUBLE)
    g.require(in_float, "runtimes may have no Sum for this type")
    return g.rewired(node, {add.output[0]: g.op.Sum(*add.input)})
