"""Prepares a module, an exported program or an fx graph into the graph to interpret."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from xbuilder.errors import OptionError
from xbuilder.support.user_warnings import warn_user

from ..aten.symbolic import tensor_form
from ..checking.caught_errors import caught_decisions
from ..checking.own_state import assigned_attributes, state_message
from ..checking.token_counts import count_message
from ..checking.training import training_message
from ..common.errors import ExportError
from ..common.export_options import ExportOptions
from ..common.types import is_symbolic
from ..dispatch.convertible import has_converter
from ..dispatch.dispatcher import Dispatcher, canonical_name
from ..inputs.inputs import ModelInput, distinct_tensors
from ..inputs.specifications import flat_specifications, torch_dynamic_shapes
from ..patches.assumed_sizes import assumed_sizes
from ..patches.fake_tensors import has_no_data
from ..writing.fx_nodes import fake_value
from .best_example import export_example, trial_of
from .decompositions import decompose, decompose_graph, trace_graph
from .example_branches import branch_message, taken_branches
from .in_place import changed_buffers
from .strategies import export_program, validate_program
from .torch_program import TorchProgram, from_exported_program


def prepare(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    options: ExportOptions,
    dispatcher: Dispatcher | None,
    verbose: int,
) -> TorchProgram:
    """Exports a model if it is not exported yet, and decomposes it as the options ask.

    :param mod: module, fx graph or exported program
    :param args: positional arguments
    :param kwargs: named arguments
    :param dynamic_shapes: dynamic dimensions
    :param options: options of the export
    :param dispatcher: converters of the user
    :param verbose: verbosity
    :raises OptionError: *mod* is something else
    """

    def is_supported(op: torch._ops.OpOverload, on_complex: bool) -> bool:
        return has_converter(op, dispatcher, on_complex)

    if isinstance(mod, torch.export.ExportedProgram):
        functional = decompose(mod, options, is_supported, verbose)
        return _from_exported(mod, functional, dynamic_shapes, options)
    _check_module(mod)
    if isinstance(mod, torch.fx.GraphModule) and any(map(is_symbolic, args)):
        mod = mod if _is_aten_graph(mod) else trace_graph(mod)
    if isinstance(mod, torch.fx.GraphModule) and _is_aten_graph(mod):
        return _from_graph_module(decompose_graph(mod, is_supported), mod)
    _check_arguments(mod, args, kwargs)
    args, kwargs = distinct_tensors((args, kwargs))
    specs = flat_specifications(dynamic_shapes, mod, args, kwargs)

    def export(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TorchProgram:
        shapes = torch_dynamic_shapes(specs, mod, args, kwargs)
        changed = list[str]()
        with (
            assumed_sizes() as assumed,
            assigned_attributes() as assigned,
            caught_decisions() as caught,
            taken_branches() as taken,
        ):
            exported = export_program(
                mod, args, kwargs, options, shapes, specs, is_supported, verbose, changed
            )
        if options.validate_ep:
            validate_program(exported, mod, args, kwargs, _tolerance(options.validate_ep))
        program = from_exported_program(exported, specs, options.fake)
        program.assumed = assumed
        program.assigned, program.changed = assigned, changed
        program.caught, program.taken = caught, taken
        return program

    program = export_example(export, mod, args, kwargs, specs, verbose)
    _check_decisions(program, mod, args, kwargs)
    _warn_about_state(state_message(mod, args, kwargs, program.assigned, program.changed))
    return program


def _from_exported(
    mod: torch.export.ExportedProgram,
    functional: torch.export.ExportedProgram,
    dynamic_shapes: Any,
    options: ExportOptions,
) -> TorchProgram:
    """The program of a model that is exported already, *functional* once decomposed."""
    examples, named = mod.example_inputs or ((), {})
    specs = flat_specifications(dynamic_shapes, mod.module(), examples, named)
    changed = changed_buffers(mod)
    if changed and mod.example_inputs:
        _warn_about_state(state_message(mod.module(), examples, named, (), changed))
    return from_exported_program(functional, specs, options.fake)


def _check_decisions(
    program: TorchProgram, mod: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Warns about the decisions on the content of a tensor that the graph takes once for all.

    :raises ExportError: the graph is wrong on the arguments
    """
    message = branch_message(program.taken)
    if program.caught:
        message = (
            f"A decision depends on the content of a tensor at {program.caught[0]}. The model "
            "catches the error of torch.export, and the graph always takes the branch of this "
            "error: use torch.where or torch.cond."
        )
    if not message:
        return
    held = (*torch.utils._pytree.tree_leaves((args, kwargs)), *mod.parameters(), *mod.buffers())
    if not any(map(has_no_data, held)) and not trial_of(program, mod, args, kwargs).is_right():
        raise ExportError(f"{message} Its results on the arguments are not those of the model.")
    warn_user(message)


