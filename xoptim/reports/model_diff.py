"""The difference of two models: signature, opsets, weights, functions, nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from xbuilder.files.model_container import ModelContainer
from xbuilder.nodes.attributes import attributes_of, readable
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.operators.opsets import opsets_of
from xbuilder.tensors.bits import pretty_type

from .node_matching import (
    GraphSide,
    NodeMatcher,
    NodePair,
    Token,
    operator_of,
    plain_attributes,
    token_of,
)
from .weight_contents import Weights, constant_tensor, described, weights_of

#: the kinds of differences, in the order of a report
KINDS = ("input", "output", "opset", "function", "node", "weight")
#: length of a value in a sentence
_LONGEST = 60


@dataclass(frozen=True)
class DiffRow:
    """One difference.

    :param kind: `input`, `output`, `opset`, `weight`, `function`, `node`
    :param change: `removed`, `added`, `changed` or `renamed`
    :param where: the graph, empty for the main one: `If 'choice' then_branch`, `function f`
    :param before: name in the first model, the first output for a node; empty if it is added
    :param after: name in the second model, empty if it is removed
    :param operator: operator of a node, type and shape of anything else
    :param detail: the change in words

    Example::

        >>> DiffRow("node", "changed", "", "y", "y", "Softmax", "axis: 1 -> 2").detail
        'axis: 1 -> 2'
    """

    kind: str
    change: str
    where: str
    before: str
    after: str
    operator: str
    detail: str = ""


@dataclass
class ModelDiff:
    """The difference of two models.

    :param rows: the differences
    :param unchanged: how many of each kind are the same in both models

    Example::

        >>> ModelDiff([DiffRow("weight", "renamed", "", "w", "v", "float[2]")]).same
        True
    """

    rows: list[DiffRow] = field(default_factory=list)
    unchanged: Counter[str] = field(default_factory=Counter)

    @property
    def same(self) -> bool:
        """Whether the models are the same up to the names of results and weights."""
        return all(row.change == "renamed" for row in self.rows)

    def counts(self) -> list[dict[str, Any]]:
        """One row for each kind: `kind`, `same`, `renamed`, `changed`, `removed`, `added`."""
        changes = Counter((row.kind, row.change) for row in self.rows)
        rows = [
            {
                "kind": kind,
                "same": self.unchanged[kind],
                **{c: changes[kind, c] for c in ("renamed", "changed", "removed", "added")},
            }
            for kind in KINDS
        ]
        return [row for row in rows if any(list(row.values())[1:])]

    def to_rows(self) -> list[dict[str, Any]]:
        """The differences as dictionaries, for `pandas.DataFrame`."""
        return [asdict(row) for row in self.rows]


def diff_models(before: ModelContainer, after: ModelContainer) -> ModelDiff:
    """Compares two models without running them.

    Weights are paired by content, nodes by what they compute, then by what surrounds them; names
    come last. A result with another name is `renamed`, and the models are still the same.
    Metadata, documentation and declared types of intermediate results are not compared.

    :param before: the first model
    :param after: the second model
    :return: the difference, empty for equal models
    :raises ExternalDataError: if the data of a weight cannot be read

    ::

        diff = diff_models(ModelContainer.load("a.onnx"), ModelContainer.load("b.onnx"))
        print(diff.same, diff.counts())
    """
    return _Comparison(before, after).run()


@dataclass(frozen=True)
class _Scope:
    """One graph or function of a model, as its side of the comparison.

    :param weights: contents of the weights
    :param opsets: opsets of the nodes
    :param outer: tokens of the results captured from outside
    """

    weights: Weights
    opsets: Mapping[str, int]
    outer: Mapping[str, Token]

    def side(self, graph: GraphProto | FunctionProto, tokens: Mapping[str, Token]) -> GraphSide:
        """The nodes of a graph with the tokens of what they read.

        :param graph: the graph or function
        :param tokens: tokens of its inputs
        """
        weights = self.weight_tokens(weights_of(graph))
        return GraphSide(_computing(graph), {**self.outer, **weights, **tokens}, self.attributes)

    def attributes(self, node: NodeProto, tokens: Mapping[str, Token]) -> object:
        """The attributes of a node, a graph is known by what its outputs compute."""
        plain = sorted(plain_attributes(node, self.opsets.get(node.domain, 1)))
        return plain, [(name, self._body(graph, tokens)) for name, graph in subgraphs_of(node)]

    def _body(self, graph: GraphProto, tokens: Mapping[str, Token]) -> list[Token | None]:
        own = self.weight_tokens(weights_of(graph))
        own.update(positional_tokens(i.name for i in graph.input))
        contents = GraphSide(_computing(graph), {**tokens, **own}, self.attributes).contents
        return [contents.get(o.name) for o in graph.output]

    def weight_tokens(self, weights: Mapping[str, TensorProto]) -> dict[str, Token]:
        """Tokens of weights, by name."""
        return {name: token_of("weight", self.weights.token(w)) for name, w in weights.items()}


def _computing(graph: GraphProto | FunctionProto) -> list[NodeProto]:
    """The nodes of a graph that are not weights."""
    return [node for node in graph.node if constant_tensor(node) is None]


def positional_tokens(names: Iterable[str]) -> dict[str, Token]:
    """Tokens of the inputs of a body or of a function: they are known by position.

    >>> positional_tokens(["x", "y"]) == positional_tokens(["a", "b"])
    False
    >>> list(positional_tokens(["x"]).values()) == list(positional_tokens(["a"]).values())
    True
    """
    return {name: token_of("input", i) for i, name in enumerate(names)}


class _Comparison:
    """Compares two models part by part.

    :param before: the first model
    :param after: the second model
    """

    def __init__(self, before: ModelContainer, after: ModelContainer):
        self.before, self.after = before.proto, after.proto
        self.weights = Weights(before), Weights(after)
        self.diff = ModelDiff()

    def run(self) -> ModelDiff:
        """The difference."""
        opsets = opsets_of(self.before), opsets_of(self.after)
        self._named("opset", *({k: f"version {v}" for k, v in o.items()} for o in opsets))
        graphs = self.before.graph, self.after.graph
        self._named("input", *_signatures(graphs[0].input, graphs[1].input))
        self._named("output", *_signatures(graphs[0].output, graphs[1].output))
        scopes = [_Scope(w, o, {}) for w, o in zip(self.weights, opsets, strict=True)]
        inputs = [{i.name: token_of("input", i.name) for i in g.input} for g in graphs]
        self._graphs("", graphs, (scopes[0], scopes[1]), (inputs[0], inputs[1]))
        self._functions()
        return self.diff

    def _add(self, kind: str, change: str, where: str, *fields: str) -> None:
        self.diff.rows.append(DiffRow(kind, change, where, *fields))

    def _named(self, kind: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Compares what is known by its name: inputs, outputs, opsets."""
        for name in {**before, **after}:
            first, second = before.get(name), after.get(name)
            shown = name or "ai.onnx"
            if first is None:
                self._add(kind, "added", "", "", shown, second or "")
            elif second is None:
                self._add(kind, "removed", "", shown, "", first)
            elif first != second:
                self._add(kind, "changed", "", shown, shown, first, f"{first} -> {second}")
            else:
                self.diff.unchanged[kind] += 1

    def _functions(self) -> None:
        first, second = (
            _function_table(self.before.functions),
            _function_table(self.after.functions),
        )
        for key in {**first, **second}:
            name = ".".join(part for part in key if part)
            if key not in second:
                self._add("function", "removed", "", name, "", f"{len(first[key].node)} nodes")
            elif key not in first:
                self._add("function", "added", "", "", name, f"{len(second[key].node)} nodes")
            else:
                self._function(name, first[key], second[key])

    def _function(self, name: str, before: FunctionProto, after: FunctionProto) -> None:
        found = len(self.diff.rows)
        texts = [f"({', '.join(f.input)}) => ({', '.join(f.output)})" for f in (before, after)]
        scopes = [
            _Scope(w, {o.domain: o.version for o in f.opset_import}, {})
            for w, f in zip(self.weights, (before, after), strict=True)
        ]
        sides = [
            scope.side(f, positional_tokens(f.input))
            for scope, f in zip(scopes, (before, after), strict=True)
        ]
        outputs = list(zip(before.output, after.output, strict=False))
        self._weights(f"function {name}", (before, after), (scopes[0], scopes[1]))
        self._nodes(f"function {name}", (sides[0], sides[1]), outputs, (scopes[0], scopes[1]))
        arity = [(len(f.input), len(f.output)) for f in (before, after)]
        if arity[0] == arity[1]:
            texts = [_opsets_text(f) for f in (before, after)]
        if texts[0] != texts[1]:
            self._add("function", "changed", "", name, name, texts[0], f"{texts[0]} -> {texts[1]}")
        elif len(self.diff.rows) == found:
            self.diff.unchanged["function"] += 1

    def _graphs(
        self,
        where: str,
        graphs: tuple[GraphProto, GraphProto],
        scopes: tuple[_Scope, _Scope],
        inputs: tuple[Mapping[str, Token], Mapping[str, Token]],
    ) -> None:
        self._weights(where, graphs, scopes)
        sides = [
            scope.side(graph, given)
            for scope, graph, given in zip(scopes, graphs, inputs, strict=True)
        ]
        names = [[o.name for o in g.output] for g in graphs]
        if where:
            outputs = list(zip(*names, strict=False))
        else:
            outputs = [(name, name) for name in names[0] if name in set(names[1])]
        self._nodes(where, (sides[0], sides[1]), outputs, scopes)

    def _weights(
        self,
        where: str,
        graphs: tuple[GraphProto | FunctionProto, GraphProto | FunctionProto],
        scopes: tuple[_Scope, _Scope],
    ) -> None:
        """Pairs the weights: same name and content, same content, same name."""
        before, after = (weights_of(g) for g in graphs)
        tokens = scopes[0].weight_tokens(before), scopes[1].weight_tokens(after)
        by_content: defaultdict[Token, list[str]] = defaultdict(list)
        for name, token in tokens[1].items():
            if tokens[0].get(name) != token:
                by_content[token].append(name)
        left = []
        for name, token in tokens[0].items():
            if tokens[1].get(name) == token:
                self.diff.unchanged["weight"] += 1
            elif by_content[token]:
                other = by_content[token].pop(0)
                self._add("weight", "renamed", where, name, other, described(before[name]))
            else:
                left.append(name)
        free = {name for names in by_content.values() for name in names}
        for name in left:
            text = described(before[name])
            if name in free:
                free.remove(name)
                detail = self.weights[0].distance(before[name], self.weights[1], after[name])
                self._add("weight", "changed", where, name, name, text, detail)
            else:
                self._add("weight", "removed", where, name, "", text)
        for name in after:
            if name in free:
                self._add("weight", "added", where, "", name, described(after[name]))

    def _nodes(
        self,
        where: str,
        sides: tuple[GraphSide, GraphSide],
        outputs: Iterable[tuple[str, str]],
        scopes: tuple[_Scope, _Scope],
    ) -> None:
        before, after = sides
        for pair in NodeMatcher(before, after).pairs(outputs):
            self._pair(where, pair, sides, scopes)
        for i, node in enumerate(before.nodes):
            if i not in before.partners:
                self._add("node", "removed", where, _name(node), "", operator_of(node))
        for j, node in enumerate(after.nodes):
            if j not in after.partners:
                self._add("node", "added", where, "", _name(node), operator_of(node))

    def _pair(
        self,
        where: str,
        pair: NodePair,
        sides: tuple[GraphSide, GraphSide],
        scopes: tuple[_Scope, _Scope],
    ) -> None:
        first, second = pair.before, pair.after
        names, found = (_name(first), _name(second)), len(self.diff.rows)
        if not pair.equal:
            details = [*_changed_attributes(first, second, scopes), *_changed_inputs(pair, sides)]
            if details:
                detail = "; ".join(details)
                self._add("node", "changed", where, *names, operator_of(first), detail)
            self._bodies(where, pair, sides, scopes)
        if len(self.diff.rows) > found:
            return
        if list(first.output) == list(second.output):
            self.diff.unchanged["node"] += 1
        else:
            self._add("node", "renamed", where, *names, operator_of(first))

    def _bodies(
        self,
        where: str,
        pair: NodePair,
        sides: tuple[GraphSide, GraphSide],
        scopes: tuple[_Scope, _Scope],
    ) -> None:
        bodies = [dict(subgraphs_of(node)) for node in (pair.before, pair.after)]
        inner = [
            _Scope(scope.weights, scope.opsets, side.paired)
            for scope, side in zip(scopes, sides, strict=True)
        ]
        for name in bodies[0].keys() & bodies[1].keys():
            graphs = bodies[0][name], bodies[1][name]
            inputs = [positional_tokens(i.name for i in g.input) for g in graphs]
            place = f"{operator_of(pair.before)} {_name(pair.before)!r} {name}"
            place = f"{where}, {place}" if where else place
            self._graphs(place, graphs, (inner[0], inner[1]), (inputs[0], inputs[1]))


