"""The nodes a runtime loads: those it has a kernel for, and those it replaces by others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import onnx
from onnx import FunctionProto, NodeProto, TensorProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_type_proto,
    make_value_info,
)

from ..dims import Shape
from ..operators.domains import main_domain
from ..operators.op_schemas import schema_of
from ..runtimes.kernel_table import KernelTable
from .attributes import find_attribute
from .functions import all_nodes
from .operand_types import wrong_types
from .schema_functions import changed_operators, schema_function

_FLOAT, _FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
#: the functions that may define a node, from the opset and the types of its inputs
Definitions: TypeAlias = "Callable[[NodeProto, int, Sequence[int]], Sequence[FunctionProto]]"
#: operators whose kernels may refuse the attributes
RECURRENT = frozenset({"GRU", "LSTM", "RNN"})


def refuses(node: NodeProto) -> bool:
    """Whether every kernel of onnxruntime for an operator refuses the attributes of a node: those
    of recurrent operators refuse a batch that comes first.

    :param node: the node

    >>> from onnx.helper import make_node
    >>> refuses(make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2, layout=1))
    True
    """
    if node.op_type not in RECURRENT or main_domain(node.domain):
        return False
    layout = find_attribute(node, "layout")
    return layout is not None and layout.i == 1


def loads(
    table: KernelTable,
    node: NodeProto,
    opset: int,
    input_types: Sequence[int],
    output_types: Sequence[int] = (),
    shapes: Sequence[Shape | None] = (),
) -> bool:
    """Whether onnxruntime loads a node: it has a kernel for it, or replaces it by nodes it loads,
    those of the function that defines the operator, or casts around the kernel of float if some
    inputs are in float16. A function whose operators changed after it was written is not used.

    :param table: the kernels of the processor
    :param node: the node
    :param opset: version of its domain
    :param input_types: element type of each input, 0 if it is missing or not known, in which case
        the input is not compared
    :param output_types: the same for the outputs, where the inputs do not imply them
    :param shapes: shape of each input, None if it is not known: some functions depend on it

    >>> from onnx.helper import make_node
    >>> from xbuilder.runtimes.kernel_table import shipped_kernels
    >>> swish = make_node("Swish", ["x"], ["y"])
    >>> [loads(shipped_kernels("CPU"), swish, opset, [TensorProto.FLOAT]) for opset in (24, 25)]
    [True, False]
    """
    if refuses(node):
        return False
    key = node.op_type, main_domain(node.domain), opset
    # constants become initializers
    if key[:2] == ("Constant", "") or table.runs(*key, input_types, output_types):
        return True
    alone = NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
    alone.input.extend(f"x{i}" if name else "" for i, name in enumerate(node.input))
    alone.output.extend(f"y{i}" if name else "" for i, name in enumerate(node.output))
    types = tuple(input_types), tuple(output_types)
    return _loads_otherwise(table, alone.SerializeToString(), opset, *types, tuple(shapes))


@lru_cache(maxsize=4096)
def _loads_otherwise(
    table: KernelTable,
    content: bytes,
    opset: int,
    input_types: tuple[int, ...],
    output_types: tuple[int, ...],
    shapes: tuple[Shape | None, ...],
) -> bool:
    """Whether onnxruntime loads a node that has no kernel for its types. Reading a function takes a
    millisecond: the answer is kept."""
    node = NodeProto.FromString(content)
    key = node.op_type, main_domain(node.domain), opset
    if not _allows(*key, input_types):
        return False
    ignored = bool(changed_operators(*key))
    function = None if ignored else schema_function(node, opset, input_types, shapes)
    if function is not None:
        inner = _typed(function, opset, input_types)
        return bool(inner) and all(loads(table, n, opset, i, o) for n, i, o in inner)
    if _FLOAT16 not in input_types or table.provider != "CPUExecutionProvider":
        return False
    widened = [[_FLOAT if t == _FLOAT16 else t for t in k] for k in (input_types, output_types)]
    return table.runs(*key, *widened)


def _allows(op_type: str, domain: str, opset: int, input_types: Sequence[int]) -> bool:
    """Whether the definition of an operator allows the types of its inputs: that of Range does not
    allow float16 before opset 27."""
    schema = schema_of(op_type, domain, opset)
    # onnx does not know the operators of onnxruntime
    return schema is None or not wrong_types(schema, input_types)


def loads_written(
    table: KernelTable,
    node: NodeProto,
    opset: int,
    input_types: Sequence[int],
    output_types: Sequence[int] = (),
    definitions: Definitions | None = None,
) -> bool:
    """Whether a runtime loads a node, or the nodes of a function that defines it once they are
    written in the model, and so on: it may ignore the function itself, or those it calls.

    :param table: the kernels of the processor
    :param node: the node
    :param opset: version of its domain
    :param input_types: element type of each input, as for :func:`loads`
    :param output_types: the same for the outputs, as for :func:`loads`
    :param definitions: gives the functions that may define a node, the one of ONNX by default

    >>> from onnx.helper import make_node
    >>> from xbuilder.runtimes.kernel_table import shipped_kernels
    >>> swish = make_node("Swish", ["x"], ["y"])
    >>> [f(shipped_kernels("CPU"), swish, 25, [TensorProto.FLOAT]) for f in (loads, loads_written)]
    [False, True]
    """
    if loads(table, node, opset, input_types, output_types):
        return True
    if not _allows(node.op_type, main_domain(node.domain), opset, input_types):
        return False
    given = (definitions or _schema_functions)(node, opset, input_types)
    return any(
        runs_function(table, f, opset, input_types, output_types, definitions) for f in given
    )


def runs_function(
    table: KernelTable,
    function: FunctionProto,
    opset: int,
    input_types: Sequence[int],
    output_types: Sequence[int] = (),
    definitions: Definitions | None = None,
) -> bool:
    """Whether a runtime loads the nodes of a function once they are written in the model.

    :param table: the kernels of the processor
    :param function: the function
    :param opset: version of the main domain
    :param input_types: element type of each input
    :param output_types: element type that each output has to have, 0 if it is not known
    :param definitions: see :func:`loads_written`
    """
    inner = _typed(function, opset, input_types)
    return bool(inner) and all(
        loads_written(table, n, opset, i, o, definitions) for n, i, o in inner
    )


def _schema_functions(
    node: NodeProto, opset: int, input_types: Sequence[int]
) -> Sequence[FunctionProto]:
    function = schema_function(node, opset, input_types)
    return [] if function is None else [function]


def types_without_kernel(table: KernelTable, op_type: str, opset: int) -> tuple[str, list[str]]:
    """The types of the first input for which a runtime loads an operator of the main domain without
    having a kernel for them, and their type parameter. The node has the inputs it must have, and no
    attribute.

    :param table: the kernels of the processor
    :param op_type: operator type
    :param opset: version of the main domain

    >>> from xbuilder.runtimes.kernel_table import shipped_kernels
    >>> types_without_kernel(shipped_kernels("CPU"), "Swish", 24)
    ('T', ['double', 'float', 'float16'])
    """
    schema = schema_of(op_type, "", opset)
    if schema is None or schema.deprecated or not schema.inputs:
        return "", []
    first, count = schema.inputs[0], max(1, min(schema.min_input, len(schema.inputs)))
    inputs = schema.inputs[:count]
    node = make_node(op_type, [i.name for i in inputs], [o.name for o in schema.outputs[:1]])
    found = []
    for name, kind in TensorProto.DataType.items():
        if f"tensor({name.lower()})" in first.types:
            types = [kind if i.type_str == first.type_str else 0 for i in inputs]
            runs = table.runs(op_type, "", opset, types)
            if not runs and loads(table, node, opset, types):
                found.append(name.lower())
    return first.type_str, sorted(found)


def _typed(
    function: FunctionProto, opset: int, input_types: Sequence[int]
) -> list[tuple[NodeProto, list[int], list[int]]]:
    """The nodes of a function, those of subgraphs included, with the element types of their inputs
    and of their outputs, 0 if they are not known; no node if an operator refuses its types."""
    typed = zip(function.input, input_types, strict=False)
    inputs = [make_value_info(n, make_tensor_type_proto(t, None)) for n, t in typed if t]
    outputs = [onnx.ValueInfoProto(name=name) for name in function.output]
    graph = make_graph(list(function.node), "function", inputs, outputs)
    others = [o for o in function.opset_import if main_domain(o.domain)]
    imports = [make_opsetid("", opset), *others]
    model = make_model(graph, opset_imports=imports)
    try:
        # types are only checked if all of them are known
        inferred = onnx.shape_inference.infer_shapes(model, check_type=all(input_types))
    except onnx.shape_inference.InferenceError:
        return []
    infos = [*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output]
    types = {info.name: info.type.tensor_type.elem_type for info in infos}
    return [
        (node, [types.get(i, 0) for i in node.input], [types.get(o, 0) for o in node.output])
        for node in all_nodes(function.node)
    ]
