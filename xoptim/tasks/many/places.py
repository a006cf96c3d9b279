"""The places of models to read and to write: files, folders, globs, addresses that fsspec reads."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from xbuilder.errors import OptionError
from xbuilder.files.model_files import FileTransaction, load_model, write_all
from xbuilder.files.tensor_sites import iter_external_tensors

#: the models looked for in a folder
_EXTENSION = ".onnx"
#: systems of files that are in the memory of a process
_IN_MEMORY = ("memory://",)


@dataclass(frozen=True)
class Source:
    """A model to read.

    :param path: its file, or its path in a system of files of fsspec
    :param name: where its results go, relative to the output: `encoder/model.onnx`
    :param address: an address in the system of files, empty for this machine's
    """

    path: str
    name: str
    address: str = ""

    def __str__(self) -> str:
        if not self.address:
            return self.path
        return str(file_system(self.address)[0].unstrip_protocol(self.path))


def is_address(text: str) -> bool:
    """Whether a text is an address of fsspec, such as ``s3://bucket/models``."""
    return "://" in text


def in_memory(text: str) -> bool:
    """Whether an address is in the memory of this process, which the others do not see."""
    return text.startswith(_IN_MEMORY)


def file_system(address: str) -> tuple[Any, str]:
    """The system of files of an address, and the path in it.

    :param address: such as `s3://bucket/models`
    :raises OptionError: fsspec or the driver of this address is not installed
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as e:
        raise OptionError(f"{address!r} is an address, fsspec reads it: pip install fsspec.") from e
    try:
        system, path = url_to_fs(address)
    except (ImportError, ValueError) as e:
        raise OptionError(f"{address!r} cannot be read: {e}.") from e
    return system, str(path)


def find_sources(
    texts: Iterable[str | os.PathLike[str]], output: str | os.PathLike[str] = ""
) -> list[Source]:
    """Finds the models that files, folders, globs and addresses name.

    A folder gives its `.onnx` files and those of its folders, except those of the output.

    :param texts: such as `model.onnx`, `models`, `models/**/*.onnx`, `s3://bucket/models`
    :param output: where results are written, empty if they are not
    :raises OptionError: a text names no model, or two models would have the same output
    """
    found: dict[tuple[str, str], Source] = {}
    for text in [os.fspath(t) for t in texts]:
        sources = _at_address(text) if is_address(text) else _on_this_machine(text, output)
        if not sources:
            raise OptionError(
                f"{text!r} has no model: a file, a folder of {_EXTENSION} files, a glob or an "
                "address of fsspec is expected."
            )
        for source in sources:
            found.setdefault((source.address and str(source), source.path), source)
    names: dict[str, Source] = {}
    for source in found.values():
        other = names.setdefault(source.name, source)
        if other is not source and output:
            raise OptionError(
                f"{str(other)!r} and {str(source)!r} would both be written in {source.name!r}: "
                "give the folder of both, or optimize them in two times."
            )
    return list(found.values())


def _on_this_machine(text: str, output: str | os.PathLike[str]) -> list[Source]:
    if os.path.isfile(text):
        return [Source(text, os.path.basename(text))]
    if os.path.isdir(text):
        folder, paths = text, [str(p) for p in Path(text).rglob(f"*{_EXTENSION}")]
    elif not glob.has_magic(text):
        raise OptionError(f"{text!r} does not exist.")
    else:
        folder, paths = _fixed_part(text), glob.glob(text, recursive=True)
    written = "" if is_address(os.fspath(output)) else os.path.realpath(output) if output else ""
    return [
        Source(path, Path(os.path.relpath(path, folder)).as_posix())
        for path in sorted(paths)
        if os.path.isfile(path)
        and not (written and Path(os.path.realpath(path)).is_relative_to(written))
    ]


def _at_address(text: str) -> list[Source]:
    system, path = file_system(text)
    if system.isfile(path):
        return [Source(path, PurePosixPath(path).name, text)]
    if glob.has_magic(path):
        folder, paths = _fixed_part(path), system.glob(path)
    else:
        folder = path
        paths = [p for p in system.find(path) if p.endswith(_EXTENSION)]
    root = PurePosixPath(folder)
    return [
        Source(str(p), str(PurePosixPath(p).relative_to(root)), text)
        for p in sorted(paths)
        if system.isfile(p)
    ]


def _fixed_part(pattern: str) -> str:
    """The folder that a glob starts from."""
    parts = Path(pattern).parts
    magic = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return str(Path(*parts[:magic])) if magic else "."


def local_file(source: Source, folder: Path) -> Path:
    """The file of a model on this machine, copied with its data files if it is elsewhere.

    :param source: the model
    :param folder: where it is copied
    :raises OptionError: the model names a data file that is not in its folder
    """
    if not source.address:
        return Path(source.path)
    system, _ = file_system(source.address)
    path = folder / PurePosixPath(source.path).name
    system.get_file(source.path, str(path))
    for name in data_names(path):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise OptionError(f"{str(source)!r} has weights in {name!r}, out of its folder.")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        system.get_file(str(PurePosixPath(source.path).parent / name), str(folder / name))
    return path


def data_names(path: Path) -> list[str]:
    """The data files that a model names, relative to its folder.

    :param path: its file
    """
    tensors = iter_external_tensors(load_model(path, check_data=False).proto)
    entries = (entry for tensor in tensors for entry in tensor.external_data)
    return list(dict.fromkeys(e.value for e in entries if e.key == "location"))


@dataclass(frozen=True)
class Output:
    """The folder or the address results are written to.

    :param text: `optimized`, `s3://bucket/optimized`
    """

    text: str

    def place(self, name: str, folder: Path) -> Path:
        """The file to write on this machine for a result, in a folder that may not exist.

        :param name: relative name of the result
        :param folder: a temporary folder, for an output that is elsewhere
        """
        return (folder if is_address(self.text) else Path(self.text)) / name

    def shown(self, name: str) -> str:
        """The place of a result, as a user writes it."""
        if is_address(self.text):
            return f"{self.text.rstrip('/')}/{name}"
        return str(Path(self.text) / name)

    def send(self, paths: Sequence[Path], folder: Path) -> None:
        """Copies the files of a result to an output that is elsewhere.

        :param paths: the files, the last one is there once the others are
        :param folder: the temporary folder they are in
        """
        if is_address(self.text):
            system, root = file_system(self.text)
            for path in paths:
                target = f"{root}/{path.relative_to(folder).as_posix()}"
                system.makedirs(str(PurePosixPath(target).parent), exist_ok=True)
                system.put_file(str(path), target)

    def size(self, name: str) -> int:
        """The bytes of a result, -1 if it does not exist."""
        if is_address(self.text):
            system, root = file_system(self.text)
            path = f"{root}/{name}"
            return int(system.size(path)) if system.isfile(path) else -1
        path = os.path.join(self.text, name)
        return os.path.getsize(path) if os.path.isfile(path) else -1

    def read(self, name: str) -> bytes:
        """The content of a file of the output, empty if it does not exist."""
        if self.size(name) < 0:
            return b""
        if is_address(self.text):
            system, root = file_system(self.text)
            return bytes(system.cat_file(f"{root}/{name}"))
        return (Path(self.text) / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Writes a file of the output at once.

        :param name: relative name
        :param content: its content
        """
        if is_address(self.text):
            system, root = file_system(self.text)
            system.makedirs(str(PurePosixPath(f"{root}/{name}").parent), exist_ok=True)
            system.pipe_file(f"{root}/{name}", content)
            return
        path = self.place(name, Path())
        with FileTransaction(path.parent, path.name, len(content)) as files:
            write_all(files.create(path.name), content)
