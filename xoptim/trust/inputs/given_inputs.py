"""Reads real inputs: values, arrays in files, data sets as the tests of onnx store them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import (
    ModelProto,
    OptionalProto,
    SequenceProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    numpy_helper,
)

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names
from xbuilder.tensors.bits import element_type, pretty_type

from .draws import sizes_of
from .random_inputs import elem_type_of, required_inputs, tensor_type

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
            example = f"{next(iter(declared), 'x')}=1"
            hint = "; --inputs reads the inputs of a file" if Path(text).suffix else ""
            raise OptionError(f"{text!r} is not name=value, such as {example}{hint}")
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
    if elem_type_of(declaration) == TensorProto.STRING and not text.startswith(("[", '"')):
        return _value_of(declaration.type, text, declaration.name)
    try:
        found = json.loads(text.lower() if text in ("True", "False") else text)
        return _value_of(declaration.type, found, declaration.name)
    except OptionError:
        raise
    except (ValueError, TypeError, OverflowError) as e:
        raise OptionError(
            f"{text!r} is no value for input {declaration.name!r}: expected a number, a list such "
            "as [1, 2], or the path of a .npy or .pb file"
        ) from e


def _value_of(kind: TypeProto, value: Any, name: str) -> Any:
    """The content of json as an input of a type: a list of arrays for a sequence."""
    if kind.HasField("optional_type"):
        return None if value is None else _value_of(kind.optional_type.elem_type, value, name)
    if kind.HasField("sequence_type"):
        if not isinstance(value, list):
            raise OptionError(
                f"input {name!r} is a sequence, expected a list of its elements, or the path of a "
                ".pb file"
            )
        return [_value_of(kind.sequence_type.elem_type, one, name) for one in value]
    elem_type = kind.tensor_type.elem_type
    array = np.array(value)
    # a list of nothing has no type
    is_text = array.dtype.kind == "U" or not array.size
    if elem_type == TensorProto.STRING and is_text:
        found = array.astype(object)
    elif elem_type == TensorProto.STRING or array.dtype.kind not in "biuf":
        expected = pretty_type(elem_type)
        raise OptionError(f"{json.dumps(value)} is not {expected}, the type of {name!r}")
    else:
        found = _converted(array, elem_type, json.dumps(value), name)
    dims = kind.tensor_type.shape.dim
    known = [d.dim_value for d in dims]
    # one value for an input of one element, [16000] for instance
    return found.reshape([1] * len(known)) if not found.ndim and set(known) <= {1} else found


def _converted(array: np.ndarray, elem_type: int, text: str, name: str) -> np.ndarray:
    """The same numbers in another type, which has all of them: floats are rounded."""
    dtype = element_type(elem_type).dtype if elem_type else array.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        found = array.astype(dtype)
    is_integer = dtype.kind in "biu" or "int" in dtype.name
    wide = found.astype(array.dtype if is_integer else np.float64)
    same = np.array_equal(wide, array) if is_integer else _same_finite(wide, array)
    if not same:
        raise OptionError(f"{text} is not {pretty_type(elem_type)}, the type of {name!r}")
    return found


def _same_finite(found: np.ndarray, array: np.ndarray) -> bool:
    """Whether no number became infinite."""
    return bool(np.array_equal(np.isfinite(found), np.isfinite(array)))


def _array_of(path: Path, declaration: ValueInfoProto | None = None) -> Any:
    """The array of a file, the list of arrays of a sequence, None for an empty optional."""
    if not path.exists():
        raise OptionError(f"{str(path)!r} does not exist")
    if declaration is not None and path.suffix == ".npz":
        raise OptionError(
            f"{str(path)!r} may hold several arrays: --inputs {path.name} gives them to the inputs "
            f"of their names, input {declaration.name!r} takes a .npy or .pb file"
        )
    try:
        if path.suffix == ".pb":
            kind = TypeProto() if declaration is None else declaration.type
            return _content(kind, path.read_bytes())
        found = np.load(path, allow_pickle=False)
        return found if path.suffix == ".npy" else {name: found[name] for name in found.files}
    except Exception as e:  # a damaged file fails in many ways
        hint = ""
        if "allow_pickle" in str(e):
            hint = "; strings are saved as np.array(..., dtype=str)"
        raise OptionError(f"{str(path)!r} is no array: {e}{hint}") from e


def _content(kind: TypeProto, content: bytes) -> Any:
    """The value of a file of onnx: a tensor, a sequence or an optional."""
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(_parsed(SequenceProto(), content, "a sequence"))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(_parsed(OptionalProto(), content, "an optional"))
    tensor = _parsed(TensorProto(), content, "a tensor")
    if tensor.HasField("segment"):
        raise ValueError("a tensor is expected, not a sequence or an optional")
    return numpy_helper.to_array(tensor)


def _parsed(proto: Any, content: bytes, what: str) -> Any:
    """Reads a message. Another kind of message has fields that this one does not know."""
    proto.ParseFromString(content)
    if len(UnknownFieldSet(proto)):
        raise ValueError(f"{what} is expected")
    return proto


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
    return [{_declaration(declared, name, path).name: a for name, a in content.items()}]


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
    declared = {value.name: value for value in model.graph.input}
    names = [value.name for value in required_inputs(model)]
    found = {}
    for position, path in sorted(_tensors(folder).items()):
        name = _name_of(path)
        if name not in declared and position >= len(names):
            raise OptionError(
                f"{str(path)!r}: the model has {len(names)} input{'s' * (len(names) > 1)}, "
                f"{', '.join(names)}"
            )
        name = name if name in declared else names[position]
        found[name] = _array_of(path, declared[name])
    return found


def _name_of(path: Path) -> str:
    """The name a tensor has in its file, empty for a sequence or a damaged file."""
    try:
        return str(TensorProto.FromString(path.read_bytes()).name)
    except DecodeError:
        return ""


def _check_type(declaration: ValueInfoProto, array: Any) -> None:
    """Checks the type of a tensor, or of each element of a sequence."""
    tensor = tensor_type(declaration.type)
    elem_type = 0 if tensor is None else tensor.elem_type
    for one in array if isinstance(array, list) else [array]:
        if not elem_type or not isinstance(one, np.ndarray):
            continue
        is_text = elem_type == TensorProto.STRING
        if not (one.dtype.kind in "OUS" if is_text else one.dtype == element_type(elem_type).dtype):
            raise OptionError(
                f"input {declaration.name!r} has type {one.dtype}, the model expects "
                f"{pretty_type(elem_type)}"
            )
