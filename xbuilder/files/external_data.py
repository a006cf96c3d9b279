"""External data of tensors: checks, location, and reading over a memory map.

A model may come from a stranger. A tensor stored outside of it is read only when its file is a
regular file below the model's folder (symbolic links resolved) or below a root the caller allows,
and when its offset and its length agree with the file, the type and the dimensions. Anything
unknown or ambiguous is refused.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, TensorProto

from ..errors import ExternalDataError, InvalidModelError
from ..tensors.bits import decode, storage_size
from .tensor_sites import describe_tensor, is_external, iter_tensor_sites
from .writing.temporary_files import is_being_replaced

#: Location prefix of tensors held in memory, by this project and by onnxruntime; never a file.
IN_MEMORY_PREFIX = "*/"
_KEYS = {"location", "offset", "length"}
_IGNORED_KEYS = {"checksum", "basepath"}
_IGNORED_KEY_PREFIX = "prepacked_"  # written by onnxruntime next to the three keys of ONNX
_INTEGER = re.compile("[0-9]{1,19}")
_MAX_RANK = 64  # numpy's limit
_MAPS: WeakValueDictionary[tuple[int, int, int, int], mmap.mmap] = WeakValueDictionary()
# the longest vectors of integers that may be shapes or axes
_SMALL: dict[int, int] = {TensorProto.INT64: 64, TensorProto.INT32: 64}


class ExternalReference(NamedTuple):
    """The content of ``TensorProto.external_data``; *length* is None when it is not written.

    Example::

        >>> tensor = TensorProto(name="w", data_location=TensorProto.EXTERNAL)
        >>> entry = tensor.external_data.add(key="location", value="weights.bin")
        >>> parse_external_reference(tensor)
        ExternalReference(location='weights.bin', offset=0, length=None)
    """

    location: str
    offset: int = 0
    length: int | None = None


class ExternalSource(NamedTuple):
    """Checked bytes of a file: real path, range, and the identity the file had when checked."""

    path: str
    offset: int
    nbytes: int
    identity: tuple[int, int, int, int]

    def open(self) -> int:
        """Opens the file for reading, and returns its descriptor.

        :raises ExternalDataError: if the file is not the one that was checked
        """
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            fd = os.open(self.path, flags | getattr(os, "O_NONBLOCK", 0))
        except OSError as e:
            raise ExternalDataError(f"The data file {self.path!r} cannot be read: {e}.") from e
        if file_identity(os.fstat(fd)) != self.identity:
            os.close(fd)
            raise ExternalDataError(
                f"The data file {self.path!r} changed since the model was loaded: "
                "load the model again."
            )
        return fd

    def map_bytes(self) -> np.ndarray:
        """Maps the bytes as a read-only array of uint8, without a copy."""
        if self.nbytes == 0:
            return np.frombuffer(b"", dtype=np.uint8)
        mapped = _MAPS.get(self.identity)
        if mapped is None:
            # the map keeps its own descriptor where Python has no way to avoid it, hence one
            # map per file and not one per tensor
            options = {"trackfd": False} if sys.version_info >= (3, 13) else {}
            fd = self.open()
            try:
                mapped = mmap.mmap(fd, 0, access=mmap.ACCESS_READ, **options)
            finally:
                os.close(fd)
            _MAPS[self.identity] = mapped
        return np.frombuffer(mapped, dtype=np.uint8, count=self.nbytes, offset=self.offset)


def file_identity(status: os.stat_result) -> tuple[int, int, int, int]:
    """The identity of a file and of its content: device, inode, size, time."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def tensor_nbytes(tensor: TensorProto) -> int:
    """Number of bytes of the content of a tensor, from its type and dimensions.

    :param tensor: any tensor but a tensor of strings, its content is not read
    :raises InvalidModelError: if the type or the dimensions are not possible
    """
    dims = tuple(tensor.dims)
    if len(dims) > _MAX_RANK or any(d < 0 for d in dims):
        raise InvalidModelError(
            f"The dimensions of {describe_tensor(tensor)} are expected to be non-negative and at "
            f"most {_MAX_RANK}, found {dims[:8]}{'...' if len(dims) > 8 else ''}."
        )
    return storage_size(tensor.data_type, math.prod(dims))


