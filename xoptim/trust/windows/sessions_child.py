"""The program of :class:`.sessions.Sessions`: many small sessions of onnxruntime, through pipes.

It imports nothing of the project, to start fast.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any, BinaryIO


def open_sessions() -> Any:
    """A function that opens a session on one thread, without onnxruntime's optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    return lambda model: onnxruntime.InferenceSession(model, options, providers=providers)


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Replies until the requests end.

    A request is ``("open", number, model, constants, closed)``, where *closed* are the numbers of
    sessions that are no longer needed, or ``("run", number, inputs)``. A reply is
    ``(True, value)``, or ``(False, message)`` when onnxruntime refuses.
    """
    make = open_sessions()
    sessions: dict[int, tuple[Any, dict[str, Any]]] = {}
    value: object = None
    while True:
        try:
            kind, number, *rest = pickle.load(requests)
        except EOFError:
            return
        try:
            accepted = True
            if kind == "open":
                model, constants, closed = rest
                for old in closed:
                    sessions.pop(old, None)
                sessions[number] = make(model), constants
                value = None
            else:
                session, constants = sessions[number]
                value = session.run(None, {**rest[0], **constants})
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
