"""Rewrites into operators of ONNX, by subject. The catalogue finds every module by itself."""
