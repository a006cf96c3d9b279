"""Normalizations fused by onnxruntime."""
