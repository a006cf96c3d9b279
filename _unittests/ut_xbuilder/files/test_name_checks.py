"""Names that are not text, wherever they are in a model."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from xbuilder.errors import InvalidModelError
from xbuilder.files.model_files import load_model
from xbuilder.files.name_checks import wrong_names

TEXT = """
<ir_version: 10, opset_import: ["" : 18, "@dom@" : 1]>
@graph@ (float[@dim@, 4] @input@, bool c, seq(float[@dim2@]) q) => (float[N, 4] @output@)
    <float @init@ = {1}> {
    @result@ = @dom2@.@op@ <@att@ = 1> (@input2@)
    @output2@ = If (c) <
        then_branch = @sub@ () => (float[N, 4] @t@) { @t2@ = Neg (@inner@) },
        else_branch = eg () => (float[@dim3@, 4] e) { e = Identity (x) }>
}
<domain: "@dom3@", opset_import: ["" : 18]>
@function@ <@fatt@> (@a@) => (@r@) { @r2@ = Add (@a2@, a) }
"""
PLACES = TEXT.split("@")[1::2]


def make(place: str | None) -> bytes:
    """The model, where one name is made of bytes that are no text."""
    parts = TEXT.split("@")
    text = "".join(f"name_{p}" if i % 2 else p for i, p in enumerate(parts))
    content = onnx.parser.parse_model(text).SerializeToString()
    name = f"name_{place}".encode()
    if place is None:
        return content
    # the length of the name is before it: `name_a` is not a part of another one
    assert content.count(bytes([len(name)]) + name) == 1
    return content.replace(bytes([len(name)]) + name, bytes([len(name)]) + b"\xff" * len(name))


def test_valid(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(make(None))
    assert len(load_model(path).proto.graph.node) == 2


@pytest.mark.parametrize("place", PLACES)
def test_bytes(place: str, tmp_path) -> None:
    assert "UTF-8" in wrong_names(onnx.ModelProto.FromString(make(place)))
    path = tmp_path / "m.onnx"
    path.write_bytes(make(place))
    with pytest.raises(InvalidModelError, match="m.onnx.*(UTF-8|domain)"):
        load_model(path)


def test_no_operator_in_a_subgraph() -> None:
    model = onnx.ModelProto.FromString(make(None))
    model.graph.node[1].attribute[0].g.node[0].op_type = ""
    assert "node 0 of " in wrong_names(model) and "has no op_type" in wrong_names(model)


def test_node_and_value_names() -> None:
    model = onnx.ModelProto.FromString(make(None))
    model.graph.node[0].name = "node_name"
    model.graph.value_info.add(name="value_name")
    model.graph.sparse_initializer.add().values.name = "sparse_name"
    content = model.SerializeToString()
    assert wrong_names(onnx.ModelProto.FromString(content)) == ""
    for name in (b"node_name", b"value_name", b"sparse_name"):
        broken = onnx.ModelProto.FromString(content.replace(name, b"\xff" * len(name)))
        assert "UTF-8" in wrong_names(broken)
