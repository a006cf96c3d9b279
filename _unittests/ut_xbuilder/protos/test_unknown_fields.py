"""Fields of a newer version of onnx come back from a file."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.protos.unknown_fields import copy_unknown_fields

#: field 1000 as a varint, 64 bits, bytes, a group that holds a varint, 32 bits
FIELDS = [
    b"\xc0\x3e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xc1\x3e\x01\x02\x03\x04\x05\x06\x07\x88",
    b"\xc2\x3e\x03abc",
    b"\xc3\x3e\xc0\x3e\x05\xc4\x3e",
    b"\xc5\x3e\x01\x02\x03\x84",
]
TEXT = """<ir_version: 10, opset_import: ["": 20, "local": 1]>
g (float[n] x, bool c) => (float[n] y) {
    a = Identity(x) b = local.f(a)
    y = If (c) <then_branch = p () => (float[n] u) { u = Exp(b) },
                else_branch = q () => (float[n] v) { v = Cos(b) }> }
<domain: "local", opset_import: ["": 20]> f (s) => (t) { t = Abs(s) }"""


def protos(model: onnx.ModelProto) -> list[Message]:
    """The messages the optimizer writes again: the model, its graph, a body, a function."""
    branch = next(n for n in model.graph.node if n.op_type == "If")
    bodies = [a.g for a in branch.attribute]
    return [model, model.graph, *bodies, *model.functions]


@pytest.mark.parametrize("field", FIELDS)
def test_copy(field: bytes) -> None:
    origin, proto = onnx.GraphProto(name="a"), onnx.GraphProto(name="b")
    copy_unknown_fields(proto, origin)
    assert proto == onnx.GraphProto(name="b")
    origin.MergeFromString(field)
    copy_unknown_fields(proto, origin)
    assert proto.SerializeToString() == b"\x12\x01b" + field


@pytest.mark.parametrize("optimized", [True, False], ids=["optimized", "as it is"])
def test_nothing_is_lost(tmp_path, optimized: bool) -> None:
    model = onnx.parser.parse_model(TEXT)
    for proto in protos(model):
        proto.MergeFromString(b"".join(FIELDS))
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    default = OptimizationOptions(patterns="default")
    options = default if optimized else OptimizationOptions(patterns=None, passes=())
    for source in (model, str(path)):
        builder = GraphBuilder(source, optimization_options=options)
        after = builder.to_onnx(inline=False)
        assert ("Identity" in [n.op_type for n in after.graph.node]) != optimized
        for proto in protos(after):
            assert len(UnknownFieldSet(proto)) == len(FIELDS), type(proto)
