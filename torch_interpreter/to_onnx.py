"""Converts a torch model into ONNX."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch

from xbuilder import FunctionOptions, GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError

from .caches import register_caches
from .dispatcher import Dispatcher
from .dynamic_shapes import (
    DimensionNamer,
    combined_arguments,
    flat_specifications,
    torch_dynamic_shapes,
    user_name,
)
from .export_options import ExportOptions
from .inputs import ModelInput, name_inputs, split_arguments
from .interpreter import Interpreter, fake_value
from .progress import progress_bar
from .strategies import export_program, validate_program
from .validation import validate

InputKind = torch.export.graph_signature.InputKind
OutputKind = torch.export.graph_signature.OutputKind
MIN_OPSET = 15


@dataclass(slots=True)
class _Program:
    """A graph ready to be interpreted.

    :param module: the graph
    :param weights: tensor and name of the placeholders which are weights
    :param inputs: the other placeholders
    :param outputs: what the model returns: fx nodes or python values
    :param specs: dynamic dimensions of each input
    """

    module: torch.fx.GraphModule
    weights: dict[torch.fx.Node, tuple[str, torch.Tensor]]
    inputs: list[ModelInput]
    outputs: list[Any]
    specs: list[Any] = field(default_factory=list)


def default_opset() -> int:
    """18, or the one before the last one onnx knows."""
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
    filename: str | None = None,
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
    :param dynamic_shapes: as for torch.export, strings are accepted as names of dimensions
    :param optimize: runs the optimizations
    :param dispatcher: converters of the user
    :param large_model: returns a container, weights are kept outside of the proto
    :param external_threshold: size (bytes) above which a weight is external in a large model
    :param export_options: an :class:`ExportOptions` or the name of a strategy
    :param return_optimize_report: returns the statistics of the optimizer too, last
    :param filename: saves the model
    :param inline: inlines the local functions
    :param export_modules_as_functions: not supported yet
    :param function_options: how local functions are made
    :param output_names: names of the outputs, ``output_<i>`` by default
    :param output_dynamic_shapes: names of the dynamic dimensions of the outputs
    :param validate_onnx: compares with torch, a float is the tolerance (1e-4 by default)
    :return: a proto, or ``(proto, builder)``, or ``(proto, report)``, or all three
    :raises ExportError: torch.export failed
    :raises FunctionNotFoundError: an operator has no converter
    :raises OptionError: an option is wrong or not supported
    :raises ValidationError: *validate_onnx* found a difference

    ::

        onx = to_onnx(model, (x,), input_names=["x"], dynamic_shapes={"x": {0: "batch"}})
    """
    _check_options(export_modules_as_functions, as_function, validate_onnx)
    export_options = _export_options(export_options)
    opsets = _opsets(target_opset)
    args, kwargs = split_arguments(args, kwargs)
    register_caches(args, kwargs)
    program = _prepare(mod, args, kwargs, dynamic_shapes, export_options, verbose)
    builder = _new_builder(opsets, as_function, options, verbose, raise_list)
    _interpret(
        builder,
        program,
        input_names=input_names,
        output_names=output_names,
        output_dynamic_shapes=output_dynamic_shapes,
        dispatcher=dispatcher,
        verbose=verbose,
        allow_untyped=export_options.allow_untyped_output,
    )
    onx, report = builder.to_onnx(
        optimize=optimize,
        large_model=large_model,
        external_threshold=external_threshold,
        return_optimize_report=True,
        inline=inline,
        function_options=function_options,
    )
    if filename:
        _save(onx, filename)
    if validate_onnx:
        _validate(onx, filename, mod, args, kwargs, program, validate_onnx, verbose)
    result = [onx]
    if return_builder:
        result.append(builder)
    if return_optimize_report:
        result.append(report)
    return result[0] if len(result) == 1 else tuple(result)


def _check_options(
    export_modules_as_functions: bool | set[type[torch.nn.Module]],
    as_function: bool,
    validate_onnx: bool | float,
) -> None:
    if export_modules_as_functions:
        raise OptionError(
            "export_modules_as_functions is not supported yet, leave it to False: the whole "
            "model is converted into one graph."
        )
    if as_function and validate_onnx:
        raise OptionError("validate_onnx needs a model, as_function=True produces a function.")


