"""Changes a user asks for by name: the opset of a model."""
