"""Writes a model as the Python code that builds it."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import get_attribute_value
from onnx.numpy_helper import to_array

from ..constants.initializers import is_external_proto
from ..errors import OptionError
from ..operators.opsets import opsets_of
from ..support.argument_types import check_type

#: parameters of make_node, an attribute with such a name cannot be one of its arguments
_TAKEN = frozenset(
    {
        "self",
        "op_type",
        "inputs",
        "outputs",
        "domain",
        "attributes",
        "check",
        "name",
        "sts",
        "do_not_remove",
        "insert_position",
        "metadata_props",
    }
)
_ATTRIBUTES = frozenset(
    (
        AttributeProto.INT,
        AttributeProto.INTS,
        AttributeProto.FLOAT,
        AttributeProto.FLOATS,
        AttributeProto.STRING,
        AttributeProto.STRINGS,
    )
)
_PLAIN = frozenset(
    f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)
) | {"bool"}


def to_graph_builder_code(
    onx: ModelProto, function_name: str = "build_model", max_elements: int = 16
) -> str:
    """Writes a model as the Python code that builds it with a :class:`xbuilder.GraphBuilder`.

    The code defines one function, which returns the builder. The bodies of If, Loop and Scan are
    written as bytes. Names, types and shapes are those of the model, a node without name gets
    one; its documentation, its metadata and the shapes of its intermediate results are left out.

    :param onx: the model
    :param function_name: name of the function
    :param max_elements: initializers with more elements are not written: the function takes them
        from its argument, a dictionary from names to arrays
    :return: the code
    :raises OptionError: the model has local functions, sparse initializers, or inputs or outputs
        that are not tensors; the name is not the one of a function

    .. code-block:: python

        code = to_graph_builder_code(model)
        scope = {}
        exec(code, scope)
        weights = {i.name: to_array(i) for i in model.graph.initializer}
        rebuilt = scope["build_model"](weights).to_onnx(optimize=False)
    """
    check_type("onx", onx, ModelProto)
    check_python_name("function_name", function_name)
    check_written_model(onx)
    graph = onx.graph
    values = {
        i.name: tensor_code(i, max_elements) or f"weights[{i.name!r}]" for i in graph.initializer
    }
    given = {i.name for i in graph.input}
    lines = [f"g = GraphBuilder({opsets_of(onx)!r}, ir_version={onx.ir_version})"]
    lines.extend(_input_code(i, values.get(i.name)) for i in graph.input)
    lines.extend(
        f"g.make_initializer({name!r}, {value}, allow_empty=True)"
        for name, value in values.items()
        if name not in given
    )
    lines.extend(_node_code(node) for node in graph.node)
    lines.extend(_output_code(o) for o in graph.output)
    lines.append("return g")
    body = "".join(f"    {line}\n" for line in lines)
    return (
        "import numpy as np\n"
        "from onnx import AttributeProto, TensorProto\n\n"
        "from xbuilder import GraphBuilder\n\n\n"
        f"def {function_name}(weights=None):\n{body}"
    )


def check_python_name(option: str, name: str) -> None:
    """Refuses what cannot be the name of a function or of a class.

    :param option: name of the option
    :param name: its value
    :raises OptionError: it is not a name
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise OptionError(f"{option} must be a name in Python, not {name!r}.")


def check_written_model(onx: ModelProto) -> None:
    """Refuses what the code cannot build.

    :param onx: the model
    :raises OptionError: local functions, sparse initializers, sequences
    """
    if onx.functions:
        names = sorted({f.name for f in onx.functions})
        raise OptionError(
            f"The model has local functions ({', '.join(names)}): inline them first, "
            f"GraphBuilder(model).to_onnx(optimize=False)."
        )
    if onx.graph.sparse_initializer:
        raise OptionError("The model has sparse initializers, they cannot be written as code.")
    for info in (*onx.graph.input, *onx.graph.output):
        if info.type.WhichOneof("value") not in ("tensor_type", None):
            raise OptionError(f"{info.name!r} is not a tensor, it cannot be written as code.")


