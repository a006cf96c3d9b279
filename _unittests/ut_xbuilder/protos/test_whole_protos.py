"""Nothing of a file is lost: every field of every proto comes back, next to a rewrite as well."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx.helper as oh
import onnx.parser
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, TensorProto, TypeProto
from onnx.numpy_helper import from_array, to_array

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.files.model_container import save_model

MODEL = """
<ir_version: 11, opset_import: ["": 23, "custom": 1, "local": 1], domain: "d",
 producer_name: "p", producer_version: "1", model_version: 3>
g (float[n, 2] x, seq(float[n]) s, optional(float[n]) o, map(int64, float[n]) m,
   sparse_tensor(float[n, 2]) t) => (float[n, 2] y, float[n, 2] c, d)
<float[2] w = {1, 2}, float[n, 2] q, float[n, 2] x> {
  [first] z = Identity (x)
  [second] q = Add (z, w)
  y = Abs (q)
  [called] c = local.f : other <k: float = 1.5> (q)
  [made] d = custom.Op (y)
}
<domain: "local", opset_import: ["": 23], overload: "other">
f <k, l: int = 2> (a) => (b) { b = LeakyRelu <alpha: float = @k> (a) }
"""
#: fields that the model above holds, or that :func:`whole_model` gives: their value has a meaning
#: a text cannot have
MEANINGS = {
    "AttributeProto": {"f", "i", "s", "t", "g", "tp", "type", "ref_attr_name", "sparse_tensor"},
    "Dimension": {"dim_value", "dim_param"},
    "FunctionProto": {"attribute", "input", "output", "value_info"},
    "GraphProto": {*("node", "input", "output", "initializer"), "sparse_initializer", "value_info"},
    "NodeProto": {"attribute", "domain", "input", "overload"},
    "SimpleShardedDimProto": {"dim_value", "dim_param"},
    "TensorProto": {"dims", "data_location", "external_data", "segment", "raw_data"},
    "TypeProto": {
        *("tensor_type", "sequence_type", "map_type", "optional_type"),
        *("sparse_tensor_type", "opaque_type"),
    },
}
_REPEATED_VALUES = {"floats", "ints", "strings", "tensors", "graphs", "sparse_tensors"}
MEANINGS["AttributeProto"] |= _REPEATED_VALUES | {"type_protos"}
MEANINGS["TensorProto"] |= {f"{kind}_data" for kind in ("float", "int32", "string", "int64")}
MEANINGS["TensorProto"] |= {"double_data", "uint64_data"}


def messages(message: Message) -> Iterator[Message]:
    """A message and those it holds, at every depth."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if isinstance(value, list) or hasattr(value, "add") else [value]:
                yield from messages(inner)


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether a field holds several values."""
    found = field.is_repeated  # a method of older versions of protobuf
    return bool(found() if callable(found) else found)


def fill(message: Message, depth: int = 0) -> None:
    """Fills every field that is not set and whose value is free, at every depth."""
    kept = MEANINGS.get(message.DESCRIPTOR.name, set())
    known = {field.name for field, _ in message.ListFields()}
    for field in message.DESCRIPTOR.fields:
        if field.name in known | kept or depth > 6:
            continue
        if field.message_type is None:
            value = 1 if field.cpp_type != FieldDescriptor.CPPTYPE_STRING else f"a {field.name}"
            if is_repeated(field):
                getattr(message, field.name).append(value)
            elif field.cpp_type != FieldDescriptor.CPPTYPE_ENUM:
                setattr(message, field.name, value)
        elif is_repeated(field):
            fill(getattr(message, field.name).add(), depth + 1)
        else:
            fill(getattr(message, field.name), depth + 1)
    for field, value in message.ListFields():
        if field.name in known and field.message_type is not None:
            for inner in value if is_repeated(field) else [value]:
                fill(inner, depth)


def tensors() -> Iterator[TensorProto]:
    """A tensor for each field that holds a content."""
    yield from_array(np.ones(2, np.float32), "raw")
    kinds = ("FLOAT", "INT32", "INT64", "DOUBLE", "UINT64", "STRING")
    for kind in kinds:
        values = [b"s"] if kind == "STRING" else [1]
        yield oh.make_tensor(kind, getattr(TensorProto, kind), [1], values)
    part = from_array(np.ones(2, np.float32), "part")
    part.segment.begin, part.segment.end = 0, 2
    yield part


def attributes() -> Iterator[AttributeProto]:
    """An attribute for each type of value."""
    graph = oh.make_graph([], "empty", [], [])
    sparse = oh.make_sparse_tensor(
        from_array(np.ones(1, np.float32), "v"), from_array(np.ones(1, np.int64), "i"), [4]
    )
    opaque = TypeProto()
    opaque.opaque_type.domain, opaque.opaque_type.name = "d", "n"
    for one in (1.5, 2, "s", graph, sparse, opaque, next(tensors())):
        yield oh.make_attribute(f"one_{type(one).__name__}", one)
        yield oh.make_attribute(f"two_{type(one).__name__}", [one, one])
    yield oh.make_attribute("many", list(tensors()))


def whole_model() -> ModelProto:
    """A model in which every field of every proto is set somewhere."""
    model = onnx.parser.parse_model(MODEL)
    model.graph.node[-1].attribute.extend(attributes())
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(from_array(np.ones(1, np.float32), "sparse"))
    sparse.indices.CopyFrom(from_array(np.ones(1, np.int64), "at"))
    sparse.dims.append(4)
    model.graph.node[-1].input.append("sparse")
    model.graph.value_info.append(oh.make_tensor_value_info("w", TensorProto.FLOAT, [2]))
    function = model.functions[0]
    function.value_info.append(oh.make_tensor_value_info("b", TensorProto.FLOAT, None))
    where = model.graph.initializer.add(name="elsewhere", data_type=TensorProto.FLOAT, dims=[1])
    where.data_location = TensorProto.EXTERNAL
    where.external_data.add(key="location", value="weights.bin")
    model.graph.node[-1].input.append("elsewhere")
    model.graph.quantization_annotation.add(tensor_name="q")
    node = model.graph.node[1].device_configurations.add(configuration_id="two")
    spec = node.sharding_spec.add(tensor_name="z")
    for name in ("dim_value", "dim_param"):
        dim = spec.sharded_dim.add().simple_sharding.add()
        setattr(dim, name, 2 if name == "dim_value" else "n")
    fill(model)
    return model


def fields_of(found: Descriptor, seen: dict[str, set[str]]) -> dict[str, set[str]]:
    """The fields of a proto and of those it may hold, by name of proto."""
    if found.name not in seen:
        seen[found.name] = {field.name for field in found.fields}
        for field in found.fields:
            if field.message_type is not None:
                fields_of(field.message_type, seen)
    return seen


def test_the_model_sets_every_field():
    missing = fields_of(ModelProto.DESCRIPTOR, {})
    for message in messages(whole_model()):
        missing[message.DESCRIPTOR.name] -= {field.name for field, _ in message.ListFields()}
    assert not any(missing.values()), {k: v for k, v in missing.items() if v}


def test_nothing_is_lost():
    model = whole_model()
    options = OptimizationOptions(patterns=None, passes=())
    assert GraphBuilder(model, optimization_options=options).to_onnx(inline=False) == model


@pytest.mark.parametrize("threshold", [0, 1 << 10])
def test_nothing_is_lost_of_weights_kept_out_of_the_model(threshold, tmp_path):
    """The command writes models in this way."""
    text = "g (float[n, 2] x) => (float[n, 2] y) <float[2] w = {1, 2}> { y = Add (x, w) }"
    model = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["": 23]> {text}')
    fill(model.graph.initializer[0])
    container = GraphBuilder(model).to_onnx(large_model=True, external_threshold=threshold)
    save_model(container, tmp_path / "model.onnx")
    (weight,) = onnx.load(tmp_path / "model.onnx").graph.initializer
    assert weight.doc_string == "a doc_string" and len(weight.metadata_props) == 1
    assert weight.metadata_props == model.graph.initializer[0].metadata_props
    assert to_array(weight).tolist() == [1, 2]


def test_nothing_is_lost_near_a_rewrite():
    """Identity is removed, the node that read its result reads its input, on several devices."""
    expected = whole_model()
    del expected.graph.node[0]
    follower = expected.graph.node[0]
    follower.input[0] = follower.device_configurations[0].sharding_spec[0].tensor_name = "x"
    options = OptimizationOptions(patterns="default")
    after = GraphBuilder(whole_model(), optimization_options=options).to_onnx(inline=False)
    assert after == expected


BODY = """
<ir_version: 11, opset_import: ["": 23]> g (float[n] x, bool c) => (float[n] y) {
  [y] y = If (c) <
    then_branch = then_graph () => (float[n] a) <float[n] p, float[n] r> {
      [p] p = Identity (x) [r] r = Identity (p) [q] q = Exp (r) [a] a = Cos (q) },
    else_branch = else_graph () => (float[n] b) { [b] b = Exp (x) }>
}
"""


def test_nothing_of_a_body_is_lost_near_a_rewrite():
    model = onnx.parser.parse_model(BODY)
    fill(model.graph)
    for attribute in model.graph.node[0].attribute:
        attribute.g.quantization_annotation[0].tensor_name = "x"
    expected = ModelProto()
    expected.CopyFrom(model)
    body = expected.graph.node[0].attribute[0].g
    del body.node[:2], body.value_info[:]
    body.node[0].input[0] = "x"
    options = OptimizationOptions(patterns="default")
    after = GraphBuilder(model, optimization_options=options).to_onnx()
    for one, two in zip(
        after.graph.node[0].attribute, expected.graph.node[0].attribute, strict=True
    ):
        for field in type(one.g).DESCRIPTOR.fields:
            assert getattr(one.g, field.name) == getattr(two.g, field.name), field.name


@pytest.mark.parametrize("field", ["doc_string", "metadata_props"])
def test_a_wrong_declaration_keeps_the_rest(field):
    """The shape is corrected, what is said beside it stays."""
    text = "g (float[n, 2] x) => (float[n, 3] y) <float[n, 4] z> { z = Abs(x) y = Exp(z) }"
    model = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["": 23]> {text}')
    fill(model)
    with pytest.warns(UserWarning, match="declares something else"):
        after = GraphBuilder(model).to_onnx()
    assert after.graph.output[0].type.tensor_type.shape.dim[1].dim_value == 2
    assert after.graph.output[0].type.denotation == "a denotation"
    for one, two in ((after.graph.output, model.graph.output), (after.graph.value_info,) * 2):
        assert getattr(one[0], field) == getattr(two[0], field) and getattr(one[0], field)
