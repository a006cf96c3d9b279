"""Real inputs: values, files, data sets."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto, TypeProto, numpy_helper
from onnx.numpy_helper import from_array

from xbuilder.errors import OptionError
from xoptim.trust.inputs.given_inputs import read_inputs
from xoptim.trust.verification import verify_models

MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x, int64 sr, bool[1] flag, string[m] words) => (float[n, 4] y, int64 s, bool[1] f, string[m] w) {
    y = Relu(x) s = Identity(sr) f = Not(flag) w = Identity(words)
}
""")


@pytest.fixture
def folder(tmp_path):
    """An array, a set, and data sets as the tests of onnx have them."""
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "feeds.npz", x=x, sr=np.array(8000))
    for i in (2, 10):
        data = tmp_path / "sets" / f"test_data_set_{i}"
        data.mkdir(parents=True)
        tensors = [from_array(x + i, "x" if i == 2 else ""), from_array(np.array(i))]
        for k, tensor in enumerate(tensors):
            (data / f"input_{k}.pb").write_bytes(tensor.SerializeToString())
    (tmp_path / "bad.npy").write_bytes(b"not an array")
    np.savez(tmp_path / "objects.npz", words=np.array(["a"], object))
    sequence = numpy_helper.from_list([x])
    (tmp_path / "sequence.pb").write_bytes(sequence.SerializeToString())
    np.save(tmp_path / "double.npy", np.ones((2, 4)))
    np.save(tmp_path / "wide.npy", np.ones((2, 5), np.float32))
    return tmp_path


@pytest.mark.parametrize(
    "text,value",
    [
        ("sr=16000", np.array(16000)),
        ("sr=-1", np.array(-1)),
        ("flag=true", np.array([True])),
        ("flag=False", np.array([False])),
        ("x=[[1, 2, 3, 4.5]]", np.array([[1, 2, 3, 4.5]], np.float32)),
        ('words=["a", "b"]', np.array(["a", "b"], object)),
    ],
)
def test_values(text, value) -> None:
    [found] = read_inputs(MODEL, [text])
    [array] = found.values()
    assert array.dtype == value.dtype and np.array_equal(array, value)


def test_files(folder) -> None:
    [one] = read_inputs(MODEL, [f"x={folder / 'x.npy'}", "sr=1"])
    assert one["x"].shape == (2, 4) and one["sr"] == 1
    [one] = read_inputs(MODEL, [f"x={folder / 'sets' / 'test_data_set_2' / 'input_0.pb'}"])
    assert one["x"][0, 0] == 2
    [one] = read_inputs(MODEL, files=[folder / "feeds.npz"])
    assert sorted(one) == ["sr", "x"] and one["sr"] == 8000


def test_data_sets(folder) -> None:
    sets = read_inputs(MODEL, ["flag=1"], [folder / "sets", folder / "feeds.npz"])
    assert [s["sr"] for s in sets] == [2, 10, 8000] and [s["x"][0, 0] for s in sets] == [2, 10, 0]
    assert all(s["flag"] == [True] for s in sets)
    [one] = read_inputs(MODEL, files=[folder / "sets" / "test_data_set_10"])
    assert sorted(one) == ["sr", "x"]
    assert read_inputs(MODEL) == [{}]
    report = verify_models(MODEL, MODEL, sets)
    assert report.ok and report.draws == 3, "words are drawn"


@pytest.mark.parametrize(
    "values,files,message",
    [
        (
            ["flags=1"],
            [],
            "no input 'flags', did you mean 'flag'\\? its inputs are x, sr, flag, words",
        ),
        (["sr"], [], "'sr' is not name=value, such as x=1"),
        (["all.npz"], [], "'all.npz' is not .* as x=1; --inputs reads the inputs of a file"),
        (["sr=1", "sr=2"], [], "'sr' is given twice; --inputs gives several sets"),
        (["sr=0.5"], [], "0.5 is not int64, the type of 'sr'"),
        (["sr=fast"], [], "'fast' is no value for input 'sr': expected a number, a list"),
        (["x={f}/none.npy"], [], "none.npy' does not exist"),
        (["x={f}/bad.npy"], [], "bad.npy' is no array"),
        (["x={f}/double.npy"], [], "'x' has type float64, the model expects float"),
        (["x={f}/wide.npy"], [], r"'x' has shape \[2, 5\], the model expects \['n', 4\]"),
        (["sr=[1, 2]"], [], r"'sr' has shape \[2\], the model expects \[\]"),
        ([], ["{f}/x.npy"], "is no set of inputs: expected a .npz file, or a folder of input_0.pb"),
        ([], ["{f}"], "has no input_0.pb, and no folder that has one"),
        ([], ["{f}/none.npz"], "none.npz' does not exist"),
        ([], ["{f}/none"], "is no set of inputs"),
        (["sr=99999999999999999999"], [], "99 is not int64, the type of 'sr'"),
        (["x=[[1, 2, 3, 1e39]]"], [], "1e\\+39]] is not float, the type of 'x'"),
        (["words=[1, 2]"], [], "is not string, the type of 'words'"),
        (["words=[a"], [], "'\\[a' is no value for input 'words'"),
        (["x=null"], [], "null is not float"),
        (['x={"a": 1}'], [], "is not float"),
        (["x={f}/feeds.npz"], [], "--inputs feeds.npz gives them to the inputs of their names"),
        ([], ["{f}/objects.npz"], "strings are saved as np.array"),
        (["x={f}/sequence.pb"], [], "a tensor is expected, not a sequence"),
    ],
)
def test_refusals(folder, values, files, message) -> None:
    values, files = ([v.replace("{f}", str(folder)) for v in some] for some in (values, files))
    with pytest.raises(OptionError, match=message):
        read_inputs(MODEL, values, files)


