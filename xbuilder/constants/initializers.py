"""Converts user values (arrays, torch tensors, numbers) to initializers, and gives their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import TensorProto
from onnx.numpy_helper import from_array

from ..errors import OptionError
from ..files.blocks.block_tensors import BlockTensor

_EXTERNAL = TensorProto.EXTERNAL


def is_external_proto(value: Any) -> bool:
    """Whether an initializer is a TensorProto whose content is in another file."""
    return isinstance(value, TensorProto) and value.data_location == _EXTERNAL


def reads_a_file(value: Any) -> bool:
    """Whether the content of an initializer is in another file, or is computed from one by blocks.
    An initializer computed by blocks from weights of the model is in the model."""
    return (
        bool(value.blocks.files()) if isinstance(value, BlockTensor) else is_external_proto(value)
    )


def _torch_to_numpy(tensor: Any) -> np.ndarray:
    """A view of a torch tensor (any object with `detach`), no copy if it is contiguous on CPU."""
    tensor = tensor.detach().cpu().contiguous()
    name = str(tensor.dtype).rsplit(".", 1)[-1]
    try:
        array: np.ndarray = tensor.numpy()
    except TypeError:
        import ml_dtypes

        target = getattr(ml_dtypes, name, None)
        if target is None:
            raise OptionError(f"No ONNX type is known for torch type {tensor.dtype}.") from None
        dtype = np.dtype(target)
        array = tensor.view(_same_size_integer(tensor, dtype.itemsize)).numpy().view(dtype)
    return array


def _same_size_integer(tensor: Any, itemsize: int) -> Any:
    """The torch integer type of the same size, found without importing torch."""
    import sys

    return getattr(sys.modules[type(tensor).__module__.split(".")[0]], f"int{8 * itemsize}")


def _is_known(dtype: np.dtype) -> bool:
    try:
        oh.np_dtype_to_tensor_dtype(dtype)
    except ValueError:
        return False
    return True


def _strings(array: np.ndarray) -> TensorProto:
    """A tensor of strings out of an array of objects.

    :raises OptionError: it holds something else than strings
    """
    others = {type(v).__name__ for v in array.flat if not isinstance(v, str | bytes)}
    if others:
        raise OptionError(
            f"An array of objects must hold strings to become an initializer, this one holds "
            f"{sorted(others)}. Give it a type: array.astype(np.float32)."
        )
    return from_array(array)


def as_initializer(value: Any) -> Any:
    """Converts a user's value to an initializer: a TensorProto, a numpy array, or blocks.

    :raises OptionError: the value has no ONNX equivalent
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return _strings(value.astype(object))
    if isinstance(value, np.ndarray) and value.dtype.kind in "mMV" and not _is_known(value.dtype):
        raise OptionError(f"No ONNX type is known for an array of {value.dtype}.")
    if isinstance(value, (TensorProto, np.ndarray, BlockTensor)):
        return value
    if isinstance(value, bool):
        return np.array(value, dtype=np.bool_)
    if isinstance(value, int):
        return np.array(value, dtype=np.int64)
    if isinstance(value, float):
        return np.array(value, dtype=np.float32)
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
        return np.array(value, dtype=np.int64)
    if hasattr(value, "detach"):
        return _torch_to_numpy(value)
    raise OptionError(
        f"Unable to make an initializer from {type(value)}, expected a numpy array, "
        "a TensorProto, a torch tensor, an int, a float or a list of int."
    )


def initializer_type_shape(value: Any) -> tuple[int, tuple[int, ...]]:
    """Element type and shape of an initializer."""
    if isinstance(value, TensorProto):
        return value.data_type, tuple(value.dims[:])
    if isinstance(value, np.ndarray):
        return oh.np_dtype_to_tensor_dtype(value.dtype), value.shape
    return oh.np_dtype_to_tensor_dtype(value.dtype), tuple(int(d) for d in value.shape)
