"""Writes tensors in data files next to a model: chooses names, aligns, shares tied tensors."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Collection, Hashable

from onnx import TensorProto

from ..errors import ExternalDataError, InvalidModelError, OptionError
from ..tensors.bits import storage_size
from .external_data import ExternalReference, check_location
from .model_files import FileTransaction, write_all
from .tensor_sources import FileSource, TensorSource, clear_content
from .writing.write_back import NewFile

_ALIGNMENT = 64
_PAGE = 4096
_BIG = 1 << 20  # from this size, a tensor starts on a page and can be mapped alone
_MAX_NAME_BYTES = 80


def set_reference(tensor: TensorProto, reference: ExternalReference) -> None:
    """Makes a tensor external. Its content is dropped.

    :param tensor: the tensor, modified
    :param reference: where its data is; offset and length are not written without a length
    """
    clear_content(tensor)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=reference.location)
    if reference.length is not None:
        tensor.external_data.add(key="offset", value=str(reference.offset))
        tensor.external_data.add(key="length", value=str(reference.length))


def safe_name(name: str) -> str:
    """A short name without any character a file system or a shell could misread.

    Letters, digits, ``_``, ``-`` and inner dots are kept, in every script. Two names may become
    the same one.

    :param name: the name of a tensor or of a model
    """
    text = re.sub(r"[^\w.-]", "_", unicodedata.normalize("NFC", name))
    text = re.sub(r"\.\.+", "_", text)
    text = text.encode("utf-8", "ignore")[:_MAX_NAME_BYTES].decode("utf-8", "ignore")
    return text.strip(".-") or "tensor"


class DataWriter:
    """Writes tensors in the data files of one model, inside a transaction.

    Invariant: a location is the name of a file of the model's folder, different from every other
    file of the model whatever the case of its letters; tied tensors share their bytes.

    :param files: the transaction, it creates the files
    :param model_name: name of the file of the model
    :param one_file: one file for all tensors or one per tensor
    :param location: name of the data file when there is only one, None to choose it
    :param protected: absolute paths of files that must not change
    :raises OptionError: if *location* is not a plain name
    """

    def __init__(
        self,
        files: FileTransaction,
        model_name: str,
        one_file: bool = True,
        location: str | None = None,
        protected: Collection[str] = (),
    ):
        self.names: list[str] = []
        self._files = files
        self._one_file = one_file
        self._protected = {_fold(path) for path in protected}
        self._taken = {_fold(model_name)}
        self._stem = safe_name(model_name)
        self._location = location
        self._shared: NewFile | None = None
        self._known: dict[Hashable, ExternalReference] = {}
        if location is not None:
            self._check_option(location)

    def _check_option(self, location: str) -> None:
        try:
            check_location(location, "the model")
        except ExternalDataError as e:
            raise OptionError(f"Wrong name for the data file: {e}") from e
        reason = ""
        if not self._one_file:
            reason = "it is used only when all tensors go to one file"
        elif re.search(r"[/\\]", location):
            reason = "a name is expected, not a path: data stays next to the model"
        elif not self._is_free(location):
            reason = "this file is the model itself or is needed by another one"
        if reason:
            raise OptionError(f"Wrong name for the data file, {location!r}: {reason}.")

    def _is_free(self, name: str) -> bool:
        path = os.path.join(self._files.folder, name)
        return _fold(name) not in self._taken and _fold(path) not in self._protected

    def refer(self, source: FileSource) -> ExternalReference:
        """Refers to data already below the folder of the model, without copying it.

        To be called before anything is written.

        :raises ExternalDataError: if the file is somewhere else
        """
        path, folder = source.source.path, self._files.folder
        location = os.path.relpath(path, folder).replace(os.sep, "/")
        if location.startswith("../") or os.path.isabs(location) or _fold(location) in self._taken:
            raise ExternalDataError(
                f"The data file {path!r} cannot be referred to from a model of {folder!r} (option "
                "refer_to_source): save the model in the folder of the data under another name, "
                "or copy the data (refer_to_source=False)."
            )
        self._protected.add(_fold(path))
        if self._location is not None:
            self._check_option(self._location)
        return ExternalReference(location, source.source.offset, source.source.nbytes)

    def write(self, tensor_name: str, source: TensorSource) -> ExternalReference:
        """Writes a tensor, unless a tied one is written already, and returns its place."""
        key = source.key()
        if key not in self._known:
            self._known[key] = self._append(tensor_name, source)
        return self._known[key]

    def _append(self, tensor_name: str, source: TensorSource) -> ExternalReference:
        size = storage_size(source.data_type, math.prod(source.dims))
        file = self._shared if self._shared is not None else self._open(tensor_name)
        position = file.tell()
        alignment = _PAGE if size >= _BIG else _ALIGNMENT
        offset = -(-position // alignment) * alignment
        write_all(file, bytes(offset - position))
        if size >= _BIG:
            file.reserve(size)
        source.write(file)
        if file.tell() != offset + size:
            raise InvalidModelError(
                f"The content of tensor {tensor_name!r} has {file.tell() - offset} bytes, its "
                f"type and its dimensions {tuple(source.dims)} need {size}."
            )
        if not self._one_file:
            self._shared = None
        return ExternalReference(self.names[-1], offset, size)

    def _open(self, tensor_name: str) -> NewFile:
        """Opens a new data file, to which the next tensors are written as well if there is one file
        only."""
        name = self._location
        if name is None:
            middle = "" if self._one_file else f".{safe_name(tensor_name)}"
            name = f"{self._stem}{middle}.data"
            number = 0
            while not self._is_free(name):
                number += 1
                name = f"{self._stem}{middle}.{number}.data"
        self._taken.add(_fold(name))
        self.names.append(name)
        self._shared = file = self._files.create(name)
        return file


def _fold(name: str) -> str:
    # some file systems do not distinguish cases or unicode forms
    return unicodedata.normalize("NFC", name).casefold()
