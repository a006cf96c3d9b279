"""Compares two models that choose among nearly equal numbers, as detectors do: they are cut before
the choices, and both parts are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnx import NodeProto

from xbuilder.errors import XoptimError
from xbuilder.files.model_container import ModelContainer
from xbuilder.nodes.functions import all_nodes
from xbuilder.tensors.closeness import Criterion

from .noise import Roundings, with_noise, with_outputs
from .outputs import compare_outputs
from .sessions.node_runner import NodeRunner, reads
from .sessions.ort_values import to_python, to_result
from .sessions.runtime import Model, Opener, container_of

#: operators whose results are places: a rounding moves them when two numbers are nearly equal
_CHOICES = frozenset(("ArgMax", "ArgMin", "NonMaxSuppression", "TopK", "Unique"))


class Cut:
    """A model cut before its choices."""

    def __init__(self, container: ModelContainer):
        self.container, graph = container, container.proto.graph
        weights = {tensor.name for tensor in graph.initializer}
        weights |= {tensor.values.name for tensor in graph.sparse_initializer}
        weights |= {n for node in graph.node if node.op_type == "Constant" for n in node.output}
        #: operators that choose
        self.choices: set[str] = set()
        #: results that depend on a choice, and what they are computed from
        self.after: set[str] = set()
        known: dict[str, None] = {}
        for node in graph.node:
            names = reads(node)
            kinds = _CHOICES.intersection(n.op_type for n in all_nodes([node]))
            if kinds or not self.after.isdisjoint(names):
                self.choices |= kinds
                self.after.update(node.output)
                known.update(dict.fromkeys(n for n in names if n not in weights))
        self.names = [name for name in known if name not in self.after]

    def has(self, names: Iterable[str]) -> bool:
        """Whether results are in the main graph."""
        graph = self.container.proto.graph
        known = {value.name for value in graph.input}
        known.update(name for node in graph.node for name in node.output)
        return known.issuperset(names)

    def results(self, values: Mapping[str, Any], outputs: Iterable[str]) -> dict[str, Any]:
        """Outputs computed from the results before the choices, node by node.

        :param values: these results
        :param outputs: the outputs
        :raises XoptimError: a node does not run alone, or an output is a constant
        """
        wanted, nodes = set(outputs) - set(values), list[NodeProto]()
        for node in reversed(self.container.proto.graph.node):
            if not wanted.isdisjoint(node.output):
                nodes.append(node)
                wanted.update(n for n in reads(node) if n not in values)
        runner = NodeRunner(self.container)
        known = {name: to_result(value) for name, value in values.items() if value is not None}
        for node in reversed(nodes):
            known.update(runner.run(node, known))
        missing = [name for name in outputs if name not in known]
        if missing:
            raise XoptimError(f"no node gives {missing}")
        return {name: to_python(known[name]) for name in outputs}


def same_around_choices(
    opener: Opener,
    models: Sequence[Model],
    feeds: Mapping[str, Any],
    outputs: Sequence[str],
    criterion: Criterion,
) -> set[str]:
    """The outputs of two models that only differ by choices among nearly equal numbers.

    What the first model chooses from is a result of the second one too, and both compute the same
    values for it. From these values, both compute the same outputs.

    :param opener: opens the sessions
    :param models: both models
    :param feeds: their inputs
    :param outputs: names of outputs that are different
    :param criterion: the accepted difference
    :return: names of operators that choose, empty if the models differ

    Example::

        with ExitStack() as files:
            found = same_around_choices(Opener(files), (a, b), feeds, ["boxes"], Criterion())
    """
    first, second = (Cut(container_of(model)) for model in models)
    if not first.after.issuperset(outputs) or not second.has(first.names):
        return set()
    try:
        values, noise = _heads(opener, (first, second), feeds)
        if not _are_close(values[0], values[1], criterion, noise):
            return set()
        found = [cut.results(values[0], outputs) for cut in (first, second)]
    except XoptimError:  # a node does not run alone
        return set()
    return first.choices if _are_close(found[0], found[1], criterion, ()) else set()


def _heads(
    opener: Opener, cuts: Sequence[Cut], feeds: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], Roundings]:
    """The values the first model chooses from, as each model computes them, and their noise."""
    names = cuts[0].names
    heads = [with_outputs(cut.container, names) for cut in cuts]
    values = []
    for head, which in zip(heads, ("first", "second"), strict=True):
        session = opener.open(head, which)
        values.append(dict(zip(names, session.run(feeds, names), strict=True)))
        session.close()
    return values, Roundings(opener, heads[0], feeds, names)


def _are_close(
    expected: Mapping[str, Any],
    got: Mapping[str, Any],
    criterion: Criterion,
    noise: Iterable[Mapping[str, Any]],
) -> bool:
    pairs = {name: (value, got[name]) for name, value in expected.items()}
    rows = [compare_outputs(name, *pair, criterion) for name, pair in pairs.items()]
    return all(row.ok for row in with_noise(rows, pairs, criterion, noise))
