"""The parameters of a conversion, checked before a long export."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xbuilder import FunctionOptions, OptimizationOptions
from xbuilder.errors import OptionError
from xbuilder.files.model_formats import check_writable_format
from xbuilder.support.argument_types import PATH, check_names, check_type

from ..common.export_options import ExportOptions
from ..dispatch.dispatcher import Dispatcher
from ..inputs.leaf_names import CACHE_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """The parameters of :func:`torch_interpreter.to_onnx`, which documents them.

    :raises OptionError: a parameter has another type, or the file cannot be written
    """

    mod: torch.nn.Module | torch.export.ExportedProgram
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    input_names: Sequence[str] | None
    target_opset: int | Mapping[str, int] | None
    as_function: bool
    options: OptimizationOptions | None
    verbose: int
    return_builder: bool
    raise_list: set[str] | None
    dynamic_shapes: Any
    optimize: bool
    dispatcher: Dispatcher | None
    large_model: bool
    external_threshold: int
    export_options: ExportOptions
    return_optimize_report: bool
    filename: str | Path | None
    inline: bool
    export_modules_as_functions: bool | set[type[torch.nn.Module]]
    function_options: FunctionOptions | None
    output_names: Sequence[str] | None
    output_dynamic_shapes: Any
    validate_onnx: bool | float
    cache_names: str | None = None

    def __post_init__(self) -> None:
        """Refuses at once the parameters that would fail after the export."""
        self._check_types()
        self._check_data()
        if self.filename:
            _check_file(self.filename)

    def _check_types(self) -> None:
        opsets = "an opset or a dictionary of opsets"
        check_type("options", self.options, OptimizationOptions, optional=True)
        check_type("dispatcher", self.dispatcher, Dispatcher, optional=True)
        check_type("function_options", self.function_options, FunctionOptions, optional=True)
        check_type("target_opset", self.target_opset, (int, Mapping), opsets, optional=True)
        check_type("verbose", self.verbose, int, "an integer", optional=True)
        threshold = self.external_threshold
        check_type("external_threshold", threshold, int, "a number of bytes", optional=True)
        check_type("filename", self.filename, PATH, "a path", optional=True)
        check_names("input_names", self.input_names, optional=True)
        check_names("output_names", self.output_names, optional=True)
        check_names("raise_list", self.raise_list, optional=True)
        if self.cache_names not in (None, *CACHE_NAMES):
            raise OptionError(
                f"cache_names expects None or one of {list(CACHE_NAMES)}, not {self.cache_names!r}."
            )
        if not isinstance(self.validate_onnx, bool | float | int):
            raise OptionError(
                f"validate_onnx expects a bool or a tolerance, not {self.validate_onnx!r}."
            )

    def _check_data(self) -> None:
        """A comparison needs a model, and tensors with data."""
        if self.validate_onnx and self.export_options.fake:
            raise OptionError("validate_onnx needs data, fake=True is for tensors without data.")
        if self.validate_onnx and self.as_function:
            raise OptionError("validate_onnx needs a model, as_function=True produces a function.")


def _check_file(filename: str | Path) -> None:
    check_writable_format(filename)
    folder = Path(filename).absolute().parent
    if not folder.is_dir() or Path(filename).is_dir():
        what = "is a folder" if folder.is_dir() else "is in no existing folder"
        raise OptionError(f"filename={str(filename)!r} {what}, the name of a file is expected.")
    if not os.access(folder, os.W_OK):
        raise OptionError(f"filename={str(filename)!r} is in a folder which is not writable.")
