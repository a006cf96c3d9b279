"""Tests of xbuilder.files.model_container."""

from __future__ import annotations

import errno
import os

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnxruntime
import pytest
from onnx import TensorProto
from ut_xbuilder.container_models import (
    assert_contents,
    files_of,
    make_arrays,
    make_model,
    make_placeholders,
    references,
    save_arrays,
)

from xbuilder.errors import ExternalDataError, InvalidModelError, OptionError
from xbuilder.files import model_container, model_copies, model_files, tensor_sources
from xbuilder.files.external_data import check_external_data, external_array
from xbuilder.files.model_container import ModelContainer, save_model
from xbuilder.files.model_files import load_model
from xbuilder.files.tensor_sources import make_source


@pytest.mark.parametrize("one_file", [True, False])
def test_save_and_run(tmp_path, one_file):
    arrays = make_arrays()
    container = ModelContainer(make_placeholders(arrays), arrays)
    path = tmp_path / "m.onnx"
    written = container.save(path, all_tensors_to_one_file=one_file)
    names = ["m.onnx.data"] if one_file else [f"m.onnx.w{i}.data" for i in range(3)]
    assert written == tuple(str(tmp_path / n) for n in [*names, "m.onnx"])
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "m.onnx"])
    assert_contents(path, arrays)
    onnx.checker.check_model(str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    got = session.run(None, {"x": np.zeros((2, 1), dtype=np.float32)})[0]
    np.testing.assert_allclose(got[1], arrays["w0"] + arrays["w1"] + arrays["w2"], rtol=1e-6)
    # the container is still usable
    container.save(tmp_path / "again.onnx")
    assert_contents(tmp_path / "again.onnx", arrays)


def test_size_threshold(tmp_path):
    arrays = {"a": np.zeros(4, np.float32), "b": np.zeros(5, np.float32), "c": np.zeros(0)}
    sources = {k: arrays[k] for k in "ab"}
    for threshold, expected in ((16, ["a", "b"]), (17, ["b"]), (0, ["a", "b"]), (21, [])):
        container = ModelContainer(make_model(arrays), sources)
        path = tmp_path / f"m{threshold}.onnx"
        written = container.save(path, size_threshold=threshold)
        assert list(references(path)) == expected
        assert len(written) == (2 if expected else 1), "no empty data file"
        assert_contents(path, arrays)


def test_container_does_not_know_a_placeholder():
    container = ModelContainer(make_model(make_arrays(1)), make_arrays(1))
    with pytest.raises(ExternalDataError, match="in memory"):
        ModelContainer(container.proto, base_dir=".")
    other = ModelContainer(make_model({}))
    with pytest.raises(ExternalDataError, match="not known"):
        other.array(container.proto.graph.initializer[0])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_save_over_the_model_being_read(tmp_path, first, second):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays, all_tensors_to_one_file=first)
    container = ModelContainer.load(path)
    mapped = container.array(container.proto.graph.initializer[0])
    del container.proto.graph.node[0]
    container.proto.graph.node[0].input[0] = "x"
    arrays.pop("w0")
    first_tensor = container.proto.graph.initializer.pop(0)
    assert first_tensor.name == "w0"
    for _ in range(3):
        container.save(path, all_tensors_to_one_file=second)
        assert_contents(path, arrays)
        for tensor in container.proto.graph.initializer:
            np.testing.assert_array_equal(container.array(tensor), arrays[tensor.name])
    assert mapped[3] == make_arrays()["w0"][3]
    container.save(path, size_threshold=10**6)
    assert_contents(path, arrays)
    container.save(path, size_threshold=0)
    assert_contents(path, arrays)


def test_save_over_with_references_set_by_hand(tmp_path):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays)
    old = load_model(path).proto
    container = ModelContainer(make_placeholders(dict(reversed(arrays.items()))))
    for tensor, source in zip(
        container.proto.graph.initializer, reversed(old.graph.initializer), strict=True
    ):
        container.set_source(tensor, source, tmp_path)
    for _ in range(2):
        container.save(path)
        assert_contents(path, dict(reversed(arrays.items())))


def test_proto_stays_usable_after_saving_over_it(tmp_path):
    arrays = {"small": np.arange(3, dtype=np.float32), **make_arrays()}
    path = save_arrays(tmp_path, arrays, size_threshold=1)
    proto = load_model(path).proto
    save_model(proto, path, base_dir=tmp_path)
    assert check_external_data(proto, tmp_path) == 3
    for tensor in proto.graph.initializer[1:]:
        np.testing.assert_array_equal(external_array(tensor, tmp_path), arrays[tensor.name])
    assert_contents(path, arrays)


def test_source_that_changed_is_refused(tmp_path):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays)
    container = ModelContainer.load(path)
    by_hand = ModelContainer(make_placeholders(arrays))
    for tensor, source in zip(
        by_hand.proto.graph.initializer, container.proto.graph.initializer, strict=True
    ):
        by_hand.set_source(tensor, source, tmp_path)
    (tmp_path / "m.onnx.data").write_bytes(bytes(10_000))
    for c in (container, by_hand):
        with pytest.raises(ExternalDataError, match="changed"):
            c.save(tmp_path / "n.onnx")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]


