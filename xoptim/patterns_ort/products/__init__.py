"""Products and convolutions fused by onnxruntime."""
