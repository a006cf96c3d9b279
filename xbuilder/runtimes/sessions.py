"""Makes sessions of onnxruntime that run models without further optimization."""

from __future__ import annotations

from typing import Any


def plain_session(model: bytes | str) -> Any:
    """A session on CPU, one thread, without the optimizations of onnxruntime, which logs nothing.

    :param model: a serialized model or the path of its file
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
