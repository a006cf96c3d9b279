"""ModelContainer, a model whose large tensors are out of the proto until it is saved."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx.checker
from onnx import ModelProto, TensorProto

from ..errors import ExternalDataError, InvalidModelError
from ..support.argument_types import PATH, check_type
from .data_writer import DataWriter, set_reference
from .external_data import (
    IN_MEMORY_PREFIX,
    ExternalFolder,
    ExternalReference,
    file_identity,
    may_be_a_shape,
    tensor_nbytes,
)
from .ir_models import to_ir
from .model_copies import content_size, copy_model
from .model_files import MAX_PROTO_BYTES, FileTransaction, load_model, write_all, write_file
from .model_formats import check_writable_format, serialize
from .tensor_sites import (
    TensorSite,
    describe_tensor,
    is_external,
    iter_external_tensors,
    iter_tensor_sites,
)
from .tensor_sources import (
    FileSource,
    ProtoSource,
    TensorSource,
    embed,
    make_source,
)


class ModelContainer:
    """Holds a model and the content of its large tensors, which no proto could contain.

    Invariant: every external tensor of :attr:`proto` is either a placeholder of this container or
    a checked reference to a file of the model's folder. The container owns the proto. A file that
    changed after it was checked is refused. Nothing is read before it is needed.

    :param proto: the model
    :param sources: content of initializers of the main graph, by name: numpy arrays, torch
        tensors, TensorProto
    :param base_dir: folder of the external data *proto* already has
    :param allowed_roots: see :class:`xbuilder.files.external_data.ExternalFolder`
    :param path: file the model comes from: data files it needs are never overwritten by another
        model
    :raises ExternalDataError: if external data is missing or cannot be trusted

    Example::

        container = ModelContainer(proto, {"weight": array})
        container.save("model.onnx")
    """

    def __init__(
        self,
        proto: ModelProto,
        sources: Mapping[str, Any] | None = None,
        base_dir: str | os.PathLike[str] | None = None,
        allowed_roots: Iterable[str | os.PathLike[str]] = (),
        path: str | os.PathLike[str] | None = None,
    ):
        self.proto = proto
        self._sources: dict[str, TensorSource] = {}
        self._folder: ExternalFolder | None = None
        self._path = None if path is None else _real_place(path)
        self._identities: dict[str, tuple[int, int, int, int]] = {}
        self._kept_files: set[str] = set()
        # unpredictable: a file cannot claim the content of another tensor
        self._prefix = f"{IN_MEMORY_PREFIX}xbuilder/{os.urandom(8).hex()}/"
        missing = set(sources or ())
        for tensor in proto.graph.initializer:
            if sources and tensor.name in sources:
                self.set_source(tensor, sources[tensor.name])
                missing.discard(tensor.name)
        if missing:
            raise InvalidModelError(
                f"The main graph has no initializer for the sources {sorted(missing)[:5]}."
            )
        for site in iter_tensor_sites(proto):
            if is_external(site.tensor) and not self._is_placeholder(site.tensor):
                self._folder = self._folder or ExternalFolder(base_dir, allowed_roots)
                found = self._folder.locate(site.tensor)
                self._identities[found.path] = found.identity

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], allowed_roots: Iterable[str | os.PathLike[str]] = ()
    ) -> ModelContainer:
        """Opens a model. Its external data is left in its files.

        :param path: see :func:`xbuilder.files.model_files.load_model`
        :param allowed_roots: see :class:`xbuilder.files.external_data.ExternalFolder`
        :raises InvalidModelError: if the file is missing, damaged or not an ONNX model
        """
        loaded = load_model(path, allowed_roots, check_data=False)
        return cls(loaded.proto, None, loaded.base_dir, loaded.allowed_roots, loaded.path)

    @property
    def model_proto(self) -> ModelProto:
        """The model without the content of its large tensors, :attr:`proto`."""
        return self.proto

    def set_large_initializers(self, values: Mapping[str, Any]) -> None:
        """Gives their content to initializers of the main graph, see :meth:`set_source`.

        :param values: by name of initializer
        :raises InvalidModelError: the main graph has no such initializer, or it has another type or
            other dimensions
        """
        known = {tensor.name: tensor for tensor in self.proto.graph.initializer}
        for name, value in values.items():
            if name not in known:
                raise InvalidModelError(f"The main graph has no initializer {name!r}.")
            self.set_source(known[name], value)

    def check_model(self) -> None:
        """Checks the model and its large tensors with `onnx.checker`, in files that are removed.

        :raises onnx.checker.ValidationError: the model is not valid
        """
        with tempfile.TemporaryDirectory() as folder:
            onnx.checker.check_model(self.save(os.path.join(folder, "model.onnx"))[-1])

    def set_source(
        self,
        tensor: TensorProto,
        value: Any,
        base_dir: str | os.PathLike[str] | None = None,
        allowed_roots: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        """Makes a tensor of :attr:`proto` a placeholder for a content kept out of it.

        :param tensor: a tensor of the model, anywhere in it; its content is dropped, its type and
            its dimensions are set if it has no type yet
        :param value: the content: numpy array, torch tensor, TensorProto
        :param base_dir: folder of the data if *value* is an external TensorProto
        :param allowed_roots: see :class:`xbuilder.files.external_data.ExternalFolder`
        :raises InvalidModelError: if types or dimensions disagree
        """
        if value is tensor:
            value = TensorProto()
            value.CopyFrom(tensor)
        source = make_source(value, base_dir, allowed_roots)
        if tensor.data_type == TensorProto.UNDEFINED:
            tensor.data_type = source.data_type
            tensor.dims[:] = source.dims
        elif (tensor.data_type, tuple(tensor.dims)) != (source.data_type, tuple(source.dims)):
            raise InvalidModelError(
                f"The content of {describe_tensor(tensor)} is expected to have type "
                f"{tensor.data_type} and shape {tuple(tensor.dims)}, found {source.data_type} and "
                f"{tuple(source.dims)}."
            )
        if self._is_placeholder(tensor):
            key = tensor.external_data[0].value
        else:
            key = f"{self._prefix}{len(self._sources)}"
        set_reference(tensor, ExternalReference(key))
        self._sources[key] = source

    def _is_placeholder(self, tensor: TensorProto) -> bool:
        entries = tensor.external_data
        return is_external(tensor) and len(entries) == 1 and entries[0].value in self._sources

    def source_of(self, tensor: TensorProto) -> TensorSource | None:
        """The source of the content of an external tensor of :attr:`proto`, None if embedded.

        :raises ExternalDataError: if its file changed since the container was made
        """
        if not is_external(tensor):
            return None
        if self._is_placeholder(tensor):
            return self._sources[tensor.external_data[0].value]
        if self._folder is None:
            raise ExternalDataError(
                f"The data of {describe_tensor(tensor)} is not known to this container: use "
                "set_source."
            )
        found = self._folder.locate(tensor)
        if self._identities.setdefault(found.path, found.identity) != found.identity:
            raise ExternalDataError(
                f"The data file {found.path!r} changed since the model was loaded: load it again."
            )
        return FileSource(tensor, found)

    def array(self, tensor: TensorProto) -> np.ndarray:
        """The content of a tensor of :attr:`proto` as a numpy array, embedded or not."""
        return (self.source_of(tensor) or ProtoSource(tensor)).array()

    def nbytes(self) -> int:
        """Number of bytes of all tensors, tied ones counted as often as they appear."""
        return sum(content_size(site.tensor) for site in iter_tensor_sites(self.proto))

    def to_model_proto(self, max_proto_bytes: int = MAX_PROTO_BYTES) -> ModelProto:
        """Copies the model with all its tensors in one proto.

        :param max_proto_bytes: the largest result accepted
        :raises InvalidModelError: if the model is too big for one proto
        """
        size = self.nbytes()
        if size > max_proto_bytes:
            raise InvalidModelError(
                f"The tensors of the model take {size} bytes, one proto cannot exceed "
                f"{max_proto_bytes}: save() writes it with external data, which has no limit."
            )
        model = copy_model(self.proto)
        for site, copy in _pairs(self.proto, model):
            _embed(site.tensor, copy.tensor, self.source_of(site.tensor))
        return model

    def to_ir(self) -> Any:
        """Converts to an `onnx_ir.Model`, which reads large initializers on use."""
        return to_ir(self.proto, self.source_of)

    def save(
        self,
        path: str | os.PathLike[str],
        all_tensors_to_one_file: bool = True,
        size_threshold: int = 1024,
        refer_to_source: bool = False,
        location: str | None = None,
        max_proto_bytes: int = MAX_PROTO_BYTES,
    ) -> tuple[str, ...]:
        """Writes the model and its data atomically: all the files, or none.

        Initializers and tensors which are already external are written out of the model when they
        have at least *size_threshold* bytes and no short vector of integers. Tensors in attributes
        follow only when the model would be too big otherwise. Tied tensors are written once.
        External data is copied from file to file. The file the model comes from may be overwritten:
        this container then refers to the new one, others that read the former one must load again.

        :param path: the model; data goes next to it, in ``<name>.data``, or in
            ``<name>.<tensor>.data`` with one file per tensor
        :param all_tensors_to_one_file: one data file, or one per tensor
        :param size_threshold: smaller tensors are stored in the model
        :param refer_to_source: data already in the folder of *path* is not copied, the new model
            refers to the existing file
        :param location: name of the data file, only with one file for all tensors
        :param max_proto_bytes: the largest model file, data excluded
        :return: absolute paths of the files, data first, the model last
        :raises InvalidModelError: if the model is too big without its data
        :raises ExternalDataError: if data disappeared, or cannot be referred to
        """
        check_writable_format(path)
        folder, name = os.path.split(os.path.abspath(os.fspath(path)))
        outside = self._choose(size_threshold, max_proto_bytes)
        model = copy_model(self.proto)
        pairs = [
            (site.tensor, copy.tensor, self.source_of(site.tensor))
            for site, copy in _pairs(self.proto, model)
        ]
        size = sum(
            content_size(tensor)
            for i, (tensor, _, source) in enumerate(pairs)
            if not (refer_to_source and i in outside and isinstance(source, FileSource))
        )
        with FileTransaction(folder, name, size) as files:
            protected = self._protected(os.path.join(files.folder, name))
            writer = DataWriter(files, name, all_tensors_to_one_file, location, protected)
            if refer_to_source:
                for i in outside:
                    _, copy, source = pairs[i]
                    if isinstance(source, FileSource):
                        set_reference(copy, writer.refer(source))
            for i, (tensor, copy, source) in enumerate(pairs):
                if i not in outside:
                    _embed(tensor, copy, source)
                elif not (refer_to_source and isinstance(source, FileSource)):
                    content = source or ProtoSource(tensor)
                    set_reference(copy, writer.write(tensor.name or f"tensor{i}", content))
            _write_model(files, model, name, max_proto_bytes)
        written = tuple(os.path.join(files.folder, n) for n in (*writer.names, name))
        self._follow(pairs, written, files.folder)
        return written

    def protect(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Adds files that :meth:`save` never overwrites, unless it replaces the whole model.

        The data files this container still needs are always among them.

        :param paths: data files of the model it comes from
        """
        self._kept_files.update(os.path.realpath(path) for path in paths)

    def _protected(self, target: str) -> set[str]:
        """The data files that belong to another model than the one to overwrite."""
        same = os.path.exists(target) if self._path is None else target == self._path
        if same:
            return set()
        paths = self._kept_files | set(self._identities)
        paths.update(*(source.paths() for source in self._sources.values()))
        return paths

    def _choose(self, size_threshold: int, max_proto_bytes: int) -> dict[int, None]:
        """The positions of the tensors to write out of the model, in order."""
        sites = list(iter_tensor_sites(self.proto))
        sizes = [content_size(site.tensor) for site in sites]
        movable = [
            i
            for i, site in enumerate(sites)
            if sizes[i] >= max(size_threshold, 1) and _is_movable(site.tensor)
        ]
        chosen = {
            i: None
            for i in movable
            if sites[i].kind == "initializer" or is_external(sites[i].tensor)
        }
        if sum(sizes) - sum(sizes[i] for i in chosen) > max_proto_bytes:
            chosen = dict.fromkeys(movable)
        left = sum(sizes) - sum(sizes[i] for i in chosen)
        if left > max_proto_bytes:
            raise InvalidModelError(
                f"The tensors below size_threshold={size_threshold} bytes take {left} bytes, one "
                f"proto cannot exceed {max_proto_bytes}: choose a lower threshold."
            )
        return chosen

    def _follow(
        self,
        pairs: list[tuple[TensorProto, TensorProto, TensorSource | None]],
        written: tuple[str, ...],
        folder: str,
    ) -> None:
        """Makes the container read the new files where they replaced those it was reading."""
        replaced = set(written)
        for path in replaced & set(self._identities):
            self._identities[path] = file_identity(os.stat(path))
        for tensor, copy, source in pairs:
            if source is None or not source.paths() & replaced:
                continue
            in_folder = self._folder is not None and self._folder.base_dir == folder
            if not is_external(copy) or (in_folder and not self._is_placeholder(tensor)):
                tensor.CopyFrom(copy)
            else:
                self.set_source(tensor, copy, base_dir=folder)


