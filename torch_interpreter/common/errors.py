"""Errors raised by the conversion of a torch model."""

from __future__ import annotations

from xbuilder.errors import XoptimError


class FunctionNotFoundError(XoptimError, RuntimeError):
    """No converter is registered for an operator met in the graph.

    Example::

        >>> import torch
        >>> from torch_interpreter import to_onnx
        >>> class Model(torch.nn.Module):
        ...     def forward(self, x):
        ...         return torch.special.airy_ai(x)
        >>> try:
        ...     to_onnx(Model(), (torch.ones(3),))
        ... except FunctionNotFoundError as e:
        ...     print("airy_ai" in str(e))
        True
    """


class ExportError(XoptimError, RuntimeError):
    """torch.export failed; the message says which strategy and what to try next.

    Example::

        >>> import torch
        >>> from torch_interpreter import to_onnx
        >>> class Model(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x if x.sum() > 0 else -x
        >>> try:
        ...     to_onnx(Model(), (torch.ones(3),))
        ... except ExportError as e:
        ...     print(str(e).splitlines()[0])
        torch.export failed (strategy default).
    """


class ConversionError(XoptimError, RuntimeError):
    """A converter failed on one node; the message names the node and its source line.

    Example::

        >>> import torch
        >>> from torch_interpreter import to_onnx
        >>> class Model(torch.nn.Module):
        ...     def forward(self, x):
        ...         return torch.abs(x)
        >>> try:
        ...     to_onnx(Model(), (torch.ones(3, dtype=torch.complex64),))
        ... except ConversionError as e:
        ...     print("complex" in str(e))
        True
    """


class ValidationError(XoptimError, RuntimeError):
    """The ONNX model and the torch model disagree.

    Example::

        >>> import torch
        >>> from torch_interpreter import Dispatcher, to_onnx
        >>> class Model(torch.nn.Module):
        ...     def forward(self, x):
        ...         return torch.abs(x)
        >>> def wrong(g, sts, outputs, x):
        ...     return g.op.Neg(x, outputs=outputs)
        >>> wrong = Dispatcher({"aten::abs": wrong})
        >>> try:
        ...     to_onnx(Model(), (torch.ones(3),), dispatcher=wrong, validate_onnx=True)
        ... except ValidationError as e:
        ...     print("relative difference" in str(e))
        True
    """


def add_note(error: BaseException, note: str) -> None:
    """Adds a note to an error, as ``error.add_note`` does from python 3.11."""
    vars(error).setdefault("__notes__", []).append(note)


def first_line(e: Exception) -> str:
    """The type of an error and the first line of its message."""
    return f"{type(e).__name__}: {(str(e).splitlines() or [''])[0]}"
