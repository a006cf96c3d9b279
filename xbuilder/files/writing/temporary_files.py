"""Temporary files and folders beside the files to write: names, locks, and removal of those a
killed process left behind.

An owner holds a lock as long as it lives, the system releases it whatever happens to the process.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

#: number of folders made before giving up
_TRIES = 10
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp")

if sys.platform == "win32":

    def own(descriptor: int) -> bool:
        """Does nothing, because this system does not remove a file another process has open."""
        return True

else:
    import fcntl

    def own(descriptor: int) -> bool:
        """Takes the lock of a temporary file or folder, until the descriptor is closed.

        :param descriptor: of the file
        :return: False if another process holds it, or if the file system has no locks
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def _short(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100]


def temporary_name(name: str) -> str:
    """A new name for the temporary file that becomes *name*. Nobody can guess it to prepare a link
    there."""
    return f".{_short(name)}.{os.urandom(8).hex()}.tmp"


def _written_name(name: str) -> str:
    """Name of the file a file is or becomes, without the characters temporary names leave out."""
    match = _TEMPORARY.fullmatch(name)
    return match[1] if match else _short(name)


def is_being_replaced(path: str, status: os.stat_result) -> bool:
    """Whether all the hard links of a file are its own name and the temporary names a killed
    process gave it, in the same folder.

    :param path: its real path
    :param status: its status
    """
    folder, name = os.path.split(path)
    own_name = _written_name(name)
    with os.scandir(folder) as entries:
        names = [
            entry.name
            for entry in entries
            if _written_name(entry.name) == own_name
            and os.path.samestat(entry.stat(follow_symlinks=False), status)
        ]
    return len(names) == status.st_nlink


class TemporaryFiles:
    """Temporary files and folders found in a folder, those of living processes included.

    :param folder: an existing folder, it is listed once
    """

    def __init__(self, folder: str):
        self.folder = folder
        self._found: dict[str, list[str]] = {}
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                match = _TEMPORARY.fullmatch(entry.name)
                if match:
                    self._found.setdefault(match[1], []).append(entry.name)

    def remove(self, name: str, model: str) -> None:
        """Removes the temporary files killed processes left while they were writing a file.

        :param name: the file
        :param model: a file of the folder; the files it refers to are kept
        """
        found, needed = self._found.pop(_short(name), []), []
        for temporary in found:
            if _mentions(os.path.join(self.folder, model), temporary.encode()):
                needed.append(temporary)
            else:
                with contextlib.suppress(OSError):
                    _remove_orphan(os.path.join(self.folder, temporary))
        if needed:
            self._found[_short(name)] = needed


def _remove_orphan(path: str) -> None:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    try:
        if not own(descriptor):
            return
        if sys.platform != "win32":
            _remove(path)
    finally:
        os.close(descriptor)
    if sys.platform == "win32":
        _remove(path)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)


def _mentions(path: str, text: bytes) -> bool:
    """Whether a file contains some bytes, False if it cannot be read."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as map:
            return map.find(text) >= 0
    except (OSError, ValueError):  # ValueError: the file is empty
        return False


@contextlib.contextmanager
def temporary_folder(folder: str, name: str) -> Iterator[str]:
    """Makes a temporary folder to prepare a file in, removed at the end, and removes those of
    killed processes.

    :param folder: the folder it is made in; if it is made too, it is removed unless it has files
    :param name: the file to prepare
    :return: the path of the temporary folder

    Example::

        with temporary_folder("models", "model.onnx") as work:
            print(os.listdir(work))
    """
    TemporaryFiles(folder).remove(name, name)
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_empty, [p for p in _and_parents(folder) if not p.exists()])
        os.makedirs(folder, exist_ok=True)
        path = _owned_folder(folder, name, stack)
        yield path


def _and_parents(folder: str) -> tuple[Path, ...]:
    path = Path(os.path.abspath(folder))
    return path, *path.parents


def _remove_empty(folders: list[Path]) -> None:
    with contextlib.suppress(OSError):
        for path in folders:
            path.rmdir()


def _owned_folder(folder: str, name: str, stack: contextlib.ExitStack) -> str:
    """Makes a temporary folder and takes its lock, until the stack is closed."""
    for _ in range(_TRIES):
        path = os.path.join(folder, temporary_name(name))
        os.mkdir(path, 0o700)
        if sys.platform == "win32":
            break
        # another process may take it for an orphan before it is locked
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            own(descriptor)
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                break
    stack.callback(shutil.rmtree, path, ignore_errors=True)
    return path
