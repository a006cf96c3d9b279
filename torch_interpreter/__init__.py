"""Converts torch models into ONNX. torch.export gives a graph, each operator has one converter."""

from xbuilder import FunctionOptions

from .backend.onnx_backend import OnnxBackend
from .checking.missing_weights import add_weights
from .common.errors import ConversionError, ExportError, FunctionNotFoundError, ValidationError
from .common.export_options import ExportOptions
from .compare_with_torch import compare_with_torch
from .conversion.function_plan import get_default_aten_as_function
from .dispatch.dispatcher import Dispatcher, ForceDispatcher
from .dispatch.fallback import OnnxScriptDispatcher
from .exporting.tracing import CustomTracer
from .inputs.dynamic_shapes import make_undefined_dimension
from .inputs.inputs import match_input_parameters
from .inputs.observed_calls import ObservedCalls, observe_calls
from .piece_by_piece import Piece, export_piece_by_piece
from .to_onnx import to_onnx
from .writing.registry import aten, registered_names

__all__ = [
    "ConversionError",
    "CustomTracer",
    "Dispatcher",
    "ExportError",
    "ExportOptions",
    "ForceDispatcher",
    "FunctionNotFoundError",
    "FunctionOptions",
    "ObservedCalls",
    "OnnxBackend",
    "OnnxScriptDispatcher",
    "Piece",
    "ValidationError",
    "add_weights",
    "aten",
    "compare_with_torch",
    "export_piece_by_piece",
    "get_default_aten_as_function",
    "make_undefined_dimension",
    "match_input_parameters",
    "observe_calls",
    "registered_names",
    "to_onnx",
]
