"""Builds a GraphBuilder from a program: names inputs, outputs and dimensions, converts nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xbuilder.support.user_warnings import warn_user

from ..common.errors import ConversionError
from ..dispatch.dispatcher import canonical_name
from ..exporting.torch_program import TorchProgram
from ..inputs.dimension_conditions import assumptions, least_sizes, sizes_beside_a_hole
from ..inputs.dynamic_shapes import DimensionNamer, dynamic_dimensions
from ..inputs.inputs import name_inputs
from ..inputs.leaf_names import default_output_names, name_cache_inputs
from ..patches.fake_tensors import has_no_data
from ..writing.fx_nodes import fake_value, source_line
from .control_flow import HIGHER_ORDER
from .export_request import ExportRequest
from .function_plan import FunctionPlan
from .functions import NodeResults, convert_group
from .interpreter import Interpreter, NestedConverters
from .mutable_operators import MUTABLE_OPERATORS
from .onnx_operators import ONNX_OPERATORS
from .output_shapes import name_output_dimensions, simplest_shape
from .progress import progress_bar

#: largest number of lines in a warning
_LINES = 4
_NESTED = NestedConverters({**HIGHER_ORDER, **ONNX_OPERATORS, **MUTABLE_OPERATORS}, convert_group)


@unset_fake_temporarily()  # torch.compile calls its backend under one: constants have no content
def build(
    builder: GraphBuilder,
    program: TorchProgram,
    request: ExportRequest,
    plan: FunctionPlan | None = None,
) -> None:
    """Adds a whole graph to a builder.

    :param builder: an empty builder
    :param program: the graph
    :param request: names, converters and options of the user
    :param plan: the nodes that become local functions
    :raises OptionError: the names do not fit
    """
    options = request.export_options
    if request.cache_names is not None:
        name_cache_inputs(program.inputs, program.input_tree)
    name_inputs(program.inputs, request.input_names)
    namer = _named_dimensions(program, request.verbose)
    _note_least_sizes(builder, program, namer)
    outputs = [o for o in program.outputs if o is not None]
    names = _output_names(program, request.output_names)
    asked = request.output_dynamic_shapes
    shapes = name_output_dimensions(namer, program.outputs, names, asked)
    bar = progress_bar(request.verbose)
    interpreter = Interpreter(
        builder,
        namer,
        _NESTED,
        request.dispatcher,
        bar,
        plan,
        options.cpu_kernels,
        options.node_sources,
    )
    lazy: dict[torch.fx.Node, Callable[[], Any]] = {}
    values = NodeResults(lazy, program.weights)
    for model_input in program.inputs:
        if model_input.onnx_name is None:
            values[model_input.node] = model_input.fake
        else:
            lazy[model_input.node] = interpreter.declare_input(
                model_input.onnx_name, model_input.fake
            )
    made: dict[str, str] = {}
    for node, (name, tensor) in program.weights.items():
        lazy[node] = _weight(interpreter, made, name, tensor)
    _reserve_outputs(interpreter, outputs, names)
    interpreter.run(program.module, values, outputs)
    constants = {i.node for i in program.inputs if i.onnx_name is None}
    for name, output in zip(names, outputs, strict=True):
        value = values[output] if isinstance(output, torch.fx.Node) else output
        if output in constants or not isinstance(output, torch.fx.Node):
            _check_number(name, value)
        if value is None:
            raise ConversionError(_no_value(name, output))
        known = builder.get_shape(value) if builder.has_shape(value) else ()
        shape = shapes.get(name) or simplest_shape(namer, output, known)
        interpreter.declare_output(name, value, options.allow_untyped_output, shape)


def _named_dimensions(program: TorchProgram, verbose: int) -> DimensionNamer:
    """Names the dimensions of the inputs and prints the conditions torch assumed on their sizes."""
    namer = DimensionNamer()
    named = [(i.onnx_name or i.name, i.fake) for i in program.inputs]
    specs = program.specs or [None] * len(named)
    namer.name_inputs(named, specs)
    _tell_constants(program, named, verbose)
    if program.is_general:
        return namer
    fails_at = None if program.trial is None else program.trial.fails_at
    places = program.assumed.places
    found = assumptions(named, specs, program.module, namer, fails_at, places)
    refused = next((a for a in found if a.is_refused), None)
    if refused and program.trial is not None and program.trial.is_right():
        raise ConversionError(
            f"The model would only be right for {refused.text}: a decision in Python depends on it"
            f"{_places([refused.place])}. Bound the dimension, with torch.export.Dim(name, "
            "min=..., max=...), or make it Dim.AUTO to have a warning instead of this error."
        )
    if found:
        warn_user(
            f"The model is right for {', '.join(a.text for a in found)}: a decision in Python "
            f"depends on it{_places(a.place for a in found)}. torch.export.Dim(name, min=..., "
            "max=...) says that no other size is needed."
        )
    return namer


def _tell_constants(program: TorchProgram, named: Sequence[tuple[str, Any]], verbose: int) -> None:
    """Warns of the dynamic dimensions that became constants, unless the model itself refuses any
    other size."""
    asked = dynamic_dimensions(named, program.specs)
    constants = {dim: text for dim, text in asked.items() if text}
    for text in constants.values() if verbose else ():
        print(f"[to_onnx] a dynamic dimension became a constant: {text}")
    failing = program.trial.fails_without(constants, asked) if program.trial and constants else []
    if not failing:
        return
    sizes = [named[i][1].shape[axis] for i, axis in failing]
    lines = (line for n in sizes for line in program.assumed.constants.get(int(n), ()))
    warn_user(
        f"The model is right for {', '.join(constants[dim] for dim in failing)} only: torch made "
        f"a dynamic dimension a constant{_places(lines)}."
    )


def _places(lines: Iterable[str]) -> str:
    """The lines of a model between parentheses, each once."""
    listed = list(dict.fromkeys(line for line in lines if line))[:_LINES]
    return f" ({'; '.join(listed)})" if listed else ""


def _note_least_sizes(builder: GraphBuilder, program: TorchProgram, namer: DimensionNamer) -> None:
    """Declares to the builder the dimensions of the inputs that are never 0."""
    named = [(i.onnx_name or i.name, i.fake) for i in program.inputs]
    for symbol, least in least_sizes(named, program.specs, program.ranges).items():
        if symbol in namer.names:
            builder.facts.constraints.add_at_least(namer.names[symbol], least)
    for dim in map(namer.dim, sizes_beside_a_hole(program.module.graph)):
        if isinstance(dim, str):
            builder.facts.constraints.add_at_least(dim, 1)


def _weight(
    interpreter: Interpreter, made: dict[str, str], name: str, tensor: torch.Tensor
) -> Callable[[], str]:
    """A function adding a weight when it is needed; two placeholders of one parameter share it."""

    def make() -> str:
        if name not in made:
            has_data = not has_no_data(tensor)
            add = interpreter.initializer if has_data else interpreter.declare_weight
            made[name] = add(name, tensor)
        return made[name]

    return make


def _output_names(program: TorchProgram, output_names: Sequence[str] | None) -> list[str]:
    """The names of the outputs which are not None. None still counts in the default numbering."""
    outputs = program.outputs
    if not output_names:
        taken = [i.onnx_name for i in program.inputs if i.onnx_name is not None]
        names = default_output_names(program.output_tree, taken, len(outputs))
        return [n for n, output in zip(names, outputs, strict=True) if output is not None]
    count = sum(output is not None for output in outputs)
    if len(output_names) != count or len(set(output_names)) != count:
        raise OptionError(
            f"output_names must be {count} different names, not {list(output_names)}."
        )
    return list(output_names)


def _check_number(name: str, value: Any) -> None:
    """Refuses a constant output that is no number: a string would be the name of a result.

    :raises ConversionError: it is something else
    """
    if not isinstance(value, bool | int | float):
        raise ConversionError(
            f"Output {name!r} is {value!r}, and ONNX only returns tensors and numbers: remove it "
            "from what forward returns."
        )


def _no_value(name: str, output: torch.fx.Node) -> str:
    """The message of an error: which result of which node is missing."""
    node, what = output, "its result"
    if output.target is operator.getitem and isinstance(output.args[0], torch.fx.Node):
        node, what = output.args[0], f"its result {output.args[1]}"
    return (
        f"Output {name!r} has no value: the converter of {canonical_name(node.target)} does not "
        f"compute {what}, fx node {node.name!r}\n  source: {source_line(node)}"
    )


def _reserve_outputs(
    interpreter: Interpreter, outputs: Sequence[Any], names: Sequence[str]
) -> None:
    """Reserves the names of the outputs; a result gets its final name when it is computed."""
    for output, name in zip(outputs, names, strict=True):
        reserved = interpreter.g.unique_name(name)
        if reserved != name:
            raise OptionError(f"Output name {name!r} is already the name of an input.")
        if not isinstance(output, torch.fx.Node) or not isinstance(
            fake_value(output), torch.Tensor
        ):
            continue
        key: tuple[Any, Any] = (output, None)
        if output.target is operator.getitem:
            key = (output.args[0], output.args[1])
        interpreter.output_names.setdefault(key, name)
