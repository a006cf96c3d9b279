"""Types and shapes of the results of a node: shape functions first, onnx's inference as a
fallback."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnx.helper as oh
from onnx import NodeProto, TypeProto, ValueInfoProto

from ..constants.table import ConstantTable, tensor_facts
from ..dims import Dim, Shape
from ..errors import ExternalDataError, FactError, UnknownAttributeError
from ..facts import FactTable, ResultFacts
from ..nodes.protos import Reader, attributes_of, find_attribute
from ..shapes import ShapeContext
from ..shapes.answers import AnswerError, checked_answer, function_name
from ..shapes.registry import ShapeFunction, find_shape_function
from ..store.graph_store import NodeRecord

#: what exporters write for a dimension they do not know; two of them are not equal
_NO_NAMES = frozenset({"?", "*", "-1", "None", "unk", "unknown"})


def shape_from_proto(
    proto: onnx.TensorShapeProto, new_dim: Callable[[str], str], normalize: Callable[[str], Dim]
) -> Shape:
    """Converts a shape: a dimension without value nor name becomes a fresh symbol."""
    dims: list[Dim] = []
    for d in proto.dim:
        kind = d.WhichOneof("value")
        if kind == "dim_value" and d.dim_value >= 0:
            dims.append(d.dim_value)
        elif kind == "dim_param" and d.dim_param and d.dim_param not in _NO_NAMES:
            dims.append(normalize(d.dim_param))
        else:
            dims.append(new_dim("unk"))
    return tuple(dims)


def facts_from_type(
    proto: TypeProto, new_dim: Callable[[str], str], normalize: Callable[[str], Dim]
) -> ResultFacts:
    """Converts an ONNX type into facts."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        if not tensor.HasField("shape"):
            return ResultFacts(tensor.elem_type)
        return ResultFacts(tensor.elem_type, shape_from_proto(tensor.shape, new_dim, normalize))
    if kind == "sequence_type":
        inner = facts_from_type(proto.sequence_type.elem_type, new_dim, normalize)
        return ResultFacts(sequence=inner)
    if kind == "optional_type":
        inner = facts_from_type(proto.optional_type.elem_type, new_dim, normalize)
        return ResultFacts(optional=inner)
    return ResultFacts()


def facts_to_type(facts: ResultFacts, keep: Callable[[str], bool]) -> TypeProto | None:
    """Converts facts into an ONNX type, None if the type is not known.

    :param facts: facts of a result
    :param keep: tells if a symbolic dimension is written, the others are left unknown
    """
    if facts.sequence is not None:
        inner = facts_to_type(facts.sequence, keep)
        return None if inner is None else oh.make_sequence_type_proto(inner)
    if facts.optional is not None:
        inner = facts_to_type(facts.optional, keep)
        return None if inner is None else oh.make_optional_type_proto(inner)
    if not facts.type:
        return None
    shape: tuple[int | str | None, ...] | None = facts.shape
    if shape is None and facts.rank is not None:
        shape = (None,) * facts.rank
    if shape is not None:
        shape = tuple(d if isinstance(d, int) or d is None or keep(d) else None for d in shape)
    return oh.make_tensor_type_proto(facts.type, shape)


