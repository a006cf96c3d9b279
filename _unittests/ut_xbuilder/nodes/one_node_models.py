"""Models of one node for every operator, definition and type, and the answer of a real session."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
from onnx import ModelProto, TensorProto, TypeProto

from xbuilder.nodes.schema_functions import has_function
from xbuilder.operators.opsets import ir_version_for

_KINDS = {name.lower(): value for name, value in TensorProto.DataType.items()}
STANDARD = ("", "ai.onnx.ml")
#: more combinations of types than this are tried one parameter at a time
_MOST = 400
_VALUES = {"INT": 1, "FLOAT": 1.0, "STRING": "a", "INTS": [1], "FLOATS": [1.0], "STRINGS": ["a"]}
_RECURRENT = {"hidden_size": 2, "num_directions": 1}
_TREES: dict[str, Any] = {
    "nodes_treeids": [0],
    "nodes_nodeids": [0],
    "nodes_featureids": [0],
    "nodes_values": [0.0],
    "nodes_modes": ["LEAF"],
    "nodes_truenodeids": [0],
    "nodes_falsenodeids": [0],
}
#: attributes a node needs, beside those its schema requires
ATTRIBUTES: dict[str, Mapping[str, Any]] = {
    "Cast": {"to": 1},
    "BitCast": {"to": 1},
    "BitShift": {"direction": "LEFT"},
    "CategoryMapper": {"cats_int64s": [0], "cats_strings": ["a"]},
    "Constant": {"value": onh.from_array(np.zeros(1, np.float32))},
    "DepthToSpace": {"blocksize": 2},
    "DictVectorizer": {"string_vocabulary": ["a"]},
    "Einsum": {"equation": "...->..."},
    "GRU": _RECURRENT,
    "LSTM": _RECURRENT,
    "RNN": _RECURRENT,
    "RegexFullMatch": {"pattern": "a"},
    "SpaceToDepth": {"blocksize": 2},
    "Upsample": {"mode": "nearest"},
    "FeatureVectorizer": {"inputdimensions": [1]},
    "LinearRegressor": {"coefficients": [1.0]},
    "Scaler": {"scale": [1.0], "offset": [0.0]},
    "TreeEnsembleRegressor": {
        **_TREES,
        "target_treeids": [0],
        "target_nodeids": [0],
        "target_ids": [0],
        "target_weights": [1.0],
        "n_targets": 1,
    },
}


@dataclass(frozen=True)
class OneNode:
    """A model of one node.

    :param opset: version of the domain of the node
    :param types: type of each input as onnx writes it, empty if it is missing
    """

    op_type: str
    domain: str
    opset: int
    types: tuple[str, ...]
    attributes: Mapping[str, Any] = field(hash=False)
    n_outputs: int = 1

    @property
    def elem_types(self) -> list[int]:
        """Element type of each input, 0 if it is missing or no tensor."""
        return [_KINDS.get(t.removeprefix("tensor(").removesuffix(")"), 0) for t in self.types]

    def node(self) -> onnx.NodeProto:
        """The node."""
        names = [f"x{i}" if t else "" for i, t in enumerate(self.types)]
        outputs = [f"y{i}" for i in range(self.n_outputs)]
        return oh.make_node(self.op_type, names, outputs, domain=self.domain, **self.attributes)

    def model(self) -> ModelProto:
        """The model, its inputs have no shape, its outputs no type."""
        node = self.node()
        inputs = [
            onnx.ValueInfoProto(name=n, type=type_proto(t))
            for n, t in zip(node.input, self.types, strict=True)
            if t
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
        graph = oh.make_graph([node], "one", inputs, outputs)
        imports = {"": 18, self.domain: self.opset}
        return oh.make_model(
            graph,
            opset_imports=[oh.make_opsetid(d, v) for d, v in imports.items()],
            ir_version=ir_version_for(imports[""]),
        )

    def output_types(self) -> list[int]:
        """Element type of each output, 0 if it is not known or no tensor."""
        inferred = onnx.shape_inference.infer_shapes(self.model())
        return [o.type.tensor_type.elem_type for o in inferred.graph.output]


def type_proto(text: str) -> TypeProto:
    """A type, without a shape.

    :param text: `"tensor(float)"`, `"seq(tensor(float))"`, `"optional(seq(tensor(float)))"`,
        `"map(int64,tensor(float))"`
    """
    kind, inner = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    if kind == "tensor":
        return oh.make_tensor_type_proto(_KINDS[inner], None)
    if kind == "seq":
        return oh.make_sequence_type_proto(type_proto(inner))
    if kind == "optional":
        return oh.make_optional_type_proto(type_proto(inner))
    key, _, value = inner.partition(",")
    return oh.make_map_type_proto(_KINDS[key], type_proto(value))


def schema_models(schema: onnx.defs.OpSchema, opsets: Iterable[int]) -> Iterator[OneNode]:
    """Models of a definition for all its types, the optional inputs missing, then all there; none
    if a graph or a tensor is a required attribute.

    :param schema: the definition
    :param opsets: versions of its domain
    """
    given = ATTRIBUTES.get(schema.name, {})
    attributes = {n: v for n, v in given.items() if n in schema.attributes}
    for name, attribute in schema.attributes.items():
        if attribute.required:
            attributes.setdefault(name, _VALUES.get(attribute.type.name))
    if None in attributes.values():
        return
    inputs, n_outputs = list(schema.inputs), max(schema.min_output, 1)
    for count in dict.fromkeys((min(schema.min_input, len(inputs)), len(inputs))):
        parameters = {i.type_str: sorted(i.types) for i in inputs[:count]}
        for kinds in _combinations(list(parameters.values())):
            chosen = dict(zip(parameters, kinds, strict=True))
            types = tuple(chosen[i.type_str] for i in inputs[:count])
            for opset in opsets:
                yield OneNode(schema.name, schema.domain, opset, types, attributes, n_outputs)


def _combinations(choices: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    if np.prod([len(c) for c in choices]) <= _MOST:
        yield from itertools.product(*choices)
        return
    usual = ["tensor(float)" if "tensor(float)" in c else c[0] for c in choices]
    found = [(*usual[:i], t, *usual[i + 1 :]) for i, c in enumerate(choices) for t in c]
    yield from dict.fromkeys(found)


def standard_models(newest: int) -> Iterator[OneNode]:
    """Models of every definition of the standard operators: in the opset that introduced it, and in
    all opsets it belongs to if it has a function, whose operators may change.

    :param newest: last opset of the main domain
    """
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain in STANDARD]
    sinces: dict[tuple[str, str], list[int]] = {}
    for schema in schemas:
        sinces.setdefault((schema.domain, schema.name), []).append(schema.since_version)
    for schema in schemas:
        first = schema.since_version
        later = [v for v in sinces[schema.domain, schema.name] if v > first]
        last = min(later) if later else newest + 1
        functional = has_function(schema.name, schema.domain, last - 1)
        yield from schema_models(schema, range(first, last) if functional else [first])


#: operators of onnxruntime whose inference ends the process on such a model
_ENDS = {"QLinearLeakyRelu", "QLinearSigmoid"}


def contrib_models() -> Iterator[OneNode]:
    """Models of the operators of onnxruntime, whose definitions the installed one gives."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    for schema in state.get_all_operator_schema():
        if schema.domain == "com.microsoft" and schema.name not in _ENDS:
            yield from schema_models(_as_onnx(schema), [1])


