"""Runs the two models of a window: onnxruntime, doubles, the reference evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto

from xbuilder.errors import XoptimError
from xbuilder.nodes.functions import all_nodes
from xbuilder.runtimes.sessions import plain_session

from ..ort_values import OrtResult, to_python, to_result
from .doubles import as_wide, to_double

#: names of the ways to run a window
RUNTIME, DOUBLE, REFERENCE, REFERENCE_DOUBLE = (
    "onnxruntime",
    "onnxruntime in float64",
    "reference",
    "reference in float64",
)
#: the reference evaluator is slow: it does not run on more elements
_REFERENCE_ELEMENTS = 1 << 18

Values = Mapping[str, Any]


class CannotRunError(XoptimError):
    """A model of a window does not run."""


@dataclass
class Runner:
    """Runs one model of a window, in several ways; sessions are made when they are needed.

    :param model: the model
    """

    model: ModelProto
    _sessions: dict[str, Any] = field(default_factory=dict)
    _errors: dict[str, str] = field(default_factory=dict)

    def run(self, way: str, feeds: Values) -> list[Any]:
        """Runs the model.

        :param way: one of the constants of this module
        :param feeds: inputs by name, with the types of the window
        :raises CannotRunError: it does not load or does not run
        """
        if way in _DOUBLES:
            feeds = {n: as_wide(v) for n, v in feeds.items()}
        session = self._session(way)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                if way in _REFERENCES:
                    check_elements(feeds)
                    return list(session.run(None, dict(feeds)))
                return _run_session(session, feeds)
        except CannotRunError:
            raise
        except Exception as e:
            raise CannotRunError(first_line(e)) from e

    def loads(self, way: str) -> bool:
        """Whether the model loads in some way."""
        try:
            self._session(way)
        except CannotRunError:
            return False
        return True

    def error(self, way: str) -> str:
        """Why the model does not load in some way, empty if it does."""
        self.loads(way)
        return self._errors.get(way, "")

    def _session(self, way: str) -> Any:
        if way in self._errors:
            raise CannotRunError(self._errors[way])
        if way not in self._sessions:
            try:
                self._sessions[way] = _open(self.model, way)
            except Exception as e:
                self._errors[way] = first_line(e)
                raise CannotRunError(self._errors[way]) from e
        return self._sessions[way]


_DOUBLES = frozenset({DOUBLE, REFERENCE_DOUBLE})
_REFERENCES = frozenset({REFERENCE, REFERENCE_DOUBLE})


def check_elements(feeds: Values) -> None:
    """Refuses inputs that are too large for the reference evaluator.

    :raises CannotRunError: they are
    """
    total = sum(v.size for v in feeds.values() if isinstance(v, np.ndarray))
    if total > _REFERENCE_ELEMENTS:
        raise CannotRunError("too large for the reference evaluator")


def first_line(error: Exception) -> str:
    """The first line of an error, which may be followed by pages."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


def _open(model: ModelProto, way: str) -> Any:
    chosen = to_double(model) if way in _DOUBLES else model
    if way in _REFERENCES:
        if any(n.domain not in ("", "ai.onnx.ml") for n in all_nodes(model.graph.node)):
            raise CannotRunError("the reference evaluator only knows the operators of onnx")
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(chosen)
    return plain_session(chosen.SerializeToString())


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(v) for v in value)
    return value is None or type(value.dtype).__module__.startswith("numpy")


def _run_session(session: Any, feeds: Values) -> list[Any]:
    outputs = session.get_outputs()
    odd = any(kind in o.type for o in outputs for kind in ("bfloat16", "float8", "int4", "int2"))
    if not odd and all(_is_plain(v) for v in feeds.values()):
        found: list[Any] = session.run(None, dict(feeds))
        return found
    values = {n: to_result(v).value for n, v in feeds.items()}
    results = session.run_with_ort_values([o.name for o in outputs], values)
    return [to_python(OrtResult(v, o.type)) for v, o in zip(results, outputs, strict=True)]
