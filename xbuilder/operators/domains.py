"""Names of the domains this project knows beside the main one."""

from __future__ import annotations

#: contrib operators of onnxruntime
MICROSOFT = "com.microsoft"
#: operators onnx-extended has for CUDA
CUDA_DOMAIN = "onnx_extended.ortops.optim.cuda"
#: those of them that compute each element from the one at the same place
CUDA_UNARY = ("MulSigmoid", "NegXplus1", "ReplaceZero")


def main_domain(domain: str) -> str:
    """Normalises the name of a domain: `ai.onnx` is the empty one."""
    return "" if domain == "ai.onnx" else domain
