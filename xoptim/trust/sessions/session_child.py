"""The program of a :class:`xoptim.trust.sessions.session_process.SessionProcess`: one session of
onnxruntime, called through pipes.

It imports nothing of the project, to start fast.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO


def open_session(
    source: bytes | str, providers: Sequence[str], optimized: bool = False, profile: str = ""
) -> Any:
    """Opens a session that runs the file as it is, without onnxruntime's optimizations.

    :param source: a serialized model or the path of its file
    :param providers: execution providers, CPU if empty
    :param optimized: onnxruntime optimizes the model, as it does by default
    :param profile: beginning of the path of a profile of the nodes that run, empty for none
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    chosen = list(providers or ["CPUExecutionProvider"])
    return onnxruntime.InferenceSession(source, options, providers=chosen)


def names_of(session: Any) -> tuple[list[str], list[str], list[str]]:
    """The names of the inputs, of the inputs with a default value, of the outputs."""
    values = session.get_inputs(), session.get_overridable_initializers(), session.get_outputs()
    inputs, defaults, outputs = ([value.name for value in group] for group in values)
    return inputs, defaults, outputs


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Replies until the requests end: first a model to load, then inputs to run. A request
    without inputs ends the profile and receives its path.

    A reply is ``(True, value)``, or ``(False, message)`` when onnxruntime refuses.
    """
    session = None
    value: object
    while True:
        try:
            first, second = pickle.load(requests)
        except EOFError:
            return
        try:
            accepted = True
            if session is None:
                session = open_session(first, *second)
                value = names_of(session)
            elif second is None:
                value = session.end_profiling()
            else:
                value = session.run(first, second)
        except Exception as e:
            accepted, value = False, str(e).strip() or type(e).__name__
        pickle.dump((accepted, value), replies, protocol=5)
        replies.flush()


def main() -> None:
    """Serves on the standard streams; the first object read is the path of the modules."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of a library is not a reply
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no core file
    sys.path[:] = pickle.load(sys.stdin.buffer)
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
