"""Inputs given by the user."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto, numpy_helper

from xbuilder.errors import OptionError
from xoptim.trust.given_inputs import parse_inputs, read_input_sets

FLOAT, INT64, STRING, BOOL = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
)  # fmt: skip


def model(**inputs) -> onnx.ModelProto:
    infos = [oh.make_tensor_value_info(name, *declared) for name, declared in inputs.items()]
    return oh.make_model(oh.make_graph([], "g", infos, []))


AUDIO = model(x=(FLOAT, ["batch", "n"]), sr=(INT64, []), rates=(INT64, [1]), t=(STRING, ["k"]))


def test_values():
    found = parse_inputs(["sr=16000", "x=[[1, 2.5]]", "rates=8000", 't=["a", "b"]'], AUDIO)
    assert found["sr"] == 16000 and found["sr"].dtype == np.int64 and found["sr"].shape == ()
    np.testing.assert_array_equal(found["x"], np.float32([[1, 2.5]]))
    assert found["rates"].tolist() == [8000]
    assert found["t"].tolist() == ["a", "b"]
    assert parse_inputs(["b=true"], model(b=(BOOL, [])))["b"].dtype == np.bool_
    assert parse_inputs(["t=plain text"], model(t=(STRING, [])))["t"] == "plain text"


def test_files(tmp_path):
    array = np.ones((2, 3), np.float32)
    np.save(tmp_path / "x.npy", array)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    for file in ("x.npy", "x.pb"):
        np.testing.assert_array_equal(parse_inputs([f"x={tmp_path / file}"], AUDIO)["x"], array)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sr", "'sr' is not name=value"),
        ("srr=1", "'srr' is given and is no input of the model. Did you mean 'sr'"),
        ("unheard=1", "Its inputs are"),
        ("sr=1.5", "'1.5' does not fit int64"),
        ("sr=many", "neither a .npy or .pb file nor numbers"),
        ("x=[[1], [1, 2]]", "no array of float32"),
        ("x=[1, 2]", "has shape ['batch', 'n'], 'x=[1, 2]' has [2]"),
        ("rates=[1, 2]", "has shape [1]"),
        ("x=nowhere.npy", "there is no file 'nowhere.npy'"),
    ],
)
def test_wrong_values(text, message):
    with pytest.raises(OptionError) as failure:
        parse_inputs([text], AUDIO)
    assert message in str(failure.value)


def test_wrong_files(tmp_path):
    np.save(tmp_path / "double.npy", np.ones((1, 2)))
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "text.pb").write_text("hello")
    for file, message in (
        ("double.npy", "has type float32"),
        ("text.npy", "cannot be read"),
        ("text.pb", "it is not a tensor_type of onnx"),
    ):
        with pytest.raises(OptionError, match=message):
            parse_inputs([f"x={tmp_path / file}"], AUDIO)
    with pytest.raises(OptionError, match="given twice"):
        parse_inputs(["sr=1", "sr=2"], AUDIO)


def write(folder, *arrays, names=()):
    folder.mkdir(parents=True)
    for i, array in enumerate(arrays):
        tensor = numpy_helper.from_array(array, names[i] if names else "")
        (folder / f"input_{i}.pb").write_bytes(tensor.SerializeToString())


TWO = model(x=(FLOAT, ["batch", "n"]), sr=(INT64, []))


def test_archive(tmp_path):
    np.savez(tmp_path / "feeds.npz", x=np.ones((2, 3), np.float32), sr=np.array(8000))
    (found,) = read_input_sets(tmp_path / "feeds.npz", TWO)
    assert found["sr"] == 8000 and found["x"].shape == (2, 3)
    np.savez(tmp_path / "other.npz", y=np.ones(2))
    with pytest.raises(OptionError, match=r"'y' is in .*other\.npz.* and is no input"):
        read_input_sets(tmp_path / "other.npz", TWO)
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(OptionError, match="not a .npz file"):
        read_input_sets(tmp_path / "text.npz", TWO)


def test_test_data_of_onnx(tmp_path):
    for i in range(11):
        write(tmp_path / f"test_data_set_{i}", np.full((1, 2), i, np.float32), np.array(i))
    found = read_input_sets(tmp_path, TWO)
    assert [int(s["sr"]) for s in found] == list(range(11))
    assert all(s["x"][0, 0] == s["sr"] for s in found)
    (one,) = read_input_sets(tmp_path / "test_data_set_3", TWO)
    assert one["sr"] == 3


def test_names_of_tensors_win_over_their_order(tmp_path):
    arrays = np.array(5), np.ones((1, 2), np.float32)
    write(tmp_path / "set", *arrays, names=("sr", "x"))
    (found,) = read_input_sets(tmp_path / "set", TWO)
    assert found["sr"] == 5 and found["x"].shape == (1, 2)


def test_a_sequence(tmp_path):
    kind = oh.make_sequence_type_proto(oh.make_tensor_type_proto(FLOAT, ["n"]))
    info = oh.make_value_info("s", kind)
    graph = oh.make_graph([], "g", [info], [])
    arrays = [np.ones(2, np.float32), np.zeros(3, np.float32)]
    (tmp_path / "input_0.pb").write_bytes(numpy_helper.from_list(arrays).SerializeToString())
    (found,) = read_input_sets(tmp_path, oh.make_model(graph))
    assert [a.shape for a in found["s"]] == [(2,), (3,)]


def test_wrong_folders(tmp_path):
    with pytest.raises(OptionError, match=r"no input_0\.pb"):
        read_input_sets(tmp_path, TWO)
    with pytest.raises(OptionError, match=r"neither a folder nor a \.npz file"):
        read_input_sets(tmp_path / "x.txt", TWO)
    with pytest.raises(OptionError, match="no file"):
        read_input_sets(tmp_path / "x.npz", TWO)
    write(tmp_path / "set", *[np.array(1)] * 3, names=("sr", "", ""))
    with pytest.raises(OptionError, match="has 3 inputs, the model takes 2|has type float32"):
        read_input_sets(tmp_path / "set", TWO)
