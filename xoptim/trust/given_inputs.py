"""Inputs a user gives: values on the command line, files of numpy, test data as onnx ships it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, SequenceProto, TensorProto, ValueInfoProto, helper, numpy_helper

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names

from .random_inputs import required_inputs

#: extensions of a file that holds one value
_FILES = (".npy", ".pb")


def parse_inputs(texts: Sequence[str], model: ModelProto) -> dict[str, Any]:
    """Reads inputs written as `name=value`.

    The value is the name of a `.npy` or `.pb` file, or numbers as json writes them: `sr=16000`,
    `x=[[1, 2], [3, 4]]`, `flag=true`. Numbers get the type the model declares; one number fills an
    input of any fixed shape of one element.

    :param texts: inputs, each of them once
    :param model: the model, any of its inputs may be given
    :return: a value by input
    :raises OptionError: a name, a file, a type or a shape does not fit the model

    ::

        parse_inputs(["sr=16000", "x=photo.npy"], model)
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equal, value = text.partition("=")
        if not equal:
            raise OptionError(f"{text!r} is not name=value, such as sr=16000 or x=photo.npy.")
        info = _input_of(model, name, "given")
        if name in found:
            raise OptionError(f"Input {name!r} is given twice.")
        if Path(value).suffix in _FILES:
            found[name] = _checked(_read_file(Path(value), info), info, value)
        else:
            found[name] = _checked(_parse(value, info), info, text)
    return found


def read_input_sets(path: str | Path, model: ModelProto) -> list[dict[str, Any]]:
    """Reads complete or partial sets of inputs.

    1. A `.npz` file: one set, arrays are called after the inputs.
    2. A folder with `input_0.pb`, `input_1.pb`...: one set, in the order of the inputs of the
       model, or by the names the tensors have.
    3. A folder of such folders, `test_data_set_0`, `test_data_set_1`...: one set for each, in
       this order.

    :param path: the file or the folder
    :param model: the model
    :return: sets, each with a value by input
    :raises OptionError: nothing is there, or does not fit the model
    """
    place = Path(path)
    if place.is_dir():
        folders = [place] if any(place.glob("input_*.pb")) else _test_sets(place)
        if not folders:
            raise OptionError(
                f"{str(place)!r} has no input_0.pb, and no folder with one: expected test data as "
                "onnx ships it, or a .npz file."
            )
        return [_read_folder(folder, model) for folder in folders]
    if place.suffix != ".npz":
        raise OptionError(f"{str(place)!r} is neither a folder nor a .npz file.")
    return [_read_archive(place, model)]


def _test_sets(place: Path) -> list[Path]:
    found = [folder for folder in place.iterdir() if any(folder.glob("input_*.pb"))]
    return sorted(found, key=lambda folder: (len(folder.name), folder.name))


def _input_of(model: ModelProto, name: str, what: str) -> ValueInfoProto:
    inputs: dict[str, ValueInfoProto] = {info.name: info for info in model.graph.input}
    if name in inputs:
        return inputs[name]
    close = closest_names(name, inputs)
    hint = f"Did you mean {close[0]!r}?" if close else f"Its inputs are {list(inputs)}."
    raise OptionError(f"{name!r} is {what} and is no input of the model. {hint}")


def _parse(text: str, info: ValueInfoProto) -> Any:
    """Numbers written as json, in the type of an input."""
    kind = info.type.tensor_type.elem_type
    try:
        value = json.loads(text)
    except json.JSONDecodeError as e:
        if kind == TensorProto.STRING:
            value = text
        else:
            raise OptionError(
                f"{text!r} for input {info.name!r} is neither a .npy or .pb file nor numbers such "
                "as 16000 or [[1, 2], [3, 4]]."
            ) from e
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    try:
        exact = np.array(value)
        array = np.array(value, dtype=object if kind == TensorProto.STRING else dtype)
    except (ValueError, TypeError, OverflowError) as e:
        raise OptionError(f"{text!r} is no array of {dtype} for input {info.name!r}: {e}.") from e
    if array.dtype.kind in "iub" and not np.array_equal(array, exact):
        raise OptionError(f"{text!r} does not fit {dtype}, the type of input {info.name!r}.")
    dims = info.type.tensor_type.shape.dim
    if array.ndim == 0 and all(dim.dim_value == 1 for dim in dims):
        array = array.reshape([1] * len(dims))
    return array


def _read_file(path: Path, info: ValueInfoProto) -> Any:
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return _read_proto(path, info)
    except FileNotFoundError as e:
        raise OptionError(f"Input {info.name!r}: there is no file {str(path)!r}.") from e
    except (OSError, ValueError) as e:
        raise OptionError(f"Input {info.name!r}: {str(path)!r} cannot be read: {e}.") from e


def _read_proto(path: Path, info: ValueInfoProto) -> Any:
    """A tensor or a sequence, as the model declares the input."""
    content = path.read_bytes()
    try:
        if info.type.HasField("sequence_type"):
            return numpy_helper.to_list(SequenceProto.FromString(content))
        return numpy_helper.to_array(TensorProto.FromString(content))
    except Exception as e:
        raise ValueError(f"it is not a {info.type.WhichOneof('value')} of onnx ({e})") from e


def _read_folder(folder: Path, model: ModelProto) -> dict[str, Any]:
    expected = required_inputs(model)
    names = {info.name for info in model.graph.input}
    found: dict[str, Any] = {}
    files = sorted(folder.glob("input_*.pb"), key=lambda p: (len(p.stem), p.stem))
    for position, path in enumerate(files):
        own = TensorProto()
        try:
            own.ParseFromString(path.read_bytes())
            name = own.name
        except Exception:  # a sequence, known by its position
            name = ""
        if name not in names:
            if position >= len(expected):
                raise OptionError(
                    f"{str(folder)!r} has {len(files)} inputs, the model takes {len(expected)}."
                )
            name = expected[position].name
        info = _input_of(model, name, f"in {str(path)!r}")
        found[name] = _checked(_read_file(path, info), info, str(path))
    return found


def _read_archive(path: Path, model: ModelProto) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError as e:
        raise OptionError(f"There is no file {str(path)!r}.") from e
    except (OSError, ValueError, zipfile.BadZipFile) as e:
        raise OptionError(f"{str(path)!r} is not a .npz file of plain arrays: {e}.") from e
    return {
        name: _checked(array, _input_of(model, name, f"in {str(path)!r}"), str(path))
        for name, array in arrays.items()
    }


def _checked(value: Any, info: ValueInfoProto, source: str) -> Any:
    """A value that fits the declaration of an input.

    :raises OptionError: its type or its shape does not fit
    """
    if isinstance(value, list) or not info.type.HasField("tensor_type"):
        return value
    tensor = info.type.tensor_type
    expected = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    texts = tensor.elem_type == TensorProto.STRING
    if texts and value.dtype.kind in "UOS":
        value = value.astype(object)
    elif value.dtype != expected:
        raise OptionError(
            f"Input {info.name!r} has type {expected}, {source!r} has {value.dtype}: "
            f"convert it with astype."
        )
    if not tensor.HasField("shape"):
        return value
    dims = tensor.shape.dim
    fits = len(dims) == value.ndim and all(
        not dim.HasField("dim_value") or dim.dim_value == size
        for dim, size in zip(dims, value.shape, strict=False)
    )
    if not fits:
        written = [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in dims
        ]
        raise OptionError(
            f"Input {info.name!r} has shape {written}, {source!r} has {list(value.shape)}."
        )
    return value
