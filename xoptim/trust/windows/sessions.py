"""Many small sessions of onnxruntime in one other process, whose crashes become errors."""

from __future__ import annotations

import atexit
import functools
import hashlib
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from xbuilder.errors import XoptimError
from xbuilder.runtimes.custom_operators import custom_libraries

from ..sessions.session_process import how_it_ended, start_child
from .window import FED_BYTES


class CannotRunError(XoptimError):
    """A model of a window does not load or does not run."""


#: models the process keeps for the next sessions, and the largest one in bytes
_KEPT, _LARGEST = 128, 1 << 18
#: refused models that are remembered
_REFUSED = 1024


class _Open(NamedTuple):
    """An open session.

    :param key: its model
    :param constants: the small constants, which are sent with the inputs
    :param has_more: the process has its large constants
    """

    key: bytes
    constants: dict[str, Any]
    has_more: bool


class Sessions:
    """Opens sessions in a process that starts when it is needed, and again after a crash.

    Sessions of equal models are one session of onnxruntime, with the constants of each.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._last = 0
        self._open: dict[int, _Open] = {}
        self._closed: list[int] = []
        #: sizes of the models the process has, the last used ones last
        self._loaded: dict[bytes, int] = {}
        self._refused: dict[bytes, str] = {}
        #: number of processes that crashed
        self.crashes = 0

    def open(self, model: bytes, constants: Mapping[str, Any]) -> int:
        """Opens a session.

        :param model: a serialized model
        :param constants: inputs that never change
        :return: its number
        :raises CannotRunError: onnxruntime refuses the model, or dies
        """
        key = hashlib.sha256("\n".join(custom_libraries()).encode() + model).digest()
        if key in self._refused:
            raise CannotRunError(self._refused[key])
        self._last += 1
        large = {n: v for n, v in constants.items() if v.nbytes > FED_BYTES}
        small = {n: v for n, v in constants.items() if n not in large}
        if large or key not in self._loaded:
            self._load(key, model, large)
        self._loaded[key] = self._loaded.pop(key, len(model))
        self._open[self._last] = _Open(key, small, bool(large))
        return self._last

    def _load(self, key: bytes, model: bytes, constants: Mapping[str, Any]) -> None:
        """Sends a model the process does not have, and large constants."""
        closed, self._closed = self._closed, []
        crashes, dropped = self.crashes, self._dropped(key)
        for old in dropped:
            del self._loaded[old]
        sent = None if key in self._loaded else model
        try:
            libraries = custom_libraries()
            self._ask("open", self._last, key, sent, dict(constants), closed, dropped, libraries)
        except CannotRunError as e:
            if crashes == self.crashes:
                self._refused[key] = str(e)
                if len(self._refused) > _REFUSED:
                    del self._refused[next(iter(self._refused))]
            raise

    def _dropped(self, key: bytes) -> list[bytes]:
        """The models that the process forgets: no session needs them, and they are old or large."""
        used = {key, *(session.key for session in self._open.values())}
        rank = len(self._loaded) - _KEPT
        return [
            old
            for i, (old, size) in enumerate(self._loaded.items())
            if old not in used and (i < rank or size > _LARGEST)
        ]

    def run(self, number: int, inputs: Mapping[str, Any]) -> list[Any]:
        """Runs a session.

        :param number: its number
        :param inputs: inputs by name
        :return: its results; those that are equal to the last bit are the same object
        :raises CannotRunError: it is closed, or onnxruntime refuses the inputs, or dies
        """
        session = self._open.get(number)
        if session is None:
            raise CannotRunError(f"session {number} is closed")
        more = number if session.has_more else None
        found: list[Any] = self._ask("run", session.key, more, {**inputs, **session.constants})
        return found

    def close(self, number: int) -> None:
        """Frees a session. Its large constants are freed when the next one opens."""
        session = self._open.pop(number, None)
        if session is not None and session.has_more:
            self._closed.append(number)

    def end(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        self._loaded.clear()
        if process is not None:
            process.kill()
            process.communicate()

    def start(self, idle: list[subprocess.Popen[bytes]] | None = None) -> None:
        """Starts the process, which imports onnxruntime in the meantime, unless it runs.

        :param idle: processes without a model, one of which is taken rather than started
        """
        if self._process is None and idle:
            self._process = idle.pop()
        elif self._process is None:
            self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        process = self._process = start_child()
        assert process.stdin is not None
        pickle.dump(sys.path, process.stdin, protocol=5)
        return process

    def _ask(self, *request: Any) -> Any:
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump((request,), process.stdin, protocol=5)
            process.stdin.flush()
            done, value = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as e:
            process.wait()
            self._process = None
            self._loaded.clear()
            process.stdout.close()
            self.crashes += 1
            raise CannotRunError(f"onnxruntime crashes, {how_it_ended(process.returncode)}") from e
        except BaseException:
            self.end()  # a reply is on its way
            raise
        if not done:
            raise CannotRunError(first_line(value))
        return value


def first_line(error: object) -> str:
    """The first line of an error or of its message, which may be followed by pages."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


@functools.lru_cache(maxsize=1)
def shared_sessions() -> Sessions:
    """The sessions of this process; theirs ends with it."""
    sessions = Sessions()
    atexit.register(sessions.end)
    return sessions
