"""Runs the two models of a window: onnxruntime, doubles, the reference evaluator."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import ModelProto, NodeProto, TensorProto, TypeProto

from xbuilder.nodes.attributes import find_attribute
from xbuilder.nodes.functions import all_nodes
from xbuilder.operators.domains import main_domain
from xbuilder.runtimes.sessions import plain_session

from ..sessions.ort_values import OrtResult, to_python, to_result
from .doubles import as_wide, is_float
from .programs import Program, doubled, evaluator_of
from .sessions import CannotRunError, first_line, shared_sessions
from .window import FED_BYTES, Window

#: names of the ways to run a window
RUNTIME, DOUBLE, REFERENCE, REFERENCE_DOUBLE = (
    "onnxruntime",
    "onnxruntime in float64",
    "reference",
    "reference in float64",
)
#: onnxruntime, or the reference evaluator for a side it has no kernel for
EITHER = "onnxruntime or reference"
#: operators that flattened their input before opset 13
_FLATTENED = {"Hardmax", "LogSoftmax", "Softmax"}
_OPTIONALS = {"Optional", "OptionalGetElement", "OptionalHasElement"}
#: the reference evaluator is slow: it does not run on more elements
_REFERENCE_ELEMENTS = 1 << 14

Values = Mapping[str, Any]


class Runner:
    """Runs one model of a window, in several ways; the model and the sessions are made when they
    are needed.

    :param make: gives the model
    :param constants: inputs that never change
    :param joint: runs this model and another one at once
    """

    def __init__(
        self,
        make: Callable[[], ModelProto],
        constants: Values | None = None,
        joint: Runner | None = None,
    ):
        self._make, self.joint = make, joint
        self.constants = dict(constants or {})
        self._sessions: dict[str, Any] = {}
        self._errors: dict[str, str] = {}
        #: a way, inputs, and what :func:`run_both` found with them
        self._found: tuple[str, Values, list[Any]] | None = None

    def run(self, way: str, feeds: Values) -> list[Any]:
        """Runs the model.

        :param way: one of the constants of this module
        :param feeds: inputs by name, with the types of the window
        :raises CannotRunError: it does not load or does not run
        """
        known = self._found
        if known is not None and known[0] == way and known[1] is feeds:
            return known[2]
        session, given = self._session(way), self._given(wide_feeds(way, feeds))
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found: list[Any] = session.run(given)
                return found
        except Exception as e:
            raise CannotRunError(self._program.original(first_line(e))) from e

    def _given(self, feeds: Values) -> dict[str, Any]:
        """The inputs of the model, under the names of its program."""
        return self._program.given({n: v for n, v in feeds.items() if n not in self.constants})

    @cached_property
    def model(self) -> ModelProto:
        """The model."""
        return self._make()

    @cached_property
    def _program(self) -> Program:
        return Program(self.model)

    def close(self) -> None:
        """Frees the sessions, those of the joint model as well."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        if self.joint is not None:
            self.joint.close()

    def loads(self, way: str) -> bool:
        """Whether the model loads in some way."""
        if self.joint is not None and way in _SESSIONS and self.joint.loads(way):
            return True
        try:
            self._session(way)
        except CannotRunError:
            return False
        return True

    def error(self, way: str) -> str:
        """The reason why the model does not load in some way, empty if it does."""
        self.loads(way)
        return self._errors.get(way, "")

    def _session(self, way: str) -> Any:
        if way in self._errors:
            raise CannotRunError(self._errors[way])
        if way not in self._sessions:
            try:
                self._sessions[way] = self._open(way)
            except Exception as e:
                program = self.__dict__.get("_program")  # there may be no model
                text = first_line(e)
                self._errors[way] = program.original(text) if program else text
                raise CannotRunError(self._errors[way]) from e
        return self._sessions[way]

    def _open(self, way: str) -> _Reference | _Here | _There:
        if way == EITHER:
            try:
                return self._open(RUNTIME)
            except Exception:  # of onnxruntime, or of its process
                return self._open(REFERENCE)
        if way in _REFERENCES:
            _check_domains(self.model)
        content, constants = self._program.content, self._program.given(self.constants)
        if way in _DOUBLES:
            content, constants = doubled(content), {n: as_wide(v) for n, v in constants.items()}
        if way in _REFERENCES:
            return _Reference(content, constants)
        kinds = [i.type for i in (*self.model.graph.input, *self.model.graph.output)]
        is_plain = all(_is_plain(kind, way in _DOUBLES) for kind in kinds)
        return (_There if is_plain else _Here)(content, constants)


