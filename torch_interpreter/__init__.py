"""Converts torch models into ONNX. torch.export gives a graph, each operator has one converter."""

from xbuilder import FunctionOptions

from .dispatcher import Dispatcher, ForceDispatcher
from .dynamic_shapes import make_undefined_dimension
from .errors import ConversionError, ExportError, FunctionNotFoundError, ValidationError
from .export_options import ExportOptions
from .fallback import OnnxScriptDispatcher
from .function_plan import get_default_aten_as_function
from .inputs import match_input_parameters
from .missing_weights import add_weights
from .registry import aten, registered_names
from .to_onnx import to_onnx

__all__ = [
    "ConversionError",
    "Dispatcher",
    "ExportError",
    "ExportOptions",
    "ForceDispatcher",
    "FunctionNotFoundError",
    "FunctionOptions",
    "OnnxScriptDispatcher",
    "ValidationError",
    "add_weights",
    "aten",
    "get_default_aten_as_function",
    "make_undefined_dimension",
    "match_input_parameters",
    "registered_names",
    "to_onnx",
]
