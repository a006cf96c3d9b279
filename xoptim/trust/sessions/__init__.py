"""Sessions of onnxruntime: of a model, of a node, in another process."""
