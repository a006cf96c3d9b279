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

from . import session_child


class SessionError(XoptimError):
    """onnxruntime refuses a model or its inputs, or its process died."""


class SessionProcess:
    """Runs a model in another process, started when it is needed and again after a crash.

    :param source: a serialized model or the path of its file
    :param providers: execution providers, CPU if empty
    :param optimized: onnxruntime optimizes the model
    :param profile: see :func:`xoptim.trust.sessions.session_child.open_session`
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
    ):
        self._model = source, (list(providers), optimized, profile)
        self._process: subprocess.Popen[bytes] | None = None
        self.inputs: list[str] = []
        self.defaults: list[str] = []
        self.outputs: list[str] = []
        self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        process = self._process = start_child()
        try:
            self.inputs, self.defaults, self.outputs = self._ask(process, sys.path, self._model)
        except BaseException:
            self.close()
            raise
        return process

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """Runs the model.

        :param names: outputs to return, None for all of them
        :param feeds: inputs by name
        :raises SessionError: if onnxruntime refuses them, or dies
        """
        process = self._process or self._start()
        results: list[Any] = self._ask(process, (names, dict(feeds)))
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
            self.close()
            raise SessionError(
                f"it crashes, {reason}: other sizes may avoid it, --dim NAME=SIZE gives them to "
                "the command"
            ) from e
        if not done:
            raise SessionError(value)
        return value

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stdin):
            with contextlib.suppress(BrokenPipeError):  # unsent data
                if stream is not None:
                    stream.close()


def start_child(*arguments: str) -> subprocess.Popen[bytes]:
    """Starts a process that serves on its standard streams, see
    :func:`xoptim.trust.sessions.session_child.main`.

    :param arguments: those of the program
    """
    return subprocess.Popen(
        [sys.executable, session_child.__file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def how_it_ended(code: int) -> str:
    """The signal that ended a process, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