def _name(node: NodeProto) -> str:
    """The first result of a node, or its name if it has none."""
    return next((name for name in node.output if name), node.name)


def _function_table(
    functions: Iterable[FunctionProto],
) -> dict[tuple[str, str, str], FunctionProto]:
    return {(f.domain, f.name, f.overload): f for f in functions}


def _opsets_text(function: FunctionProto) -> str:
    opsets = sorted((o.domain or "ai.onnx", o.version) for o in function.opset_import)
    return ", ".join(f"{domain} {version}" for domain, version in opsets)


def _signatures(
    before: Sequence[ValueInfoProto], after: Sequence[ValueInfoProto]
) -> tuple[dict[str, str], dict[str, str]]:
    """The types of the inputs or outputs of both models by name. Those that took the place of
    another one have their place too, as callers may use it."""
    first, second = (
        {info.name: _type_text(info.type) for info in some} for some in (before, after)
    )
    orders = [n for n in first if n in second], [n for n in second if n in first]
    moved = {a for a, b in zip(*orders, strict=True) if a != b}
    for table in (first, second):
        places = enumerate(table.items())
        table.update({n: f"{text}, place {i}" for i, (n, text) in places if n in moved})
    return first, second


def _type_text(declared: TypeProto) -> str:
    kind = declared.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        inside = _type_text(getattr(declared, kind).elem_type)
        return f"{kind.removesuffix('_type')} of {inside}"
    if kind != "tensor_type":
        return kind or "no type"
    tensor = declared.tensor_type
    name = pretty_type(tensor.elem_type)
    if not tensor.HasField("shape"):
        return f"{name}, unknown rank"
    dims = [
        str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?"
        for d in tensor.shape.dim
    ]
    return f"{name}[{', '.join(dims)}]"


