"""Argument types, close names, rows, pauses of the garbage collector: nothing here knows ONNX."""
