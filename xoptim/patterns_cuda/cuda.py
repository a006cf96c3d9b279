"""Conditions of the operators that onnx-extended has for CUDA."""

from __future__ import annotations

from onnx import TensorProto

from ..authoring import RewriteContext

#: types they compute with
CUDA_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16})


def require_cuda(g: RewriteContext, name: str) -> None:
    """Refuses unless the model runs on CUDA and a result has a type the operators know."""
    g.require(g.has_processor("CUDA"), "the processor is not CUDA")
    g.require(g.type_or_none(name) in CUDA_FLOATS, "the type is not float nor float16")
