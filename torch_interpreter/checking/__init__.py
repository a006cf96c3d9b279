"""Weights without data, comparison of the ONNX model with the torch model."""