@pytest.mark.parametrize("one_file", [True, False])
@pytest.mark.parametrize("name", ["fsync", "replace", "write", "copy_file_range"])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_disk_error_leaves_everything_as_it_was(tmp_path, monkeypatch, one_file, name, call):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays, all_tensors_to_one_file=one_file)
    container = ModelContainer.load(path)
    extra = np.ones(500, np.float32)
    container.proto.graph.initializer.append(onh.from_array(extra, "extra"))
    before = files_of(tmp_path)
    count = [0]

    def fail(original):
        def fails(*args, **kwargs):
            count[0] += 1
            if count[0] == call:
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(*args, **kwargs)

        return fails

    with monkeypatch.context() as patch:
        if name == "write":
            for module in (model_container, tensor_sources):
                patch.setattr(module, "write_all", fail(model_files.write_all))
        else:
            patch.setattr(os, name, fail(getattr(os, name)))
        try:
            container.save(path, all_tensors_to_one_file=one_file)
        except OSError:
            assert files_of(tmp_path) == before
        else:  # the third one is the folder's, done when everything is in place
            assert count[0] < call or (name, one_file, call) == ("fsync", True, 3)
    container.save(path, all_tensors_to_one_file=one_file)
    assert_contents(path, {**arrays, "extra": extra})


def test_refer_to_source(tmp_path):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays)
    container = ModelContainer.load(path)
    extra = np.ones(500, np.float32)
    container.proto.graph.initializer.append(onh.from_array(extra, "extra"))
    before = files_of(tmp_path)
    container.save(tmp_path / "n.onnx", refer_to_source=True)
    after = files_of(tmp_path)
    assert {k: after[k] for k in before} == before
    assert len(after["n.onnx.data"]) == extra.nbytes
    assert_contents(tmp_path / "n.onnx", {**arrays, "extra": extra})
    # over the model itself: the data of the first tensors stays, new data goes to another file
    container.save(path, refer_to_source=True)
    assert files_of(tmp_path)["m.onnx.data"] == before["m.onnx.data"]
    assert_contents(path, {**arrays, "extra": extra})
    with pytest.raises(OptionError, match="needed by another"):
        container.save(path, refer_to_source=True, location="m.onnx.data")


def test_save_from_the_cache_of_hugging_face(tmp_path):
    arrays = make_arrays()
    cache = tmp_path / "models--a--b"
    snapshot, blobs = cache / "snapshots" / "rev", cache / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    save_arrays(snapshot, arrays)
    for i, name in enumerate(["m.onnx", "m.onnx.data"]):
        os.rename(snapshot / name, blobs / f"{i}")
        (snapshot / name).symlink_to(f"../../blobs/{i}")
    before = files_of(blobs)
    container = ModelContainer.load(snapshot / "m.onnx")
    (tmp_path / "out").mkdir()
    container.save(tmp_path / "out" / "m.onnx")
    assert_contents(tmp_path / "out" / "m.onnx", arrays)
    container.save(snapshot / "m.onnx")
    assert files_of(blobs) == before, "the blobs are shared by several revisions"
    assert_contents(snapshot / "m.onnx", arrays)


def make_attribute_model():
    arrays = make_arrays(1)
    model = make_model(arrays)
    value = onh.from_array(np.arange(700, dtype=np.float32), "c")
    model.graph.node.append(oh.make_node("Constant", [], ["c"], value=value))
    names = onh.from_array(np.array(["a", "b" * 2000]), "s")
    model.graph.node.append(oh.make_node("Constant", [], ["s"], value=names))
    return model


def test_attributes_stay_embedded_unless_the_model_is_too_big(tmp_path):
    model = make_attribute_model()
    ModelContainer(model).save(tmp_path / "m.onnx")
    assert list(references(tmp_path / "m.onnx")) == ["w0"]
    ModelContainer(model).save(tmp_path / "n.onnx", max_proto_bytes=4000)
    assert sorted(references(tmp_path / "n.onnx")) == ["c", "w0"]
    for name in ("m.onnx", "n.onnx"):
        assert ModelContainer.load(tmp_path / name).to_model_proto() == model
    # an attribute already out of the model stays out
    ModelContainer.load(tmp_path / "n.onnx").save(tmp_path / "o.onnx")
    assert sorted(references(tmp_path / "o.onnx")) == ["c", "w0"]
    with pytest.raises(InvalidModelError, match="lower"):
        ModelContainer(model).save(tmp_path / "p.onnx", max_proto_bytes=4000, size_threshold=5000)
    with pytest.raises(InvalidModelError, match="lower"):
        ModelContainer(model).save(tmp_path / "p.onnx", max_proto_bytes=2060)
    assert not [n for n in os.listdir(tmp_path) if n.startswith((".", "p"))]


