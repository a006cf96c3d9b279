"""Tests of xbuilder.files.external_data."""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import onnx.numpy_helper as onh
import pytest
from onnx import TensorProto
from ut_xbuilder.files.external_models import (
    EXPECTED_PLACES,
    make_everywhere,
    make_external,
    make_model,
)

from xbuilder.errors import ExternalDataError, InvalidModelError
from xbuilder.files.external_data import (
    ExternalFolder,
    check_external_data,
    external_array,
    parse_external_reference,
    tensor_nbytes,
)
from xbuilder.files.tensor_sites import iter_external_tensors
from xbuilder.tensors.bits import storage_size


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "w.bin").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    return path


def test_external_array_has_no_copy_and_is_read_only(folder):
    tensor = make_external()
    array = external_array(tensor, folder)
    np.testing.assert_array_equal(array, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert not array.flags.writeable and not array.flags.owndata
    again = external_array(tensor, folder)
    assert np.shares_memory(array, again), "one map per file"
    with pytest.raises(ValueError):
        array[0, 0] = 1


def test_external_array_unaligned_offset(folder):
    data = np.arange(6, dtype=np.float32)
    (folder / "w.bin").write_bytes(b"abc" + data.tobytes() + b"tail")
    array = external_array(make_external(offset=3, length=24), folder)
    np.testing.assert_array_equal(array, data.reshape(2, 3))


def test_external_array_scalar_and_empty(folder):
    assert external_array(make_external(dims=(), offset=4), folder) == np.float32(1)
    empty = external_array(make_external(dims=(0, 5), offset=24, length=0), folder)
    assert empty.shape == (0, 5) and empty.dtype == np.float32
    (folder / "w.bin").write_bytes(b"")
    assert external_array(make_external(dims=(0,)), folder).shape == (0,)


def test_external_array_survives_the_replacement_of_its_file(folder):
    array = external_array(make_external(), folder)
    (folder / "new").write_bytes(np.full(6, 7, dtype=np.float32).tobytes())
    os.replace(folder / "new", folder / "w.bin")
    assert array[1, 2] == 5
    assert external_array(make_external(), folder)[1, 2] == 7


ALL_TYPES = sorted(v for k, v in TensorProto.DataType.items() if k not in ("UNDEFINED", "STRING"))


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 8, 33])
def test_external_array_all_types_as_onnx(tmp_path, data_type, count):
    rng = np.random.default_rng(data_type)
    size = storage_size(data_type, count)
    raw = rng.integers(0, 256, size=size, dtype=np.uint8)
    if data_type == TensorProto.BOOL:
        raw &= 1
    (tmp_path / "w.bin").write_bytes(b"\1" * 5 + raw.tobytes())
    tensor = make_external(dims=(count,), data_type=data_type, offset=5, length=size)
    array = external_array(tensor, tmp_path)
    embedded = TensorProto(dims=(count,), data_type=data_type, raw_data=raw.tobytes())
    expected = onh.to_array(embedded)
    assert array.dtype == expected.dtype
    assert array.tobytes() == expected.tobytes()
    assert not array.flags.writeable


def test_int4_values(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes([0x8F, 0x07]))
    tensor = make_external(dims=(3,), data_type=TensorProto.INT4)
    array = external_array(tensor, tmp_path)
    assert array.dtype == ml_dtypes.int4
    assert array.astype(np.int32).tolist() == [-1, -8, 7]
    assert tensor_nbytes(tensor) == 2


@pytest.mark.parametrize(
    "location",
    [
        "/etc/passwd",
        "\\\\server\\share",
        "C:\\data.bin",
        "c:data.bin",
        "../w.bin",
        "sub/../../w.bin",
        "sub\\..\\..\\w.bin",
        "..",
        "",
        "a\0b",
        ".",
    ],
)
def test_locations_out_of_the_folder_are_refused(folder, location):
    (folder.parent / "w.bin").write_bytes(bytes(24))
    with pytest.raises(ExternalDataError) as e:
        external_array(make_external(location=location), folder)
    assert "'W'" in str(e.value)


def test_dots_inside_a_name_are_accepted(folder):
    os.rename(folder / "w.bin", folder / "w..1.bin")
    assert external_array(make_external(location="w..1.bin"), folder).shape == (2, 3)
    assert external_array(make_external(location="./w..1.bin"), folder).shape == (2, 3)