def _as_onnx(schema: Any) -> Any:
    """A definition of onnxruntime with the names that onnx gives to its parts."""
    return SimpleNamespace(
        name=schema.name,
        domain=schema.domain,
        inputs=[SimpleNamespace(type_str=i.typeStr, types=set(i.types)) for i in schema.inputs],
        attributes={
            name: SimpleNamespace(
                required=a.required, type=SimpleNamespace(name=str(a.type).rpartition(".")[2])
            )
            for name, a in schema.attributes.items()
        },
        min_input=schema.min_input,
        min_output=schema.min_output,
    )


#: how a session says that it cannot load an operator for some types
_REFUSALS = ("Could not find an implementation", "Failed to find kernel", "MLDataType for: ")


@dataclass(frozen=True)
class Answer:
    """The answer of a session.

    :param loads: whether it loads the model, None if it refuses the node for another reason
    :param expanded: whether it replaced the node by others
    :param message: the error
    """

    loads: bool | None
    expanded: bool = False
    message: str = ""


def ask_session(one: OneNode) -> Answer:
    """Loads a model in onnxruntime, its own optimizations disabled."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    content = one.model().SerializeToString()
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        refused = any(text in str(e) for text in _REFUSALS)
        return Answer(False if refused else None, message=str(e))
    groups = session.get_provider_graph_assignment_info()
    kinds = {(n.op_type, n.domain) for group in groups for n in group.get_nodes()}
    return Answer(True, (one.op_type, one.domain) not in kinds)