def _warn_about_state(message: str) -> None:
    if message:
        warn_user(message)


def _tolerance(validate: bool | float) -> float:
    """The largest difference that is accepted."""
    return 1e-5 if validate is True else float(validate)


def _check_module(mod: Any) -> None:
    """Refuses what is no module of torch, or a module torch.export does not take.

    :raises OptionError: it is no module, or a ScriptModule
    """
    if not isinstance(mod, torch.nn.Module):
        advice = ""
        if isinstance(mod, type) and issubclass(mod, torch.nn.Module):
            advice = f" Give an instance, {mod.__name__}(...)."
        elif callable(mod):
            advice = " Call it in the forward of a module, which holds its weights."
        raise OptionError(
            "mod must be a torch.nn.Module, a GraphModule or an ExportedProgram, not "
            f"{type(mod)}.{advice}"
        )
    if isinstance(mod, torch.jit.ScriptModule):
        raise OptionError(
            "mod is a ScriptModule, which torch.export does not take: give the torch.nn.Module it "
            "was traced or scripted from."
        )


def _check_arguments(mod: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses arguments that forward does not take, warns about a module in training mode.

    :raises OptionError: one is missing, or unknown
    """
    if message := training_message(mod):
        warn_user(message)
    signature = inspect.signature(mod.forward)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        raise OptionError(
            f"The arguments do not fit {type(mod).__name__}.forward{signature}: {e}. Give args, "
            f"a tuple, and kwargs, a dictionary."
        ) from e
    if message := count_message(mod, args, kwargs):
        warn_user(message)


def _is_aten_graph(mod: torch.fx.GraphModule) -> bool:
    """Whether a graph only has operators and known shapes. torch.export is not needed then."""
    for node in mod.graph.nodes:
        if node.op == "call_function":
            if not _is_operator(node.target) or _is_python_only(node):
                return False
        elif node.op in ("call_module", "call_method"):
            return False
    return all(fake_value(n) is not None for n in mod.graph.nodes if n.op == "placeholder")


def _is_operator(target: Any) -> bool:
    """Whether a target is an operator of torch or a function of symbolic numbers."""
    if isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator):
        return True
    module, name = getattr(target, "__module__", ""), getattr(target, "__name__", "")
    on_sizes = module == "torch" and name.lstrip("_").startswith("sym_")
    return on_sizes or module in ("_operator", "math")


def _is_python_only(node: torch.fx.Node) -> bool:
    """Whether a node is an operator of Python on a tensor which is no operator of torch alone, as
    ``x[0]`` or ``x += y``."""
    name = canonical_name(node.target)
    if not any(isinstance(fake_value(n), torch.Tensor) for n in node.all_input_nodes):
        return False
    return name.startswith("operator.") and tensor_form(name, ["a tensor"]) == name


def _from_graph_module(mod: torch.fx.GraphModule, original: torch.fx.GraphModule) -> TorchProgram:
    """The program of an fx graph. Decomposing renames the inputs, the original names are kept."""
    names = [n.name for n in original.graph.nodes if n.op == "placeholder"]
    placeholders = [n for n in mod.graph.nodes if n.op == "placeholder"]
    inputs = [
        ModelInput(name, fake_value(n), n) for name, n in zip(names, placeholders, strict=True)
    ]
    output = next(n for n in mod.graph.nodes if n.op == "output")
    outputs = torch.utils._pytree.tree_leaves(output.args[0])
    return TorchProgram(mod, {}, inputs, outputs)
