"""Compares the results of a torch graph with those of its ONNX model, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import ModelProto, NodeProto

from xbuilder.errors import short_message
from xbuilder.nodes.sources import NodeSource, source_of
from xbuilder.tensors.closeness import Criterion, Gap

from ..common.errors import ValidationError
from ..inputs.inputs import to_numpy
from ..writing.sources import node_source
from .replays import extract, nodes_of, run_model, with_outputs, write_replay

#: types that numpy and onnxruntime exchange
_KINDS = "biuf"


@dataclass(frozen=True, slots=True)
class OperatorDifference:
    """A result that is not the same in torch and in ONNX.

    :param result: its name, in the graph of torch and in the model
    :param source: the modules, the operator and the lines of code that compute it in torch
    :param nodes: the nodes that compute it from results torch has too
    :param gap: the difference
    :param alone: these nodes give another result on the inputs torch gives to the operator; False
        if the difference comes from before, None if it is not known
    """

    result: str
    source: NodeSource
    nodes: tuple[str, ...]
    gap: Gap
    alone: bool | None = None

    def __str__(self) -> str:
        module = f"module {self.source.module!r}" if self.source.module else "the model itself"
        kind = f" ({self.source.classes[-2]})" if len(self.source.classes) > 1 else ""
        lines = "".join(f"\n    {line}" for line in self.source.trace.splitlines())
        return (
            f"{module}{kind}, operator {self.source.classes[-1]}, result {self.result!r}: "
            f"{self.gap.reason}\n  nodes: {', '.join(self.nodes)}{lines}"
        )


@dataclass(slots=True)
class TorchComparison:
    """The results of torch and those of a model, in the order of torch.

    :param compared: names of the results both have
    :param differences: those that differ
    :param replay: the script that runs the first difference again, if a folder was given
    """

    compared: list[str]
    differences: list[OperatorDifference] = field(default_factory=list)
    replay: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether every result is the same."""
        return not self.differences

    @property
    def first(self) -> OperatorDifference | None:
        """The first operator that differs on the inputs of torch, or else the first difference."""
        alone = (d for d in self.differences if d.alone)
        return next(alone, next(iter(self.differences), None))

    @property
    def modules(self) -> dict[str, float]:
        """Path of each module with a difference -> the largest relative one, the first one
        first."""
        found: dict[str, float] = {}
        for difference in self.differences:
            path = difference.source.module
            found[path] = max(found.get(path, 0.0), difference.gap.max_rel)
        return found

    def __str__(self) -> str:
        count = len(self.compared)
        if self.first is None:
            return f"{count} results compared, no difference"
        text = (
            f"{count} results compared, {len(self.differences)} differ, the first is {self.first}"
        )
        return text if self.replay is None else f"{text}\n  replay: {self.replay}"


class _Recorder(torch.fx.Interpreter):
    """Runs an fx graph and keeps some results.

    :param module: the graph
    :param wanted: names of the nodes whose results are kept, as arrays
    """

    def __init__(self, module: torch.fx.GraphModule, wanted: Mapping[str, Any]) -> None:
        super().__init__(module)
        self.wanted = wanted
        self.found: dict[str, np.ndarray] = {}
        self.origins: dict[str, torch.fx.Node] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        """Runs a node; its results may change later, so they are copied."""
        value = super().run_node(n)
        several = value if isinstance(value, list | tuple) else [value]
        for i, one in enumerate(several):
            name = n.name if several[0] is value else f"{n.name}_{i}"
            if name in self.wanted and n.op.startswith("call"):
                self._keep(name, n, one)
        return value

    def _keep(self, name: str, node: torch.fx.Node, value: Any) -> None:
        if isinstance(value, torch.Tensor) and not value.is_complex():
            array = to_numpy(value)
            if array.dtype.kind in _KINDS:
                self.found[name] = np.array(array)
                self.origins[name] = node


def compare_graphs(
    module: torch.fx.GraphModule,
    values: Sequence[Any],
    outputs: Sequence[Any],
    model: ModelProto,
    feeds: Mapping[str, np.ndarray],
    tolerance: float = 1e-4,
    folder: str | Path | None = None,
) -> TorchComparison:
    """Runs a graph of torch and its ONNX model and compares the results with the same name.

    A result of the model has the name of the node of the graph that computes it, and rewrites keep
    the names of the results they keep. Nodes that differ run again, alone, on what torch computes
    before: the first one that still differs is wrong, the others may only follow.

    :param module: the graph
    :param values: the values of its placeholders
    :param outputs: its outputs, nodes or python values; None is not an output of the model
    :param model: the ONNX model
    :param feeds: the inputs of the model
    :param tolerance: the relative tolerance
    :param folder: writes there what is needed to run the first difference again
    :raises ValidationError: the model does not run, or has no result in common
    """
    comparison = _Comparison(model, feeds, Criterion(tolerance))
    comparison.run(*_torch_results(module, values, outputs, model))
    report = comparison.report
    if folder is not None and report.first is not None:
        report.replay = comparison.write(folder, report.first)
    return report