def test_location_in_memory_is_refused(folder):
    with pytest.raises(ExternalDataError, match="in memory"):
        external_array(make_external(location="*/_ORT_MEM_ADDR_/*"), folder)


@pytest.mark.parametrize("key", ["offset", "length"])
@pytest.mark.parametrize("value", ["-1", "+1", "1.0", "1_0", " 1", "٣", "x", "", "9" * 30])
def test_offset_and_length_are_plain_integers(folder, key, value):
    with pytest.raises(ExternalDataError, match=f"The {key} of the external data of tensor 'W'"):
        external_array(make_external(**{key: value}), folder)


@pytest.mark.parametrize(
    "entries, message",
    [
        ({"offset": 1}, "truncated"),
        ({"offset": 25, "length": 24}, "truncated"),
        ({"offset": 2**62, "length": 24}, "truncated"),
        ({"length": 23}, "23 bytes"),
        ({"length": 25}, "25 bytes"),
        ({"length": 0}, "0 bytes"),
        ({"dims": (2, 4)}, "truncated"),
        ({"dims": (2**40, 2**40)}, "truncated"),
        ({"dims": (2, 3), "data_type": TensorProto.DOUBLE}, "truncated"),
    ],
)
def test_range_is_checked_against_the_file(folder, entries, message):
    with pytest.raises(ExternalDataError, match=message):
        external_array(make_external(**entries), folder)


@pytest.mark.parametrize(
    "entries",
    [
        {"dims": (-1, 3)},
        {"dims": (1,) * 65},
        {"data_type": TensorProto.STRING},
        {"data_type": TensorProto.UNDEFINED},
        {"data_type": 12345},
    ],
)
def test_impossible_types_and_dimensions(folder, entries):
    with pytest.raises(InvalidModelError):
        external_array(make_external(**entries), folder)


def test_keys(folder):
    tensor = make_external(checksum="00", basepath="/tmp", prepacked_0="k|0|1|x")
    assert external_array(tensor, folder).shape == (2, 3), "harmless keys are ignored"
    with pytest.raises(ExternalDataError, match="unknown"):
        external_array(make_external(offsets=4), folder)
    tensor = make_external(offset=0)
    tensor.external_data.add(key="offset", value="4")
    with pytest.raises(ExternalDataError, match="duplicated"):
        external_array(tensor, folder)
    tensor = make_external()
    del tensor.external_data[:]
    with pytest.raises(ExternalDataError, match="no location"):
        parse_external_reference(tensor)


