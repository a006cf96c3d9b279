"""The reference evaluator of onnx, with the kernels it has wrong."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto


def reference_evaluator(model: ModelProto) -> Any:
    """An evaluator of onnx, `onnx.reference.ReferenceEvaluator`, that normalizes every channel in
    LRN. The one of onnx 1.23 normalizes as many channels as there are images.

    :param model: the model, or what the evaluator accepts instead
    :raises NotImplementedError: an operator has no kernel

    ::

        model = onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["": 18]>'
            "g (float[1, c, 1, 1] x) => (float[1, c, 1, 1] y) { y = LRN <size = 3> (x) }"
        )
        reference_evaluator(model).run(None, {"x": np.ones((1, 4, 1, 1), np.float32)})
    """
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model, new_ops=list(_corrected()))


@cache
def _corrected() -> tuple[type, ...]:
    from onnx.reference.op_run import OpRun

    class LRN(OpRun):
        op_domain = ""

        def _run(
            self, x: np.ndarray, alpha: float, beta: float, bias: float, size: int
        ) -> tuple[np.ndarray]:
            before = (size - 1) // 2
            pads = [(0, 0)] * x.ndim
            pads[1] = (before, size - 1 - before)
            squares, channels = np.pad(x * x, pads), x.shape[1]
            windows = [squares[:, i : i + channels] for i in range(size)]
            scale = bias + alpha / size * np.sum(windows, axis=0)
            return ((x / scale**beta).astype(x.dtype),)

    return (LRN,)