def parse_external_reference(tensor: TensorProto) -> ExternalReference:
    """Reads ``external_data`` strictly: no duplicated or unknown key, plain decimal integers.

    The keys ``checksum`` and ``basepath`` of ONNX and ``prepacked_*`` of onnxruntime are ignored.

    :param tensor: an external tensor
    :raises ExternalDataError: if anything is not as expected
    """
    what = describe_tensor(tensor)
    values: dict[str, str] = {}
    for entry in tensor.external_data:
        key = entry.key
        if key in values:
            raise ExternalDataError(f"Key {key!r} of external_data of {what} is duplicated.")
        known = key in _KEYS or key in _IGNORED_KEYS
        if not known and not str(key).startswith(_IGNORED_KEY_PREFIX):
            raise ExternalDataError(
                f"Key {key!r} of external_data of {what} is unknown, expected {sorted(_KEYS)}."
            )
        values[key] = entry.value
    if "location" not in values:
        raise ExternalDataError(f"The external_data of {what} has no location.")
    location = values["location"]
    check_location(location, what)
    offset = _parse_integer(values.get("offset", "0"), "offset", what)
    length = values.get("length")
    return ExternalReference(
        location, offset, None if length is None else _parse_integer(length, "length", what)
    )


def _parse_integer(text: str, key: str, what: str) -> int:
    if not isinstance(text, str) or not _INTEGER.fullmatch(text):
        raise ExternalDataError(
            f"The {key} of the external data of {what} is expected to be a non-negative integer, "
            f"found {text[:40]!r}."
        )
    return int(text)


def check_location(location: str, what: str) -> None:
    """Checks that a location is a relative path which cannot leave a folder by itself.

    Paths of every system are recognised whatever the current one is.

    :param location: the path written in the model
    :param what: the tensor, in words
    :raises ExternalDataError: if it is absolute, empty or goes up

    Example::

        >>> check_location("weights/w.bin", "tensor 'w'")
        >>> check_location("/etc/passwd", "tensor 'w'")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        ExternalDataError: The location of the data of tensor 'w' is expected to be relative...
    """
    if not isinstance(location, str) or not location or "\0" in location:
        raise ExternalDataError(f"The location of the data of {what} is not a path: {location!r}.")
    if location.startswith(IN_MEMORY_PREFIX):
        raise ExternalDataError(
            f"The data of {what} was in memory when the model was saved ({location!r}): the data "
            "is lost, save the model again from its container."
        )
    if location[0] in "/\\" or re.match("[A-Za-z]:", location):
        raise ExternalDataError(
            f"The location of the data of {what} is expected to be relative to the model's folder, "
            f"found {location!r}. Move the file next to the model."
        )
    if ".." in re.split(r"[/\\]", location):
        raise ExternalDataError(
            f"The location of the data of {what} leaves the model's folder: {location!r}. "
            "Move the file next to the model."
        )


class ExternalFolder:
    """The folder of a model and the roots its data may come from.

    Invariant: :meth:`locate` never returns a file out of :attr:`roots`. The cache of Hugging Face
    keeps ``snapshots/<revision>/...`` as links to ``blobs``: that folder is a root when *base_dir*
    is in such a snapshot.

    :param base_dir: the folder of the model
    :param allowed_roots: other folders the targets of symbolic links may be in; hard links are
        accepted there as well
    :raises ExternalDataError: if *base_dir* is unknown or is not a folder

    Example::

        folder = ExternalFolder("models/llm")
        source = folder.locate(model.graph.initializer[0])
    """

    def __init__(
        self,
        base_dir: str | os.PathLike[str] | None,
        allowed_roots: Iterable[str | os.PathLike[str]] = (),
    ):
        text = os.fspath(base_dir) if base_dir is not None else ""
        if not text:
            raise ExternalDataError(
                "The model has external data and its folder is unknown: give base_dir, or load "
                "the model from its path."
            )
        if not os.path.isdir(text):
            raise ExternalDataError(f"The folder of the model does not exist: {text!r}.")
        if isinstance(allowed_roots, str | os.PathLike):
            allowed_roots = (allowed_roots,)
        self.base_dir = os.path.realpath(text)
        self.allowed = tuple(os.path.realpath(root) for root in allowed_roots)
        self.roots = (self.base_dir, *_hugging_face_blobs(self.base_dir), *self.allowed)

    def locate(self, tensor: TensorProto) -> ExternalSource:
        """Checks the reference of an external tensor and returns the bytes it designates.

        Nothing is read but the status of the file.

        :param tensor: an external tensor
        :raises ExternalDataError: if the file is missing, out of reach or too short, if the
            offset or the length are wrong
        """
        what = describe_tensor(tensor)
        if not is_external(tensor):
            raise ExternalDataError(f"Expected external data, {what} is stored in the model.")
        reference = parse_external_reference(tensor)
        nbytes = tensor_nbytes(tensor)
        path, status = self._find(reference.location, what)
        if reference.length not in (None, nbytes):
            raise ExternalDataError(
                f"The length of the external data of {what} is {reference.length} bytes, its type "
                f"and its dimensions {tuple(tensor.dims)} need {nbytes}."
            )
        if reference.offset + nbytes > status.st_size:
            raise ExternalDataError(
                f"The data of {what} is expected at bytes {reference.offset} to "
                f"{reference.offset + nbytes} of {path!r} which has {status.st_size} bytes: the "
                "file is truncated or belongs to another model. Copy or download it again."
            )
        return ExternalSource(path, reference.offset, nbytes, file_identity(status))

    def _find(self, location: str, what: str) -> tuple[str, os.stat_result]:
        link = os.path.join(self.base_dir, location)
        path = os.path.realpath(link)
        if not any(_is_below(path, root) for root in self.roots):
            raise ExternalDataError(
                f"The file {location!r} with the data of {what} is a link to {path!r}, out of the "
                f"model's folder {self.base_dir!r}. Copy it there, or give its folder in "
                "allowed_roots if you trust the model."
            )
        try:
            status = os.stat(path, follow_symlinks=False)
        except (OSError, ValueError) as e:
            raise ExternalDataError(
                f"The file {link!r} with the data of {what} cannot be found ({e}). Put it next to "
                "the model; both come from the same place."
            ) from e
        if not stat.S_ISREG(status.st_mode):
            raise ExternalDataError(f"{link!r}, with the data of {what}, is not a regular file.")
        # a hard link gives a stranger's name to a file from anywhere on the disk
        if (
            status.st_nlink > 1
            and not any(_is_below(path, root) for root in self.allowed)
            and not is_being_replaced(path, status)
        ):
            raise ExternalDataError(
                f"The file {link!r} with the data of {what} has several hard links. Copy it, or "
                "give its folder in allowed_roots if you trust the model."
            )
        return path, status