@pytest.mark.parametrize("base_dir", [None, ""])
def test_unknown_folder_is_refused(folder, base_dir, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(ExternalDataError, match="folder is unknown"):
        external_array(make_external(), base_dir)
    with pytest.raises(ExternalDataError, match="folder is unknown"):
        check_external_data(make_model(make_external()), base_dir)
    assert check_external_data(make_model(), base_dir) == 0, "nothing external: no folder needed"


def test_missing_file_and_folder(folder):
    with pytest.raises(ExternalDataError) as e:
        external_array(make_external(location="other.bin"), folder)
    for word in ("'W'", "other.bin", "next to the model"):
        assert word in str(e.value)
    with pytest.raises(ExternalDataError, match="does not exist"):
        external_array(make_external(), folder / "nowhere")
    with pytest.raises(ExternalDataError, match="cannot be found"):
        external_array(make_external(location="x" * 5000), folder)


def test_embedded_tensor_is_refused(folder):
    with pytest.raises(ExternalDataError, match="stored in the model"):
        external_array(onh.from_array(np.zeros(2), "W"), folder)


def test_not_a_regular_file(folder):
    (folder / "sub").mkdir()
    os.mkfifo(folder / "fifo")
    for location in ("sub", "fifo"):
        with pytest.raises(ExternalDataError, match="not a regular file"):
            external_array(make_external(location=location), folder)


def test_symbolic_links(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "w.bin").write_bytes(bytes(24))
    (folder / "inside.bin").symlink_to("w.bin")
    (folder / "outside.bin").symlink_to(secret / "w.bin")
    (folder / "dir").symlink_to(secret)
    (folder / "chain.bin").symlink_to("outside.bin")
    (folder / "loop.bin").symlink_to("loop.bin")
    (folder / "dead.bin").symlink_to("nothing.bin")
    assert external_array(make_external(location="inside.bin"), folder)[0, 1] == 1
    for location in ("outside.bin", "dir/w.bin", "chain.bin"):
        tensor = make_external(location=location)
        with pytest.raises(ExternalDataError, match="allowed_roots"):
            external_array(tensor, folder)
        assert external_array(tensor, folder, [secret]).shape == (2, 3)
        assert external_array(tensor, folder, secret).shape == (2, 3)
        with pytest.raises(ExternalDataError, match="allowed_roots"):
            external_array(tensor, folder, [tmp_path / "secre"])
    for location in ("loop.bin", "dead.bin"):
        with pytest.raises(ExternalDataError):
            external_array(make_external(location=location), folder)
    # an allowed root does not make absolute paths or '..' acceptable
    for location in (str(secret / "w.bin"), "../secret/w.bin"):
        with pytest.raises(ExternalDataError):
            external_array(make_external(location=location), folder, [secret, tmp_path])


def test_folder_reached_through_a_link(folder, tmp_path):
    (tmp_path / "alias").symlink_to(folder)
    assert external_array(make_external(), tmp_path / "alias").shape == (2, 3)


def test_hard_links(folder, tmp_path):
    (tmp_path / "other").write_bytes(bytes(24))
    os.link(tmp_path / "other", folder / "hard.bin")
    tensor = make_external(location="hard.bin")
    with pytest.raises(ExternalDataError, match="hard links"):
        external_array(tensor, folder)
    assert external_array(tensor, folder, [folder]).shape == (2, 3)


def make_hugging_face(root, sub=()):
    repo = root / "models--org--name"
    snapshot = repo.joinpath("snapshots", "0123abcd", *sub)
    snapshot.mkdir(parents=True)
    (repo / "blobs").mkdir()
    (repo / "blobs" / "cafe").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    up = os.path.join(*[".."] * (2 + len(sub)), "blobs", "cafe")
    (snapshot / "w.bin").symlink_to(up)
    return repo, snapshot


@pytest.mark.parametrize("sub", [(), ("onnx",)])
def test_hugging_face_cache(tmp_path, sub):
    repo, snapshot = make_hugging_face(tmp_path, sub)
    assert external_array(make_external(), snapshot)[1, 2] == 5
    # the rest of the cache is out of reach
    (repo / "refs").write_bytes(bytes(24))
    (snapshot / "w.bin").unlink()
    (snapshot / "w.bin").symlink_to(repo / "refs")
    with pytest.raises(ExternalDataError, match="allowed_roots"):
        external_array(make_external(), snapshot)


def test_hugging_face_blobs_may_not_be_a_link(tmp_path):
    repo, snapshot = make_hugging_face(tmp_path)
    os.rename(repo / "blobs", tmp_path / "private")
    (repo / "blobs").symlink_to(tmp_path / "private")
    with pytest.raises(ExternalDataError, match="allowed_roots"):
        external_array(make_external(), snapshot)


def test_file_changed_between_check_and_read(folder):
    source = ExternalFolder(folder).locate(make_external())
    (folder / "w.bin").write_bytes(bytes(10))
    with pytest.raises(ExternalDataError, match="changed"):
        source.map_bytes()
    (folder / "w.bin").unlink()
    with pytest.raises(ExternalDataError, match="cannot be read"):
        source.map_bytes()


@pytest.mark.parametrize("name", sorted(EXPECTED_PLACES))
def test_check_external_data_goes_everywhere(folder, name):
    model = make_everywhere()
    assert check_external_data(model, folder) == sum(EXPECTED_PLACES.values())
    for tensor in iter_external_tensors(model):
        if tensor.name == name:
            tensor.external_data[0].value = "../w.bin"
    with pytest.raises(ExternalDataError, match=f"'{name}'"):
        check_external_data(model, folder)


def test_check_external_data_names_the_node_of_a_constant(folder):
    model = make_everywhere()
    model.graph.node[1].attribute[0].t.name = ""
    model.graph.node[1].attribute[0].t.external_data[0].value = "missing"
    with pytest.raises(ExternalDataError, match=r"node 'n2' \(Constant\)"):
        check_external_data(model, folder)


def test_many_arrays_of_one_file_use_one_descriptor(folder):
    count = len(os.listdir("/proc/self/fd"))
    arrays = [external_array(make_external(dims=(1,), offset=4 * i), folder) for i in range(6)]
    assert len(os.listdir("/proc/self/fd")) <= count + 1
    assert [a.item() for a in arrays] == list(range(6))
