"""The backend: one model for each graph, forward and backward, that torch.compile captures.

::

    model = torch.compile(model, backend=OnnxBackend())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

from xbuilder import OptimizationOptions
from xbuilder.builder.optimization_options import as_options
from xbuilder.errors import OptionError
from xbuilder.support.argument_types import PATH, check_type

from ..dispatch.dispatcher import Dispatcher
from ..to_onnx import to_onnx
from .compiled_graph import CompiledFxGraph
from .graph_outputs import split_outputs


class OnnxBackend:
    """A backend of ``torch.compile`` for inference and training on CPU.

    torch captures the graphs and makes those of the gradients (AOTAutograd); each becomes a model,
    optimized, that onnxruntime runs. Weights are inputs of the models: an optimizer of torch
    updates them. A size that changes gives a model with dynamic dimensions, as torch decides
    (``torch.compile(dynamic=...)``, ``torch._dynamo.mark_dynamic``).

    :param options: optimizations or names of patterns, ``default+onnxruntime`` by default
    :param dispatcher: converters of the user
    :param target_opset: opset, or opsets by domain, as in :func:`torch_interpreter.to_onnx`
    :param folder: an existing folder where the models are written
    :param verbose: prints the name and the size of every model
    :raises OptionError: a parameter has another type, the folder does not exist

    ``models`` holds what was made so far: ``forward_0`` and ``backward_0`` for the first graph if
    it is trained, ``inference_0`` if it is not.

    >>> import torch
    >>> from torch_interpreter import OnnxBackend
    >>> backend = OnnxBackend()
    >>> weight = torch.ones(3, requires_grad=True)
    >>> double = torch.compile(lambda x: (x * weight * 2).sum(), backend=backend)
    >>> double(torch.arange(3.0)).backward()
    >>> weight.grad
    tensor([0., 2., 4.])
    >>> list(backend.models)
    ['forward_0', 'backward_0']
    """

    def __init__(
        self,
        options: OptimizationOptions | str | None = None,
        dispatcher: Dispatcher | None = None,
        target_opset: int | Mapping[str, int] | None = None,
        folder: str | Path | None = None,
        verbose: int = 0,
    ) -> None:
        check_type("dispatcher", dispatcher, Dispatcher, optional=True)
        check_type("folder", folder, PATH, "a path", optional=True)
        if folder is not None and not Path(folder).is_dir():
            raise OptionError(f"folder={str(folder)!r} is not an existing folder.")
        self.options = as_options(options, "options") or OptimizationOptions(
            patterns="default+onnxruntime"
        )
        self.dispatcher = dispatcher
        self.target_opset = target_opset
        self.folder = None if folder is None else Path(folder)
        self.verbose = verbose
        self.models: dict[str, onnx.ModelProto] = {}
        self._graphs = 0

    def __call__(self, module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compiles one graph, as torch.compile asks.

        :param module: graph of torch functions
        :param inputs: its arguments, symbolic numbers included
        :return: a function that takes the same arguments
        """
        # dynamo takes seconds to import, it is there already when a backend is called
        from torch._dynamo.backends.common import aot_autograd

        pair = _Pair(self)
        compiled: Callable[..., Any] = aot_autograd(
            fw_compiler=pair.forward,
            bw_compiler=pair.backward,
            inference_compiler=pair.inference,
            partition_fn=pair.partition,
        )(module, inputs)
        return compiled

    def compile_graph(
        self, name: str, module: torch.fx.GraphModule, inputs: Sequence[Any], shown: int | None
    ) -> CompiledFxGraph:
        """Makes a model, then a session, of one graph of operators.

        :param name: name of the model
        :param module: graph of operators
        :param inputs: its arguments
        :param shown: how many outputs, the first ones, the user sees, all by default
        :raises OptionError: a tensor is not on CPU
        """
        devices = {v.device.type for v in inputs if isinstance(v, torch.Tensor)} - {"cpu"}
        if devices:
            raise OptionError(
                f"OnnxBackend runs on CPU, some tensors are on {sorted(devices)}: move the model "
                "and its arguments with .to('cpu')."
            )
        names = [n.name for n in module.graph.find_nodes(op="placeholder")]
        reduced, outputs = split_outputs(module, shown)
        onx = None
        if reduced.graph.output_node().args[0]:
            onx = self.models[name] = to_onnx(
                reduced,
                tuple(inputs),
                options=self.options,
                dispatcher=self.dispatcher,
                target_opset=self.target_opset,
                filename=self.folder and self.folder / f"{name}.onnx",
            )
            if self.verbose:
                print(f"[OnnxBackend] {name}: {len(onx.graph.node)} nodes")
        return CompiledFxGraph(onx, names, outputs)

    def next_number(self) -> int:
        """The number of the next graph. torch may drop a graph before it is compiled."""
        self._graphs += 1
        return self._graphs - 1


class _Pair:
    """The graphs of one call of the backend: a forward and its backward, or an inference.

    :param backend: the backend
    """

    def __init__(self, backend: OnnxBackend) -> None:
        self.backend = backend
        self.number = 0
        self.returned: int | None = None

    def partition(
        self, joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **kwargs: Any
    ) -> Any:
        """Splits the graph of both into forward and backward, keeps what the user sees.

        :param joint: the graph of both
        :param inputs: its arguments
        :param num_fwd_outputs: the number of outputs of the forward
        :param kwargs: other arguments of torch
        """
        from torch._functorch.partitioners import default_partition

        self.returned = num_fwd_outputs
        return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **kwargs)

    def forward(self, module: torch.fx.GraphModule, inputs: Sequence[Any]) -> CompiledFxGraph:
        """The graph of the results, and of what the backward needs."""
        self.number = self.backend.next_number()
        name = f"forward_{self.number}"
        return self.backend.compile_graph(name, module, inputs, self.returned)

    def backward(self, module: torch.fx.GraphModule, inputs: Sequence[Any]) -> CompiledFxGraph:
        """The graph of the gradients, whose strides do not matter."""
        return self.backend.compile_graph(f"backward_{self.number}", module, inputs, 0)

    def inference(self, module: torch.fx.GraphModule, inputs: Sequence[Any]) -> CompiledFxGraph:
        """The graph of the results only."""
        name = f"inference_{self.backend.next_number()}"
        return self.backend.compile_graph(name, module, inputs, None)
