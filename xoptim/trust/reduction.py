"""Cuts the smallest model that still shows a difference out of a model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import XoptimError
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.tensor_sites import is_external, iter_tensor_sites
from xbuilder.files.tensor_sources import embed
from xbuilder.nodes.copies import copy_with_edges
from xbuilder.nodes.functions import all_nodes
from xbuilder.nodes.value_infos import value_info

from .sessions.node_runner import NodeRunner, reads
from .sessions.ort_values import OrtResult, to_python, to_result

#: kind of difference a model shows on its inputs, empty if it shows none
Shows = Callable[[ModelProto, Mapping[str, Any]], str]


class ReductionError(XoptimError):
    """The model shows no difference, there is nothing to reduce.

    Example::

        >>> from xoptim.testing import model_from_text
        >>> model = model_from_text("agraph (float[2] x) => (float[2] y) { y = Abs(x) }")
        >>> try:
        ...     reduce_model(model, {"x": np.float32([1, 2])}, lambda model, inputs: "")
        ... except ReductionError as e:
        ...     print(e)
        the model shows no difference on these inputs
    """


@dataclass
class ReducedModel:
    """A model that shows a difference, none of whose nodes can go.

    :param model: the model
    :param inputs: its inputs by name: those of the first model, and results of the nodes that went
    :param kind: the kind of difference
    :param nodes: number of nodes before and after
    :param tries: number of models that were tried

    Example::

        >>> import tempfile
        >>> from xoptim.testing import model_from_text
        >>> model = model_from_text("agraph (float[1] x) => (float[1] y) { y = Abs(x) }")
        >>> found = ReducedModel(model, {"x": np.float32([2])}, "results", (30, 1), tries=45)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print([file.name for file in found.save(folder)])
        ['model.onnx', 'input_0.pb']
    """

    model: ModelProto
    inputs: dict[str, Any]
    kind: str
    nodes: tuple[int, int]
    tries: int

    def save(self, folder: str | Path) -> list[Path]:
        """Writes the model and its inputs in the layout of the test data of onnx.

        :param folder: the folder, created if needed
        :return: the files: `model.onnx`, `test_data_set_0/input_0.pb`...
        """
        place = Path(folder)
        data = place / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        files = [place / "model.onnx"]
        onnx.save(self.model, files[0])
        for i, info in enumerate(self.model.graph.input):
            files.append(data / f"input_{i}.pb")
            array = np.asarray(self.inputs[info.name])
            tensor = onnx.numpy_helper.from_array(array, info.name)
            files[-1].write_bytes(tensor.SerializeToString())
        return files


def reduce_model(
    model: str | Path | ModelProto, inputs: Mapping[str, Any], shows: Shows, max_tries: int = 500
) -> ReducedModel:
    """Removes the nodes of a model that a difference does not need.

    The results of a removed node become inputs, with the values they have in a run of the whole
    model. First one output is kept, the earliest result that shows the difference, with the few
    nodes before it that are enough, then nodes go by halves, quarters and so on, until none can go.
    An If that is left is replaced by the branch that
    ran, whose nodes go in turn; those of the bodies of Loop and Scan stay.

    :param model: a file or a model
    :param inputs: its inputs by name
    :param shows: tells the kind of difference a model shows on some inputs; a smaller model has to
        show the same kind
    :param max_tries: largest number of models that are tried
    :return: the smallest model
    :raises ReductionError: the model shows no difference
    :raises NodeError: a node of the model does not run

    .. code-block:: python

        small = reduce_model("model.onnx", feeds, lambda m, f: "wrong" if is_wrong(m, f) else "")
        small.save("to_report")
    """
    reducer = _Reducer(model, inputs, shows, max_tries)
    found = reducer.run()
    while found.tries < max_tries and (opened := reducer.opened(found)) is not None:
        reducer = _Reducer(*opened, shows, max_tries - found.tries)
        try:
            inner = reducer.run()
        except ReductionError:  # it is in the If, or in the branch that did not run
            break
        nodes, tries = (found.nodes[0], inner.nodes[1]), found.tries + inner.tries
        same = inner.kind == found.kind
        found = replace(inner, nodes=nodes, tries=tries) if same else found
        if not same:
            break
    return found


def first_difference(
    model: str | Path | ModelProto, inputs: Mapping[str, Any], shows: Shows
) -> ReducedModel:
    """Looks by bisection for the first node whose results show a difference.

    :param model: a file or a model
    :param inputs: its inputs by name
    :param shows: see :func:`reduce_model`
    :return: the model from its inputs to this node, whose results are its outputs
    :raises ReductionError: the model shows no difference
    :raises NodeError: a node of the model does not run

    .. code-block:: python

        slim = difference_of(command_of("onnxslim {input} {output}"))
        found = first_difference("model.onnx", feeds, slim)
        print(found.model.graph.node[-1].name)
    """
    return _Reducer(model, inputs, shows, sys.maxsize).first()


class _Reducer:
    """Tries smaller and smaller sets of nodes.

    Invariant: :attr:`kept` computes :attr:`outputs` and shows the difference.
    """

    def __init__(
        self,
        model: str | Path | ModelProto,
        inputs: Mapping[str, Any],
        shows: Shows,
        max_tries: int,
    ):
        if isinstance(model, ModelProto):
            self.container = ModelContainer(model)
            builder = GraphBuilder(model, infer_shapes_options=True)
        else:
            self.container = ModelContainer.load(model)
            builder = GraphBuilder(str(model), infer_shapes_options=True)
        self.facts = builder.graph.facts
        self.shows, self.max_tries, self.tries = shows, max_tries, 0
        self.graph = self.container.proto.graph
        self.nodes = list(self.graph.node)
        self.runner = NodeRunner(self.container)
        self.values = self._run_all(inputs)
        self.producers = {n: i for i, node in enumerate(self.nodes) for n in node.output if n}
        self.kept: list[int] = []
        self.outputs: list[str] = []
        self.kind = ""
        #: nodes and outputs of the models that do not show the difference
        self._vain: set[tuple[tuple[int, ...], tuple[str, ...]]] = set()

    def _run_all(self, inputs: Mapping[str, Any]) -> dict[str, OrtResult]:
        """Every result of the main graph."""
        types = {i.name: i.type.tensor_type.elem_type for i in self.graph.input}
        values = {n: to_result(v, types.get(n, TensorProto.UNDEFINED)) for n, v in inputs.items()}
        for node in self.nodes:
            values.update(self.runner.run(node, values))
        return values

    def run(self) -> ReducedModel:
        """The smallest model."""
        self._start()
        size = 0
        while size != len(self.kept):  # an earlier result may be enough once other nodes went
            size = len(self.kept)
            self._earliest()
            self._nearest()
            self._remove()
        return self._found()

    def first(self) -> ReducedModel:
        """The model that ends with the first node that shows the difference."""
        self._start()
        self._earliest()
        return self._found()

    def _start(self) -> None:
        """Keeps what one output needs.

        :raises ReductionError: there is no difference
        """
        outputs = [o.name for o in self.graph.output]
        self.kind = self._kind(range(len(self.nodes)), outputs)
        if not self.kind:
            raise ReductionError("the model shows no difference on these inputs")
        self.kept, self.outputs = list(range(len(self.nodes))), outputs
        for name in outputs:
            if len(outputs) > 1 and self._try(self._ancestors([name]), [name]):
                break

    def _found(self) -> ReducedModel:
        model, feeds = self._model(self.kept, self.outputs)
        sizes = len(all_nodes(self.nodes)), len(all_nodes(model.graph.node))
        return ReducedModel(model, feeds, self.kind, sizes, self.tries)

    def opened(self, found: ReducedModel) -> tuple[ModelProto, dict[str, Any]] | None:
        """A reduced model whose If are replaced by the branches that ran, and its inputs.

        :param found: what :meth:`run` returned
        :return: None if it has no If in its main graph
        """
        model = ModelProto()
        model.CopyFrom(found.model)
        nodes = list(model.graph.node)
        for i, node in enumerate(nodes):
            if node.op_type == "If" and not node.domain:
                value = np.asarray(to_python(self.values[node.input[0]]))
                name = f"{node.input[0]}_ran_{i}"
                model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
                nodes[i] = copy_with_edges(node, (name,), tuple(node.output))
        if nodes == list(model.graph.node):
            return None
        model.graph.ClearField("node")
        model.graph.node.extend(nodes)
        options = OptimizationOptions(patterns=None, passes=("control_flow",))
        inlined = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
        return inlined.to_onnx(inline=False), found.inputs

    def _earliest(self) -> None:
        """Looks by bisection for the first node whose results show the difference. The results that
        later nodes need are compared, since those of one node tell nothing about its neighbours."""
        candidates, outputs = list(self.kept), list(self.outputs)
        first, last = 0, len(candidates) - 1
        while first < last:
            middle = (first + last) // 2
            names = self._needed_after(candidates, middle + 1, outputs)
            if names and self._try(self._kept_ancestors(candidates, names), names):
                last = middle
            else:
                first = middle + 1
        names = [n for n in self.nodes[candidates[first]].output if n]
        if not self._try(self._kept_ancestors(candidates, names), names) and self.outputs[1:]:
            any(self._try(self._ancestors([name]), [name]) for name in list(self.outputs))

    def _kept_ancestors(self, candidates: Iterable[int], names: Iterable[str]) -> list[int]:
        """The candidates that some results depend on."""
        needed = set(self._ancestors(names))
        return [i for i in candidates if i in needed]

    def _needed_after(self, nodes: Sequence[int], count: int, outputs: Iterable[str]) -> list[str]:
        """The results of the first nodes that the next ones read, or that are outputs."""
        later = {name for i in nodes[count:] for name in reads(self.nodes[i])}
        later.update(outputs)
        made = (self.nodes[i] for i in nodes[:count] if reads(self.nodes[i]))
        return [name for node in made for name in node.output if name in later]

    def _nearest(self) -> None:
        """Keeps the nodes next to the outputs: as few levels of them as show the difference. A node
        that reads nothing comes with its readers, which may need a constant."""
        found, names, levels = set[int](), set(self.outputs), 1
        while not found.issuperset(self.kept):
            for _ in range(levels):
                level = {self.producers[n] for n in names if n in self.producers} - found
                names = {n for i in level for n in reads(self.nodes[i])}
                found |= level
            alone = {self.producers[n] for n in names if n in self.producers} - found
            found |= {i for i in alone if not reads(self.nodes[i])}
            if not level or self._try(sorted(found.intersection(self.kept)), self.outputs):
                return
            levels *= 2

    def _remove(self) -> None:
        """Removes chunks of nodes, smaller and smaller."""
        size = max(1, len(self.kept) // 2)
        while self.tries < self.max_tries:
            before = len(self.kept)
            for chunk in _chunks(self.kept, size):
                self._try([i for i in self.kept if i not in chunk], self.outputs)
            if size == 1 and len(self.kept) == before:
                return
            size = max(1, min(size // 2, len(self.kept)))

    def _ancestors(self, names: Iterable[str]) -> list[int]:
        stack, found = list(names), set()
        while stack:
            i = self.producers.get(stack.pop())
            if i is not None and i not in found:
                found.add(i)
                stack.extend(reads(self.nodes[i]))
        return sorted(found)

    def _try(self, kept: Sequence[int], outputs: Sequence[str]) -> bool:
        """Keeps a smaller model if it shows the difference."""
        made = {name for i in kept for name in self.nodes[i].output}
        model = tuple(kept), tuple(outputs)
        if model == (tuple(self.kept), tuple(self.outputs)):
            return True
        if self.tries >= self.max_tries or model in self._vain or not made.issuperset(outputs):
            return False
        if self._kind(kept, outputs) != self.kind:
            self._vain.add(model)
            return False
        self.kept, self.outputs = list(kept), list(outputs)
        return True

    def _kind(self, kept: Iterable[int], outputs: Sequence[str]) -> str:
        self.tries += 1
        model, feeds = self._model(sorted(kept), outputs)
        return self.shows(model, feeds)

    def _model(
        self, kept: Sequence[int], outputs: Sequence[str]
    ) -> tuple[ModelProto, dict[str, Any]]:
        """The model made of some nodes, and its inputs."""
        nodes = [self.nodes[i] for i in kept]
        made = {name for node in nodes for name in node.output}
        read = dict.fromkeys(n for node in nodes for n in reads(node) if n not in made)
        given = [n for n in read if n in self.values]
        graph = GraphProto(name=self.graph.name or "reduced", node=nodes)
        graph.input.extend(self._info(name) for name in given)
        graph.output.extend(self._info(name) for name in outputs)
        graph.initializer.extend(w for w in self.graph.initializer if w.name in read)
        graph.sparse_initializer.extend(
            s for s in self.graph.sparse_initializer if s.values.name in read
        )
        source = self.container.proto
        model = ModelProto(
            ir_version=source.ir_version,
            opset_import=source.opset_import,
            functions=source.functions,
            graph=graph,
        )
        for site in iter_tensor_sites(model):
            if is_external(site.tensor) and (found := self.container.source_of(site.tensor)):
                embed(site.tensor, found)
        return model, {name: to_python(self.values[name]) for name in given}

    def _info(self, name: str) -> ValueInfoProto:
        """The declaration of a result: what is inferred, else what it is in the run."""
        info: ValueInfoProto
        for info in (*self.graph.input, *self.graph.output):
            if info.name == name:
                return info
        found = value_info(name, self.facts[name], lambda dim: True)
        if found is not None and found.type.tensor_type.HasField("shape"):
            return found
        value = to_python(self.values[name])
        if isinstance(value, list) or value is None:
            return ValueInfoProto(name=name)
        array = np.asarray(value)
        kind = oh.np_dtype_to_tensor_dtype(array.dtype)
        declared: ValueInfoProto = oh.make_tensor_value_info(name, kind, array.shape)
        return declared


def _chunks(positions: Sequence[int], size: int) -> list[set[int]]:
    """Slices of positions, the last ones first since they are nearest to the output."""
    slices = [set(positions[i : i + size]) for i in range(0, len(positions), size)]
    return slices[::-1]
