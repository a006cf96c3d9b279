"""Converts a torch model into ONNX.

::

    onx = to_onnx(model, (x,), input_names=["x"], dynamic_shapes={"x": {0: "batch"}})
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

from xbuilder import FunctionOptions, GraphBuilder, OptimizationOptions
from xbuilder.builder.optimization_options import as_options
from xbuilder.errors import OptionError
from xbuilder.files.model_container import save_model
from xbuilder.files.model_files import write_file
from xbuilder.runtimes.custom_operators import loading_message
from xbuilder.runtimes.sessions import quiet_options
from xbuilder.support.argument_types import check_type

from .checking.validation import validate
from .common.errors import ValidationError
from .common.export_options import ExportOptions
from .conversion.building import build
from .conversion.export_request import ExportRequest
from .conversion.function_plan import FunctionPlan, make_plan
from .dispatch.dispatcher import Dispatcher
from .exporting.program import prepare
from .exporting.torch_program import TorchProgram
from .inputs.caches import register_caches
from .inputs.dataclasses import flattened_dataclasses
from .inputs.inputs import split_arguments, without_wrapper
from .patches.autocast import without_autocast

MIN_OPSET = 9
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
    options: OptimizationOptions | str | None = None,
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
    cache_names: str | None = None,
) -> Any:
    """Converts a torch model into ONNX through torch.export.

    :param mod: module, fx graph (as torch.compile gives to a backend) or exported program
    :param args: positional arguments, or a dictionary of named arguments
    :param kwargs: named arguments
    :param input_names: names of the inputs, the names of the arguments by default
    :param target_opset: opset, 9 or more, or opsets by domain, 18 by default
    :param as_function: returns a FunctionProto
    :param options: optimizations, or the names of patterns, `"default+onnxruntime"`
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
    :param inline: inlines the branches of torch.cond, and local functions but those asked for below
    :param export_modules_as_functions: True, or a set of classes: every call of a submodule (of one
        of these classes) becomes a call to a local function, the weights are its last inputs
    :param function_options: local functions: domain, ``inline``, ``move_initializer_to_constant``
    :param output_names: names of the outputs but None, their keys or ``output_<i>`` by default
    :param output_dynamic_shapes: names of the dimensions of each output, ``{axis: name}``
    :param validate_onnx: compares with torch, a float is the tolerance (1e-4 by default)
    :param cache_names: ``"genai"`` names the inputs of a cache ``past_key_values.<layer>.key``
    :return: a proto, ``(proto, builder)``, ``(proto, report)`` or all three
    :raises ExportError: and FunctionNotFoundError, ConversionError, OptionError, ValidationError
    """
    arguments, named = split_arguments(args, kwargs)
    return _convert(
        ExportRequest(
            mod=without_wrapper(mod),
            args=arguments,
            kwargs=named,
            input_names=input_names,
            target_opset=target_opset,
            as_function=as_function,
            options=as_options(options, "options"),
            verbose=verbose,
            return_builder=return_builder,
            raise_list=raise_list,
            dynamic_shapes=dynamic_shapes,
            optimize=optimize,
            dispatcher=dispatcher,
            large_model=large_model,
            external_threshold=external_threshold,
            export_options=_export_options(export_options),
            return_optimize_report=return_optimize_report,
            filename=filename,
            inline=inline,
            export_modules_as_functions=export_modules_as_functions,
            function_options=function_options,
            output_names=output_names,
            output_dynamic_shapes=output_dynamic_shapes,
            validate_onnx=validate_onnx,
            cache_names=cache_names,
        )
    )


def _convert(request: ExportRequest) -> Any:
    """The steps of a conversion."""
    plan = _plan(request)
    builder = GraphBuilder(
        _opsets(request.target_opset),
        as_function=request.as_function,
        optimization_options=request.options,
        verbose=max(request.verbose - 1, 0),
        raise_list=request.raise_list,
    )
    arguments = request.args, request.kwargs
    with without_autocast(request.mod), flattened_dataclasses(request.mod, arguments):
        return _build(request, builder, plan)


def _build(request: ExportRequest, builder: GraphBuilder, plan: FunctionPlan | None) -> Any:
    """Exports a model and fills a builder with it."""
    program = export_with_torch(
        request.mod,
        request.args,
        request.kwargs,
        request.dynamic_shapes,
        request.export_options,
        request.dispatcher,
        request.verbose,
    )
    build(builder, program, request, plan)
    if plan is not None:
        _check_functions(builder.functions, request.export_modules_as_functions)
    # the functions the user asks for are kept
    onx, report = builder.to_onnx(
        optimize=request.optimize,
        large_model=request.large_model,
        external_threshold=request.external_threshold,
        return_optimize_report=True,
        inline=request.inline and plan is None,
        function_options=request.function_options if plan is None else None,
    )
    # a model that is wrong is not saved, but a container needs its files to run
    if isinstance(onx, onnx.ModelProto):
        _validate(onx, program, request)
        _save(onx, request)
    else:
        _save(onx, request)
        _validate(onx, program, request)
    result = [onx]
    if request.return_builder:
        result.append(builder)
    if request.return_optimize_report:
        result.append(report)
    return result[0] if len(result) == 1 else tuple(result)


def export_with_torch(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    export_options: ExportOptions | str | None,
    dispatcher: Dispatcher | None = None,
    verbose: int = 0,
) -> TorchProgram:
    """Exports a model with torch, as :func:`to_onnx` does: results have the same names.

    :param mod: module or exported program
    :param args: positional arguments
    :param kwargs: named arguments
    :param dynamic_shapes: as for :func:`to_onnx`
    :param export_options: as for :func:`to_onnx`
    :param dispatcher: converters of the user
    :param verbose: verbosity
    """
    mod = without_wrapper(mod)
    register_caches(args, kwargs, mod)
    options = _export_options(export_options)
    with _EXPORTS, without_autocast(mod):
        return prepare(mod, args, kwargs, dynamic_shapes, options, dispatcher, verbose)


def _plan(request: ExportRequest) -> FunctionPlan | None:
    """The plan of local functions, None if nothing becomes one."""
    operators = request.export_options.aten_as_function
    if operators is None and not (request.inline or request.as_function):
        operators = {"cond"}
    plan = make_plan(
        request.mod,
        request.export_modules_as_functions,
        operators,
        request.function_options,
    )
    if request.as_function and plan is not None:
        raise OptionError(
            "as_function=True produces one function, it cannot be used with "
            "export_modules_as_functions nor aten_as_function."
        )
    return plan


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


def _save(onx: Any, request: ExportRequest) -> None:
    if not request.filename:
        return
    if isinstance(onx, onnx.FunctionProto):
        write_file(request.filename, onx.SerializeToString())
    else:
        save_model(onx, request.filename, size_threshold=request.external_threshold)


def _validate(onx: Any, program: TorchProgram, request: ExportRequest) -> None:
    if not request.validate_onnx:
        return
    import onnxruntime

    mod, args, kwargs = request.mod, request.args, request.kwargs
    if isinstance(mod, torch.export.ExportedProgram):
        if not args and not kwargs:
            args, kwargs = mod.example_inputs
        mod = mod.module()
    if not isinstance(onx, onnx.ModelProto) and not request.filename:
        raise OptionError("validate_onnx on a large model needs a filename.")
    source = onx.SerializeToString() if isinstance(onx, onnx.ModelProto) else request.filename
    try:
        session = onnxruntime.InferenceSession(
            source, quiet_options(), providers=["CPUExecutionProvider"]
        )
    except Exception as e:
        raise ValidationError(f"onnxruntime does not load the model: {loading_message(e)}") from e
    validate(
        lambda feeds: session.run(None, feeds),
        mod,
        args,
        kwargs,
        program.inputs,
        program.specs,
        1e-4 if request.validate_onnx is True else float(request.validate_onnx),
        request.verbose,
    )
