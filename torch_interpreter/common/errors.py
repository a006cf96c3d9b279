"""Errors raised by the conversion of a torch model."""

from __future__ import annotations

from xbuilder.errors import XoptimError


class FunctionNotFoundError(XoptimError, RuntimeError):
    """No converter is registered for an operator met in the graph."""


class ExportError(XoptimError, RuntimeError):
    """torch.export failed; the message says which strategy and what to try next."""


class ConversionError(XoptimError, RuntimeError):
    """A converter failed on one node; the message names the node and its source line."""


class ValidationError(XoptimError, RuntimeError):
    """The ONNX model and the torch model disagree."""


def add_note(error: BaseException, note: str) -> None:
    """Adds a note to an error, as ``error.add_note`` does from python 3.11."""
    vars(error).setdefault("__notes__", []).append(note)


def first_line(e: Exception) -> str:
    """The type of an error and the first line of its message."""
    return f"{type(e).__name__}: {(str(e).splitlines() or [''])[0]}"
