"""Calls run in processes of their own: the death of one is the failure of its call, no more."""

from __future__ import annotations

import faulthandler
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeAlias

from xbuilder.errors import XoptimError

#: place of a call, and its result or its error
Outcome: TypeAlias = tuple[int, Any]
_SIGNAL = re.compile(r"\{(.*?)\}")


class LostProcess(XoptimError):
    """The process of a call died, or was stopped because it took too long."""


def run_in_processes(
    function: Callable[[Any], Any],
    arguments: Sequence[Any],
    processes: int,
    memory: int = 0,
    timeout: float = 0,
) -> Iterator[Outcome]:
    """Calls a function on each argument in other processes, which end with the iteration.

    :param function: it is pickled, and so are its arguments and its results
    :param arguments: one for each call
    :param processes: number of processes
    :param memory: bytes a process may allocate, on Linux; no limit if 0
    :param timeout: seconds a call may take, no limit if 0
    :return: the place of a call, and its result or its exception, as they end
    """
    pool = _Pool(memory, timeout)
    with ThreadPoolExecutor(max(1, min(processes, len(arguments)))) as threads:
        calls = {threads.submit(pool.call, function, a): i for i, a in enumerate(arguments)}
        try:
            for call in as_completed(calls):
                yield calls[call], call.exception() or call.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            pool.close()


class _Pool:
    """One process for each thread that calls, replaced when it dies."""

    def __init__(self, memory: int, timeout: float):
        self.memory = memory
        self.timeout = timeout
        self._mine = threading.local()
        self._all: dict[int, Any] = {}

    def call(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """Calls the function in the process of this thread.

        :raises LostProcess: the process died, or took too long
        """
        from loky import process_executor

        executor = getattr(self._mine, "executor", None)
        if executor is None:
            executor = process_executor.ProcessPoolExecutor(
                max_workers=1, initializer=_prepare, initargs=(self.memory,)
            )
            self._mine.executor = self._all[id(executor)] = executor
        try:
            # a process that receives the function imports its module, before the time runs
            executor.submit(callable, function).result()
            future = executor.submit(function, argument)
            return future.result(self.timeout or None)
        except TimeoutError as e:
            if future.done():
                raise
            self._stop(executor)
            raise LostProcess(f"stopped, it took more than {self.timeout:g} s") from e
        except process_executor.BrokenProcessPool as e:
            self._stop(executor)
            signals = _SIGNAL.search(str(e))
            raise LostProcess(f"its process died, {signals[1] if signals else e}") from e

    def _stop(self, executor: Any) -> None:
        self._mine.executor = None
        self._all.pop(id(executor), None)
        executor.shutdown(wait=True, kill_workers=True)

    def close(self) -> None:
        """Ends the processes."""
        for executor in list(self._all.values()):
            executor.shutdown(wait=False, kill_workers=True)


def _prepare(size: int) -> None:
    """Limits what this process may allocate, where the system knows how; it dies in silence."""
    faulthandler.disable()
    try:
        import resource
    except ImportError:  # Windows
        return
    if size > 0:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def default_memory(processes: int) -> int:
    """The memory of the machine shared by some processes, 0 if it is not known.

    :param processes: their number
    """
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
    return total // max(processes, 1)