def run_both(first: Runner, second: Runner, way: str, feeds: Values) -> list[Any]:
    """Runs the first of two models, and the second one with it if they have a joint model: its own
    run with these inputs, the very same object, then answers at once.

    :param first: runs one model
    :param second: runs the other one
    :param way: one of the constants of this module
    :param feeds: inputs by name, with the types of the window
    :return: the results of the first model
    :raises CannotRunError: the first model does not load or does not run
    """
    if isinstance(first.joint, _Joint) and way in _SESSIONS and first.joint.loads(way):
        try:
            found = first.joint.run_both(way, feeds)
        except CannotRunError:  # one of them does not run
            return first.run(way, feeds)
        for runner, values in zip((first, second), found, strict=True):
            runner._found = way, feeds, values
    return first.run(way, feeds)


class _Joint(Runner):
    """Runs both sides of a window as one model.

    :param window: the window
    :param embed: big constants are in the model
    """

    def __init__(self, window: Window, embed: bool, constants: Values):
        self._window, self._embed = window, embed
        super().__init__(self._both, constants)

    def _both(self) -> ModelProto:
        found = self._window.joint_model(self._embed)
        if found is None:
            raise CannotRunError("the sides share names")
        model, names = found
        outputs = [o.name for o in model.graph.output]
        self._places = [outputs.index(name) for name in names]
        return model

    def run_both(self, way: str, feeds: Values) -> tuple[list[Any], list[Any]]:
        """The results of each side.

        :raises CannotRunError: the model does not run
        """
        found = self.run(way, feeds)
        return found[: len(self._places)], [found[i] for i in self._places]


def runners_of(
    window: Window, embed: bool, constants: Values | None = None
) -> tuple[Runner, Runner]:
    """Makes the runners of both sides of a window.

    :param window: a window
    :param embed: big constants are in the models
    :param constants: inputs that never change
    """
    given = dict(constants or {})
    joint = _Joint(window, embed, given)
    first, second = (
        Runner(functools.partial(window.model, i, embed), given, joint) for i in range(2)
    )
    return first, second


def wide_feeds(way: str, feeds: Values) -> Values:
    """The inputs with the types of some way to run: doubles, or those of the window."""
    return {n: as_wide(v) for n, v in feeds.items()} if way in _DOUBLES else feeds


_DOUBLES = frozenset({DOUBLE, REFERENCE_DOUBLE})
_REFERENCES = frozenset({REFERENCE, REFERENCE_DOUBLE})
#: the ways that run the joint model: sessions of onnxruntime cost more than what they compute
_SESSIONS = frozenset({RUNTIME, DOUBLE})


def check_elements(feeds: Values) -> None:
    """Refuses inputs that are too large for the reference evaluator.

    :raises CannotRunError: they are
    """
    total = sum(v.size for v in feeds.values() if isinstance(v, np.ndarray))
    if total > _REFERENCE_ELEMENTS:
        raise CannotRunError("too large for the reference evaluator")


