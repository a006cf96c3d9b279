"""Tensors stored in other files, wherever they are in the model."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import ModelProto, TensorProto
from onnx.numpy_helper import from_array, to_array
from ut_xbuilder.graph_checks import op_types, parse, run_onnxruntime, run_reference

from xbuilder import FunctionOptions, GraphBuilder, OptimizationOptions
from xbuilder.errors import ExternalDataError, OptionError
from xbuilder.files.data_writer import set_reference
from xbuilder.files.external_data import ExternalReference
from xbuilder.files.tensor_sites import iter_external_tensors, iter_tensor_sites
from xbuilder.protos import inline_external as module

EVERYWHERE = """
<ir_version: 8, opset_import: ["": 18, "d": 1]>
agraph (float[N,3] x, bool c) => (float[N,3] y, int64[1] z)
<float[3] w = {1.0, 2.0, 3.0}>
{
  a = Add(x, w)
  k = Constant <value = float[3] {4.0, 5.0, 6.0}> ()
  b = Mul(a, k)
  e = If(c) <
    then_branch = tb () => (float[N,3] t)
      <float[3] tw = {7.0, 8.0, 9.0}>
      { tk = Constant <value = float[3] {1.5, 2.5, 3.5}> () u = Add(b, tw) t = Mul(u, tk) },
    else_branch = eb () => (float[N,3] s) { s = Identity(b) }
  >
  f = d.f(e)
  shape = Constant <value = int64[2] {-1, 3}> ()
  g = Reshape(f, shape)
  size = Constant <value = int64[1] {1}> ()
  z = ConstantOfShape <value = int64[1] {5}> (size)
  dense = Add(g, sp)
  y = Sub(dense, w)
}
<domain: "d", opset_import: ["": 18]>
f (q) => (r)
{ fk = Constant <value = float[3] {0.5, 0.25, 0.125}> () r = Add(q, fk) }
"""


def everywhere() -> ModelProto:
    model = parse(EVERYWHERE)
    indices = from_array(np.array([0, 2], dtype=np.int64), "sp_i")
    values = from_array(np.array([10, 20], dtype=np.float32), "sp")
    model.graph.sparse_initializer.append(oh.make_sparse_tensor(values, indices, [3]))
    return model


def externalize(model: ModelProto, folder, name: str = "w.bin") -> ModelProto:
    """Moves the content of every tensor to a file."""
    copy = ModelProto()
    copy.CopyFrom(model)
    content = b""
    for site in iter_tensor_sites(copy):
        data = to_array(site.tensor).tobytes()
        site.tensor.ClearField("raw_data")
        for field in ("float_data", "int64_data"):
            site.tensor.ClearField(field)
        set_reference(site.tensor, ExternalReference(name, len(content), len(data)))
        content += data
    (folder / name).write_bytes(content)
    return copy


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder of a model; the current folder has a file of the same name with something else."""
    folder, other = tmp_path / "model", tmp_path / "elsewhere"
    folder.mkdir()
    other.mkdir()
    (other / "w.bin").write_bytes(b"\x11" * 4096)
    monkeypatch.chdir(other)
    return folder


FEEDS = {"x": np.arange(6, dtype=np.float32).reshape((2, 3)), "c": np.array(True)}


def expected_results(model=None):
    """The results of the model; onnxruntime needs sparse initializers, the reference does not."""
    return run_onnxruntime(model or everywhere(), FEEDS)


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("source", ["path", "proto"])
def test_everything_is_read_from_the_folder_and_embedded(folder, optimize, inline, source):
    model = externalize(everywhere(), folder)
    onnx.save(model, str(folder / "m.onnx"))
    if source == "path":
        builder = GraphBuilder(folder / "m.onnx", infer_shapes_options=True)
    else:
        builder = GraphBuilder(model, infer_shapes_options=True, base_dir=folder)
    after = builder.to_onnx(optimize=optimize, inline=inline)
    assert list(iter_external_tensors(after)) == []
    for got, want in zip(expected_results(after), expected_results(), strict=True):
        np.testing.assert_array_equal(got, want)
    if source == "proto":
        assert len(list(iter_external_tensors(model))) == 10, "the proto given is not modified"


def test_the_content_of_an_attribute_is_known(folder):
    model = externalize(everywhere(), folder)
    builder = GraphBuilder(model, infer_shapes_options=True, base_dir=folder)
    assert builder.facts["shape"].value == (-1, 3)
    assert builder.facts["z"].type == TensorProto.INT64
    assert builder.get_constant("k").tolist() == [4, 5, 6]
    assert builder.get_constant("z").tolist() == [5]
    # over a memory map: nothing was copied
    value = builder.constants.read_tensor(model.graph.node[1].attribute[0].t)
    assert not value.flags.owndata and not value.flags.writeable
    node = next(n for n in builder.nodes if n.op_type == "ConstantOfShape")
    assert builder.get_attribute_value(node, "value").tolist() == [5]


