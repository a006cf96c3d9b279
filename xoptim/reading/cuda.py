"""Operators onnx-extended has for CUDA."""

from __future__ import annotations

#: their domain
CUDA_DOMAIN = "onnx_extended.ortops.optim.cuda"
#: those of one element at a time
CUDA_UNARY = ("MulSigmoid", "NegXplus1", "ReplaceZero")
