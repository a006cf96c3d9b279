"""Merges a Gemm and the activation after it: FusedGemm."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel

#: activation -> its attributes, with their default values
ACTIVATIONS: dict[str, dict[str, float]] = {
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Relu": {},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"alpha": 1.0},
}


@rewrite("onnxruntime", root="Gemm", read_by=ACTIVATIONS, priority="later", precision="rounding")
def fused_gemm(g: RewriteContext, gemm: NodeProto) -> dict[str, NewNode]:
    """Relu(Gemm(a, b, c)) -> com.microsoft.FusedGemm(a, b, c, activation=Relu), in float, on CPU.

    1. Elu, HardSigmoid, LeakyRelu, Selu, Sigmoid, Softplus, Softsign, Tanh, ThresholdedRelu as
       well.

    onnxruntime does the same when it loads the model: nodes are saved, not time.
    """
    node = g.known(g.after_or_none(gemm, *ACTIVATIONS), "an activation is not the only use")
    require_kernel(g, "FusedGemm", gemm.input[0])
    parameters = {
        f"activation_{name}": g.get_attribute_with_default(node, name, default)
        for name, default in ACTIVATIONS[node.op_type].items()
    }
    own = {a.name: a for a in gemm.attribute if a.name != "broadcast"}
    new = g.op.FusedGemm(
        *g.inputs(gemm), domain=MICROSOFT, activation=node.op_type, **parameters, **own
    )
    return {node.output[0]: new}