def _changed_attributes(
    first: NodeProto, second: NodeProto, scopes: tuple[_Scope, _Scope]
) -> list[str]:
    """The attributes that differ, those with a graph apart."""
    opsets = [s.opsets.get(n.domain, 1) for s, n in zip(scopes, (first, second), strict=True)]
    if plain_attributes(first, opsets[0]) == plain_attributes(second, opsets[1]):
        return []
    values = [
        {k: _short(v) for k, v in attributes_of(n).items() if not isinstance(v, GraphProto)}
        for n in (first, second)
    ]
    return [
        f"{name} {values[0].get(name, 'absent')} -> {values[1].get(name, 'absent')}"
        for name in {**values[0], **values[1]}
        if values[0].get(name) != values[1].get(name)
    ]


def _short(value: Any) -> str:
    text = readable(value) if isinstance(value, (str, bytes)) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _changed_inputs(pair: NodePair, sides: tuple[GraphSide, GraphSide]) -> list[str]:
    """The inputs of two nodes that do not correspond."""
    operands = list(pair.before.input), list(pair.after.input)
    size = max(map(len, operands))
    first, second = ([*names, *[""] * (size - len(names))] for names in operands)
    return [
        f"input {i}: {_change(a, b, sides)}"
        for i, (a, b) in enumerate(zip(first, second, strict=True))
        if (a or b) and sides[0].paired.get(a, f"1{a}") != sides[1].paired.get(b, f"2{b}")
    ]


def _change(a: str, b: str, sides: tuple[GraphSide, GraphSide]) -> str:
    """An input of two nodes, with what gives it where the name alone does not tell them apart."""
    sources = [side.operator_giving(name) for name, side in zip((a, b), sides, strict=True)]
    if a == b and sources[0] != sources[1]:
        return f"{a} ({sources[0]}) -> {b} ({sources[1]})"
    return f"{a or 'absent'} -> {b or 'absent'}"