def _export_options(export_options: ExportOptions | str | None) -> ExportOptions:
    if isinstance(export_options, str):
        return ExportOptions(strategy=export_options)
    return export_options or ExportOptions()


def _opsets(target_opset: int | Mapping[str, int] | None) -> dict[str, int]:
    given = {"": target_opset} if isinstance(target_opset, int) else dict(target_opset or {})
    opsets = {"": default_opset(), **given}
    newest = onnx.defs.onnx_opset_version()
    if not MIN_OPSET <= opsets[""] <= newest:
        raise OptionError(
            f"target_opset must be between {MIN_OPSET} and {newest}, not {opsets['']}."
        )
    return opsets


def _new_builder(
    opsets: dict[str, int],
    as_function: bool,
    options: OptimizationOptions | None,
    verbose: int,
    raise_list: set[str] | None,
) -> GraphBuilder:
    return GraphBuilder(
        opsets,
        as_function=as_function,
        optimization_options=options,
        verbose=max(verbose - 1, 0),
        raise_list=raise_list,
    )


# -- from a model to a graph -----------------------------------------------------------------


def _prepare(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    options: ExportOptions,
    verbose: int,
) -> _Program:
    if isinstance(mod, torch.export.ExportedProgram):
        from .strategies import decompose

        specs = _specifications(mod.module(), *(mod.example_inputs or ((), {})), dynamic_shapes)
        return _from_exported_program(decompose(mod, options), specs)
    if not isinstance(mod, torch.nn.Module):
        raise OptionError(
            f"mod must be a torch.nn.Module, a GraphModule or an ExportedProgram, not {type(mod)}."
        )
    if isinstance(mod, torch.fx.GraphModule) and _is_aten_graph(mod):
        return _from_graph_module(mod)
    specs = _specifications(mod, args, kwargs, dynamic_shapes)
    shapes = torch_dynamic_shapes(dynamic_shapes, mod, args, kwargs)
    exported = export_program(mod, args, kwargs, options, shapes, specs, verbose)
    if options.validate_ep:
        tolerance = 1e-5 if options.validate_ep is True else float(options.validate_ep)
        validate_program(exported, mod, args, kwargs, tolerance)
    return _from_exported_program(exported, specs)