class _Reference:
    """The reference evaluator of onnx."""

    def __init__(self, content: bytes, constants: Values):
        self._evaluator, self._constants = evaluator_of(content), constants

    def run(self, feeds: Values) -> list[Any]:
        """Runs the model, unless it is too large. Some implementations give doubles whatever the
        type of their inputs is: they become what the definition says."""
        large = {n: v for n, v in self._constants.items() if v.nbytes > FED_BYTES}
        check_elements({**feeds, **large})
        found = list(self._evaluator.run(None, {**feeds, **self._constants}))
        declared = [o.type.tensor_type.elem_type for o in self._evaluator.proto_.graph.output]
        if all(
            kind == TensorProto.DOUBLE or getattr(v, "dtype", None) != np.float64
            for kind, v in zip(declared, found, strict=True)
        ):
            return found
        return [
            v.astype(dtype) if dtype is not None and v.dtype == np.float64 else v
            for v, dtype in zip(found, self._types, strict=True)
        ]

    @cached_property
    def _types(self) -> list[Any]:
        """The types of floats of the results, None for others and if inference does not know."""
        model = ModelProto()
        model.CopyFrom(self._evaluator.proto_)
        for output in model.graph.output:
            output.ClearField("type")
        inferred = onnx.shape_inference.infer_shapes(model)
        kinds = (o.type.tensor_type.elem_type for o in inferred.graph.output)
        return [oh.tensor_dtype_to_np_dtype(k) if k and is_float(k) else None for k in kinds]

    def close(self) -> None:
        """Nothing to free."""


class _Here:
    """A session of this process, for the types numpy does not have."""

    def __init__(self, content: bytes, constants: Values):
        self._session = plain_session(content)
        self._constants = constants

    def run(self, feeds: Values) -> list[Any]:
        """Runs the model on values of onnxruntime."""
        outputs = self._session.get_outputs()
        values = {n: to_result(v).value for n, v in {**feeds, **self._constants}.items()}
        results = self._session.run_with_ort_values([o.name for o in outputs], values)
        return [to_python(OrtResult(v, o.type)) for v, o in zip(results, outputs, strict=True)]

    def close(self) -> None:
        """Nothing to free."""


class _There:
    """A session of another process, open again after a crash."""

    def __init__(self, content: bytes, constants: Values):
        self._content, self._constants = content, constants
        self._home = shared_sessions()
        self._open()

    def _open(self) -> None:
        self._number = self._home.open(self._content, self._constants)
        self._crashes = self._home.crashes

    def run(self, feeds: Values) -> list[Any]:
        """Runs the model."""
        if self._crashes != self._home.crashes:
            self._open()
        return self._home.run(self._number, feeds)

    def close(self) -> None:
        """Frees the session."""
        self._home.close(self._number)


def _check_domains(model: ModelProto) -> None:
    """Refuses the models that the reference evaluator does not run as onnx says.

    :raises CannotRunError: it does not
    """
    nodes = all_nodes(model.graph.node)
    if any(n.domain not in ("", "ai.onnx.ml") for n in nodes):
        raise CannotRunError("the reference evaluator only knows the operators of onnx")
    opset = max((o.version for o in model.opset_import if not main_domain(o.domain)), default=1)
    if opset < 13 and any(n.op_type in _FLATTENED for n in nodes):
        raise CannotRunError("the reference evaluator only knows the axis of opset 13")
    if any(n.op_type in _OPTIONALS for n in nodes):
        raise CannotRunError("the reference evaluator takes an optional for a list")
    if any(n.op_type == "MaxPool" and len(n.output) > 1 for n in nodes):
        raise CannotRunError("the reference evaluator gives other places of the largest elements")
    if any(n.op_type == "ConvTranspose" and len(n.input) > 2 and _in_groups(n) for n in nodes):
        raise CannotRunError("the reference evaluator adds the bias of the first group to others")


def _in_groups(node: NodeProto) -> bool:
    group = find_attribute(node, "group")
    return group is not None and (group.i > 1 or bool(group.ref_attr_name))


def _is_plain(kind: TypeProto, wide: bool) -> bool:
    """Whether numpy has a type, or the double that stands for it in a wide model."""
    if kind.HasField("sequence_type"):
        return _is_plain(kind.sequence_type.elem_type, wide)
    if kind.HasField("optional_type"):
        return _is_plain(kind.optional_type.elem_type, wide)
    itype = kind.tensor_type.elem_type
    if itype in (TensorProto.STRING, TensorProto.UNDEFINED) or (wide and is_float(itype)):
        return True
    return type(oh.tensor_dtype_to_np_dtype(itype)).__module__.startswith("numpy")
