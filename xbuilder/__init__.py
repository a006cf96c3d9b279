"""Builds and holds an ONNX model, infers the facts of its results, runs passes on it."""

from __future__ import annotations

from .builder.graph_builder import GraphBuilder
from .builder.optimization_options import OptimizationOptions
from .errors import (
    ExternalDataError,
    FactError,
    InvalidModelError,
    OptionError,
    PatternError,
    XoptimError,
)
from .facts.facts import ResultFacts
from .facts.virtual_tensor import VirtualTensor
from .options import FunctionOptions, InferShapesOptions, OrderAlgorithm
from .protos.pretty import pretty_onnx
from .protos.python_code import to_graph_builder_code
from .shapes import register_shape_function

__all__ = [
    "ExternalDataError",
    "FactError",
    "FunctionOptions",
    "GraphBuilder",
    "InferShapesOptions",
    "InvalidModelError",
    "OptimizationOptions",
    "OptionError",
    "OrderAlgorithm",
    "PatternError",
    "ResultFacts",
    "VirtualTensor",
    "XoptimError",
    "pretty_onnx",
    "register_shape_function",
    "to_graph_builder_code",
]
