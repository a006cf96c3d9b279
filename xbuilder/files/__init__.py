"""Bytes on disk: external data, sources of tensors, model files and formats."""
