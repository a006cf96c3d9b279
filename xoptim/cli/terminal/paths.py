"""Types of file arguments on the command line, checked before anything is done."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

import click

from xbuilder.errors import OptionError

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
#: the MIME type of files that any program may write
_BINARY = "application/octet-stream"


def _kind(path: Path) -> str:
    """The kind of thing at a path that is neither a file nor a folder, empty otherwise."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return ""
    return next((words for test, words in _KINDS if test(mode)), "")


class InputModel(click.Path):
    """A model to read: a regular file that exists."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Checks the path.

        :raises click.BadParameter: if it is not a file
        """
        if os.fspath(value) == "-":
            self.fail("a model is not read from the standard input, give a file", param, ctx)
        if os.path.isdir(value):
            self.fail(f"{os.fspath(value)!r} is a folder, give the file of a model", param, ctx)
        super().convert(value, param, ctx)
        path = Path(value)
        kind = _kind(path)
        if kind:
            self.fail(f"{str(path)!r} is {kind}, a regular file is expected", param, ctx)
        return path


class OutputFile(click.Path):
    """A file to write: it is new or a regular file. Its folder is made when it is written.

    A symbolic link is followed and kept; :func:`target_of` gives the file it points to.

    :param extensions: the extensions that are allowed, all if empty
    :param model: the file is a model, in a format that keeps everything
    """

    def __init__(self, extensions: Collection[str] = (), model: bool = False) -> None:
        super().__init__(path_type=Path)
        self.extensions = tuple(extensions)
        self.model = model

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Checks the path.

        :raises click.BadParameter: if the path is not writable
        """
        super().convert(value, param, ctx)
        reason = self._refusal(os.fspath(value))
        if reason:
            self.fail(reason, param, ctx)
        return Path(value)

    def _refusal(self, text: str) -> str:
        if text == "-":
            return "nothing is written on the standard output, give a file"
        if "\0" in text:
            return f"{text!r} is no name of a file"
        path = Path(text)
        if not text or path.is_dir() or text.endswith(("/", os.sep)):
            return f"{text!r} is a folder, the name of a file is expected"
        target = target_of(path)
        if target.is_symlink():
            return f"{text!r} is a link that leads nowhere"
        kind = _kind(path) or _kind(target)
        if kind:
            return f"{text!r} is {kind}, a new name or a regular file is expected"
        folder = target.parent
        if path.is_symlink() and not folder.is_dir():
            return f"{text!r} is a link to a folder that does not exist"
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent  # the others are made when the file is written
        if not folder.is_dir():
            return f"the folder of {text!r} cannot be made, {str(folder)!r} is a file"
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"the folder of {text!r} is not writable"
        if target.exists() and not os.access(target, os.W_OK):
            return f"{text!r} is read-only"
        if self.extensions and path.suffix.lower() not in self.extensions:
            return f"{text!r}: expected one of the extensions {', '.join(self.extensions)}"
        if self.model:
            from xbuilder.files.model_formats import check_writable_format

            try:
                check_writable_format(path)
            except OptionError as e:
                return str(e)
            if path.suffix != ".onnx" and _is_other_format(path):
                return f"{text!r} is no name of a model: expected .onnx, .json or .textproto"
        return ""


def _is_other_format(path: Path) -> bool:
    """Whether the extension is that of a kind of files that are not models, such as ``.txt``."""
    import mimetypes

    from xbuilder.files.model_formats import EXTENSIONS

    extension = path.suffix.lower()
    kind = mimetypes.MimeTypes().types_map[True].get(extension, _BINARY)
    return extension not in EXTENSIONS and kind != _BINARY


def target_of(path: Path) -> Path:
    """The file to write for an output: the target of a symbolic link, or the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def check_link(path: Path) -> None:
    """Refuses a link to another folder when a model has data files, which would be lost.

    :param path: the model to write
    :raises OptionError: if the model and the link would not be in the same folder
    """
    folder, target = os.path.realpath(path.parent), target_of(path)
    if os.path.realpath(target.parent) != folder:
        raise OptionError(
            f"{str(path)!r} is a link to {str(target)!r} in another folder, and the weights are "
            f"written in a file next to the model: write to {str(target)!r}, or choose --external "
            "embed."
        )


def check_different(paths: Sequence[Path | None], *inputs: Path) -> None:
    """Checks that the files to write differ from each other and from the files read.

    :param paths: files to write, None for none
    :param inputs: files that must not be overwritten
    :raises click.UsageError: if one of them is refused
    """
    seen: set[str] = set()
    for path in filter(None, paths):
        for other in inputs:
            if path.exists() and other.exists() and path.samefile(other):
                raise click.UsageError(
                    f"{str(path)!r} is the input model or its data, choose another output"
                )
        real = os.path.realpath(path)
        if real in seen:
            raise click.UsageError(f"{str(path)!r} would be written twice, choose different files")
        seen.add(real)
