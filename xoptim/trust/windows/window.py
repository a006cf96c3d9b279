"""Window, what one rewrite changed: two small lists of nodes, with the results both read."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.helper as oh
import onnx.inliner
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, numpy_helper

from xbuilder.facts.facts import ResultFacts
from xbuilder.graph.graph import Graph
from xbuilder.nodes.functions import all_nodes, function_key
from xbuilder.nodes.subgraphs import node_captures
from xbuilder.nodes.value_infos import facts_to_type
from xbuilder.operators.domains import main_domain

from ...engine.outcomes import Application
from .programs import renamed

#: bigger constants, in bytes, are inputs of the two models, so that they are not copied; so are
#: the weights, so that windows that have other ones share the models
FED_BYTES = 1 << 16
#: a window does not grow beyond this number of results
_MOST_AROUND = 50_000
#: operators whose results are left free as long as possible: they cost, and give any value
_HEAVY = frozenset(
    {"Attention", "Conv", "ConvInteger", "ConvTranspose", "GRU", "Gemm", "GroupQueryAttention"}
    | {"LSTM", "Loop", "MatMul", "MatMulInteger", "MatMulNBits", "MultiHeadAttention"}
    | {"QLinearConv", "QLinearMatMul", "RNN", "Scan"}
)


@dataclass
class Window:
    """The nodes a rewrite removed, those it wrote, and the nodes before them that were added to it.

    Invariants: both lists are in topological order and give every compared result; an input is
    read by one of them and given by none.

    :param graph: the graph, once rewritten
    :param before: the removed nodes
    :param after: the nodes written
    :param around: nodes before them, between them or after them, the same on both sides, by result
    :param readers: those of these nodes that are after them
    :param known: facts of the results of the removed nodes
    :param results: compared results: both sides give them, and something reads them
    :param constants: values of the inputs that are constants
    """

    graph: Graph
    before: list[NodeProto]
    after: list[NodeProto]
    around: dict[str, NodeProto] = field(default_factory=dict)
    readers: list[NodeProto] = field(default_factory=list)
    known: dict[str, ResultFacts] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    _sides: tuple[list[NodeProto], list[NodeProto]] | None = None
    _reads: list[str] | None = None

    @property
    def producers(self) -> list[NodeProto]:
        """The nodes added around, each once, in topological order."""
        return by_dependencies({id(n): n for n in self.around.values()}.values())

    def sides(self) -> tuple[list[NodeProto], list[NodeProto]]:
        """All nodes of each side, in topological order. Cost: O(1) until the window grows."""
        if not self.around:
            return self.before, self.after
        if self._sides is None:
            around = self.producers
            self._sides = (
                by_dependencies([*around, *self.before]),
                by_dependencies([*around, *self.after]),
            )
        return self._sides

    def _add(self, nodes: Iterable[NodeProto]) -> None:
        """Adds nodes around."""
        self.around.update((o, node) for node in nodes for o in node.output if o)
        self._sides = self._reads = None

    def reads(self) -> list[str]:
        """The results both sides need from elsewhere, constants included, each once."""
        if self._reads is None:
            found: dict[str, None] = {}
            for side in self.sides():
                made = {o for n in side for o in n.output}
                found.update(dict.fromkeys(n for n in names_read(side) if n not in made))
            self._reads = list(found)
        return self._reads

    def inputs(self) -> list[str]:
        """The results both sides need from elsewhere that are not constants."""
        return [name for name in self.reads() if name not in self.constants]

    def facts_of(self, name: str) -> ResultFacts:
        """Facts of a result, before the rewrite for those of the removed nodes."""
        return self.known.get(name) or self.graph.facts[name]

    def grow(self, heavy: bool = False, levels: int = 1, most: int = _MOST_AROUND) -> bool:
        """Adds the producers of the inputs, then theirs. Cost: that of the nodes added.

        :param heavy: the producers that cost much are added as well
        :param levels: number of levels of producers
        :param most: no level is added to more results than this
        :return: whether there was one
        """
        known = {o for side in (self.before, self.after) for n in side for o in n.output}
        known.update(self.around)
        names, size = self.inputs(), len(self.around)
        for _ in range(levels):
            if len(self.around) > most:
                break
            new = self._producers(names, known, heavy)
            if not new:
                break
            self._add(new)
            known.update(o for node in new for o in node.output)
            names = list(dict.fromkeys(n for n in names_read(new) if n not in known))
        if len(self.around) == size:
            return False
        self.read_constants()
        return True

    def _producers(
        self, names: Iterable[str], known: Container[str], heavy: bool
    ) -> list[NodeProto]:
        """The nodes that give results, constants and those already known excepted."""
        found = {
            id(node): node
            for name in names
            if name not in known and name not in self.constants
            if constant_value(self.graph, name) is None
            if (node := producer_of(self.graph, name)) is not None
            if heavy or node.op_type not in _HEAVY
        }
        return list(found.values())

    def grow_forward(self) -> bool:
        """Adds the nodes that read the compared results, and compares theirs instead.

        :return: whether there was one
        """
        store, known = self.graph.store, self._given()
        found = {id(r): r for name in self.results for r in store.readers(name)}
        new = [
            r.current() for r in found.values() if any(r.outputs) and known.isdisjoint(r.outputs)
        ]
        if not new or any(name in store.outputs for name in self.results):
            return False
        self.readers.extend(new)
        self._add(new)
        self.compare_kept_results()
        self.read_constants()
        return True

    def compare_kept_results(self) -> None:
        """Compares the results that both sides give and that the rest of the graph needs."""
        made = [{o for n in side for o in n.output if o} for side in self.sides()]
        inside = self._given()
        self.results = [
            o
            for n in (*self.before, *self.readers)
            for o in n.output
            if o in made[0] and o in made[1] and _is_read_elsewhere(self.graph, o, inside)
        ]

    def _given(self) -> set[str]:
        """The results of the nodes of the graph that are in the window."""
        return {o for n in (*self.around.values(), *self.after) for o in n.output if o}

    def read_constants(self) -> None:
        """Reads the inputs that are constants."""
        for name in self.inputs():
            value = constant_value(self.graph, name)
            if value is not None:
                self.constants[name] = value

    def functions(self) -> list[FunctionProto]:
        """The local functions the nodes need, directly or not."""
        table, found = self.graph.functions, dict[tuple[str, str], FunctionProto]()
        nodes: list[NodeProto] = [n for side in self.sides() for n in side] if table else []
        while nodes:
            nodes, level = [], all_nodes(nodes)
            for node in level:
                key = function_key(node)
                if key in table and key not in found:
                    found[key] = _self_contained(table[key])
                    nodes.extend(table[key].node)
        return list(found.values())

    def model(self, index: int, embed: bool = False) -> ModelProto:
        """The model of a side; an input without a known type has none.

        :param index: 0 for the removed nodes, 1 for those written
        :param embed: big constants are initializers as well, not inputs
        """
        return self._model(self.sides()[index], {name: name for name in self.results}, embed)

    def joint_model(self, embed: bool = False) -> tuple[ModelProto, list[str]] | None:
        """Both sides in one model, where what they both compute is computed once. Its first outputs
        are the results of the first side.

        :param embed: big constants are initializers as well, not inputs
        :return: the model and the results of the second side, None if the sides share names
        """
        first, second = self.sides()
        changed = {o for side in (self.before, self.after) for n in side for o in n.output if o}
        for node in self.producers:
            if not changed.isdisjoint(names_read([node])):
                changed.update(o for o in node.output if o)
        names = {o: f"{o} written" for n in second for o in n.output if o in changed}
        known = {o for n in first for o in n.output}
        known.update(self.reads())
        if not known.isdisjoint(names.values()) or any(name in changed for name in self.reads()):
            return None
        rewritten = [n for n in second if any(o in names for o in n.output)]
        nodes = [*first, *(renamed(n, lambda name: names.get(name, name)) for n in rewritten)]
        found = [names.get(name, name) for name in self.results]
        outputs = dict(zip((*self.results, *found), (*self.results, *self.results), strict=True))
        return self._model(nodes, outputs, embed), found

    def fed_constants(self, embed: bool = False) -> dict[str, np.ndarray]:
        """The constants that are inputs of the models."""
        if embed:
            return {}
        return {n: v for n, v in self.constants.items() if v.nbytes > FED_BYTES or _is_weight(v)}

    def _model(
        self, nodes: Sequence[NodeProto], outputs: Mapping[str, str], embed: bool
    ) -> ModelProto:
        """A model of some nodes.

        :param outputs: its outputs, with the results that have the same type
        """
        made = {o for n in nodes for o in n.output if o}
        needed = set(names_read(nodes)) - made
        fed = self.fed_constants(embed)
        graph = GraphProto(name="window", node=nodes)
        for name in self.reads():
            value = self.constants.get(name)
            if value is not None and name not in fed:
                if name in needed:
                    graph.initializer.append(numpy_helper.from_array(value, name))
                continue
            kind = self.type_of(name)
            if kind is not None:
                graph.input.append(oh.make_value_info(name, kind))
        for name, result in outputs.items():
            kind = self.type_of(result)
            info = oh.make_empty_tensor_value_info(name)
            graph.output.append(info if kind is None else oh.make_value_info(name, kind))
        domains = {main_domain(n.domain): 1 for n in all_nodes(nodes)}
        versions = {**domains, **self.graph.opsets}
        opsets = [oh.make_opsetid(d, v) for d, v in versions.items()]
        model = oh.make_model(graph, opset_imports=opsets, ir_version=self.graph.ir_version)
        model.functions.extend(self.functions())
        # onnxruntime does not find a function that another one calls when they are overloads
        return onnx.inliner.inline_local_functions(model) if model.functions else model

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a result and its rank, without dimensions, None if it is not known."""
        facts = self.facts_of(name)
        if facts.sequence is None and facts.optional is None:
            rank = facts.known_rank()
            shape = None if rank is None else [None] * rank
            return oh.make_tensor_type_proto(facts.type, shape) if facts.type else None
        return facts_to_type(facts, lambda dim: False)


