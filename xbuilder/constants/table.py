"""Constants: initializers by reference, results computed on demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from onnx import TensorProto

from ..dims import Shape, prod
from ..facts.facts import FactTable, ResultFacts
from ..files.blocks.block_tensors import BlockTensor
from ..files.data_folder import DataFolder
from ..files.external_data import external_array
from ..nodes.attributes import attribute_value, find_attribute
from ..nodes.record import NodeRecord
from ..nodes.tensors import tensor_array
from ..store.events import StoreEvent
from ..store.graph_store import GraphStore
from ..tensors.bits import is_known_type
from ..tensors.sizes import stored_bytes
from .budget import Budget, operations
from .content import known_content, tensor_facts, uniform_item
from .evaluation import evaluate_node, predicted_bytes
from .exact_casts import why_not_exact
from .initializers import is_external_proto, reads_a_file
from .sharing import SharedInitializers

#: values below this size (bytes) are kept once read or computed
CACHED_BYTES = 1 << 20
#: constants with more elements are not read to know whether they are uniform
_MAX_UNIFORM = 1 << 18
#: results above this size (bytes) are never computed
COMPUTED_BYTES = 1 << 28

Item = TypeVar("Item")


def _move_key(table: dict[str, Item], old: str, new: str) -> None:
    if old in table:
        table[new] = table.pop(old)


def _integers(shape: Shape | None) -> list[int]:
    """Dimensions of a constant."""
    return [d for d in shape or () if isinstance(d, int)]


def _elements(shape: Shape | None) -> int:
    return math.prod(_integers(shape)) if shape is not None else 0


class ConstantTable:
    """Initializers of one graph, and values of the results that depend on constants only.

    Initializers are kept as they were given (TensorProto, array, reference to a file): reading one
    makes a view or a small copy that is cached, never a copy of a weight nobody needs. An
    initializer that is also an input of the graph is not a constant.

    :param store: nodes of the graph
    :param facts: facts of the graph
    :param opsets: version of every domain
    :param folder: where external data is; while it is unknown, so is the content
    :param parent: constants of the outer graph
    :param budget: budget of the constants computed by all the graphs of the model

    The table subscribes to the store: the computed value of a result is dropped with its node, even
    if another node produces the result again, and follows the result when it is renamed.

    `computed` maps each result that depends on constants only to its node. `sources`,
    `external_names` and `parameter_names` hold the origins of initializers, those to store out of
    the file, and the parameters of a torch model. `annotated` holds those that the quantization
    annotations of the file point at. `derived` maps a derived constant to the original,
    whose name it may take.
    """

    def __init__(
        self,
        store: GraphStore,
        facts: FactTable,
        opsets: Mapping[str, int],
        folder: DataFolder,
        parent: ConstantTable | None = None,
        budget: Budget | None = None,
    ):
        self.store = store
        self.facts = facts
        self.opsets = opsets
        self.folder = folder
        self.parent = parent
        self.budget = budget or Budget()
        self.initializers: dict[str, Any] = {}
        self.overridable: set[str] = set()
        self.annotated: set[str] = set()
        self.computed: dict[str, NodeRecord] = {}
        self._values: dict[str, np.ndarray] = {}
        self._uniform: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.external_names: set[str] = set()
        self.parameter_names: set[str] = set()
        self._shared = SharedInitializers(
            self.initializers, self.read_tensor, (self.overridable, self.parameter_names)
        )
        self.derived: dict[str, str] = {}
        self._stored: dict[str, tuple[TensorProto, int]] = {}
        #: what a pass read of a big initializer, dropped when it changes
        self.samples: dict[str, Any] = {}
        #: number of constants that were added, replaced or removed
        self.changes = 0

    @property
    def cached_names(self) -> set[str]:
        """Constants whose value, or uniform value, is cached."""
        return {*self._values, *self._uniform}

    @property
    def shared_names(self) -> set[str]:
        """Small initializers an equal one is merged into."""
        return set(self._shared.names)

    # -- saving and restoring

    def _tables(self) -> tuple[dict[str, Any], ...]:
        return self.initializers, self.computed, self._values, self._uniform, self.sources

    def _names(self) -> tuple[set[str], ...]:
        return self.overridable, self.external_names, self.parameter_names

    def tables(self) -> tuple[list[dict[str, Any]], list[set[str]]]:
        """Copies of the tables, for :meth:`restore`. Cost: O(constants), no weight is copied."""
        return [t.copy() for t in self._tables()], [n.copy() for n in self._names()]

    def restore(
        self,
        tables: tuple[list[dict[str, Any]], list[set[str]]],
        current: Callable[[NodeRecord], NodeRecord],
    ) -> None:
        """Restores the tables as they were when they were copied.

        :param tables: the copies
        :param current: maps a node of that time to the one that replaces it now
        """
        before = self.initializers.copy()
        self.samples.clear()
        self.changes += 1
        for table, rows in zip(self._tables(), tables[0], strict=True):
            table.clear()
            table.update(rows)
        for names, saved in zip(self._names(), tables[1], strict=True):
            names.clear()
            names.update(saved)
        self.computed.update({name: current(r) for name, r in self.computed.items()})
        for name in before.keys() - self.initializers.keys():
            self._shared.gone(name)
        for name, value in self.initializers.items():
            if before.get(name) is not value:
                self._shared.added(name)

    # -- initializers

    def add_initializer(self, name: str, value: Any) -> None:
        """Adds an initializer, its type and shape become facts."""
        self.initializers[name] = value
        self._shared.added(name)
        self._drop(name)
        facts = tensor_facts(value, lambda: self.value(name))
        if name in self.overridable and name in self.facts:
            # a default value determines the type of the input, not the shape it may receive
            self.facts.refine(name, ResultFacts(facts.type), "a default value")
            return
        self.facts.refine(name, facts, "an initializer")

    def store_changed(self, event: StoreEvent) -> None:
        """Drops the values of nodes that were removed, follows a result that was renamed."""
        computed = self.computed
        if computed:  # no other table holds results of nodes
            for record in event.removed:
                for name in record.outputs:
                    if name in computed:
                        del computed[name]
                        self._drop(name)
        if event.renamed is not None:
            old, new = event.renamed
            _move_key(self.computed, old, new)
            _move_key(self._values, old, new)
            _move_key(self._uniform, old, new)

    def _drop(self, name: str) -> None:
        self.changes += 1
        if name in self._values:
            del self._values[name]
        if name in self._uniform:
            del self._uniform[name]
        if name in self._stored:  # the content of a removed weight is released
            del self._stored[name]
        if name in self.samples:
            del self.samples[name]

    def remove_initializer(self, name: str) -> None:
        """Removes an initializer, with its facts and cached values."""
        self.take_initializer(name)
        self.facts.forget(name)

    def take_initializer(self, name: str) -> Any:
        """Removes an initializer which becomes an input of the same type. Returns it."""
        value = self.initializers.pop(name)
        self._drop(name)
        self._shared.gone(name)
        self.sources.pop(name, None)
        self.external_names.discard(name)
        self.parameter_names.discard(name)
        self.derived.pop(name, None)
        return value

    def change_initializer(self, name: str, value: Any) -> None:
        """Replaces the value of an initializer, by one of any type and shape. The name remains."""
        self.facts.forget(name)
        self.add_initializer(name, value)

    def shared_name(self, value: Any) -> str:
        """Name of a small initializer equal to a constant, an empty string if there is none.

        Default values of inputs and parameters of a torch model are never shared.
        """
        return self._shared.find(value)

    def shared_initializer(self, name: str) -> str:
        """Name of the initializer a small one is merged into, see :meth:`shared_name`."""
        return self._shared.find_equal(name)

    # -- constants

    def is_kept(self, name: str) -> bool:
        """Whether an input or an annotation needs an initializer, even if no node reads it."""
        return name in self.overridable or name in self.annotated

    def is_constant(self, name: str) -> bool:
        """Whether the value of a result is the same whatever the inputs are. Cost: O(1)."""
        if name in self.initializers:
            return name not in self.overridable
        if name in self.computed:
            return True
        if name in self.overridable:
            return False
        facts = self.facts[name]
        if facts.value is not None and known_content(facts) is not None:
            return True
        parent = self.parent
        return parent is not None and self._is_outer(name) and parent.is_constant(name)

    def _is_outer(self, name: str) -> bool:
        """Whether a name is not one of this graph, and so can only be one of the outer graph."""
        known = name in self.initializers or name in self.store.producers
        return not known and not self.facts.is_local(name)

    def is_cheap(self, name: str) -> bool:
        """Whether a constant is in the model, not in another file, and small."""
        value = self.initializers.get(name)
        if reads_a_file(value) or not self.is_constant(name):
            return False
        facts = self.facts[name]
        size = predicted_bytes(facts.type, facts.shape)
        return size is not None and size <= CACHED_BYTES

    def note_node(self, record: NodeRecord) -> None:
        """Records a node whose inputs are all constant."""
        for name in record.outputs:
            if name:
                self.computed[name] = record

    def value(self, name: str) -> np.ndarray | None:
        """Value of a constant, None if it is not one or if it is too big to be computed."""
        known = self._values.get(name)
        if known is not None:
            return known
        if name in self.initializers:
            if name in self.overridable:
                return None
            value = self._read(name)
            return None if value is None else self._remember(name, value)
        if name in self.computed:
            tracked = self._tracked(name)
            return self._compute(name) if tracked is None else tracked
        if name in self.overridable:
            return None
        content = known_content(self.facts[name])
        if content is not None:
            return content
        if self.parent is not None and self.is_constant(name):
            return self.parent.value(name)
        return None

    def uniform_value(self, name: str) -> Any:
        """The value every element of a constant has, None if there is none or if it is not one.

        Constants of more than 2^18 elements are not read, an empty one or one of strings has none.
        Cost: O(1) after the first time, O(elements) for a result whose content is tracked.
        """
        if name in self._uniform:
            return self._uniform[name]
        if self.parent is not None and self._is_outer(name):
            return self.parent.uniform_value(name)
        is_stored = name in self.initializers or name in self.computed
        if not is_stored and self.facts[name].value is None:
            return None  # most results
        shape = self.facts[name].shape if self.is_constant(name) else None
        size = None if shape is None else prod(shape)
        if not isinstance(size, int):
            return None
        found = None
        if 0 < size <= _MAX_UNIFORM:
            value = self.value(name)
            if value is None:
                return None
            found = uniform_item(value)
        if is_stored:
            self._uniform[name] = found
        return found

    def _read(self, name: str) -> np.ndarray | None:
        value = self.initializers[name]
        if isinstance(value, BlockTensor):
            return value.array()
        return self.read_tensor(value) if isinstance(value, TensorProto) else value

    def read_tensor(self, tensor: TensorProto) -> np.ndarray | None:
        """Content of a tensor, over a memory map if it is in another file.

        :return: None if it is external and the folder of the model is unknown, or if the element
            type is one of a newer version of onnx
        :raises ExternalDataError: the file cannot be trusted or found
        """
        if not is_known_type(tensor.data_type) and tensor.data_type:
            return None
        if not is_external_proto(tensor):
            return tensor_array(tensor)
        folder = self.folder
        if folder.base_dir is None:
            return None
        return external_array(tensor, folder.base_dir, folder.allowed_roots)

    def _remember(self, name: str, value: np.ndarray) -> np.ndarray:
        if value.nbytes <= CACHED_BYTES:
            self._values[name] = value
        return value

    def _tracked(self, name: str) -> np.ndarray | None:
        """Value of a computed constant if shape functions track it, so that nothing is computed."""
        content = known_content(self.facts[name])
        return None if content is None else self._remember(name, content)

    def _missing_inputs(self, record: NodeRecord) -> list[str]:
        """Constant inputs of a node that must be computed before it."""
        unknown = [n for n in record.inputs if n and n not in self._values and n in self.computed]
        return [n for n in unknown if self._tracked(n) is None]

    def _compute(self, name: str) -> np.ndarray | None:
        """Computes a result and the results it depends on, without recursion."""
        failed: set[str] = set()
        results: dict[str, np.ndarray] = {}
        stack = [name]
        while stack:
            current = stack[-1]
            record = self.computed[current]
            if current in results or current in failed or current in self._values:
                stack.pop()
                continue
            todo = [n for n in self._missing_inputs(record) if n not in results and n not in failed]
            if todo:
                stack.extend(todo)
                continue
            stack.pop()
            computed = self._evaluate(record, results, failed)
            if computed is None:
                failed.update(record.outputs)
                continue
            for output, value in computed.items():
                results[output] = self._remember(output, value)
        return self._values.get(name, results.get(name))

    def _evaluate(
        self, record: NodeRecord, results: dict[str, np.ndarray], failed: set[str]
    ) -> dict[str, np.ndarray] | None:
        if any(n in failed for n in record.inputs) or not self._affordable(record):
            return None
        cost = self._cost(record)
        if self.refusal(*cost):
            return None
        values: list[np.ndarray | None] = []
        for n in record.inputs:
            value = None if not n else results.get(n)
            if n and value is None:
                value = self.value(n)
                if value is None:
                    return None
            values.append(value)
        self.budget.spend(*cost)
        return evaluate_node(
            self.store.proto(record), values, self.opsets, self._types(record), self.read_tensor
        )

    def _types(self, record: NodeRecord) -> list[int]:
        return [self.facts[n].type for n in record.outputs if n]

    def why_unknown(self, record: NodeRecord) -> str:
        """The reason why a node whose inputs are constant cannot be computed."""
        while True:
            if not self._affordable(record):
                return "what it depends on is too big to be computed"
            over = self.refusal(*self._cost(record))
            if over:
                return over
            values = [self.value(n) if n else None for n in record.inputs]
            pairs = zip(record.inputs, values, strict=True)
            unknown = [n for n, v in pairs if v is None and n in self.computed]
            if not unknown:
                break
            record = self.computed[unknown[0]]
        reason = why_not_exact(self.store.proto(record), values, self._types(record))
        return reason or "no runtime computes it"

    def refusal(self, size: int, count: int) -> str:
        """The reason why a computation exceeds the budget of the model, empty if it does not.

        :param size: bytes of the results to compute
        :param count: number of operations
        """
        budget = self.budget
        reason = budget.refusal(size, count)
        if reason:  # weights are counted only when it matters
            table = self
            while table.parent is not None:
                table = table.parent
            budget.weights = max(budget.weights, table.weight_bytes())
            reason = budget.refusal(size, count)
        return reason

    def weight_bytes(self) -> int:
        """Bytes of the initializers. A proto is measured once, which is as long as writing it."""
        before, total = self._stored, 0
        self._stored = {}
        for name, value in self.initializers.items():
            if not isinstance(value, TensorProto):
                total += stored_bytes(value)
                continue
            known = before.get(name)
            if known is None or known[0] is not value:
                known = value, stored_bytes(value)
            self._stored[name] = known
            total += known[1]
        return total

    def _cost(self, record: NodeRecord) -> tuple[int, int]:
        """Bytes of the results of a node and operations to compute them, none for a Constant, whose
        value is in the file."""
        if record.op_type == "Constant":
            return 0, 0
        size = written = 0
        for name in record.outputs:
            facts = self.facts[name]
            size += predicted_bytes(facts.type, facts.shape) or 0
            written += _elements(facts.shape)
        inputs = [_integers(self.facts[n].shape) for n in record.inputs if n]
        return size, operations(record.op_type, inputs, written, self._attribute_of(record))

    def _attribute_of(self, record: NodeRecord) -> Callable[[str, Any], Any]:
        def attribute(name: str, default: Any) -> Any:
            found = find_attribute(self.store.proto(record), name)
            return default if found is None else attribute_value(found)

        return attribute

    def _affordable(self, record: NodeRecord) -> bool:
        """Whether the outputs are small enough to be computed, predicted from their shapes."""
        for name in record.outputs:
            if not name:
                continue
            facts = self.facts[name]
            size = predicted_bytes(facts.type, facts.shape)
            if size is None or size > COMPUTED_BYTES:
                return False
        return True
