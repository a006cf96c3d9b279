"""The program of the processes that run onnxruntime: one session, and many small ones.

It imports nothing of the project unless numpy lacks a type, to start fast.
:class:`.session_process.SessionProcess` is answered by :class:`OneSession`,
:class:`xoptim.trust.windows.sessions.Sessions` by :class:`ManySessions`.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

#: types of elements that numpy has, as onnxruntime writes them
_KNOWN = {
    "bool", "complex64", "complex128", "double", "float", "float16", "int8", "int16", "int32",
    "int64", "string", "uint8", "uint16", "uint32", "uint64",
}  # fmt: skip


class ArraySession:
    """A session of onnxruntime that reads and returns arrays, even of types that numpy lacks."""

    def __init__(self, session: Any):
        self._session = session
        values = session.get_inputs(), session.get_overridable_initializers(), session.get_outputs()
        inputs, defaults, outputs = ([value.name for value in group] for group in values)
        #: the names of the inputs, of the inputs with a default value, of the outputs
        self.names: tuple[list[str], list[str], list[str]] = (inputs, defaults, outputs)
        kinds = [v.type for group in values for v in group if v.type.startswith("tensor(")]
        self._is_plain = _KNOWN.issuperset(kind[len("tensor(") : -1] for kind in kinds)

    def run(
        self, names: Sequence[str] | None, feeds: Mapping[str, Any], seconds: float = 0.0
    ) -> list[Any]:
        """Runs the model.

        :param names: outputs to return, None for all of them
        :param feeds: inputs by name
        :param seconds: the run fails after this time, 0 for never
        """
        with _stopped_after(seconds) as options:
            if self._is_plain:
                found: list[Any] = self._session.run(names, dict(feeds), options)
                return found
            from xoptim.trust.sessions.foreign_values import run_foreign  # slow to import

            return run_foreign(self._session, names, feeds, options)

    def end_profiling(self) -> str:
        """Ends the profile and returns the path of its file."""
        return str(self._session.end_profiling())


@contextmanager
def _stopped_after(seconds: float) -> Iterator[Any]:
    """The options of a run that onnxruntime stops after a time, between two nodes."""
    if not seconds:
        yield None
        return
    import threading

    import onnxruntime

    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    timer = threading.Timer(seconds, setattr, (options, "terminate", True))
    timer.start()
    try:
        yield options
    finally:
        timer.cancel()


def open_session(
    source: bytes | str,
    providers: Sequence[str],
    optimized: bool = False,
    profile: str = "",
    threads: int = 0,
    libraries: Sequence[str] = (),
) -> Any:
    """Opens a session that runs the file as it is, without onnxruntime's optimizations.

    :param source: a serialized model or the path of its file
    :param providers: execution providers, CPU if empty
    :param optimized: onnxruntime optimizes the model, as it does by default
    :param profile: beginning of the path of a profile of the nodes that run, empty for none
    :param threads: number of threads of an operator, 0 for as many as cores
    :param libraries: libraries of custom operators
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    for library in libraries:
        options.register_custom_ops_library(library)
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    chosen: list[Any] = list(providers or ["CPUExecutionProvider"])
    if "CUDAExecutionProvider" in chosen:
        if hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()  # finds the libraries that torch ships
        # products of float32 that keep their 24 bits, to be compared with those of the CPU
        exact = ("CUDAExecutionProvider", {"use_tf32": "0"})
        chosen = [exact if name == exact[0] else name for name in chosen]
    return onnxruntime.InferenceSession(source, options, providers=chosen)


class OneSession:
    """Answers a request for a model to load, then inputs to run. A request without inputs ends the
    profile and receives its path, one without options unloads the model."""

    def __init__(self) -> None:
        self._session: Any = None

    def __call__(self, first: Any, second: Any, seconds: float = 0.0) -> Any:
        if isinstance(second, tuple):
            self._session = None
            self._session = ArraySession(open_session(first, *second)) if second else None
            return self._session.names if second else None
        if second is None:
            return self._session.end_profiling()
        return self._session.run(first, second, seconds)


class ManySessions:
    """Sessions of one thread, by the keys of their models, and large constants by number.

    Answers ``("open", number, key, model, constants, closed, dropped, libraries)``, where *model*
    is None if the key is known, *closed* are the numbers of the constants and *dropped* the keys of
    the models that are no longer needed, and *libraries* those of custom operators. Answers
    ``("run", key, number, inputs)``, where *number* is None if the inputs are complete. Equal
    results are one object, which is sent once.
    """

    def __init__(self) -> None:
        self._sessions: dict[bytes, Any] = {}
        self._constants: dict[int | None, dict[str, Any]] = {None: {}}

    def __call__(self, kind: str, *request: Any) -> Any:
        if kind == "open":
            number, key, model, constants, closed, dropped, libraries = request
            for old in closed:
                self._constants.pop(old, None)
            for name in dropped:
                self._sessions.pop(name, None)
            if model is not None:
                self._sessions[key] = open_session(model, (), threads=1, libraries=libraries)
            self._constants[number] = constants
            return None
        key, number, inputs = request
        return _merged(self._sessions[key].run(None, {**inputs, **self._constants[number]}))


def _merged(values: Sequence[Any]) -> list[Any]:
    """The same values, where arrays of one type and shape that are equal to the last bit are one
    object."""
    known: dict[Any, Any] = {}
    found = []
    for value in values:
        is_plain = hasattr(value, "tobytes") and not value.dtype.hasobject
        key = (value.dtype, value.shape, value.tobytes()) if is_plain else id(value)
        found.append(known.setdefault(key, value))
    return found


def _reply(answer: Callable[..., Any], *request: Any) -> tuple[bool, Any]:
    """The value of a request, or why onnxruntime refuses it."""
    try:
        return True, answer(*request)
    except Exception as e:
        return False, str(e).strip() or type(e).__name__


def serve(answer: Callable[..., Any], requests: BinaryIO, replies: BinaryIO) -> None:
    """Replies until the requests end.

    A reply is ``(True, value)``, or ``(False, message)`` when onnxruntime refuses.

    :param answer: gives the value of a request
    :param requests: where they are read
    :param replies: where replies are written
    """
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_reply(answer, *request), replies, protocol=5)
        replies.flush()


def answers() -> Callable[..., Any]:
    """A function that answers both kinds of requests; one of :class:`ManySessions` is alone in a
    tuple."""
    one, many = OneSession(), ManySessions()
    return lambda first, *others: one(first, *others) if others else many(*first)


def main() -> None:
    """Serves on the standard streams; the first object read is the path of the modules."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of a library is not a reply
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no core file
    sys.path[:] = pickle.load(sys.stdin.buffer)
    serve(answers(), sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
