"""Weights a model was exported without. They are inputs of the model until they are given."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto

from xbuilder.errors import InvalidModelError, OptionError
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import UnbufferedFile
from xbuilder.files.tensor_sources import TensorSource, make_source

#: prefix of the documentation of an input which is a weight, its name in torch comes after it
WEIGHT = "weight without data: "


class _Weight:
    """One value of a dictionary, read when it is needed and not kept."""

    def __init__(self, weights: Mapping[str, Any], declared: ValueInfoProto) -> None:
        tensor = declared.type.tensor_type
        self.weights, self.name = weights, _name(declared)
        self.data_type = tensor.elem_type
        self.dims = tuple(d.dim_value for d in tensor.shape.dim)

    def _source(self) -> TensorSource:
        source = make_source(self.weights[self.name])
        if (source.data_type, tuple(source.dims)) != (self.data_type, self.dims):
            names = [TensorProto.DataType.Name(i) for i in (self.data_type, source.data_type)]
            raise InvalidModelError(
                f"Weight {self.name!r} is expected to have type {names[0]} and shape {self.dims}, "
                f"found {names[1]} and {tuple(source.dims)}."
            )
        return source

    def key(self) -> Hashable:
        """See :class:`TensorSource`."""
        return ("weights", id(self.weights), self.name)

    def paths(self) -> set[str]:
        """See :class:`TensorSource`."""
        return set()

    def array(self) -> np.ndarray:
        """See :class:`TensorSource`."""
        return self._source().array()

    def write(self, file: UnbufferedFile) -> None:
        """See :class:`TensorSource`."""
        self._source().write(file)


def _name(declared: ValueInfoProto) -> str:
    """The name a weight has in torch."""
    return str(declared.doc_string).removeprefix(WEIGHT)


def add_weights(model: ModelProto, weights: Mapping[str, Any]) -> ModelContainer:
    """Gives its weights to a model exported without them (``ExportOptions(fake=True)``).

    They are read one by one when the result is saved, and not kept, so *weights* may read a file
    each time.

    :param model: the model, it is not modified
    :param weights: tensors by name, those the model does not need are ignored
    :return: the container that saves the model: ``add_weights(...).save("model.onnx")``
    :raises OptionError: a weight is missing, or the model expects none

    ::

        onx = to_onnx(model, (x,), export_options="fake")
        add_weights(onx, state_dict).save("model.onnx")
    """
    expected = [i for i in model.graph.input if i.doc_string.startswith(WEIGHT)]
    if not expected:
        raise OptionError("The model has all its weights: none of its inputs is a weight.")
    missing = [name for name in map(_name, expected) if name not in weights]
    if missing:
        raise OptionError(
            f"{len(missing)} weights of the model are missing: {missing[:5]}. A buffer that is in "
            f"no state_dict has to be given too."
        )
    completed = ModelProto()
    completed.CopyFrom(model)
    names = {i.name for i in expected}
    kept = [i for i in completed.graph.input if i.name not in names]
    del completed.graph.input[:]
    completed.graph.input.extend(kept)
    completed.graph.initializer.extend(TensorProto(name=i.name) for i in expected)
    return ModelContainer(completed, {i.name: _Weight(weights, i) for i in expected})
