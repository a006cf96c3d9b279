"""Attention of onnxruntime: packed, shared, with a cache, with rotary positions."""
