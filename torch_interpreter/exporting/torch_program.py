"""The graph of an exported program, its weights, inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import TreeSpec

from xbuilder.errors import OptionError

from ..checking.trials import ExampleTrial
from ..inputs.inputs import ModelInput
from ..patches.assumed_sizes import AssumedSizes
from ..patches.fake_tensors import has_no_data
from ..writing.fx_nodes import fake_value


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
    :param trial: compares the graph with the model, None if the model does not run
    :param assumed: the lines of the model that made torch assume sizes
    :param assigned: the tensors that the model assigns to its attributes when it is called
    :param changed: the buffers and the values of Python that it changes
    :param caught: the lines that decide with the content of a tensor and whose error it catches
    :param taken: the lines that decide as the model does with the arguments of the export
    :param is_general: no condition was found that the dynamic dimensions must meet
    """

    module: torch.fx.GraphModule
    weights: dict[torch.fx.Node, tuple[str, torch.Tensor]]
    inputs: list[ModelInput]
    outputs: list[Any]
    specs: list[Any] = field(default_factory=list)
    ranges: dict[Any, Any] = field(default_factory=dict)
    input_tree: TreeSpec | None = None
    output_tree: TreeSpec | None = None
    trial: ExampleTrial | None = None
    assumed: AssumedSizes = field(default_factory=AssumedSizes)
    assigned: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    caught: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    is_general: bool = False


def from_exported_program(
    program: torch.export.ExportedProgram, specs: list[Any], fake: bool
) -> TorchProgram:
    """Reads an exported program.

    :param program: exported program
    :param specs: specification of every leaf of the arguments
    :param fake: accepts weights without data
    :raises OptionError: a weight has no data, or is no tensor
    """
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