@pytest.mark.parametrize("optimize", [False, True])
def test_without_folder_the_references_stay(folder, optimize):
    model = externalize(everywhere(), folder)
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns="default+onnxruntime"),
    )
    shape = builder.facts["shape"]
    assert (shape.type, shape.shape, shape.value) == (TensorProto.INT64, (2,), None)
    assert builder.facts["z"].type in (0, TensorProto.INT64)
    after = builder.to_onnx(optimize=optimize)
    kept = list(iter_external_tensors(after))
    assert len(kept) == 10 and {t.external_data[0].value for t in kept} == {"w.bin"}
    again = GraphBuilder(after, base_dir=folder).to_onnx(optimize=False)
    for got, want in zip(expected_results(again), expected_results(), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_container_keeps_the_references(folder):
    model = externalize(everywhere(), folder)
    onnx.save(model, str(folder / "m.onnx"))
    container = GraphBuilder(folder / "m.onnx").to_onnx(large_model=True, optimize=False)
    assert {t.external_data[0].value for t in iter_external_tensors(container.proto)} == {"w.bin"}
    container.save(str(folder / "m2.onnx"))
    after = GraphBuilder(folder / "m2.onnx").to_onnx(optimize=False)
    np.testing.assert_array_equal(expected_results(after)[0], expected_results()[0])


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("location", ["/etc/passwd", "../w.bin", "a/../../w.bin", "C:\\w.bin"])
def test_a_proto_without_folder_never_refers_to_other_folders(folder, place, location):
    model = externalize(everywhere(), folder)
    list(iter_external_tensors(model))[place].external_data[0].value = location
    with pytest.raises(ExternalDataError, match="folder"):
        GraphBuilder(model)


def test_other_kinds_of_protos_are_checked(folder):
    model = externalize(everywhere(), folder)
    for tensor in iter_external_tensors(model):
        tensor.external_data[0].value = "../w.bin"
    for proto, opsets in ((model.graph, {"": 18, "d": 1}), (model.functions[0], None)):
        with pytest.raises(ExternalDataError, match="leaves the model's folder"):
            GraphBuilder(proto, opsets=opsets)


@pytest.mark.parametrize("damage", ["missing", "short"])
def test_a_known_folder_is_checked(folder, damage):
    model = externalize(everywhere(), folder)
    if damage == "missing":
        (folder / "w.bin").unlink()
    else:
        (folder / "w.bin").write_bytes(b"")
    with pytest.raises(ExternalDataError, match="cannot be found|truncated"):
        GraphBuilder(model, base_dir=folder)


def test_too_big_for_a_proto(folder, monkeypatch):
    builder = GraphBuilder(externalize(everywhere(), folder), base_dir=folder)
    monkeypatch.setattr(module, "PROTO_LIMIT", 100)
    with pytest.raises(OptionError, match="large_model=True"):
        builder.to_onnx(optimize=False, inline=False)


@pytest.mark.parametrize("as_function", [False, True])
def test_graphs_of_two_folders(folder, tmp_path, as_function):
    """The same file name in two folders: each graph keeps its own content."""
    other = tmp_path / "other"
    other.mkdir()
    inner = parse(
        """
        agraph (float[3] a) => (float[3] b) <float[3] w = {100.0, 200.0, 300.0}>
        { k = Constant <value = float[3] {1000.0, 2000.0, 3000.0}> () t = Add(a, w) b = Add(t, k) }
        """
    )
    outer = parse("agraph (float[3] x) => (float[3] y) <float[3] w = {1., 2., 3.}> {y = Add(x, w)}")
    builder = GraphBuilder(externalize(outer, folder), base_dir=folder)
    added = GraphBuilder(externalize(inner, other), base_dir=other)
    options = FunctionOptions(export_as_function=True, name="f", domain="d")
    builder.make_nodes(added, ["y"], ["z"], function_options=options if as_function else None)
    builder.make_tensor_output("z", TensorProto.FLOAT, (3,))
    model = builder.to_onnx(inline=False, optimize=False)
    assert ("f" in op_types(model)) == as_function
    got = run_reference(model, {"x": np.zeros(3, dtype=np.float32)})
    assert got[-1].tolist() == [1101, 2202, 3303]


def test_sparse_values_in_a_file_join_a_model_of_another_folder(folder, tmp_path):
    model = parse("agraph (float[n,4] X) => (float[n,4] Y) { Y = Add(X, W) }")
    values = from_array(np.array([1, 2, 3], dtype=np.float32), "W")
    indices = from_array(np.array([0, 2, 3], dtype=np.int64), "W_i")
    model.graph.sparse_initializer.append(oh.make_sparse_tensor(values, indices, [4]))
    path = folder / "m.onnx"
    path.write_bytes(externalize(model, folder).SerializeToString())
    g = GraphBuilder(18)
    g.make_tensor_input("X", TensorProto.FLOAT, ("n", 4))
    g.make_nodes(GraphBuilder(str(path)), ["X"], ["Y"])
    g.make_tensor_output("Y", TensorProto.FLOAT, ("n", 4), indexed=False)
    new = g.to_onnx()
    assert not list(iter_external_tensors(new))
    (found,) = run_onnxruntime(new, {"X": np.zeros((1, 4), dtype=np.float32)})
    assert found.tolist() == [[1, 0, 2, 3]]