def window_of(graph: Graph, done: Application) -> Window:
    """The window of a rewrite that just took place.

    :param graph: the graph, once rewritten
    :param done: the rewrite
    """
    before = by_dependencies(r.current() for r in done.removed)
    after = by_dependencies(r.current() for r in done.written())
    window = Window(graph, before, after)
    window.known = {name: facts for name, facts, *_ in done.known if facts is not None}
    made = [{o for n in side for o in n.output if o} for side in (before, after)]
    window._add(_between(graph, done, made[0] | made[1]))
    window.compare_kept_results()
    window.read_constants()
    return window


def _between(graph: Graph, done: Application, made: set[str]) -> list[NodeProto]:
    """The nodes that read results of a window, directly or not, and that it reads."""
    store = graph.store
    first = min((r.order for r in (*done.removed, *done.added)), default=0)
    reaches: dict[str, bool] = {}

    def visit(start: str) -> None:
        stack = [start]
        while stack:
            name = stack[-1]
            record = store.producers.get(name)
            if name in reaches or record is None or record.order < first:
                reaches.setdefault(name, name in made)
                stack.pop()
                continue
            reads = [n for n in record.reads() if n not in made]
            waits = [n for n in reads if n not in reaches]
            if waits:
                stack.extend(waits)
                continue
            if any(n in made for n in record.reads()) or any(reaches[n] for n in reads):
                found[id(record)] = record.current()
                reaches[name] = True
            else:
                reaches[name] = False
            stack.pop()

    found: dict[int, NodeProto] = {}
    for record in (*done.removed, *done.added):
        for name in record.reads():
            if name not in made:
                visit(name)
    return list(found.values())


