"""Prepares a module, an exported program or an fx graph into the graph to interpret."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import TreeSpec

from xbuilder.errors import OptionError

from ..aten.symbolic import tensor_form
from ..common.export_options import ExportOptions
from ..dispatch.convertible import has_converter
from ..dispatch.dispatcher import Dispatcher, canonical_name
from ..inputs.inputs import ModelInput, distinct_tensors
from ..inputs.specifications import flat_specifications, torch_dynamic_shapes
from ..patches.fake_tensors import has_no_data
from ..writing.fx_nodes import fake_value
from .decompositions import decompose, decompose_graph, trace_graph
from .strategies import export_program, validate_program


@dataclass(slots=True)
class TorchProgram:
    """A graph ready to be interpreted.

    :param module: the graph
    :param weights: tensor and name of the placeholders which are weights
    :param inputs: the other placeholders
    :param outputs: outputs of the model, fx nodes or python values
    :param specs: dynamic dimensions of each input
    :param ranges: the sizes torch keeps for its symbols
    :param input_tree: structure of the arguments, None if it is not known
    :param output_tree: structure of the results, None if it is not known
    """

    module: torch.fx.GraphModule
    weights: dict[torch.fx.Node, tuple[str, torch.Tensor]]
    inputs: list[ModelInput]
    outputs: list[Any]
    specs: list[Any] = field(default_factory=list)
    ranges: dict[Any, Any] = field(default_factory=dict)
    input_tree: TreeSpec | None = None
    output_tree: TreeSpec | None = None


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
        examples, named = mod.example_inputs or ((), {})
        specs = flat_specifications(dynamic_shapes, mod.module(), examples, named)
        functional = decompose(mod, options, is_supported, verbose)
        return _from_exported_program(functional, specs, options.fake)
    if not isinstance(mod, torch.nn.Module):
        raise OptionError(
            f"mod must be a torch.nn.Module, a GraphModule or an ExportedProgram, not {type(mod)}."
        )
    if isinstance(mod, torch.jit.ScriptModule):
        raise OptionError(
            "mod is a ScriptModule, which torch.export does not take: give the torch.nn.Module it "
            "was traced or scripted from."
        )
    if isinstance(mod, torch.fx.GraphModule) and any(map(_is_symbolic, args)):
        mod = mod if _is_aten_graph(mod) else trace_graph(mod)
    if isinstance(mod, torch.fx.GraphModule) and _is_aten_graph(mod):
        return _from_graph_module(decompose_graph(mod, is_supported), mod)
    _check_arguments(mod, args, kwargs)
    args, kwargs = distinct_tensors((args, kwargs))
    specs = flat_specifications(dynamic_shapes, mod, args, kwargs)
    shapes = torch_dynamic_shapes(specs, mod, args, kwargs)
    exported = export_program(mod, args, kwargs, options, shapes, specs, is_supported, verbose)
    if options.validate_ep:
        tolerance = 1e-5 if options.validate_ep is True else float(options.validate_ep)
        validate_program(exported, mod, args, kwargs, tolerance)
    return _from_exported_program(exported, specs, options.fake)


def _check_arguments(mod: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses arguments that forward does not take.

    :raises OptionError: one is missing, or unknown
    """
    signature = inspect.signature(mod.forward)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        raise OptionError(
            f"The arguments do not fit {type(mod).__name__}.forward{signature}: {e}. Give args, "
            f"a tuple, and kwargs, a dictionary."
        ) from e


def _is_symbolic(value: Any) -> bool:
    """Whether a value is a symbolic number, which torch.export does not take."""
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


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


def _from_exported_program(
    program: torch.export.ExportedProgram, specs: list[Any], fake: bool
) -> TorchProgram:
    signature = program.graph_signature
    first_names = _first_names(program)
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
        if spec.kind is InputKind.TOKEN:
            # only orders the operators with side effects
            continue
        if not isinstance(value, torch.Tensor):
            raise OptionError(
                f"Input {node.name!r} of the exported program is a {spec.kind}, which is no tensor."
            )
        if has_no_data(value) and not fake:
            raise OptionError(
                f"Weight {spec.target!r} has no data ({type(value).__name__} on device "
                f"{value.device}): load the weights before the conversion, "
                "mod.to_empty(device='cpu') then mod.load_state_dict(...), or use "
                "ExportOptions(fake=True) and torch_interpreter.add_weights."
            )
        weights[node] = (first_names.get(id(value), spec.target), value)
    output = next(n for n in program.graph.nodes if n.op == "output")
    kinds = signature.output_specs
    outputs = [
        o for o, s in zip(output.args[0], kinds, strict=True) if s.kind is OutputKind.USER_OUTPUT
    ]
    ranges = program.range_constraints
    trees = program.call_spec.in_spec, program.call_spec.out_spec
    return TorchProgram(program.graph_module, weights, inputs, outputs, specs, ranges, *trees)


def _first_names(program: torch.export.ExportedProgram) -> dict[int, str]:
    """The name ``named_parameters()`` gives to a tensor, the first one when it has several.

    torch.export keeps the last name of a tied parameter.
    """
    names: dict[int, str] = {}
    for name, value in (*program.state_dict.items(), *program.constants.items()):
        names.setdefault(id(value), name)
    return names


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
