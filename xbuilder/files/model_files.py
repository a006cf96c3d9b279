"""Reads models without reading their external data, and writes files atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol

import numpy as np
from google.protobuf.message import DecodeError
from onnx import ModelProto

from ..errors import InvalidModelError
from ..support.argument_types import PATH, check_type
from ..tensors.checks import check_content
from .external_data import check_external_data
from .model_formats import format_of, parse_text
from .name_checks import wrong_names
from .tensor_sites import iter_tensor_sites
from .writing.temporary_files import TemporaryFiles, own, temporary_name
from .writing.write_back import WRITTEN, NewFile

#: A protobuf message cannot be longer than this.
MAX_PROTO_BYTES = 2**31 - 1
_MODELS = (".onnx", ".onnxtxt", ".onnxjson")
_FIRST_IR_WITH_OPSET = 3  # first ir_version where opset_import is mandatory
_MAX_VERSION = 2**20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_SIGNATURES = (
    (0, b"PK\x03\x04", "a zip archive (a torch checkpoint, a numpy npz or a packaged model)"),
    (0, b"\x80\x02", "a pickle (a torch checkpoint), which is never opened"),
    (0, b"\x80\x04", "a pickle, which is never opened"),
    (0, b"\x80\x05", "a pickle, which is never opened"),
    (0, b"\x89PNG", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"%PDF", "a PDF document"),
    (0, b"\x1f\x8b", "a gzip archive: decompress it first"),
    (0, b"\x89HDF", "an HDF5 file (a Keras model)"),
    (0, b"GGUF", "a GGUF model"),
    (0, b"\x93NUMPY", "a numpy array"),
    (0, b"version https://git-lfs", "a Git LFS pointer: run 'git lfs pull' to get the model"),
    (4, b"ORTM", "a model in onnxruntime's own format: use the ONNX file it was made from"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (8, b'{"', "a safetensors file"),
)


class LoadedModel(NamedTuple):
    """A model read from a file, without the content of its external tensors.

    :param proto: the model
    :param base_dir: absolute folder external data is relative to
    :param path: absolute path of the file
    :param allowed_roots: the other folders the caller trusts, see
        :class:`xbuilder.files.external_data.ExternalFolder`

    Example::

        >>> import onnx, tempfile
        >>> from xoptim.testing import model_from_text
        >>> model = model_from_text("agraph (float[n] x) => (float[n] y) { y = Abs(x) }")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     onnx.save(model, f"{folder}/model.onnx")
        ...     loaded = load_model(f"{folder}/model.onnx")
        >>> loaded.proto == model, os.path.basename(loaded.path)
        (True, 'model.onnx')
    """

    proto: ModelProto
    base_dir: str
    path: str
    allowed_roots: tuple[str, ...] = ()


def load_model(
    path: str | os.PathLike[str],
    allowed_roots: Iterable[str | os.PathLike[str]] = (),
    check_data: bool = True,
) -> LoadedModel:
    """Reads a model, leaving its external data where it is.

    :param path: an ONNX file; its extension says whether it is text, ``.onnxtxt``,
        ``.onnxjson``..., see :data:`xbuilder.files.model_formats.EXTENSIONS`
    :param allowed_roots: see :class:`xbuilder.files.external_data.ExternalFolder`
    :param check_data: checks that external data is present and may be read (it is not read), and
        the size of the content of the other tensors; False reads the structure of a model
        whose data is not there
    :raises InvalidModelError: if the file is missing, damaged, or not an ONNX model
    :raises ExternalDataError: if the data of a tensor is missing or out of reach

    Example::

        loaded = load_model("model.onnx")
        print(loaded.proto.opset_import, loaded.base_dir)
    """
    check_type("path", path, PATH, "the path of a model")
    path = os.path.abspath(os.fspath(path))
    if isinstance(allowed_roots, str | os.PathLike):
        allowed_roots = (allowed_roots,)
    roots = tuple(os.path.abspath(os.fspath(root)) for root in allowed_roots)
    content = _read_content(path)
    if format_of(path) == "binary":
        proto = _parse_binary(content, path)
    else:
        proto = parse_text(content, path)
        check_plausible(proto, path)
    base_dir = os.path.dirname(path)
    del content  # a check that reads a tensor does not add to the peak of memory
    if check_data:
        check_external_data(proto, base_dir, roots)
        for site in iter_tensor_sites(proto):
            nameless = "" if site.tensor.name else f" in {path!r}"
            check_content(site.tensor, site.describe_node() or nameless)
    return LoadedModel(proto, base_dir, path, roots)


def _read_content(path: str) -> bytes:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as e:
        raise InvalidModelError(f"Expected an ONNX model, cannot find {path!r}: {e}.") from e
    if stat.S_ISDIR(status.st_mode):
        raise InvalidModelError(f"Expected an ONNX model, {path!r} is a folder{_hint(path)}.")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidModelError(f"Expected an ONNX model, {path!r} is not a regular file.")
    if status.st_size == 0:
        raise InvalidModelError(f"The file {path!r} is empty: download or export it again.")
    if status.st_size > MAX_PROTO_BYTES:
        raise InvalidModelError(
            f"The file {path!r} has {status.st_size} bytes, protobuf stops at {MAX_PROTO_BYTES}. "
            "Is it a data file? Open the .onnx file next to it, or export the model with external "
            "data."
        )
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError as e:
        raise InvalidModelError(f"The file {path!r} cannot be read: {e}.") from e


def _hint(folder: str) -> str:
    with contextlib.suppress(OSError):
        names = sorted(n for n in os.listdir(folder) if os.path.splitext(n)[1] in _MODELS)
        if names:
            return f"; did you mean {', '.join(names[:3])}?"
    return ""


def _not_onnx(path: str, content: bytes, reason: str) -> InvalidModelError:
    found = next((w for start, mark, w in _SIGNATURES if content[start:].startswith(mark)), None)
    if found is None and re.fullmatch(rb"[\t\n\r\f\x20-\x7e]+", content[:200]):
        found = "a text file (a model in ONNX text format must be named .onnxtxt)"
    if found:
        return InvalidModelError(f"Expected an ONNX model, {path!r} looks like {found}.")
    return InvalidModelError(
        f"Expected an ONNX model, {path!r} is not one or is truncated: {reason}. "
        "Download or export it again."
    )


def _parse_binary(content: bytes, path: str) -> ModelProto:
    proto = ModelProto()
    try:
        proto.ParseFromString(content)
    except (DecodeError, RuntimeError) as e:
        raise _not_onnx(path, content, str(e)) from e
    reason = _why_not_a_model(proto)
    if reason:
        raise _not_onnx(path, content, reason)
    return proto


def check_plausible(proto: ModelProto, path: str) -> None:
    """Checks that a proto is a model, and not bytes that happen to parse as one.

    It is no full check: unknown operators, missing types and shapes are accepted.

    :param proto: the model
    :param path: its file, to be named in the message
    :raises InvalidModelError: if a part every ONNX model has is missing
    """
    reason = _why_not_a_model(proto)
    if reason:
        raise InvalidModelError(f"{path!r} is not a valid ONNX model: {reason}.")


def _why_not_a_model(proto: ModelProto) -> str:
    """The reason why a proto is not a model, an empty string if it may be one."""
    if not proto.HasField("graph"):
        return "it has no graph"
    if not 0 < proto.ir_version < _MAX_VERSION:
        return f"its ir_version is {proto.ir_version}"
    if not proto.opset_import and proto.ir_version >= _FIRST_IR_WITH_OPSET:
        return "it imports no opset"
    for opset in proto.opset_import:
        if not isinstance(opset.domain, str) or not 0 < opset.version < _MAX_VERSION:
            return f"it imports version {opset.version} of domain {opset.domain!r}"
    if not proto.graph.output:
        return "its graph has no output"
    for value in (*proto.graph.input, *proto.graph.output):
        if not value.name:
            return "an input or an output of its graph has no name"
    return wrong_names(proto)


def _is_disk_full(error: OSError) -> bool:
    # one that names a file comes from another transaction, inside this one
    return error.errno in _FULL and error.filename is None


@dataclass(slots=True)
class _PendingFile:
    target: str
    temporary: str
    file: NewFile
    backup: str = ""
    kept: int = -1  #: descriptor which holds the lock of the backup
    link: str = ""
    replaced: bool = False


class FileTransaction:
    """Writes one or several files of a folder: all of them, or none.

    Files are written under temporary names in the folder, flushed to the disk, then renamed in
    the order of their creation. On any failure, no temporary file is left and files with the same
    names are unchanged. A link is replaced by a file, its target is not written. The temporary
    files a killed process left for the same files are removed.

    If the process is killed in between, a file that refers to others (a model and its data) must
    refer to those it was written with: :meth:`create_bridge`.

    :param folder: an existing folder
    :param main: name of the file that refers to the others, None if there is none
    :param size: bytes to write, so that an error reports missing room, 0 if it is unknown

    Example::

        with FileTransaction("models") as files:
            files.create("model.onnx.data").write(data)
            files.create("model.onnx").write(proto.SerializeToString())
    """

    def __init__(self, folder: str | os.PathLike[str], main: str | None = None, size: int = 0):
        self.folder = os.path.realpath(os.fspath(folder))
        os.makedirs(self.folder, exist_ok=True)
        self._main, self._size = main, size
        self._temporary = TemporaryFiles(self.folder)
        self._files: list[_PendingFile] = []
        self._bridge: _PendingFile | None = None

    def create(self, name: str) -> NewFile:
        """Creates an unbuffered file, which becomes *name* when the transaction ends.

        Use :func:`write_all` to write in it.
        """
        if os.path.basename(name) != name or name in ("", ".", ".."):
            raise ValueError(f"Expected the name of a file, found {name!r}.")
        target = os.path.join(self.folder, name)
        if os.path.isdir(target):
            raise IsADirectoryError(f"A folder is named {target!r}, choose another name.")
        self._temporary.remove(name, self._main or name)
        pending = self._open(name, target)
        self._files.append(pending)
        return pending.file

    def create_bridge(self, name: str) -> NewFile:
        """Creates a file that is *name* while the other files are being replaced.

        It refers to them by the names of :meth:`replacements`, *name* is created after them.
        """
        self._bridge = self._open(name, os.path.join(self.folder, name))
        return self._bridge.file

    def replacements(self, name: str) -> dict[str, str]:
        """The existing files that will be replaced before *name* is, with the temporary names of
        the new ones; nothing if *name* does not exist."""
        if not os.path.lexists(os.path.join(self.folder, name)):
            return {}
        names = {os.path.basename(p.target): os.path.basename(p.temporary) for p in self._files}
        return {
            target: temporary
            for target, temporary in names.items()
            if target != name and os.path.lexists(os.path.join(self.folder, target))
        }

    def _open(self, name: str, target: str) -> _PendingFile:
        temporary = os.path.join(self.folder, temporary_name(name))
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            file = NewFile(os.open(temporary, flags, 0o666), "r+")
        except OSError as e:  # the name of the temporary file means nothing to the user
            reason = f"{name!r} cannot be written in this folder: {e.strerror}"
            raise OSError(e.errno, reason, self.folder) from e
        own(file.fileno())
        if os.path.isfile(target):
            with contextlib.suppress(OSError):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        return _PendingFile(target, temporary, file)

    def __enter__(self) -> FileTransaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._commit()
        except OSError as e:
            error = e
            raise
        finally:
            self._discard()
            if self._files and isinstance(error, OSError) and _is_disk_full(error):
                raise self._no_space(error) from error
        for pending in self._files if error is None else ():
            # once more: a model that referred to some of them was replaced
            name = os.path.basename(pending.target)
            self._temporary.remove(name, self._main or name)

    def _discard(self) -> None:
        """Removes the temporary files."""
        for pending in (*self._files, *filter(None, [self._bridge])):
            for path in (pending.temporary, pending.backup, pending.link):
                with contextlib.suppress(OSError):
                    if path:
                        os.unlink(path)
            with contextlib.suppress(OSError):
                pending.file.close()
            with contextlib.suppress(OSError):
                if pending.kept >= 0:
                    os.close(pending.kept)

    def _no_space(self, error: OSError) -> OSError:
        target = self._files[-1].target
        if self._main is not None:
            target = os.path.join(self.folder, self._main)
        reason = os.strerror(error.errno or errno.ENOSPC)
        needed = f"{self._size} bytes are needed, " if self._size else ""
        free = shutil.disk_usage(self.folder).free
        return OSError(error.errno, f"{reason}, {needed}{free} are free", target)

    def _commit(self) -> None:
        files = (*self._files, *filter(None, [self._bridge]))
        for pending in files:
            pending.file.start()
        for pending in files:
            os.fsync(pending.file.fileno())
            if sys.platform == "win32":  # elsewhere the file is open, hence owned, until the end
                pending.file.close()
        bridged = False
        try:
            bridged = self._cross()
            for pending in self._files:
                self._put(pending)
        except BaseException:
            for pending in self._files if bridged else reversed(self._files):
                if pending.backup:
                    os.replace(pending.backup, pending.target)
                elif pending.replaced:
                    os.unlink(pending.target)
            raise
        self._synchronize()

    def _cross(self) -> bool:
        """Puts the bridge in place, so that no model refers to the other files while they change.

        :return: False without a bridge, or where a file cannot have two names
        """
        if self._bridge is None:
            return False
        *data, last = self._files
        try:
            for pending in data:
                link = self._temporary_path(pending)
                os.link(pending.temporary, link)
                pending.link = link
        except (OSError, NotImplementedError):
            for pending in data:
                if pending.link:
                    os.unlink(pending.link)
                pending.link = ""
            return False
        self._keep(last)
        os.replace(self._bridge.temporary, self._bridge.target)
        last.replaced = True
        return True

    def _put(self, pending: _PendingFile) -> None:
        if len(self._files) > 1 and not pending.backup and os.path.lexists(pending.target):
            self._keep(pending)
        os.replace(pending.link or pending.temporary, pending.target)
        pending.replaced = True

    def _synchronize(self) -> None:
        with contextlib.suppress(OSError):  # some systems cannot synchronise a folder
            fd = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _keep(self, pending: _PendingFile) -> None:
        backup = self._temporary_path(pending)
        try:
            os.link(pending.target, backup, follow_symlinks=False)
        except (OSError, NotImplementedError):  # a file system without hard links
            os.replace(pending.target, backup)
        pending.backup = backup
        with contextlib.suppress(OSError):
            if sys.platform != "win32" and not os.path.islink(backup):
                pending.kept = os.open(backup, os.O_RDONLY)
                own(pending.kept)

    def _temporary_path(self, pending: _PendingFile) -> str:
        return os.path.join(self.folder, temporary_name(os.path.basename(pending.target)))


class UnbufferedFile(Protocol):
    """A file that may write fewer bytes than it is given, as the system does."""

    def write(self, data: memoryview, /) -> int:
        """Writes some bytes, and returns how many."""

    def fileno(self) -> int:
        """The descriptor. Raises OSError if there is none."""


def write_all(
    file: UnbufferedFile, data: bytes | memoryview | np.ndarray, chunk: int = WRITTEN
) -> None:
    """Writes bytes in an unbuffered file, in chunks, until the last one."""
    view = memoryview(b"")
    if len(data):
        view = (data.data if isinstance(data, np.ndarray) else memoryview(data)).cast("B")
    while view:
        view = view[file.write(view[:chunk]) :]


def write_file(path: str | os.PathLike[str], content: bytes) -> str:
    """Writes a file atomically. It has the new content, or the previous one if something fails.

    :param path: where to write, its folder is made if there is none
    :param content: the whole content
    :return: the absolute path of the file
    """
    folder, name = os.path.split(os.path.abspath(os.fspath(path)))
    with FileTransaction(folder, name, len(content)) as files:
        write_all(files.create(name), content)
    return os.path.join(files.folder, name)