@pytest.mark.parametrize("limit", [0, 1 << 26])
def test_saving_does_not_modify_the_model(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(model_copies, "_COPY_WITH_CONTENT", limit)
    model = make_attribute_model()
    model.metadata_props.add(key="k", value="v")
    model.graph.node[0].metadata_props.add(key="nk", value="nv")
    branch = oh.make_graph(
        [],
        "b",
        [],
        [oh.make_tensor_value_info("bw", TensorProto.FLOAT, [300])],
        [onh.from_array(np.zeros(300, np.float32), "bw")],
    )
    model.graph.node.append(
        oh.make_node("If", ["c"], ["i"], then_branch=branch, else_branch=branch)
    )
    model.graph.initializer.append(oh.make_tensor("typed", TensorProto.FLOAT, [2], [1, 2]))
    model.graph.initializer.append(TensorProto(name="unknown", data_type=77, raw_data=b"abc"))
    before = model.SerializeToString(deterministic=True)
    container = ModelContainer(model)
    container.save(tmp_path / "m.onnx")
    assert model.SerializeToString(deterministic=True) == before
    assert list(references(tmp_path / "m.onnx")) == ["bw", "w0"]
    whole = ModelContainer.load(tmp_path / "m.onnx").to_model_proto()
    assert whole.SerializeToString(deterministic=True) == before
    assert container.to_model_proto().SerializeToString(deterministic=True) == before


def test_to_model_proto_too_big():
    container = ModelContainer(make_model(make_arrays()), make_arrays())
    with pytest.raises(InvalidModelError, match="take 7200 bytes, one proto cannot exceed 7000"):
        container.to_model_proto(max_proto_bytes=7000)
    assert container.nbytes() == 7200


@pytest.mark.parametrize("external", [None, True, False])
def test_save_model_proto(tmp_path, external):
    arrays = make_arrays()
    path = tmp_path / "m.onnx"
    written = save_model(make_model(arrays), path, external=external)
    assert written[-1] == str(path) and len(written) == (2 if external else 1)
    assert_contents(path, arrays)


def test_save_model_too_big_for_one_file(tmp_path):
    arrays = make_arrays()
    model = make_model(arrays)
    size = model.ByteSize()
    for limit, count in ((size, 1), (size - 1, 2), (7199, 2)):
        path = tmp_path / f"m{limit}.onnx"
        assert len(save_model(model, path, max_proto_bytes=limit)) == count
        assert_contents(path, arrays)
        if count == 2:
            with pytest.raises(InvalidModelError, match="external data"):
                save_model(model, path, max_proto_bytes=limit, external=False)
            assert_contents(path, arrays)


def test_save_model_with_external_data(tmp_path):
    arrays = make_arrays()
    path = save_arrays(tmp_path, arrays)
    proto = load_model(path).proto
    with pytest.raises(ExternalDataError, match="folder is unknown"):
        save_model(proto, tmp_path / "n.onnx")
    assert len(save_model(proto, tmp_path / "n.onnx", base_dir=tmp_path)) == 2
    assert_contents(tmp_path / "n.onnx", arrays)
    assert len(save_model(proto, tmp_path / "o.onnx", base_dir=tmp_path, external=False)) == 1
    assert_contents(tmp_path / "o.onnx", arrays)
    container = ModelContainer(make_placeholders(arrays), arrays)
    assert len(save_model(container, tmp_path / "p.onnx", all_tensors_to_one_file=False)) == 4
    assert len(save_model(container, tmp_path / "q.onnx", external=False)) == 1
    assert_contents(tmp_path / "q.onnx", arrays)


def test_container_refuses_data_out_of_reach(tmp_path):
    path = save_arrays(tmp_path, make_arrays())
    proto = load_model(path).proto
    proto.graph.initializer[1].external_data[0].value = "../m.onnx.data"
    with pytest.raises(ExternalDataError, match="leaves"):
        ModelContainer(proto, base_dir=tmp_path)
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ExternalDataError, match="leaves"):
        ModelContainer.load(path)


def test_set_source_twice_and_from_itself():
    arrays = make_arrays(1)
    container = ModelContainer(make_model(arrays))
    tensor = container.proto.graph.initializer[0]
    container.set_source(tensor, tensor)
    assert not tensor.HasField("raw_data")
    np.testing.assert_array_equal(container.array(tensor), arrays["w0"])
    container.set_source(tensor, np.zeros(600, np.float32))
    assert container.array(tensor).sum() == 0
    source = make_source(arrays["w0"])
    container.set_source(tensor, source)
    assert container.source_of(tensor) is source


def test_contents_given_afterwards():
    arrays = make_arrays()
    container = ModelContainer(make_placeholders(arrays), arrays)
    assert container.model_proto is container.proto
    name = container.proto.graph.initializer[0].name
    other = arrays[name] + 1
    container.set_large_initializers({name: other})
    np.testing.assert_array_equal(container.array(container.proto.graph.initializer[0]), other)
    with pytest.raises(InvalidModelError, match="no initializer 'nobody'"):
        container.set_large_initializers({"nobody": other})


def test_a_container_is_checked():
    arrays = make_arrays()
    container = ModelContainer(make_placeholders(arrays), arrays)
    container.check_model()
    container.proto.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(onnx.checker.ValidationError, match="NoSuchOperator"):
        container.check_model()
