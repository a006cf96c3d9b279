"""Reads real inputs: values, arrays in files, data sets as the tests of onnx store them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.helper as oh
from google.protobuf.message import DecodeError
from onnx import ModelProto, SequenceProto, TensorProto, ValueInfoProto, numpy_helper

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names

from .draws import sizes_of
from .random_inputs import elem_type_of, required_inputs

_FILES = {".npy", ".npz", ".pb"}
_NUMBERED = re.compile(r"input_(\d+)\.pb")


def read_inputs(
    model: ModelProto,
    values: Sequence[str] = (),
    files: Sequence[str | os.PathLike[str]] = (),
) -> list[dict[str, Any]]:
    """Reads sets of real inputs. Those that are missing are drawn by the checks.

    :param model: the model
    :param values: `name=value`: a number, a list as json, the path of a .npy or .pb file; they are
        in every set
    :param files: a set each: a .npz file with one array by input, a folder of `input_0.pb`,
        `input_1.pb`..., a folder of such folders
    :return: the sets, inputs by name; one without any input if nothing is given
    :raises OptionError: a name is unknown, a file is missing or is no array, a type or a shape is
        not the one the model declares

    .. code-block:: python

        sets = read_inputs(model, ["sr=16000", "x=sound.npy"])
        verify_models(model, optimized, inputs=sets)
    """
    declared = {value.name: value for value in model.graph.input}
    fixed: dict[str, Any] = {}
    for text in values:
        name, separator, value = text.partition("=")
        # a name may have the sign itself
        while separator and name not in declared and "=" in value:
            more, _, value = value.partition("=")
            name = f"{name}={more}"
        if not separator:
            raise OptionError(f"{text!r} is not name=value, such as {next(iter(declared), 'x')}=1")
        if name in fixed:
            raise OptionError(f"input {name!r} is given twice; --inputs gives several sets")
        fixed[name] = _value(_declaration(declared, name, text), value)
    sets = [one for path in files for one in _sets(declared, model, Path(path))]
    checked = []
    for one in sets or [{}]:
        both = {**one, **fixed}
        for name, array in both.items():
            _check_type(_declaration(declared, name, name), array)
        sizes_of(model, both)
        checked.append(both)
    return checked


def _declaration(
    declared: Mapping[str, ValueInfoProto], name: str, where: str | Path
) -> ValueInfoProto:
    if name not in declared:
        close = closest_names(name, declared, 1)
        raise OptionError(
            f"{str(where)!r}: the model has no input {name!r}, "
            + (f"did you mean {close[0]!r}? " if close else "")
            + f"its inputs are {', '.join(declared)}"
        )
    return declared[name]


def _value(declaration: ValueInfoProto, text: str) -> Any:
    """A number, a list, or the content of a file."""
    if Path(text).suffix in _FILES:
        return _array_of(Path(text), declaration)
    elem_type = elem_type_of(declaration)
    if elem_type == TensorProto.STRING:
        found = json.loads(text) if text.startswith(("[", '"')) else text
        return np.array(found, dtype=object)
    try:
        value = np.array(json.loads(text.lower() if text in ("True", "False") else text))
    except ValueError as e:
        raise OptionError(
            f"{text!r} is no value for input {declaration.name!r}: expected a number, a list such "
            "as [1, 2], or the path of a .npy or .pb file"
        ) from e
    dtype = oh.tensor_dtype_to_np_dtype(elem_type) if elem_type else value.dtype
    found = value.astype(dtype)
    exact = dtype.kind not in "biu" or np.array_equal(found, value)
    if value.dtype.kind not in "biuf" or not exact:
        raise OptionError(f"{text} is not {_typed(elem_type)}, the type of {declaration.name!r}")
    dims = declaration.type.tensor_type.shape.dim
    known = [d.dim_value for d in dims]
    # one number for an input of one element, [16000] for instance
    return found.reshape([1] * len(known)) if not found.ndim and set(known) <= {1} else found


def _array_of(path: Path, declaration: ValueInfoProto | None = None) -> Any:
    """The array of a file, or the list of arrays of a sequence."""
    if not path.exists():
        raise OptionError(f"{str(path)!r} does not exist")
    try:
        if path.suffix == ".pb":
            if declaration is not None and declaration.type.HasField("sequence_type"):
                return numpy_helper.to_list(SequenceProto.FromString(path.read_bytes()))
            tensor = TensorProto()
            tensor.ParseFromString(path.read_bytes())
            return numpy_helper.to_array(tensor)
        return np.load(path, allow_pickle=False)
    except Exception as e:  # a damaged file fails in many ways
        raise OptionError(f"{str(path)!r} is no array: {e}") from e


def _sets(
    declared: Mapping[str, ValueInfoProto], model: ModelProto, path: Path
) -> list[dict[str, Any]]:
    """The sets of a file or of a folder."""
    if path.is_dir():
        folders = [p for p in sorted(path.iterdir(), key=_natural) if _tensors(p)]
        folders = [path] if _tensors(path) else folders
        if not folders:
            raise OptionError(f"{str(path)!r} has no input_0.pb, and no folder that has one")
        return [_data_set(model, folder) for folder in folders]
    if path.suffix != ".npz":
        raise OptionError(
            f"{str(path)!r} is no set of inputs: expected a .npz file, or a folder of input_0.pb; "
            "--input NAME=FILE gives one input"
        )
    content = _array_of(path)
    with content:
        return [{_declaration(declared, n, path).name: content[n] for n in content.files}]


def _natural(path: Path) -> list[Any]:
    """Sorts `set_10` after `set_9`."""
    return [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", path.name)]


def _tensors(folder: Path) -> dict[int, Path]:
    """The tensors of a data set by position."""
    if not folder.is_dir():
        return {}
    found = ((_NUMBERED.fullmatch(p.name), p) for p in folder.iterdir())
    return {int(match[1]): path for match, path in found if match}


def _data_set(model: ModelProto, folder: Path) -> dict[str, Any]:
    """The inputs of a data set: tensors know their names, otherwise they are in order."""
    inputs = {value.name: value for value in required_inputs(model)}
    names = list(inputs)
    found = {}
    for position, path in sorted(_tensors(folder).items()):
        name = _name_of(path)
        if name not in inputs and position >= len(names):
            raise OptionError(
                f"{str(path)!r}: the model has {len(names)} inputs, {', '.join(names)}"
            )
        name = name if name in inputs else names[position]
        found[name] = _array_of(path, inputs[name])
    return found


def _name_of(path: Path) -> str:
    """The name a tensor has in its file, empty for a sequence or a damaged file."""
    try:
        return str(TensorProto.FromString(path.read_bytes()).name)
    except DecodeError:
        return ""


def _check_type(declaration: ValueInfoProto, array: Any) -> None:
    elem_type = elem_type_of(declaration)
    if not elem_type or not isinstance(array, np.ndarray):
        return
    dtype = oh.tensor_dtype_to_np_dtype(elem_type)
    same = array.dtype.kind in "OUS" if elem_type == TensorProto.STRING else array.dtype == dtype
    if not same:
        raise OptionError(
            f"input {declaration.name!r} has type {array.dtype}, the model expects "
            f"{_typed(elem_type)}"
        )


def _typed(elem_type: int) -> str:
    return str(TensorProto.DataType.Name(elem_type)).lower()