class NodeInference:
    """Infers the results of the nodes of one graph and stores them.

    :param facts: facts of the graph
    :param constants: constants of the graph
    :param opsets: version of every domain
    :param new_dim: makes a fresh dimension
    :param normalize: puts a dimension of a file in normal form
    """

    def __init__(
        self,
        facts: FactTable,
        constants: ConstantTable,
        opsets: Mapping[str, int],
        new_dim: Callable[[str], str],
        normalize: Callable[[str], Dim],
    ):
        self.facts = facts
        self._lookup = facts.__getitem__
        self.constants = constants
        self.opsets = opsets
        self.new_dim = new_dim
        self.normalize = normalize

    def infer(self, record: NodeRecord, proto: NodeProto) -> list[ResultFacts | None] | None:
        """Returns the facts of every output, None if nothing can be said. Changes nothing.

        :raises ExternalDataError: an attribute is in another file which cannot be trusted or found
        """
        try:
            return self._infer(record, proto)
        except UnknownAttributeError:
            return self._infer_external(record, proto)

    def _infer_external(
        self, record: NodeRecord, proto: NodeProto
    ) -> list[ResultFacts | None] | None:
        """Same as :meth:`infer` when an attribute is a tensor stored in another file."""
        read = self.constants.read_tensor
        value = find_attribute(proto, "value")
        if (record.domain, record.op_type) == ("", "Constant") and value is not None:
            return [tensor_facts(value.t, lambda: read(value.t))]
        try:
            return self._infer(record, proto, read)
        except UnknownAttributeError:
            return None

    def _infer(
        self, record: NodeRecord, proto: NodeProto, read: Reader | None = None
    ) -> list[ResultFacts | None] | None:
        opset = self.opsets.get(record.domain, 1)
        function, is_users = find_shape_function(record.domain, record.op_type, opset)
        answer = None
        if function is not None:
            context = ShapeContext(
                record.op_type,
                record.domain,
                opset,
                record.inputs,
                len(record.outputs),
                self._lookup,
                self.constants.value,
                lambda: attributes_of(proto, read),
                self.new_dim,
                self.facts.constraints,
            )
            try:
                found = function(context)
                answer = checked_answer(found, context.n_outputs) if is_users else found
            except (UnknownAttributeError, ExternalDataError):
                raise  # not the fault of the function
            except AnswerError as error:
                _tell_failure(function, record, str(error))
            except Exception as error:
                _tell_failure(function, record, f"it raises {type(error).__name__}: {error}")
        if answer is None:
            return self._infer_with_onnx(record, proto)
        return [answer] if isinstance(answer, ResultFacts) else list(answer)

    def store(self, record: NodeRecord, answer: list[ResultFacts | None] | None) -> None:
        """Adds facts to what is known of the outputs of a node.

        :raises FactError: they contradict what is known; it is only a warning for the facts of a
            function of the user
        """
        for name, facts in zip(record.outputs, answer or (), strict=False):
            if not name or facts is None:
                continue
            try:
                self.facts.refine(name, facts, record)
            except FactError as error:
                opset = self.opsets.get(record.domain, 1)
                function, is_users = find_shape_function(record.domain, record.op_type, opset)
                if function is None or not is_users:
                    raise
                _tell_failure(function, record, str(error))

    def _input_types(self, record: NodeRecord) -> dict[str, TypeProto] | None:
        types: dict[str, TypeProto] = {}
        for name in record.inputs:
            if name and name not in types:
                proto = facts_to_type(self.facts[name], lambda d: True)
                if proto is None:
                    return None
                types[name] = proto
        return types

    def _input_data(self, record: NodeRecord) -> dict[str, onnx.TensorProto]:
        data: dict[str, onnx.TensorProto] = {}
        for name in record.inputs:
            shape = self.facts[name].shape if name else None
            if shape is None or any(not isinstance(d, int) for d in shape):
                continue
            if np.prod(shape, dtype=np.int64) <= 64 and self.constants.is_constant(name):
                value = self.constants.value(name)
                if value is not None:
                    data[name] = onnx.numpy_helper.from_array(np.ascontiguousarray(value))
        return data

    def _infer_with_onnx(
        self, record: NodeRecord, proto: NodeProto
    ) -> list[ResultFacts | None] | None:
        opset = self.opsets.get(record.domain)
        if opset is None or not onnx.defs.has(record.op_type, opset, record.domain):
            return None
        types = self._input_types(record)
        if types is None:
            return None
        schema = onnx.defs.get_schema(record.op_type, opset, record.domain)
        try:
            results = onnx.shape_inference.infer_node_outputs(
                schema,
                proto,
                types,
                self._input_data(record),
                opset_imports=[oh.make_opsetid(d, v) for d, v in self.opsets.items()],
            )
        except (
            onnx.shape_inference.InferenceError,
            onnx.checker.ValidationError,
            ValueError,
            RuntimeError,
        ):
            return None
        return [
            facts_from_type(results[o], self.new_dim, self.normalize) if o in results else None
            for o in record.outputs
        ]


def _tell_failure(function: ShapeFunction, record: NodeRecord, reason: str) -> None:
    warnings.warn(
        f"The shape function {function_name(function)!r} of node {record!s} is ignored: {reason}",
        stacklevel=2,
    )


def value_info(
    name: str, facts: ResultFacts, keep: Callable[[str], bool], doc_string: str = ""
) -> ValueInfoProto | None:
    """Makes a ValueInfoProto, None if the type is not known."""
    proto = facts_to_type(facts, keep)
    return None if proto is None else oh.make_value_info(name, proto, doc_string)
