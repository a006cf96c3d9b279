"""Many small sessions of onnxruntime in one other process, whose crashes become errors."""

from __future__ import annotations

import atexit
import functools
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from xbuilder.errors import XoptimError

from ..sessions.session_child import MANY
from ..sessions.session_process import how_it_ended, start_child


class CannotRunError(XoptimError):
    """A model of a window does not load or does not run."""


class Sessions:
    """Opens sessions in a process that starts when it is needed, and again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._last = 0
        self._closed: list[int] = []
        #: number of processes that crashed
        self.crashes = 0

    def open(self, model: bytes, constants: Mapping[str, Any]) -> int:
        """Opens a session.

        :param model: a serialized model
        :param constants: inputs that never change
        :return: its number
        :raises CannotRunError: onnxruntime refuses the model, or dies
        """
        self._last += 1
        closed, self._closed = self._closed, []
        self._ask("open", self._last, model, dict(constants), closed)
        return self._last

    def run(self, number: int, inputs: Mapping[str, Any]) -> list[Any]:
        """Runs a session.

        :param number: its number
        :param inputs: inputs by name
        :raises CannotRunError: onnxruntime refuses them, or dies
        """
        found: list[Any] = self._ask("run", number, dict(inputs))
        return found

    def close(self, number: int) -> None:
        """Frees a session, with the next one that opens."""
        self._closed.append(number)

    def end(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        process = self._process = start_child(MANY)
        assert process.stdin is not None
        pickle.dump(sys.path, process.stdin, protocol=5)
        return process

    def _ask(self, *request: Any) -> Any:
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(request, process.stdin, protocol=5)
            process.stdin.flush()
            done, value = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as e:
            process.wait()
            self._process = None
            process.stdout.close()
            self.crashes += 1
            raise CannotRunError(f"onnxruntime crashes, {how_it_ended(process.returncode)}") from e
        except BaseException:
            self.end()  # a reply is on its way
            raise
        if not done:
            raise CannotRunError(str(value).splitlines()[0][:300])
        return value


@functools.lru_cache(maxsize=1)
def shared_sessions() -> Sessions:
    """The sessions of this process; theirs ends with it."""
    sessions = Sessions()
    atexit.register(sessions.end)
    return sessions