def _is_below(path: str, root: str) -> bool:
    try:
        return path != root and os.path.commonpath((path, root)) == root
    except ValueError:  # two drives
        return False


def _hugging_face_blobs(base_dir: str) -> tuple[str, ...]:
    parts = Path(base_dir).parts
    for i in range(len(parts) - 2, 0, -1):
        if parts[i] == "snapshots":
            blobs = os.path.join(*parts[:i], "blobs")
            # a link named blobs could lead anywhere
            if os.path.isdir(blobs) and os.path.realpath(blobs) == blobs:
                return (blobs,)
    return ()


def check_external_data(
    model: ModelProto | GraphProto | FunctionProto,
    base_dir: str | os.PathLike[str] | None,
    allowed_roots: Iterable[str | os.PathLike[str]] = (),
) -> int:
    """Checks every external tensor of a model, without reading any content.

    :param model: the model, the graph or the function; it is not modified
    :param base_dir: its folder, anything empty is refused when a tensor is external
    :param allowed_roots: see :class:`ExternalFolder`
    :return: the number of external tensors
    :raises ExternalDataError: at the first tensor which cannot be trusted or found

    Example::

        check_external_data(onnx.load("m/model.onnx", load_external_data=False), "m")
    """
    folder: ExternalFolder | None = None
    count = 0
    for site in iter_tensor_sites(model):
        if is_external(site.tensor):
            folder = folder or ExternalFolder(base_dir, allowed_roots)
            try:
                folder.locate(site.tensor)
            except InvalidModelError as e:
                if site.node is None:
                    raise
                raise ExternalDataError(f"{e} Found in {site.describe()}.") from e
            count += 1
    return count


def external_array(
    tensor: TensorProto,
    base_dir: str | os.PathLike[str] | None,
    allowed_roots: Iterable[str | os.PathLike[str]] = (),
) -> np.ndarray:
    """Maps the content of an external tensor, read-only.

    Nothing is copied, except for types of less than one byte which are unpacked. The map remains
    valid when the file is replaced (not when it is truncated in place).

    :param tensor: an external tensor
    :param base_dir: the folder of the model
    :param allowed_roots: see :class:`ExternalFolder`
    :return: an array of the shape of the tensor; its type comes from ``ml_dtypes`` when numpy has
        no equivalent
    :raises ExternalDataError: see :meth:`ExternalFolder.locate`
    """
    return source_array(tensor, ExternalFolder(base_dir, allowed_roots).locate(tensor))


def source_array(tensor: TensorProto, source: ExternalSource) -> np.ndarray:
    """Maps the checked bytes of a tensor as an array, see :func:`external_array`."""
    return decode(source.map_bytes(), tensor.data_type, tuple(tensor.dims))


def may_be_a_shape(tensor: TensorProto) -> bool:
    """Whether a tensor may be a shape or axes. It is kept in the proto, since onnx infers shapes
    before it reads files.

    >>> may_be_a_shape(TensorProto(data_type=TensorProto.INT64, dims=[4]))
    True
    >>> may_be_a_shape(TensorProto(data_type=TensorProto.FLOAT, dims=[64, 64]))
    False
    """
    limit = _SMALL.get(tensor.data_type, 0)
    return len(tensor.dims) < 2 and all(dim <= limit for dim in tensor.dims)
