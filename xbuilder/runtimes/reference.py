"""The reference evaluator of onnx, with the kernels it has wrong."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto


def reference_evaluator(model: ModelProto) -> Any:
    """An evaluator of onnx, `onnx.reference.ReferenceEvaluator`, with three kernels of its own. LRN
    normalizes every channel: the one of onnx 1.23 normalizes as many channels as there are images.
    BatchNormalization uses the mean and the variance it is given: the one of onnx 1.23 computes
    those of its input before opset 14. Erf has the digits of double: the one of onnx 1.23 computes
    it in float. The functions that define operators, such as Gelu, use them as well.

    :param model: the model, or what the evaluator accepts instead
    :raises NotImplementedError: an operator has no kernel

    ::

        model = onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["": 18]>'
            "g (float[1, c, 1, 1] x) => (float[1, c, 1, 1] y) { y = LRN <size = 3> (x) }"
        )
        reference_evaluator(model).run(None, {"x": np.ones((1, 4, 1, 1), np.float32)})
    """
    opsets = {o.domain: o.version for o in getattr(model, "opset_import", ())}
    lrn, erf, batch_normalization = _corrected()
    is_old = 7 <= opsets.get("", 0) < 14
    kernels = [lrn, erf, *([batch_normalization] if is_old else [])]
    return _evaluator_class()(model, new_ops=kernels)


@cache
def _evaluator_class() -> Any:
    from onnx.reference import ReferenceEvaluator

    class Evaluator(ReferenceEvaluator):
        """An evaluator which gives its kernels to those of functions: they ask for none."""

        def __init__(self, proto: Any, **options: Any) -> None:
            kernels = options.pop("new_ops", None) or [*_corrected()[:2]]
            super().__init__(proto, new_ops=kernels, **options)

    return Evaluator


@cache
def _corrected() -> tuple[type, type, type]:
    from onnx.reference.op_run import OpRun
    from onnx.reference.ops.op_batch_normalization import BatchNormalization_9

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

    errors = np.vectorize(math.erf, otypes=["d"])

    class Erf(OpRun):
        op_domain = ""

        def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
            return (errors(x.astype(np.float64)).astype(x.dtype),)

    trained: Any = BatchNormalization_9

    class BatchNormalization(OpRun):
        op_domain = ""

        def _run(
            self,
            x: np.ndarray,
            *factors: np.ndarray,
            epsilon: float,
            momentum: float,
            **others: int,
        ) -> tuple[np.ndarray, ...]:
            if len(self.onnx_node.output) > 1:
                return tuple(trained._run(self, x, *factors, epsilon, momentum))
            shape = (-1, *[1] * (x.ndim - 2))
            scale, bias, mean, variance = (v.reshape(shape) for v in factors)
            return ((scale * (x - mean) / np.sqrt(variance + epsilon) + bias).astype(x.dtype),)

    return LRN, Erf, BatchNormalization
