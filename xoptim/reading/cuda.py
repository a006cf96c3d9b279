"""CUDA operators of onnx-extended: their names, their types, where they run."""

from __future__ import annotations

from onnx import TensorProto

from ..api import RewriteContext

#: domain of the operators
CUDA_DOMAIN = "onnx_extended.ortops.optim.cuda"
#: elementwise operators
CUDA_UNARY = ("MulSigmoid", "NegXplus1", "ReplaceZero")
#: types they compute with
CUDA_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16})


def require_cuda(g: RewriteContext, name: str) -> None:
    """Refuses unless the model runs on CUDA and a result has a type the operators know.

    :param g: the optimizer
    :param name: the result
    """
    g.require(g.has_processor("CUDA"), "the processor is not CUDA")
    g.require(g.try_infer_type(name) in CUDA_FLOATS, "the type is not float nor float16")
