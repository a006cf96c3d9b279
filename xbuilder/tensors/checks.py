"""Checks that the content of a tensor has the size its type and its dimensions require."""

from __future__ import annotations

import math

from onnx import TensorProto

from ..errors import InvalidModelError
from .bits import is_known_type, is_packed, storage_size

_TYPES = TensorProto.DataType
#: element type -> field of its values when they are not raw bytes, int32_data for any other type
_FIELDS = {
    _TYPES.Value("FLOAT"): "float_data",
    _TYPES.Value("COMPLEX64"): "float_data",
    _TYPES.Value("DOUBLE"): "double_data",
    _TYPES.Value("COMPLEX128"): "double_data",
    _TYPES.Value("INT64"): "int64_data",
    _TYPES.Value("UINT32"): "uint64_data",
    _TYPES.Value("UINT64"): "uint64_data",
    _TYPES.Value("STRING"): "string_data",
}
_COMPLEX = (_TYPES.Value("COMPLEX64"), _TYPES.Value("COMPLEX128"))


def content_problem(tensor: TensorProto) -> str:
    """The reason why the content of a tensor does not fit its type and dimensions.

    Raw data is not decoded. An unknown type is accepted, its readers may refuse it.

    :param tensor: any tensor
    :return: an empty string if nothing is wrong, or if the content is in another file
    """
    if tensor.data_location == TensorProto.EXTERNAL:
        return ""
    dims = tuple(tensor.dims)
    if any(d < 0 for d in dims):
        return f"its dimensions {dims} are expected to be non-negative"
    count = math.prod(dims)
    kind = tensor.data_type
    if kind == TensorProto.UNDEFINED:
        # an attribute that holds nothing has an empty tensor
        return "it has no element type" if tensor.ByteSize() else ""
    if not is_known_type(kind):
        return ""
    what = f"its type {_TYPES.Name(kind)} and its dimensions {dims} need"
    if kind != TensorProto.STRING and tensor.HasField("raw_data"):
        try:
            expected = storage_size(kind, count)
        except InvalidModelError:  # this version of ml_dtypes has no such type
            return ""
        found = len(tensor.raw_data)
        return "" if found == expected else f"its content has {found} bytes, {what} {expected}"
    field = _FIELDS.get(kind, "int32_data")
    found = len(getattr(tensor, field))
    expected = count * (2 if kind in _COMPLEX else 1)
    if is_packed(kind):  # a value of int32_data holds one byte
        expected = storage_size(kind, count)
    if found == expected:
        return ""
    return f"its field {field} has {found} values, {what} {expected}"


def check_content(tensor: TensorProto, where: str = "") -> None:
    """Checks the size of the content of a tensor, see :func:`content_problem`.

    :param tensor: any tensor
    :param where: words added to its name
    :raises InvalidModelError: if the content has another size than expected

    ::

        check_content(model.graph.initializer[0])
    """
    problem = content_problem(tensor)
    if problem:
        name = f"tensor {tensor.name!r}" if tensor.name else "an unnamed tensor"
        raise InvalidModelError(
            f"The content of {name}{where} is damaged: {problem}. Download or export the model "
            "again."
        )