def save_model(
    model: ModelProto | ModelContainer,
    path: str | os.PathLike[str],
    base_dir: str | os.PathLike[str] | None = None,
    allowed_roots: Iterable[str | os.PathLike[str]] = (),
    external: bool | None = None,
    all_tensors_to_one_file: bool = True,
    size_threshold: int = 1024,
    refer_to_source: bool = False,
    location: str | None = None,
    max_proto_bytes: int = MAX_PROTO_BYTES,
) -> tuple[str, ...]:
    """Saves a model atomically. The files are complete, or unchanged.

    :param model: a proto or a container
    :param path: where to save, the folder exists; the extension gives the format, see
        :data:`xbuilder.files.model_formats.EXTENSIONS`
    :param base_dir: folder of the external data *model* refers to, if it is a proto; it is
        mandatory then
    :param allowed_roots: see :class:`xbuilder.files.external_data.ExternalFolder`
    :param external: True writes data out of the model, False keeps everything in one file, None
        does what the model needs: external data if it already has some or exceeds
        *max_proto_bytes*
    :param all_tensors_to_one_file: see :meth:`ModelContainer.save`, as for the others: they only
        apply to external data
    :param size_threshold: see :meth:`ModelContainer.save`
    :param refer_to_source: see :meth:`ModelContainer.save`
    :param location: see :meth:`ModelContainer.save`
    :param max_proto_bytes: see :meth:`ModelContainer.save`
    :return: absolute paths of the files, the model is the last one
    :raises InvalidModelError: if the model is too big to be saved in the requested way
    :raises ExternalDataError: if the data of a tensor is missing or out of reach

    Example::

        save_model(onnx.parser.parse_model(text), "model.onnx")
    """
    check_type("path", path, PATH, "the path of a file")
    check_type("model", model, (ModelProto, ModelContainer))
    check_writable_format(path)
    container = model
    if not isinstance(model, ModelContainer):
        container = ModelContainer(model, base_dir=base_dir, allowed_roots=allowed_roots)
    has_external = next(iter_external_tensors(container.proto), None) is not None
    if external is None and not has_external and container.nbytes() <= max_proto_bytes:
        try:
            return (write_file(path, _serialize(container.proto, path, max_proto_bytes)),)
        except InvalidModelError:  # the tensors fit in, not the whole model
            external = True
    if external is False:
        proto = container.to_model_proto(max_proto_bytes) if has_external else container.proto
        return (write_file(path, _serialize(proto, path, max_proto_bytes)),)
    return container.save(
        path, all_tensors_to_one_file, size_threshold, refer_to_source, location, max_proto_bytes
    )