def _torch_results(
    module: torch.fx.GraphModule, values: Sequence[Any], outputs: Sequence[Any], model: ModelProto
) -> tuple[dict[str, np.ndarray], dict[str, torch.fx.Node]]:
    """The results of torch the model has too, and the nodes of torch that compute them."""
    renamed = _output_names(outputs, model)
    makers = {o: node for node in model.graph.node for o in node.output if o}
    wanted = {renamed.get(name, name): name for name in makers}
    recorder = _Recorder(module, wanted)
    with torch.no_grad():
        recorder.run(*values)
    origins = {
        wanted[name]: node
        for name, node in recorder.origins.items()
        if _is_same_place(makers[wanted[name]], node)
    }
    if not origins:
        raise ValidationError(
            "No result of the model has the name of a node of torch: give the module that "
            "to_onnx converted, with the same options."
        )
    arrays = {wanted[name]: array for name, array in recorder.found.items()}
    return {name: arrays[name] for name in origins}, origins


class _Comparison:
    """Compares the results of a model with arrays, and runs its nodes again, alone.

    :param model: the model
    :param feeds: its inputs
    :param criterion: what counts as equal
    """

    def __init__(
        self, model: ModelProto, feeds: Mapping[str, np.ndarray], criterion: Criterion
    ) -> None:
        self.model, self.feeds, self.criterion = model, feeds, criterion
        self.report = TorchComparison([])
        self.expected: dict[str, np.ndarray] = {}
        self.known: dict[str, np.ndarray] = {}

    def run(self, expected: Mapping[str, np.ndarray], origins: Mapping[str, torch.fx.Node]) -> None:
        """Runs the model and compares its results.

        :param expected: the results of torch
        :param origins: the nodes of torch that compute them
        :raises ValidationError: the model does not run
        """
        try:
            got = run_model(with_outputs(self.model, expected), self.feeds)
        except Exception as e:
            raise ValidationError(
                f"onnxruntime does not run the ONNX model: {short_message(e)}"
            ) from e
        same = {n: _alike(array, got[n]) for n, array in expected.items()}
        self.known = {n: a if same[n] else got[n] for n, a in expected.items()}
        self.known |= self.feeds
        self.expected = dict(expected)
        self.report.compared = list(expected)
        for name, array in expected.items():
            gap = self.criterion.compare(array, got[name])
            if not gap.ok:
                self.report.differences.append(self._difference(name, origins[name], gap))

    def write(self, folder: str | Path, found: OperatorDifference) -> Path:
        """Writes what runs a difference again.

        :param folder: the folder
        :param found: the difference
        """
        alone, inputs = extract(self.model, found.result, self._others(found.result))
        return write_replay(folder, alone, inputs, self.expected[found.result], str(found))

    def _difference(self, name: str, origin: torch.fx.Node, gap: Gap) -> OperatorDifference:
        nodes = nodes_of(self.model, name, self._others(name))
        searched = not any(d.alone for d in self.report.differences)
        return OperatorDifference(
            name,
            node_source(origin, origin.name),
            tuple(n.name or n.op_type for n in nodes),
            gap,
            self._differs_alone(name) if searched else None,
        )

    def _others(self, name: str) -> dict[str, np.ndarray]:
        """The arrays known beside a result."""
        return {k: v for k, v in self.known.items() if k != name}

    def _differs_alone(self, name: str) -> bool | None:
        """Whether the nodes of a result differ from torch on the inputs of torch, None if they do
        not run."""
        alone, feeds = extract(self.model, name, self._others(name))
        try:
            got = run_model(alone, feeds)[name]
        except Exception:  # some kernels want constants
            return None
        return not self.criterion.compare(self.expected[name], got).ok


def _output_names(outputs: Sequence[Any], model: ModelProto) -> dict[str, str]:
    """Name of an output of the model -> the name of the node of torch that computes it."""
    kept = [o for o in outputs if o is not None]
    names = [o.name for o in model.graph.output]
    if len(kept) != len(names):
        raise ValidationError(
            f"The torch graph has {len(kept)} outputs, the model has {len(names)}: {names}."
        )
    return {
        name: _result_name(output)
        for name, output in zip(names, kept, strict=True)
        if isinstance(output, torch.fx.Node)
    }


def _result_name(output: torch.fx.Node) -> str:
    """The name of a result: a getitem is one of the results of another node."""
    if getattr(output.target, "__name__", "") == "getitem":
        owner, index = output.args
        return f"{owner.name}_{index}" if isinstance(owner, torch.fx.Node) else output.name
    return output.name


def _is_same_place(node: NodeProto, origin: torch.fx.Node) -> bool:
    """Whether a node may come from a node of torch: unless it says something else."""
    source = source_of(node)
    if source is None:
        return True
    module = node_source(origin, origin.name).module
    return module == source.module or f"{module}.".startswith(f"{source.module}.")


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape
