"""The code that runs each node of a model: a kernel, its definition, a kernel after casts, none."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from xbuilder.graph.graph import Graph
from xbuilder.nodes.functions import function_key
from xbuilder.runtimes.installed import kernel_table

from ..reports.node_matching import operator_of
from .findings import nodes_of
from .node_checks import kernel_findings, lowering_of


@dataclass(frozen=True)
class Placement:
    """The number of nodes of a model by the way a processor runs them.

    :param processor: `CPU`
    :param runtime: the runtime and its version
    :param kernels: nodes that have a kernel
    :param definitions: nodes the runtime replaces by the definition of their operator
    :param casts: nodes that run in float between two casts
    :param missing: operators that have no kernel, with their number of nodes
    """

    processor: str
    runtime: str
    kernels: int
    definitions: int
    casts: int
    missing: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Everything, with values json accepts."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [f"{self.kernels} by a kernel"]
        parts += [f"{self.definitions} by their definition"] if self.definitions else []
        parts += [f"{self.casts} in float between casts"] if self.casts else []
        missing = ", ".join(f"{n} {op}" for op, n in self.missing.items())
        parts += [f"no kernel for {missing}"] if missing else []
        return f"{self.processor}, {self.runtime}: {', '.join(parts)}"


def placement(graph: Graph, processor: str) -> Placement:
    """The code that runs each node, by the kernels onnxruntime has; nothing is run.

    Constant nodes and calls to local functions are not counted.

    :param graph: the model, with its types
    :param processor: a processor all the kernels of which are known, the `CPU` of onnxruntime

    ::

        print(placement(GraphBuilder("model.onnx", infer_shapes_options=True).graph, "CPU"))
    """
    table = kernel_table(processor)
    engine_of = cache(lowering_of)
    codes: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for one, record, node in nodes_of(graph):
        if (record.domain, record.op_type) == ("", "Constant"):
            continue
        if function_key(node) in one.functions:
            continue
        found = next(kernel_findings(table, one, record, node, engine_of), None)
        code = "" if found is None else found.code
        if code in ("", "X004", "X005"):
            codes[code] += 1
        else:
            missing[operator_of(node)] += 1
    by_number = dict(missing.most_common())
    return Placement(processor, table.runtime, codes[""], codes["X004"], codes["X005"], by_number)
