"""A graph of torch.compile run by onnxruntime: tensors in, tensors out, nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from .graph_outputs import Computed, Constant, InputBack, Output


class CompiledFxGraph:
    """Runs a model in place of a graph. Both share the memory of their tensors (DLPack).

    :param model: the model of what the graph computes, None if it computes nothing
    :param names: the name of each argument of the graph
    :param outputs: where each output of the graph comes from
    """

    def __init__(
        self, model: onnx.ModelProto | None, names: Sequence[str], outputs: Sequence[Output]
    ) -> None:
        # torch then gives the arguments as a list, which the call empties: it holds no tensor that
        # nobody needs any more; an attribute of the class is lost when torch wraps the call
        self._boxed_call = True
        self.outputs = outputs
        self.session: Any = None
        self.feeds: list[tuple[int, str]] = []
        if model is not None:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            options.log_severity_level = 3
            self.session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            read = {i.name for i in self.session.get_inputs()}
            self.feeds = [(i, name) for i, name in enumerate(names) if name in read]

    def __call__(self, args: list[Any]) -> tuple[Any, ...]:
        """Runs the graph.

        :param args: one value for each input of the graph: a tensor, a number, None
        :return: one value for each output of the graph
        """
        given = list(args)
        args.clear()
        computed: list[Any] = []
        if self.session is not None:
            feeds = {name: ort_value(given[i]) for i, name in self.feeds}
            computed = self.session.run_with_ort_values(None, feeds)
        return tuple(self._result(output, given, computed) for output in self.outputs)

    def _result(self, output: Output, given: list[Any], computed: list[Any]) -> Any:
        """One output of the graph."""
        if isinstance(output, Constant):
            return output.value
        if isinstance(output, InputBack):
            return given[output.position]
        return _python_result(output, computed[output.position])


def _python_result(output: Computed, value: Any) -> Any:
    """A tensor or a number from a result of onnxruntime."""
    if output.number is not None:
        return output.number(value.numpy().item())
    tensor = torch.utils.dlpack.from_dlpack(value)
    if output.order is None:
        return tensor
    shaped = torch.empty_permuted(tensor.shape, output.order, dtype=tensor.dtype)
    return shaped.copy_(tensor)


def ort_value(value: Any) -> onnxruntime.OrtValue:
    """A tensor or a number for onnxruntime, which reads the memory of the tensor.

    :param value: tensor or Python number
    """
    if isinstance(value, torch.Tensor):
        return onnxruntime.OrtValue.from_dlpack(value.detach().contiguous())
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.array(value))
