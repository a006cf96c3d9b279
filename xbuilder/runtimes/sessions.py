"""Makes sessions of onnxruntime, and finds the execution providers a processor needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto, TensorProto, helper

from ..errors import OptionError
from .custom_operators import KNOWN_DOMAINS, custom_libraries, is_unknown_operator
from .processors import PROVIDERS, processors_of


def quiet_options() -> Any:
    """Options of a session that logs nothing and knows the custom operators, see
    :func:`.custom_operators.custom_operators`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for library in custom_libraries():
        options.register_custom_ops_library(library)
    return options


def plain_session(model: bytes | str, threads: int = 1) -> Any:
    """A session on CPU, without the optimizations of onnxruntime, which logs nothing.

    :param model: a serialized model or the path of its file
    :param threads: number of threads of an operator, 0 for as many as cores
    """
    import onnxruntime

    options = quiet_options()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def providers_of(processor: str) -> list[str]:
    """The execution providers that run a model on a processor. The CPU runs the nodes that have
    no kernel on CUDA.

    :param processor: `"CPU"`, `"CUDA"` or `"CPU,CUDA"`
    :raises OptionError: the installed onnxruntime does not run models there

    >>> providers_of("CPU")
    ['CPUExecutionProvider']
    """
    import onnxruntime

    asked = dict.fromkeys(["CUDA", "CPU"] if "CUDA" in processors_of(processor) else ["CPU"])
    if "CUDA" in asked:
        onnxruntime.preload_dlls()  # finds the libraries that torch ships
    available = onnxruntime.get_available_providers()
    for name in asked:
        if PROVIDERS[name] not in available:
            raise OptionError(
                f"Processor {name!r} cannot be measured: this onnxruntime "
                f"{onnxruntime.__version__} has {', '.join(available)}. "
                "Install onnxruntime-gpu, or ask for CPU."
            )
    return [PROVIDERS[name] for name in asked]


def is_custom_operator(node: NodeProto, types: Sequence[int]) -> bool:
    """Whether a library of this context defines the operator of a node.

    :param node: the node
    :param types: the element types of its inputs, 0 for those that are not known
    """
    if not custom_libraries() or node.domain in KNOWN_DOMAINS:
        return False
    inputs = [
        helper.make_tensor_value_info(name, kind or TensorProto.FLOAT, None)
        for name, kind in dict(zip(node.input, types, strict=True)).items()
        if name
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(node.domain, 1)]
    graph = helper.make_graph([node], "one_node", inputs, outputs)
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    try:
        plain_session(model.SerializeToString())
    except Exception as e:  # of another type, or without its attributes: it is defined
        return not is_unknown_operator(e)
    return True
