"""Prevents onnxruntime from fusing an addition and a LayerNormalization where that is slower."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import WIDE_FLOATS
from xbuilder.runtimes.processors import processors_of

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...catalogue.speed_gates import find_speed_gate

#: name, in the measures, of the kernel of onnxruntime for an addition and a LayerNormalization
ON_CPU = "SkipLayerNormalization(on_cpu=True)"


@rewrite(
    "default",
    "uncanonicalize",
    root="LayerNormalization",
    after="Add",
    behind="LeadingUnsqueeze",
    min_opset=8,
    priority="last",
    sole_use=True,
)
def sum_layer_normalization(g: RewriteContext, node: NodeProto) -> NewNode:
    """LayerNormalization(a + b) -> LayerNormalization(Sum(a, b)), which onnxruntime does not fuse.

    When it loads a model, onnxruntime fuses both into a SkipLayerNormalization, which takes 3 to 6
    times longer on a CPU. It does so because of shapes that other rewrites make known.

    1. the model is only meant for processors where SkipLayerNormalization was measured slower;
    2. a and b have the same shape, of rank 3: onnxruntime does not fuse the others;
    3. they are in float or in double, which every runtime adds with Sum.
    """
    measured = [find_speed_gate(ON_CPU, p, g.processor) for p in processors_of(g.processor)]
    slower = all(gate is not None and not gate.kept for gate in measured)
    g.require(slower, "SkipLayerNormalization was not measured slower")
    add = g.before(node, "Add")
    rank = len(g.shape_of(add.output[0]))
    g.require(rank == 3 and g.same_shape(*add.input), "onnxruntime does not fuse this addition")
    known = g.type_or_none(add.input[0]) in WIDE_FLOATS
    g.require(known, "runtimes may have no Sum for this type")
    return g.rewired(node, {add.output[0]: g.op.Sum(*add.input)})
