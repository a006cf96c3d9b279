"""A session of onnxruntime in another process, where a crash of onnxruntime becomes an error."""

from __future__ import annotations

import contextlib
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xbuilder.errors import XoptimError
from xbuilder.runtimes.custom_operators import custom_libraries

from . import session_child


class SessionError(XoptimError):
    """onnxruntime refuses a model or its inputs, or its process died."""


class SessionProcess:
    """Runs a model in another process, started when it is needed and again after a crash.

    :param source: a serialized model or the path of its file
    :param providers: execution providers, CPU if empty
    :param optimized: onnxruntime optimizes the model
    :param profile: see :func:`xoptim.trust.sessions.session_child.open_session`
    :param idle: processes without a model, since importing onnxruntime takes longer than running a
        small one; one of them loads the model if there is any, and the process joins them once the
        session is closed; None for a process of its own
    :raises SessionError: if onnxruntime does not load the model

    Example::

        session = SessionProcess("model.onnx")
        try:
            results = session.run(None, {"x": x})
        finally:
            session.close()
    """

    def __init__(
        self,
        source: bytes | str,
        providers: Sequence[str] = (),
        optimized: bool = False,
        profile: str = "",
        idle: list[subprocess.Popen[bytes]] | None = None,
    ):
        self._model = source, (list(providers), optimized, profile, 0, custom_libraries())
        self._idle = idle
        self._process: subprocess.Popen[bytes] | None = None
        self.inputs: list[str] = []
        self.defaults: list[str] = []
        self.outputs: list[str] = []
        self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        first: tuple[Any, ...] = ()
        if self._idle:
            process = self._idle.pop()
        else:
            process, first = start_child(), (sys.path,)
        self._process = process
        try:
            self.inputs, self.defaults, self.outputs = self._ask(process, *first, self._model)
        except BaseException:
            self.close()
            raise
        return process

    def run(
        self, names: Sequence[str] | None, feeds: Mapping[str, Any], seconds: float = 0.0
    ) -> list[Any]:
        """Runs the model.

        :param names: outputs to return, None for all of them
        :param feeds: inputs by name
        :param seconds: the run fails after this time, 0 for never
        :raises SessionError: if onnxruntime refuses them, takes longer, or dies
        """
        process = self._process or self._start()
        results: list[Any] = self._ask(process, (names, dict(feeds), seconds))
        return results

    def end_profiling(self) -> str:
        """Ends the profile and returns the path of its file.

        :raises SessionError: the process died
        """
        path: str = self._ask(self._process or self._start(), (None, None))
        return path

    def peak_memory(self) -> int | None:
        """The largest resident memory of the process so far, in bytes; None where the system does
        not tell, which is anywhere but Linux."""
        if self._process is None:
            return None
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return None
        found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
        return None if found is None else int(found[1]) * 1024

    def _ask(self, process: subprocess.Popen[bytes], *requests: Any) -> Any:
        assert process.stdin is not None and process.stdout is not None
        try:
            for request in requests:
                pickle.dump(request, process.stdin, protocol=5)
            process.stdin.flush()
            done, value = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as e:
            process.wait()
            reason = how_it_ended(process.returncode)
            self._end()
            raise SessionError(
                f"it crashes, {reason}: other sizes may avoid it, --dim NAME=SIZE gives them to "
                "the command"
            ) from e
        except BaseException:
            self._end()  # a reply is on its way
            raise
        if not done:
            raise SessionError(value)
        return value

    def close(self) -> None:
        """Frees the memory of the model. Ends the process, or leaves it to another session."""
        process = self._process
        if process is None or self._idle is None:
            self._end()
            return
        try:
            self._ask(process, (None, ()))
        except SessionError:
            return  # it is dead
        self._process = None
        self._idle.append(process)

    def _end(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            end_child(process)


def start_child() -> subprocess.Popen[bytes]:
    """Starts a process that serves on its standard streams, see
    :func:`xoptim.trust.sessions.session_child.main`."""
    return subprocess.Popen(
        [sys.executable, session_child.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def end_child(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that :func:`start_child` started."""
    process.kill()
    process.wait()
    for stream in (process.stdout, process.stdin):
        with contextlib.suppress(BrokenPipeError):  # unsent data
            if stream is not None:
                stream.close()


def how_it_ended(code: int) -> str:
    """The signal that ended a process, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
