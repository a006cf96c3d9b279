"""Builds and holds an ONNX model, infers the facts of its results, runs passes on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .support.lazy_names import lazy_names

if TYPE_CHECKING:
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

HOMES = {
    ".builder.graph_builder": ("GraphBuilder",),
    ".builder.optimization_options": ("OptimizationOptions",),
    ".errors": (
        "ExternalDataError",
        "FactError",
        "InvalidModelError",
        "OptionError",
        "PatternError",
        "XoptimError",
    ),
    ".facts.facts": ("ResultFacts",),
    ".facts.virtual_tensor": ("VirtualTensor",),
    ".options": ("FunctionOptions", "InferShapesOptions", "OrderAlgorithm"),
    ".protos.pretty": ("pretty_onnx",),
    ".protos.python_code": ("to_graph_builder_code",),
    ".shapes": ("register_shape_function",),
}
__getattr__ = lazy_names(__name__, HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