def tensor_code(tensor: TensorProto, max_elements: int) -> str | None:
    """An array, or the bytes of a tensor numpy has no type for; None if it is too large.

    :param tensor: the tensor
    :param max_elements: the most elements that are written
    """
    if is_external_proto(tensor) or int(np.prod(tensor.dims)) > max_elements:
        return None
    array = to_array(tensor)
    if array.dtype.name not in _PLAIN:
        return f"TensorProto.FromString({tensor.SerializeToString()!r})"
    if not np.isfinite(array).all():
        data = f"np.frombuffer({array.tobytes()!r}, dtype=np.{_dtype(array)})"
    else:
        data = f"np.array({array.ravel().tolist()!r}, dtype=np.{_dtype(array)})"
    return data if array.ndim == 1 else f"{data}.reshape({array.shape!r})"


def _dtype(array: np.ndarray) -> str:
    return "bool_" if array.dtype.name == "bool" else array.dtype.name


def _shape(info: ValueInfoProto) -> tuple[int | str | None, ...] | None:
    if not info.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        d.dim_value if d.HasField("dim_value") else (d.dim_param or None)
        for d in info.type.tensor_type.shape.dim
    )


def _input_code(info: ValueInfoProto, default: str | None) -> str:
    known = f"{info.name!r}, {info.type.tensor_type.elem_type or None!r}, {_shape(info)!r}"
    given = "" if default is None else f", default_initializer={default}"
    return f"g.make_tensor_input({known}{given})"


def _output_code(info: ValueInfoProto) -> str:
    known = f"{info.name!r}, {info.type.tensor_type.elem_type or None!r}, {_shape(info)!r}"
    untyped = "" if info.type.tensor_type.elem_type else ", allow_untyped_output=True"
    return f"g.make_tensor_output({known}{untyped})"


def _node_code(node: NodeProto) -> str:
    """One call of make_node."""
    arguments = [repr(node.op_type), repr(list(node.input)), repr(list(node.output))]
    if node.domain:
        arguments.append(f"domain={node.domain!r}")
    if node.name:
        arguments.append(f"name={node.name!r}")
    arguments.extend(attribute_arguments(node))
    return f"g.make_node({', '.join(arguments)})"


def attribute_arguments(node: NodeProto) -> list[str]:
    """The attributes of a node as arguments of a call: their values, or their bytes.

    :param node: the node
    """
    simple = {a.name: _attribute_code(a) for a in node.attribute}
    arguments = [f"{name}={code}" for name, code in simple.items() if code is not None]
    others = [a for a in node.attribute if simple[a.name] is None]
    if others:
        arguments.append(f"attributes=[{', '.join(_proto_codes(others))}]")
    return arguments


def _proto_codes(attributes: Iterable[AttributeProto]) -> list[str]:
    return [f"AttributeProto.FromString({a.SerializeToString()!r})" for a in attributes]


def _attribute_code(attribute: AttributeProto) -> str | None:
    """The value of an attribute written as an argument, None if its bytes are."""
    name = attribute.name
    if attribute.type not in _ATTRIBUTES or attribute.ref_attr_name or name in _TAKEN:
        return None
    if not name.isidentifier() or keyword.iskeyword(name):
        return None
    value: Any = get_attribute_value(attribute)
    listed: Sequence[Any] = list(value) if not isinstance(value, int | float | bytes) else [value]
    try:
        texts = [v.decode("utf-8") if isinstance(v, bytes) else v for v in listed]
    except UnicodeDecodeError:
        return None
    written = not any(isinstance(v, float) and not np.isfinite(v) for v in texts)
    if not texts or not written:
        return None
    return repr(texts if _is_list(attribute) else texts[0])


def _is_list(attribute: AttributeProto) -> bool:
    return attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS)
