"""The noise of a model: the distance between its results and the same ones with other roundings."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import onnx.helper as oh
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from xbuilder.errors import XoptimError
from xbuilder.files.model_container import ModelContainer
from xbuilder.nodes.copies import copy_node
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.operators.domains import main_domain
from xbuilder.operators.opsets import opsets_of
from xbuilder.runtimes.kernel_table import shipped_kernels
from xbuilder.tensors.closeness import Criterion

from .outputs import OutputDifference, compare_outputs
from .sessions.node_runner import NodeRunner, reads
from .sessions.ort_values import OrtResult, to_python, to_result, type_name
from .sessions.runtime import Model, Opener, VerificationError, container_of

_FLOAT, _DOUBLE = type_name(TensorProto.FLOAT), type_name(TensorProto.DOUBLE)
#: attributes that choose the type of a result
_TYPE_ATTRIBUTES = {"to", "dtype", "output_dtype", "stash_type"}


class Roundings:
    """The outputs of a model with other roundings: as onnxruntime optimizes it, then with doubles
    wherever onnxruntime has kernels for them. Each is computed once, when it is needed.

    :param opener: opens the session
    :param model: the model
    :param feeds: its inputs
    :param names: its outputs
    """

    def __init__(self, opener: Opener, model: Model, feeds: Mapping[str, Any], names: list[str]):
        self._opener, self._model, self._feeds, self._names = opener, model, feeds, names
        self._known: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for i, compute in enumerate((self._optimized, self._with_doubles)):
            if i == len(self._known):
                self._known.append(compute())
            yield self._known[i]

    def _optimized(self) -> dict[str, Any]:
        try:
            session = self._opener.open(self._model, "first", optimized=True)
            values = session.run(self._feeds, self._names)
            session.close()
            return dict(zip(self._names, values, strict=True))
        except VerificationError:  # the optimizations of onnxruntime are another matter
            return {}

    def _with_doubles(self) -> dict[str, Any]:
        try:
            return double_results(container_of(self._model), self._feeds, self._names)
        except (XoptimError, MemoryError):  # a node that does not run alone: no other reference
            return {}


def with_noise(
    rows: Sequence[OutputDifference],
    values: Mapping[str, tuple[Any, Any]],
    criterion: Criterion,
    roundings: Iterable[Mapping[str, Any]],
) -> list[OutputDifference]:
    """Compares again the outputs that are refused, with the noise of the first model.

    :param rows: the differences
    :param values: both values of each output
    :param criterion: the accepted difference
    :param roundings: outputs of the first model with other roundings, computed when asked for
    """
    found = {row.output: row for row in rows}
    noisy: dict[str, list[Any]] = {row.output: [] for row in rows if row.is_rounding}
    for others in roundings if noisy else ():
        for name in noisy:
            if name in others:
                noisy[name].append(others[name])
                found[name] = compare_outputs(name, *values[name], criterion, noisy=noisy[name])
        if all(found[name].ok for name in noisy):
            break
    return [found[row.output] for row in rows]


def with_outputs(container: ModelContainer, names: Iterable[str]) -> ModelContainer:
    """The same model and weights, with more outputs.

    :param container: the model
    :param names: results of its main graph
    """
    other = copy.copy(container)
    other.proto = ModelProto()
    other.proto.CopyFrom(container.proto)
    known = {output.name for output in other.proto.graph.output}
    other.proto.graph.output.extend(ValueInfoProto(name=n) for n in names if n not in known)
    return other


def optimized_results(container: ModelContainer, feeds: Mapping[str, Any], name: str) -> list[Any]:
    """One result of a model as onnxruntime optimizes it, none if it does not run.

    :param container: the model
    :param feeds: its inputs
    :param name: a result of its main graph, which becomes an output
    """
    other = with_outputs(container, [name])
    with ExitStack() as files:
        try:
            session = Opener(files).open(other, "first", optimized=True)
            return session.run(feeds, [name])
        except XoptimError:
            return []


def double_results(
    container: ModelContainer, feeds: Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """Results of a model computed with doubles, node by node.

    :param container: the model
    :param feeds: its inputs
    :param names: the results to return
    :raises XoptimError: a node does not run alone
    """
    runner = DoubleRunner(container)
    nodes = list(container.proto.graph.node)
    uses = Counter(name for node in nodes for name in reads(node))
    uses.update(names)
    values = {name: to_result(value) for name, value in feeds.items() if value is not None}
    for node in nodes:
        values.update(runner.run(node, values))
        for name in reads(node):
            uses[name] -= 1
            if uses[name] <= 0:
                values.pop(name, None)
    return {name: to_python(values[name]) for name in names if name in values}


class DoubleRunner(NodeRunner):
    """Runs nodes with doubles instead of floats where onnxruntime has a kernel for them.

    A node that has none, or that has bodies, runs as it is, on its inputs rounded to floats. A
    result that is a double in place of a float stays one until it is read by such a node.
    """

    def __init__(self, container: ModelContainer):
        super().__init__(container)
        self._widened: set[str] = set()
        self._opsets = opsets_of(container.proto)

    def run(self, node: NodeProto, values: Mapping[str, OrtResult]) -> dict[str, OrtResult]:
        """Runs a node.

        :param node: a node of the main graph
        :param values: its inputs, weights excepted
        :return: its results, by name
        :raises NodeError: onnxruntime refuses it with floats too
        """
        if self._may_run_with_doubles(node):
            try:
                return self._run_with_doubles(node, values)
            except XoptimError:  # no kernel for doubles
                pass
        floats = {n: _cast(values[n], TensorProto.FLOAT) for n in reads(node) if n in self._widened}
        return super().run(node, {**values, **floats})

    def _may_run_with_doubles(self, node: NodeProto) -> bool:
        """Whether onnxruntime has a kernel for doubles, as far as its first operand tells."""
        if any(subgraphs_of(node)):
            return False
        domain = main_domain(node.domain)
        return shipped_kernels("CPU").runs(
            node.op_type, domain, self._opsets.get(domain, 1), [TensorProto.DOUBLE]
        )

    def _run_with_doubles(
        self, node: NodeProto, values: Mapping[str, OrtResult]
    ) -> dict[str, OrtResult]:
        wide, doubles = _with_doubles(node)
        inputs = {n: values[n] if n in values else self.weight(n) for n in reads(node)}
        for name, value in inputs.items():
            if value.type == _FLOAT:
                inputs[name] = _cast(value, TensorProto.DOUBLE)
                doubles = True
        doubles = doubles or not self._widened.isdisjoint(inputs)
        found = super().run(wide, inputs)
        genuine = any(a.name == "to" and a.i == TensorProto.DOUBLE for a in node.attribute)
        if doubles and not genuine:
            self._widened.update(name for name, value in found.items() if value.type == _DOUBLE)
        return found


def _cast(result: OrtResult, itype: int) -> OrtResult:
    array = to_python(result)
    return to_result(array.astype(oh.tensor_dtype_to_np_dtype(itype)))


def _with_doubles(node: NodeProto) -> tuple[NodeProto, bool]:
    """A copy of a node that makes doubles where it made floats, and whether it differs."""
    wide, changed = copy_node(node), False
    for attribute in wide.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i == TensorProto.FLOAT:
            attribute.i, changed = TensorProto.DOUBLE, True
    return wide, changed
