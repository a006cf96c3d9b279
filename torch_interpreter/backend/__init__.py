"""A backend of torch.compile: graphs, forward and backward, become models onnxruntime runs."""
