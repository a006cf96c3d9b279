"""Records the first application of each rewrite, to show it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from xbuilder.graph.graph import Graph
from xbuilder.nodes.subgraphs import node_captures

from ...engine.engine import Engine
from ...engine.observers import Observer
from ...engine.outcomes import Application
from ..drawing.drawing import Drawing, constant_text, draw_nodes, weight_text
from ..drawing.shapes import fact_text

#: a rewrite of more nodes is not shown
_MOST = 60


@dataclass
class RewriteExample:
    """One application of a rewrite.

    :param pattern: name of the rewrite
    :param before: the nodes it removed
    :param after: the nodes it wrote
    :param shapes: types and shapes of their results
    :param constants: texts of the constants they read
    :param doc: first lines of the documentation of the rewrite
    """

    pattern: str
    before: Sequence[NodeProto]
    after: Sequence[NodeProto]
    shapes: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    doc: str = ""

    def outputs(self) -> list[str]:
        """The results that other nodes read: those of both sides, or no node of a side reads."""
        made = [
            {n for node in side for n in node.output if n} for side in (self.before, self.after)
        ]
        read = {n for node in (*self.before, *self.after) for n in node.input}
        first = made[0] & made[1] or made[0] - read
        return [n for node in self.before for n in node.output if n in first]

    def drawings(self, identifier: str) -> tuple[Drawing, Drawing]:
        """The nodes before and after.

        :param identifier: beginning of the identifiers of the drawings
        """
        outputs = self.outputs()
        shapes, constants = self.shapes, self.constants
        before = draw_nodes(self.before, outputs, shapes, constants, f"{identifier}b")
        after = draw_nodes(self.after, outputs, shapes, constants, f"{identifier}a")
        return before, after


class RewriteExamples(Observer):
    """Records the first application of each rewrite. Cost: nothing for the others.

    ::

        examples = RewriteExamples()
        options = OptimizationOptions(patterns="default", features=[examples])
        GraphBuilder(model, optimization_options=options).optimize()
        print(list(examples.found))
    """

    def __init__(self) -> None:
        self.found: dict[str, RewriteExample] = {}

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Records the nodes of a rewrite, unless it is refused or known."""
        name = done.match.pattern.name
        if done.refusal or name in self.found:
            return
        before = [r.current() for r in done.removed]
        after = [r.current() for r in done.written()]
        if len(before) + len(after) > _MOST:
            return
        doc = (inspect.getdoc(done.match.pattern) or "").partition("\n\n")[0].replace("\n", " ")
        example = self.found[name] = RewriteExample(name, before, after, doc=doc)
        _describe(example, engine.graph)
        known = {name: fact_text(facts) for name, facts, *_ in done.known if facts is not None}
        example.shapes |= {n: text for n, text in known.items() if text}


def _describe(example: RewriteExample, graph: Graph) -> None:
    """Adds the shapes of the results and the texts of the constants of a rewrite."""
    for node in (*example.before, *example.after):
        for name in filter(None, (*node.input, *node.output, *node_captures(node))):
            weight = graph.constants.initializers.get(name)
            computed = graph.constants.computed.get(name)
            if weight is not None:
                example.constants[name] = weight_text(weight)
            elif computed is not None and computed.op_type == "Constant":
                example.constants[name] = constant_text(computed.current())
            elif name not in example.shapes and (text := fact_text(graph.facts[name])):
                example.shapes[name] = text
