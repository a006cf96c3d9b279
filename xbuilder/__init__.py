"""Builds and holds an ONNX model, infers the facts of its results, runs passes on it."""

from __future__ import annotations

from .support.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
