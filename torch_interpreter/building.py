"""From a graph to a builder: names of inputs, outputs and dimensions, then the nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError

from .dispatcher import Dispatcher
from .dynamic_shapes import DimensionNamer, specialised_dimensions, user_name
from .inputs import name_inputs
from .interpreter import Interpreter, fake_value
from .program import Program
from .progress import progress_bar


def build(
    builder: GraphBuilder,
    program: Program,
    *,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    output_dynamic_shapes: Any,
    dispatcher: Dispatcher | None,
    verbose: int,
    allow_untyped: bool,
) -> None:
    """Adds a whole graph to a builder.

    :param builder: an empty builder
    :param program: the graph
    :param input_names: names of the inputs, or None
    :param output_names: names of the outputs, or None
    :param output_dynamic_shapes: names of the dimensions only the outputs have
    :param dispatcher: converters of the user
    :param verbose: shows a progress bar
    :param allow_untyped: accepts outputs without known type
    :raises OptionError: the names do not fit
    """
    name_inputs(program.inputs, input_names)
    namer = DimensionNamer()
    named = [(i.onnx_name or i.name, i.fake) for i in program.inputs]
    namer.learn_inputs(named, program.specs or [None] * len(named))
    for text in specialised_dimensions(named, program.specs) if verbose else ():
        print(f"[to_onnx] a dynamic dimension became a constant: {text}")
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
    interpreter.run(program.module, values, lazy, outputs)
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
