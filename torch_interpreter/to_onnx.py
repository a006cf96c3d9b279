"""Converts a torch model into ONNX.

::

    onx = to_onnx(model, (x,), input_names=["x"], dynamic_shapes={"x": {0: "batch"}})
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

from xbuilder import FunctionOptions, GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xbuilder.files.model_container import save_model
from xbuilder.files.model_files import write_file
from xbuilder.files.model_formats import check_writable_format
from xbuilder.support.argument_types import PATH, check_names, check_type

from .checking.validation import validate
from .common.export_options import ExportOptions
from .conversion.building import build
from .conversion.function_plan import FunctionPlan, make_plan
from .dispatch.dispatcher import Dispatcher
from .exporting.program import Program, prepare
from .inputs.caches import register_caches
from .inputs.inputs import split_arguments

MIN_OPSET = 15
#: the accepted types of the options, None is accepted for all
_TYPES: tuple[tuple[str, Any, str], ...] = (
    ("options", OptimizationOptions, "OptimizationOptions"),
    ("dispatcher", Dispatcher, "Dispatcher"),
    ("function_options", FunctionOptions, "FunctionOptions"),
    ("target_opset", (int, Mapping), "an opset or a dictionary of opsets"),
    ("verbose", int, "an integer"),
    ("external_threshold", int, "a number of bytes"),
    ("filename", PATH, "a path"),
)
#: torch exports one model at a time because its state is global
_EXPORTS = threading.RLock()


def default_opset() -> int:
    """The default opset: 18, or the one before the last onnx knows if it is lower."""
    return min(18, onnx.defs.onnx_opset_version() - 1)


def to_onnx(
    mod: torch.nn.Module | torch.fx.GraphModule | torch.export.ExportedProgram,
    args: Sequence[Any] | Mapping[str, Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    target_opset: int | Mapping[str, int] | None = None,
    as_function: bool = False,
    options: OptimizationOptions | None = None,
    verbose: int = 0,
    return_builder: bool = False,
    raise_list: set[str] | None = None,
    dynamic_shapes: Any = None,
    optimize: bool = True,
    dispatcher: Dispatcher | None = None,
    large_model: bool = False,
    external_threshold: int = 1024,
    export_options: ExportOptions | str | None = None,
    return_optimize_report: bool = False,
    filename: str | Path | None = None,
    inline: bool = True,
    export_modules_as_functions: bool | set[type[torch.nn.Module]] = False,
    function_options: FunctionOptions | None = None,
    output_names: Sequence[str] | None = None,
    output_dynamic_shapes: Any = None,
    validate_onnx: bool | float = False,
) -> Any:
    """Converts a torch model into ONNX through torch.export.

    :param mod: module, fx graph (as torch.compile gives to a backend) or exported program
    :param args: positional arguments, or a dictionary of named arguments
    :param kwargs: named arguments
    :param input_names: names of the inputs, the names of the arguments by default
    :param target_opset: opset, or opsets by domain, 18 by default
    :param as_function: returns a FunctionProto
    :param options: optimizations
    :param verbose: 0 silent, 1 progress bar, 10 prints the exported program
    :param return_builder: returns the GraphBuilder too
    :param raise_list: names of results on which the builder raises, to debug
    :param dynamic_shapes: as for torch.export, a string names a dynamic dimension
    :param optimize: runs the optimizations
    :param dispatcher: converters of the user
    :param large_model: returns a container, big weights are kept out of the proto
    :param external_threshold: size in bytes of a big weight
    :param export_options: an :class:`ExportOptions` or the name of a strategy
    :param return_optimize_report: returns the statistics of the optimizer too, last
    :param filename: saves the model in the format of its extension, whole or not at all
    :param inline: inlines local functions, not those of the next option and of aten_as_function
    :param export_modules_as_functions: True, or a set of classes: every call of a submodule (of one
        of these classes) becomes a call to a local function, the weights are its last inputs
    :param function_options: how local functions are made: their domain, ``inline``, and
        ``move_initializer_to_constant`` to have the weights inside
    :param output_names: names of the outputs which are not None, ``output_<i>`` by default where
        i is the place of the output, None included
    :param output_dynamic_shapes: names of the dimensions of the outputs, ``{axis: name}`` for each
        of them, refused for a constant dimension or one with another name
    :param validate_onnx: compares with torch, a float is the tolerance (1e-4 by default)
    :return: a proto, ``(proto, builder)``, ``(proto, report)`` or all three
    :raises ExportError: and FunctionNotFoundError, ConversionError, OptionError, ValidationError
    """
    return _convert(**locals())


def _convert(*, args: Any, kwargs: Any, **o: Any) -> Any:
    """The steps of a conversion, *o* holds the other parameters of :func:`to_onnx`."""
    _check_types(o)
    export_options = _export_options(o["export_options"])
    plan = make_plan(
        o["mod"],
        o["export_modules_as_functions"],
        export_options.aten_as_function,
        o["function_options"],
    )
    _check_options(plan, o["as_function"], o["validate_onnx"], export_options)
    _check_file(o["filename"])
    opsets = _opsets(o["target_opset"])
    args, kwargs = split_arguments(args, kwargs)
    register_caches(args, kwargs)
    verbose = o["verbose"]
    shapes, dispatcher = o["dynamic_shapes"], o["dispatcher"]
    with _EXPORTS:
        program = prepare(o["mod"], args, kwargs, shapes, export_options, dispatcher, verbose)
    builder = GraphBuilder(
        opsets,
        as_function=o["as_function"],
        optimization_options=o["options"],
        verbose=max(verbose - 1, 0),
        raise_list=o["raise_list"],
    )
    build(
        builder,
        program,
        input_names=o["input_names"],
        output_names=o["output_names"],
        output_dynamic_shapes=o["output_dynamic_shapes"],
        dispatcher=o["dispatcher"],
        verbose=verbose,
        allow_untyped=export_options.allow_untyped_output,
        plan=plan,
        cpu_kernels=export_options.cpu_kernels,
    )
    if plan is not None:
        _check_functions(builder.functions, o["export_modules_as_functions"])
        # the functions the user asks for are kept
        o.update(inline=False, function_options=None)
    names = ("optimize", "large_model", "external_threshold", "inline", "function_options")
    onx, report = builder.to_onnx(return_optimize_report=True, **{n: o[n] for n in names})
    # a model that is wrong is not saved, but a container needs its files to run
    steps = [_save_asked, _validate_asked]
    for step in reversed(steps) if isinstance(onx, onnx.ModelProto) else steps:
        step(onx, program, args, kwargs, o)
    result = [onx]
    if o["return_builder"]:
        result.append(builder)
    if o["return_optimize_report"]:
        result.append(report)
    return result[0] if len(result) == 1 else tuple(result)


def _check_options(
    plan: FunctionPlan | None,
    as_function: bool,
    validate_onnx: bool | float,
    export_options: ExportOptions,
) -> None:
    if validate_onnx and export_options.fake:
        raise OptionError("validate_onnx needs data, fake=True is for tensors without data.")
    if as_function and plan is not None:
        raise OptionError(
            "as_function=True produces one function, it cannot be used with "
            "export_modules_as_functions nor aten_as_function."
        )
    if as_function and validate_onnx:
        raise OptionError("validate_onnx needs a model, as_function=True produces a function.")


def _check_types(o: Mapping[str, Any]) -> None:
    """Refuses at once arguments that would fail after the export."""
    for name, expected, what in _TYPES:
        check_type(name, o[name], expected, what, optional=True)
    for name in ("input_names", "output_names", "raise_list"):
        check_names(name, o[name], optional=True)
    if not isinstance(o["validate_onnx"], bool | float | int):
        raise OptionError(
            f"validate_onnx expects a bool or a tolerance, not {o['validate_onnx']!r}."
        )


def _check_functions(functions: Collection[object], export_modules_as_functions: Any) -> None:
    if export_modules_as_functions and not functions:
        raise OptionError(
            "export_modules_as_functions has no effect: the graph does not say which module a node "
            "comes from (fx graphs and strategy 'jit' lose it), or no submodule is called."
        )


def _export_options(export_options: ExportOptions | str | None) -> ExportOptions:
    if isinstance(export_options, str):
        return ExportOptions(strategy=export_options)
    if not isinstance(export_options, ExportOptions | None):
        raise OptionError(
            f"export_options expects ExportOptions or a strategy, not {export_options!r}."
        )
    return export_options or ExportOptions()


def _opsets(target_opset: int | Mapping[str, int] | None) -> dict[str, int]:
    given = {"": target_opset} if isinstance(target_opset, int) else dict(target_opset or {})
    opsets = {"": default_opset(), **given}
    newest = onnx.defs.onnx_opset_version()
    check_type("target_opset", opsets[""], int, "an opset or a dictionary of opsets")
    if not MIN_OPSET <= opsets[""] <= newest:
        raise OptionError(
            f"target_opset must be between {MIN_OPSET} and {newest}, not {opsets['']}."
        )
    return opsets


def _check_file(filename: str | Path | None) -> None:
    """Refuses a file that cannot be written, before a long export."""
    if not filename:
        return
    check_writable_format(filename)
    folder = Path(filename).absolute().parent
    if not folder.is_dir() or Path(filename).is_dir():
        what = "is a folder" if folder.is_dir() else "is in no existing folder"
        raise OptionError(f"filename={str(filename)!r} {what}, the name of a file is expected.")
    if not os.access(folder, os.W_OK):
        raise OptionError(f"filename={str(filename)!r} is in a folder which is not writable.")


def _save_asked(onx: Any, program: Program, args: Any, kwargs: Any, o: Mapping[str, Any]) -> None:
    if o["filename"]:
        _save(onx, o["filename"], o["external_threshold"])


def _validate_asked(
    onx: Any, program: Program, args: Any, kwargs: Any, o: Mapping[str, Any]
) -> None:
    if o["validate_onnx"]:
        tolerance, verbose = o["validate_onnx"], o["verbose"]
        _validate(onx, o["filename"], o["mod"], args, kwargs, program, tolerance, verbose)


def _save(onx: Any, filename: str | Path, external_threshold: int) -> None:
    if isinstance(onx, onnx.FunctionProto):
        write_file(filename, onx.SerializeToString())
    else:
        save_model(onx, filename, size_threshold=external_threshold)


def _validate(
    onx: Any,
    filename: str | Path | None,
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    program: Program,
    tolerance: bool | float,
    verbose: int,
) -> None:
    import onnxruntime

    if isinstance(mod, torch.export.ExportedProgram):
        if not args and not kwargs:
            args, kwargs = mod.example_inputs
        mod = mod.module()
    if not isinstance(onx, onnx.ModelProto) and not filename:
        raise OptionError("validate_onnx on a large model needs a filename.")
    source = onx.SerializeToString() if isinstance(onx, onnx.ModelProto) else filename
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    validate(
        lambda feeds: session.run(None, feeds),
        mod,
        args,
        kwargs,
        program.inputs,
        program.specs,
        1e-4 if tolerance is True else float(tolerance),
        verbose,
    )
