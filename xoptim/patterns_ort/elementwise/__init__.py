"""Activations fused by onnxruntime, operators it has no kernel for."""
