"""Sources of the content of a tensor: an array, a torch tensor, a proto or a file."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Hashable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import onnx.numpy_helper
from onnx import TensorProto

from ..errors import InvalidModelError
from ..tensors.bits import data_type_of, decode, element_type, pack_elements
from .external_data import ExternalFolder, ExternalSource, source_array, tensor_nbytes
from .file_reading import open_in_order, shorter_file
from .mapped_copies import copy_mapped
from .model_files import UnbufferedFile, write_all
from .tensor_sites import describe_tensor, is_external
from .writing.write_back import WRITTEN, NewFile

#: Bytes the system copies at a time.
CHUNK = 1 << 24
_NO_COPY_RANGE = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF)


@runtime_checkable
class TensorSource(Protocol):
    """Interface of the content of one tensor, read only when it is needed."""

    data_type: int
    dims: tuple[int, ...]

    def key(self) -> Hashable:
        """Key of the content, two sources with the same key have the same bytes (tied tensors)."""

    def paths(self) -> set[str]:
        """Files the content is read from."""

    def array(self) -> np.ndarray:
        """The content, of shape ``dims``, without a copy when it is possible."""

    def write(self, file: UnbufferedFile) -> None:
        """Writes the content at the current position of a file, a chunk at a time."""


def make_source(
    value: Any,
    base_dir: str | os.PathLike[str] | None = None,
    allowed_roots: Iterable[str | os.PathLike[str]] = (),
) -> TensorSource:
    """The source of a numpy array, a torch tensor, a TensorProto or another source.

    :param value: the content; nothing is copied, it should not be modified afterwards
    :param base_dir: folder of the data when *value* is an external TensorProto
    :param allowed_roots: see :class:`xbuilder.files.external_data.ExternalFolder`
    :raises InvalidModelError: if the type is not supported
    :raises ExternalDataError: if *value* is external and cannot be trusted
    """
    if isinstance(value, np.ndarray | np.generic):
        return ArraySource(np.asarray(value))
    if isinstance(value, TensorProto):
        if is_external(value):
            return FileSource(value, ExternalFolder(base_dir, allowed_roots).locate(value))
        return ProtoSource(value)
    if isinstance(value, TensorSource):
        return value
    if hasattr(value, "detach") and hasattr(value, "data_ptr"):
        return TorchSource(value)
    if hasattr(value, "numpy"):
        return ArraySource(np.asarray(value.numpy()))
    raise InvalidModelError(
        "Expected a numpy array, a torch tensor or a TensorProto as the content of a tensor, "
        f"found {type(value)}."
    )


def _write_array(array: np.ndarray, data_type: int, file: UnbufferedFile) -> None:
    if element_type(data_type).bits < 8:
        write_all(file, pack_elements(np.ascontiguousarray(array), data_type))
    elif array.flags.c_contiguous:
        write_all(file, array.reshape(-1).view(np.uint8))
    else:
        rows = max(1, CHUNK * len(array) // max(array.nbytes, 1))
        for start in range(0, len(array), rows):
            block = np.ascontiguousarray(array[start : start + rows])
            write_all(file, block.reshape(-1).view(np.uint8))


class ArraySource:
    """A numpy array, whose type may come from ml_dtypes."""

    def __init__(self, value: np.ndarray):
        self.data_type = data_type_of(value.dtype.name)
        self.dims = value.shape
        if not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
        self.value = value

    def key(self) -> Hashable:
        """See :class:`TensorSource`."""
        return ("memory", *_memory_key(self.value), self.data_type)

    def paths(self) -> set[str]:
        """See :class:`TensorSource`."""
        return set()

    def array(self) -> np.ndarray:
        """See :class:`TensorSource`."""
        return self.value

    def write(self, file: UnbufferedFile) -> None:
        """See :class:`TensorSource`."""
        _write_array(self.value, self.data_type, file)


def _memory_key(array: np.ndarray) -> tuple[Any, ...]:
    pointer = array.__array_interface__["data"][0]
    layout = array.nbytes if array.flags.c_contiguous else (array.shape, array.strides)
    return pointer, layout


class TorchSource:
    """A torch tensor. Torch itself is not imported, the tensor only has to behave as one."""

    def __init__(self, value: Any):
        self.data_type = data_type_of(str(value.dtype))
        self.dims = tuple(int(d) for d in value.shape)
        self.value = value

    def key(self) -> Hashable:
        """See :class:`TensorSource`."""
        value = self.value
        try:
            lazy = tuple(bool(getattr(value, name, bool)()) for name in ("is_conj", "is_neg"))
            where = (str(value.device), value.data_ptr(), tuple(value.stride()))
        except RuntimeError as e:
            raise self._no_content(e) from e
        return ("torch", *where, lazy, self.dims, self.data_type)

    def _no_content(self, error: Exception) -> InvalidModelError:
        return InvalidModelError(
            f"A torch tensor ({self.value.dtype}, {self.dims}) has no content to read: {error}."
        )

    def paths(self) -> set[str]:
        """See :class:`TensorSource`."""
        return set()

    def array(self) -> np.ndarray:
        """See :class:`TensorSource`. A tensor on another device is copied."""
        value: Any = self.value.detach()
        try:
            for name in ("cpu", "resolve_conj", "resolve_neg"):
                value = getattr(value, name)() if hasattr(value, name) else value
            try:
                found: np.ndarray = value.numpy()
                return found
            except TypeError:
                # no numpy equivalent: the bytes are read through uint8, a type every tensor has
                as_bytes = value.contiguous().reshape(-1).view(value.new_empty(0).byte().dtype)
                found = as_bytes.numpy().view(element_type(self.data_type).dtype)
                return found.reshape(self.dims)
        except (RuntimeError, TypeError) as e:
            raise self._no_content(e) from e

    def write(self, file: UnbufferedFile) -> None:
        """See :class:`TensorSource`."""
        _write_array(self.array(), self.data_type, file)


class ProtoSource:
    """A TensorProto that holds its own content."""

    def __init__(self, value: TensorProto):
        self.data_type = value.data_type
        self.dims = tuple(value.dims)
        self.value = value

    def key(self) -> Hashable:
        """See :class:`TensorSource`. The proto is alive as long as this source."""
        return ("proto", id(self.value))

    def _bytes(self) -> bytes | np.ndarray:
        data: bytes | np.ndarray
        if self.value.HasField("raw_data"):
            data = self.value.raw_data
        else:
            try:
                array = onnx.numpy_helper.to_array(self.value)
            except (ValueError, TypeError) as e:
                raise InvalidModelError(
                    f"The content of {describe_tensor(self.value)} does not match its type and "
                    f"its dimensions {self.dims}: {e}."
                ) from e
            if element_type(self.data_type).bits < 8:
                data = pack_elements(np.ascontiguousarray(array), self.data_type)
            else:
                data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        expected = tensor_nbytes(self.value)
        if len(data) != expected:
            raise InvalidModelError(
                f"The content of {describe_tensor(self.value)} has {len(data)} bytes, its type "
                f"and its dimensions {self.dims} need {expected}."
            )
        return data

    def paths(self) -> set[str]:
        """See :class:`TensorSource`."""
        return set()

    def array(self) -> np.ndarray:
        """See :class:`TensorSource`."""
        data = np.frombuffer(self._bytes(), dtype=np.uint8)
        return decode(data, self.data_type, self.dims)

    def write(self, file: UnbufferedFile) -> None:
        """See :class:`TensorSource`."""
        write_all(file, self._bytes())


class FileSource:
    """Checked bytes of a data file, which are copied from file to file.

    :param tensor: the external tensor, only its type and its dimensions are kept
    :param source: what :meth:`xbuilder.files.external_data.ExternalFolder.locate` returned
    """

    def __init__(self, tensor: TensorProto, source: ExternalSource):
        self.data_type = tensor.data_type
        self.dims = tuple(tensor.dims)
        self.source = source

    def key(self) -> Hashable:
        """See :class:`TensorSource`."""
        source = self.source
        return ("file", source.identity, source.offset, source.nbytes)

    def paths(self) -> set[str]:
        """See :class:`TensorSource`."""
        return {self.source.path}

    def array(self) -> np.ndarray:
        """See :class:`TensorSource`. The array is a read-only memory map."""
        return source_array(TensorProto(data_type=self.data_type, dims=self.dims), self.source)

    def write(self, file: UnbufferedFile) -> None:
        """See :class:`TensorSource`."""
        fd = open_in_order(self.source)
        try:
            copy_bytes(fd, self.source.offset, file, self.source.nbytes)
        finally:
            os.close(fd)


def copy_bytes(fd: int, offset: int, file: UnbufferedFile, count: int) -> None:
    """Copies a range of a file to the current position of another one.

    The disk does it where it can, see :func:`.mapped_copies.copy_mapped`, or the system (no byte
    passes through this process); otherwise the range is read and written in short pieces.

    :param fd: descriptor of the source
    :param offset: first byte to copy
    :param file: where to write
    :param count: number of bytes
    :raises ExternalDataError: if the source is too short
    """
    if isinstance(file, NewFile) and hasattr(os, "pwrite"):
        done = copy_mapped(fd, offset, file, count)
        offset, count = offset + done, count - done
    system_copy = getattr(os, "copy_file_range", None)
    while count > 0:
        size = min(count, CHUNK)
        done = 0
        if system_copy is not None:
            try:
                done = system_copy(fd, file.fileno(), size, offset)
            except OSError as e:
                if e.errno not in _NO_COPY_RANGE:
                    raise
            # zero is also what some file systems answer when they do not support the call
            if done == 0:
                system_copy = None
                continue
            if isinstance(file, NewFile):
                file.advance(done)
        else:
            os.lseek(fd, offset, os.SEEK_SET)
            data = os.read(fd, min(size, WRITTEN))
            write_all(file, data)
            done = len(data)
        if done == 0:
            raise shorter_file()
        offset += done
        count -= done


def embed(tensor: TensorProto, source: TensorSource) -> None:
    """Puts the content of a source in a tensor, as ``raw_data``.

    :param tensor: the tensor, its name and its other fields are kept
    :param source: the content
    """
    buffer = _MemoryFile()
    source.write(buffer)
    clear_content(tensor)
    tensor.data_type = source.data_type
    tensor.dims[:] = source.dims
    tensor.raw_data = buffer.getvalue()


class _MemoryFile(io.BytesIO):
    """A file in memory which a system call cannot reach, so that chunks are copied."""

    def fileno(self) -> int:
        """Raises the error of an object that is not a file."""
        raise OSError(errno.EBADF, "no descriptor")


_CONTENT_FIELDS = (
    "raw_data",
    "float_data",
    "int32_data",
    "int64_data",
    "string_data",
    "double_data",
    "uint64_data",
    "external_data",
    "data_location",
    "segment",
)


def clear_content(tensor: TensorProto) -> None:
    """Removes the content of a tensor, embedded or external. Keeps name, type and dimensions."""
    for name in _CONTENT_FIELDS:
        tensor.ClearField(name)