def _write_model(files: FileTransaction, model: ModelProto, name: str, max_bytes: int) -> None:
    """Writes a model once its data is written, with a bridge if it replaces files."""
    write_all(files.create(name), _serialize(model, name, max_bytes))
    moved = files.replacements(name)
    if moved:
        with _moved_data(model, moved):
            bridge = _serialize(model, name, max_bytes)
        write_all(files.create_bridge(name), bridge)


@contextlib.contextmanager
def _moved_data(model: ModelProto, locations: Mapping[str, str]) -> Iterator[None]:
    """Changes the data files a model refers to, for the duration of a block."""
    changed = [
        (entry, entry.value)
        for tensor in iter_external_tensors(model)
        for entry in tensor.external_data
        if entry.key == "location" and entry.value in locations
    ]
    for entry, location in changed:
        entry.value = locations[location]
    try:
        yield
    finally:
        for entry, location in changed:
            entry.value = location


def _real_place(path: str | os.PathLike[str]) -> str:
    """The path of a file in its real folder; the file itself may be a link."""
    folder, name = os.path.split(os.path.abspath(os.fspath(path)))
    return os.path.join(os.path.realpath(folder), name)


def _pairs(model: ModelProto, copy: ModelProto) -> Iterator[tuple[TensorSite, TensorSite]]:
    return zip(iter_tensor_sites(model), iter_tensor_sites(copy), strict=True)


def _is_movable(tensor: TensorProto) -> bool:
    try:
        return tensor_nbytes(tensor) > 0 and not may_be_a_shape(tensor)
    except InvalidModelError:
        return False


def _embed(tensor: TensorProto, copy: TensorProto, source: TensorSource | None) -> None:
    if source is not None:
        embed(copy, source)
    elif tensor.HasField("raw_data") and not copy.HasField("raw_data"):
        copy.CopyFrom(tensor)


def _serialize(model: ModelProto, path: str | os.PathLike[str], max_proto_bytes: int) -> bytes:
    content = serialize(model, path)
    if len(content) > max_proto_bytes:
        raise InvalidModelError(
            f"The model has {len(content)} bytes without external data, a proto cannot exceed "
            f"{max_proto_bytes}: use external data, with a lower size_threshold."
        )
    return content