def model_of(kind: TypeProto) -> ModelProto:
    value = oh.make_value_info("s", kind)
    return oh.make_model(oh.make_graph([], "g", [value], []))


TENSOR = oh.make_tensor_type_proto(TensorProto.FLOAT, ["n"])


def test_a_sequence(tmp_path):
    model = model_of(oh.make_sequence_type_proto(TENSOR))
    arrays = [np.ones(2, np.float32), np.zeros(3, np.float32)]
    path = tmp_path / "input_0.pb"
    path.write_bytes(numpy_helper.from_list(arrays).SerializeToString())
    for texts, files in (
        ([], [tmp_path]),
        ([f"s={path}"], []),
        (["s=[[1, 1], [0, 0, 0]]"], []),
    ):
        [given] = read_inputs(model, texts, files)
        assert [a.shape for a in given["s"]] == [(2,), (3,)]
        assert all(a.dtype == np.float32 for a in given["s"])
    with pytest.raises(OptionError, match="'s' is a sequence, expected a list of its elements"):
        read_inputs(model, ["s=1"])
    path.write_bytes(from_array(arrays[0]).SerializeToString())
    with pytest.raises(OptionError, match="a sequence is expected"):
        read_inputs(model, files=[tmp_path])
    path.write_bytes(numpy_helper.from_list([np.ones(2)]).SerializeToString())
    with pytest.raises(OptionError, match="'s' has type float64, the model expects float"):
        read_inputs(model, files=[tmp_path])


def test_an_optional(tmp_path):
    model = model_of(oh.make_optional_type_proto(TENSOR))
    path = tmp_path / "input_0.pb"
    path.write_bytes(numpy_helper.from_optional(np.ones(2, np.float32)).SerializeToString())
    for texts, files in (([], [tmp_path]), ([f"s={path}"], []), (["s=[1, 1]"], [])):
        [given] = read_inputs(model, texts, files)
        assert given["s"].dtype == np.float32 and given["s"].tolist() == [1, 1]
    assert read_inputs(model, ["s=null"]) == [{"s": None}]
    path.write_bytes(from_array(np.ones(2, np.float32)).SerializeToString())
    with pytest.raises(OptionError, match="an optional is expected"):
        read_inputs(model, files=[tmp_path])


def test_small_types() -> None:
    """Those of ml_dtypes, with the numbers they have."""
    for itype, text in ((TensorProto.BFLOAT16, "[1.5, NaN]"), (TensorProto.INT4, "[7, -8]")):
        [one] = read_inputs(model_of(oh.make_tensor_type_proto(itype, [2])), [f"s={text}"])
        assert one["s"].dtype == oh.tensor_dtype_to_np_dtype(itype)
    with pytest.raises(OptionError, match=r"\[8\] is not int4"):
        read_inputs(model_of(oh.make_tensor_type_proto(TensorProto.INT4, [1])), ["s=[8]"])


def test_one_word_for_one_element() -> None:
    model = model_of(oh.make_tensor_type_proto(TensorProto.STRING, [1]))
    [one] = read_inputs(model, ["s=hello"])
    assert one["s"].tolist() == ["hello"]


def test_a_default_value_is_given_by_its_name(tmp_path) -> None:
    """A data set may hold inputs that the model has a value for."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[n] x, float[1] w) => (float[n] y) <float[1] w = {2}> { y = Mul(x, w) }
    """)
    for i, name in enumerate("wx"):
        tensor = from_array(np.ones(1, np.float32), name)
        (tmp_path / f"input_{i}.pb").write_bytes(tensor.SerializeToString())
    [one] = read_inputs(model, files=[tmp_path])
    assert sorted(one) == ["w", "x"]
    assert verify_models(model, model, one).ok
