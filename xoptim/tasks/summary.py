"""A model in one page: its signature, operators, weights, operations and memory."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from xbuilder import GraphBuilder
from xbuilder.dims import symbols
from xbuilder.files.tensor_sites import iter_tensor_sites
from xbuilder.operators.opsets import opsets_of
from xbuilder.protos.pretty import pretty_value_info
from xbuilder.tensors.bits import pretty_type

from ..linting.where import Placement, placement
from ..reports.costs import Costs, costs_of
from ..reports.model_summary import count_ops, tensor_bytes
from ..reports.tables import as_html, as_text, counted, human_bytes, print_line, print_table
from ..reports.weight_contents import described
from ..trust.inputs.random_inputs import open_dimensions, required_inputs

if TYPE_CHECKING:
    from ..reports.tables import Output

#: types of quantized weights
_QUANTIZED = {"INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2"}
_LARGEST = 5
_SMALL = 1024


@dataclass(frozen=True)
class ModelSummary:
    """The summary of a model.

    :param producer: the tool that wrote it
    :param ir_version: version of the format
    :param opsets: version by domain
    :param inputs: the inputs a user gives, as text
    :param outputs: the outputs, as text
    :param dims: the dimensions the inputs leave open
    :param op_types: number of nodes by operator, those of bodies and functions included
    :param functions: number of local functions
    :param parameters: number of elements of the weights
    :param weights: bytes of the weights by type
    :param largest: the largest weights: name, type and shape, bytes
    :param costs: operations and memory
    :param place: the way onnxruntime runs the nodes on CPU

    Example::

        >>> import xoptim
        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[n] x) => (float[n] y) { a = Abs(x)  y = Abs(a) }"
        >>> found = xoptim.summary(model_from_text(text))
        >>> found.nodes, found.op_types, found.dims, found.quantized
        (2, Counter({'Abs': 2}), ['n'], 0.0)
    """

    producer: str
    ir_version: int
    opsets: dict[str, int]
    inputs: list[str]
    outputs: list[str]
    dims: list[str]
    op_types: Counter[str]
    functions: int
    parameters: int
    weights: dict[str, int]
    largest: list[tuple[str, str, int]]
    costs: Costs
    place: Placement

    @property
    def nodes(self) -> int:
        """Number of nodes, Constant excepted."""
        return sum(self.op_types.values()) - self.op_types["Constant"]

    @property
    def quantized(self) -> float:
        """The share of the bytes of the weights that are integers of 8 bits or less."""
        total = sum(self.weights.values())
        return sum(n for t, n in self.weights.items() if t in _QUANTIZED) / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Everything, with values json accepts."""
        costs = self.costs
        return {
            **vars(self),
            "op_types": dict(self.op_types.most_common()),
            "nodes": self.nodes,
            "place": self.place.to_dict(),
            "weight_bytes": sum(self.weights.values()),
            "quantized": self.quantized,
            "largest": [
                dict(zip(("name", "type", "bytes"), row, strict=True)) for row in self.largest
            ],
            "costs": {
                "operations": costs.operations,
                "total": costs.total,
                "peak": costs.peak,
                "peak_result": costs.peak_result,
                "uncounted": dict(costs.uncounted),
                "sizes": costs.sizes,
                "total_at_sizes": costs.at(costs.total),
                "peak_at_sizes": costs.at(costs.peak),
            },
        }

    def print(self, out: Output) -> None:
        """Prints the summary."""
        versions = ", ".join(f"{domain or 'onnx'} {n}" for domain, n in self.opsets.items())
        print_line(out, f"opsets:     {versions}, IR version {self.ir_version}")
        if self.producer:
            print_line(out, f"producer:   {self.producer}")
        for name, rows in (("inputs", self.inputs), ("outputs", self.outputs)):
            print_line(out, f"{name + ':':11} {(chr(10) + ' ' * 12).join(rows) or 'none'}")
        functions = f", {counted(self.functions, 'local function')}" if self.functions else ""
        print_line(out, f"nodes:      {self.nodes}{functions}")
        weights = human_bytes(sum(self.weights.values()))
        quantized = f", {self.quantized:.0%} quantized" if self.quantized else ""
        print_line(out, f"parameters: {self.parameters:,}, {weights}{quantized}")
        print_line(out, f"runs on:    {self.place}")
        self._print_costs(out)
        print_table(out, "operators", ["type", "nodes"], self.op_types.most_common())
        large = [(n, t, human_bytes(size)) for n, t, size in self.largest]
        if large:
            print_table(out, "largest weights", ["name", "type", "size"], large, left=2)

    def __str__(self) -> str:
        return as_text(self.print)

    def _repr_html_(self) -> str:
        return as_html(self.print)

    def _print_costs(self, out: Output) -> None:
        costs = self.costs
        for name, formula, words in (
            ("operations", costs.total, "{:,}"),
            ("memory", costs.peak, "{:,} bytes"),
        ):
            value = costs.at(formula)
            shown = words.format(value) if value is not None else ""
            text = f"{shown} = {formula}" if shown and isinstance(formula, str) else shown
            least = "at least " if costs.uncounted else ""
            print_line(out, f"{name + ':':11} {least}{text or formula}")
        if costs.uncounted:
            left = ", ".join(f"{n} {op}" for op, n in costs.uncounted.items())
            print_line(out, f"            not counted: {left}")
        missing = sorted({*symbols(costs.total), *symbols(costs.peak)} - set(costs.sizes))
        if missing:
            print_line(out, f"            --dim {missing[0]}=N gives a number")


def summarize(
    model: ModelProto | str | os.PathLike[str],
    sizes: Mapping[str, int] | None = None,
    data_roots: Sequence[Any] = (),
) -> ModelSummary:
    """Summarizes a model: signature, operators, weights, operations and memory as formulas.

    Operations are those of products, convolutions, attentions and recurrent networks, two for a
    multiplication and its addition. The memory is the largest sum of the results that live at the
    same time. Weights are not read.

    :param model: a model or its path
    :param sizes: sizes of its dimensions, to evaluate the formulas
    :param data_roots: folders the weights may be in, beside the model's
    :return: the summary
    :raises InvalidModelError: the file is not a model

    ::

        done = summarize("model.onnx", {"batch": 8})
        print(done.parameters, done.costs.total, done.costs.at(done.costs.total))
    """
    source = model if isinstance(model, ModelProto) else str(model)
    builder = GraphBuilder(source, infer_shapes_options=True, allowed_roots=data_roots)
    proto: ModelProto = builder.origin
    tensors = [site.tensor for site in iter_tensor_sites(proto)]
    weights: Counter[str] = Counter()
    for tensor in tensors:
        weights[pretty_type(tensor.data_type).upper()] += tensor_bytes(tensor)
    largest = sorted(
        (t for t in tensors if tensor_bytes(t) >= _SMALL), key=tensor_bytes, reverse=True
    )
    return ModelSummary(
        f"{proto.producer_name} {proto.producer_version}".strip(),
        proto.ir_version,
        opsets_of(proto),
        [pretty_value_info(v) for v in required_inputs(proto)],
        [pretty_value_info(v) for v in proto.graph.output],
        open_dimensions(proto),
        count_ops(proto),
        len(proto.functions),
        sum(math.prod(tensor.dims) for tensor in tensors),
        dict(weights.most_common()),
        [(t.name, described(t), tensor_bytes(t)) for t in largest[:_LARGEST]],
        costs_of(builder.graph, sizes),
        placement(builder.graph, "CPU"),
    )