def _specifications(
    mod: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> list[Any]:
    if dynamic_shapes is None:
        return []
    if hasattr(dynamic_shapes, "dynamic_shapes"):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    return flat_specifications(dynamic_shapes, combined_arguments(mod, args, kwargs))


def _is_aten_graph(mod: torch.fx.GraphModule) -> bool:
    """True if a graph only has operators and knows its shapes: no need of torch.export."""
    for node in mod.graph.nodes:
        if node.op == "call_function":
            is_operator = isinstance(
                node.target, torch._ops.OpOverload | torch._ops.HigherOrderOperator
            )
            if not is_operator and getattr(node.target, "__module__", "") not in (
                "_operator",
                "math",
            ):
                return False
        elif node.op in ("call_module", "call_method"):
            return False
    return all(fake_value(n) is not None for n in mod.graph.nodes if n.op == "placeholder")


def _from_exported_program(program: torch.export.ExportedProgram, specs: list[Any]) -> _Program:
    signature = program.graph_signature
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    weights: dict[torch.fx.Node, tuple[str, torch.Tensor]] = {}
    inputs: list[ModelInput] = []
    for node, spec in zip(placeholders, signature.input_specs, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(ModelInput(node.name, fake_value(node), node))
            continue
        value = program.state_dict.get(spec.target)
        if value is None:
            value = program.constants.get(spec.target)
        if not isinstance(value, torch.Tensor):
            raise OptionError(
                f"Input {node.name!r} of the exported program is a {spec.kind}, which is no tensor."
            )
        weights[node] = (spec.target, value)
    output = next(n for n in program.graph.nodes if n.op == "output")
    kinds = signature.output_specs
    outputs = [
        o for o, s in zip(output.args[0], kinds, strict=True) if s.kind is OutputKind.USER_OUTPUT
    ]
    return _Program(program.graph_module, weights, inputs, outputs, specs)


def _from_graph_module(mod: torch.fx.GraphModule) -> _Program:
    inputs = [
        ModelInput(n.name, fake_value(n), n) for n in mod.graph.nodes if n.op == "placeholder"
    ]
    output = next(n for n in mod.graph.nodes if n.op == "output")
    outputs = torch.utils._pytree.tree_leaves(output.args[0])
    return _Program(mod, {}, inputs, outputs)


# -- from a graph to ONNX --------------------------------------------------------------------


def _interpret(
    builder: GraphBuilder,
    program: _Program,
    *,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    output_dynamic_shapes: Any,
    dispatcher: Dispatcher | None,
    verbose: int,
    allow_untyped: bool,
) -> None:
    name_inputs(program.inputs, input_names)
    namer = DimensionNamer()
    named = [(i.onnx_name or i.name, i.fake) for i in program.inputs]
    namer.learn_inputs(named, program.specs or [None] * len(named))
    outputs = [o for o in program.outputs if o is not None]
    names = _output_names(outputs, output_names)
    _name_output_dimensions(namer, outputs, output_dynamic_shapes)
    bar = progress_bar(verbose, "torch to onnx")
    interpreter = Interpreter(builder, namer, dispatcher, bar)
    values: dict[torch.fx.Node, Any] = {}
    lazy: dict[torch.fx.Node, Callable[[], Any]] = {}
    for model_input in program.inputs:
        if model_input.onnx_name is None:
            values[model_input.node] = model_input.fake
        else:
            lazy[model_input.node] = interpreter.declare_input(
                model_input.onnx_name, model_input.fake
            )
    for node, (name, tensor) in program.weights.items():
        lazy[node] = _weight(interpreter, name, tensor)
    _reserve_outputs(interpreter, outputs, names)
    interpreter.run(program.module, values, lazy)
    for name, output in zip(names, outputs, strict=True):
        interpreter.declare_output(name, values.get(output, output), allow_untyped)


def _weight(interpreter: Interpreter, name: str, tensor: torch.Tensor) -> Callable[[], str]:
    return lambda: interpreter.initializer(name, tensor)


def _output_names(outputs: Sequence[Any], output_names: Sequence[str] | None) -> list[str]:
    if not output_names:
        return [f"output_{i}" for i in range(len(outputs))]
    if len(output_names) != len(outputs) or len(set(output_names)) != len(output_names):
        raise OptionError(
            f"output_names must be {len(outputs)} different names, not {list(output_names)}."
        )
    return list(output_names)


def _reserve_outputs(
    interpreter: Interpreter, outputs: Sequence[Any], names: Sequence[str]
) -> None:
    """A result which is an output has the name of the output as soon as it is computed."""
    for output, name in zip(outputs, names, strict=True):
        reserved = interpreter.g.unique_name(name)
        if reserved != name:
            raise OptionError(f"Output name {name!r} is already the name of an input.")
        key: tuple[Any, int | None] = (output, None)
        if isinstance(output, torch.fx.Node) and output.target is operator.getitem:
            key = (output.args[0], output.args[1])
        if isinstance(output, torch.fx.Node) and isinstance(fake_value(output), torch.Tensor):
            interpreter.output_names.setdefault(key, name)


def _name_output_dimensions(
    namer: DimensionNamer, outputs: Sequence[Any], output_dynamic_shapes: Any
) -> None:
    """The dimensions only the outputs have take the names the user gives."""
    if output_dynamic_shapes is None:
        return
    if isinstance(output_dynamic_shapes, Mapping) and not all(
        isinstance(k, int) for k in output_dynamic_shapes
    ):
        output_dynamic_shapes = list(output_dynamic_shapes.values())
    elif isinstance(output_dynamic_shapes, Mapping):
        output_dynamic_shapes = [output_dynamic_shapes]
    for output, spec in zip(outputs, output_dynamic_shapes, strict=False):
        fake = fake_value(output) if isinstance(output, torch.fx.Node) else None
        if not isinstance(fake, torch.Tensor) or spec is None:
            continue
        items = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        for axis, dim in items:
            if (name := user_name(dim)) is not None:
                namer.learn(fake.shape[axis], name)


# -- files and validation --------------------------------------------------------------------


def _save(onx: Any, filename: str) -> None:
    if hasattr(onx, "save"):
        onx.save(filename)
    elif hasattr(onx, "SerializeToString"):
        with open(filename, "wb") as f:
            f.write(onx.SerializeToString())
    else:
        raise OptionError(f"Unable to save {type(onx)} in {filename!r}.")


def _validate(
    onx: Any,
    filename: str | None,
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    program: _Program,
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
