"""The forms of a model that a user gives: files, protos, other libraries, torch modules."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from xbuilder.errors import OptionError, XoptimError


def model_source(
    model: Any, args: Any, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any
) -> Any:
    """Reads any form of a model as a path or a proto.

    :param model: see :func:`xoptim.optimize`
    :param args: positional arguments of a torch module
    :param kwargs: its named arguments
    :param dynamic_shapes: its dynamic dimensions
    :raises OptionError: a torch module without arguments, or arguments without a torch module
    :raises XoptimError: the bytes are no model
    """
    if _is_torch(model):
        if args is None and not kwargs:
            raise OptionError(
                f"{type(model).__name__} is a torch module: give args=, an example of its "
                "arguments, to convert it."
            )
        to_onnx = importlib.import_module("torch_interpreter").to_onnx
        return to_onnx(model, args, kwargs, dynamic_shapes=dynamic_shapes, optimize=False)
    if args is not None or kwargs or dynamic_shapes is not None:
        raise OptionError("args, kwargs and dynamic_shapes are for a torch module.")
    if isinstance(model, (str, os.PathLike)):
        return Path(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parsed(bytes(model))
    if type(model).__module__.startswith(("onnx_ir", "onnxscript")):
        import onnx_ir

        return onnx_ir.to_proto(model)
    return getattr(model, "model_proto", model)


def _parsed(content: bytes) -> onnx.ModelProto:
    """The model of a serialized one."""
    try:
        model = onnx.load_from_string(content)
    except Exception as e:
        raise XoptimError(f"these {len(content)} bytes are no ONNX model: {e}") from e
    return model


def _is_torch(model: Any) -> bool:
    """Whether a model is a module of torch, which is not imported for that."""
    return any(
        f"{c.__module__}.{c.__qualname__}" == "torch.nn.modules.module.Module"
        for c in type(model).__mro__
    )
