"""Runs a model that onnxruntime does not load with the reference evaluator of onnx."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from xbuilder.errors import XoptimError, short_message
from xbuilder.runtimes.reference import reference_evaluator

from .runtime import Model, Session, VerificationError, container_of


class _Evaluator:
    """The reference evaluator, without its warnings on the values it computes."""

    def __init__(self, model: ModelProto):
        self._evaluator = reference_evaluator(model)

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """Runs the model."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return list(self._evaluator.run(names, dict(feeds)))


def reference_session(model: Model, which: str, error: VerificationError) -> Session:
    """A session of the reference evaluator, which computes operators onnxruntime has no kernel for.

    It is slow, and its results are numpy's.

    :param model: the model
    :param which: its name in messages
    :param error: why onnxruntime does not load it
    :raises VerificationError: the reference evaluator does not load it either

    .. code-block:: python

        try:
            session = opener.open(model, "first")
        except VerificationError as e:
            session = reference_session(model, "first", e)
    """
    try:
        proto = container_of(model).to_model_proto()
        evaluator = _Evaluator(proto)
    except (XoptimError, NotImplementedError, RuntimeError, TypeError, ValueError) as e:
        raise VerificationError(
            f"{error}; the reference evaluator of onnx does not either: {short_message(e)}"
        ) from error
    defaults = {tensor.name for tensor in proto.graph.initializer}
    given = [value.name for value in proto.graph.input]
    names = (
        [name for name in given if name not in defaults],
        [name for name in given if name in defaults],
        [value.name for value in proto.graph.output],
    )
    return Session(evaluator, names, which, "the reference evaluator of onnx")