def _is_read_elsewhere(graph: Graph, name: str, inside: set[str]) -> bool:
    """Whether the graph needs a result out of the nodes that give some results."""
    store = graph.store
    return name in store.outputs or any(inside.isdisjoint(r.outputs) for r in store.readers(name))


def names_read(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """The names some nodes read, those their bodies capture included."""
    for node in nodes:
        captured = node_captures(node) if node.attribute else ()
        yield from filter(None, (*node.input, *captured))


def by_dependencies(nodes: Iterable[NodeProto]) -> list[NodeProto]:
    """Sorts nodes so that each follows those it reads."""
    rows = list(nodes)
    if len(rows) < 2:
        return rows
    producers = {o: n for n in rows for o in n.output if o}
    before = {
        id(node): [p for name in names_read([node]) if (p := producers.get(name)) is not None]
        for node in rows
    }
    done: dict[int, NodeProto] = {}
    for first in rows:
        stack = [first]
        while stack:
            node = stack[-1]
            waits = (p for p in before[id(node)] if id(p) not in done and p is not node)
            wait = next(waits, None)
            if wait is not None and len(stack) <= len(rows):
                stack.append(wait)
                continue
            done.setdefault(id(node), node)
            stack.pop()
    return list(done.values())


def _self_contained(function: FunctionProto) -> FunctionProto:
    """A copy of a function that imports every domain its nodes use."""
    copy = FunctionProto()
    copy.CopyFrom(function)
    known = {main_domain(o.domain) for o in copy.opset_import}
    for domain in dict.fromkeys(main_domain(n.domain) for n in all_nodes(copy.node)):
        if domain not in known:
            copy.opset_import.append(oh.make_opsetid(domain, 1))
    return copy


def _graph_of(graph: Graph | None, name: str) -> Graph | None:
    """The graph that gives a result, this one or one around it."""
    while graph is not None:
        if name in graph.store.producers or graph.is_given(name):
            return graph
        graph = graph.parent
    return None


def producer_of(graph: Graph, name: str) -> NodeProto | None:
    """The node that gives a result of a graph or of one around it, None for an input."""
    home = _graph_of(graph, name)
    record = None if home is None else home.store.producers.get(name)
    return None if record is None else record.current()


def constant_value(graph: Graph, name: str) -> np.ndarray | None:
    """The value of a constant, None if the result is not one or is too big to be computed."""
    constants = graph.constants
    return constants.value(name) if constants.is_constant(name) else None


def _is_weight(value: np.ndarray) -> bool:
    return value.dtype.kind == "f" and value.size > 1


def input_facts(window: Window) -> Mapping[str, ResultFacts]:
    """Facts of the inputs, by name."""
    return {name: window.facts_of(name) for name in window.inputs()}
