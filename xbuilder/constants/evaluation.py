"""Evaluates one node on constants, by numpy when it is exact, else by onnxruntime or onnx."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import NodeProto, TensorProto
from onnx.numpy_helper import from_array

from ..errors import UnknownAttributeError
from ..files.tensor_sites import iter_external_tensors
from ..nodes.attributes import attributes_of
from ..nodes.copies import copy_node
from ..nodes.tensors import Reader, tensor_array
from ..operators.domains import main_domain
from ..operators.op_schemas import schema_of
from ..operators.opsets import ir_version_for
from ..runtimes.reference import reference_evaluator
from ..runtimes.sessions import plain_session
from ..tensors.bits import is_known_type, is_packed
from ..tensors.halves import MANY_HALVES, from_halves, to_halves
from .exact_casts import why_not_exact

#: inputs of a node, None for a missing one
Arrays = Sequence[np.ndarray | None]
#: inputs of a node, none is missing
Present = Sequence[np.ndarray]
Kernel = Callable[[Present, dict[str, Any]], np.ndarray | None]
#: operators whose time is not bounded by the size of their inputs in the reference evaluator
_ENDLESS = frozenset({"RegexFullMatch"})


def _axes(inputs: Present, attributes: dict[str, Any]) -> tuple[int, ...] | None:
    if len(inputs) > 1:
        return tuple(int(i) for i in inputs[1].ravel())
    axes = attributes.get("axes")
    return None if axes is None else tuple(axes)


def _reshape(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    if len(inputs) < 2:
        return None
    data, shape = inputs
    dims = [int(d) for d in shape.ravel()]
    if not attributes.get("allowzero", 0):
        dims = [data.shape[i] if d == 0 and i < data.ndim else d for i, d in enumerate(dims)]
    elif 0 in dims and -1 in dims:
        return None
    return data.reshape(dims)


def _squeeze(inputs: Present, attributes: dict[str, Any]) -> np.ndarray:
    return np.squeeze(inputs[0], axis=_axes(inputs, attributes))


def _unsqueeze(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    axes = _axes(inputs, attributes)
    return None if axes is None else np.expand_dims(inputs[0], axes)


def _shape(inputs: Present, attributes: dict[str, Any]) -> np.ndarray:
    shape = np.array(inputs[0].shape, dtype=np.int64)
    return shape[slice(attributes.get("start", 0), attributes.get("end"))]


def _gather(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    data, indices = inputs
    axis = attributes.get("axis", 0)
    size = data.shape[axis]
    if indices.size and (indices.min() < -size or indices.max() >= size):
        return None
    return np.take(data, indices, axis=axis)


def _slice(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    data = inputs[0]
    named = [np.asarray(attributes[n]) for n in ("starts", "ends", "axes") if n in attributes]
    starts, ends, *others = [p.tolist() for p in (inputs[1:] or named)]
    axes = others[0] if others else range(len(starts))
    steps = others[1] if len(others) > 1 else [1] * len(starts)
    taken = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if (start, step) == (-1, -1) and end < -data.shape[axis]:
            start = end = None  # everything, the last element first
        elif step <= 0:
            return None  # runtimes disagree on some of them
        taken[axis] = slice(start, end, step)
    return np.asarray(data[tuple(taken)], order="C")


def _comparison(ufunc: np.ufunc) -> Kernel:
    def run(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
        a, b = inputs
        if attributes or a.dtype not in _NUMBERS or a.dtype != b.dtype:
            return None
        return np.asarray(ufunc(a, b))

    return run


_FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))
_INTEGERS = tuple(map(np.dtype, (np.int32, np.int64)))
#: element types numpy adds, multiplies and compares as onnxruntime does
_NUMBERS = (*_INTEGERS, *_FLOATS)


def _arithmetic(ufunc: np.ufunc, types: Sequence[np.dtype] = _NUMBERS) -> Kernel:
    def run(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
        dtype = inputs[0].dtype
        if attributes or dtype not in types or any(x.dtype != dtype for x in inputs):
            return None  # before opset 7, attributes said how to broadcast
        with np.errstate(all="ignore"):
            return np.asarray(ufunc(*inputs), dtype=dtype)

    return run


def _are_counts(inputs: Present, attributes: dict[str, Any]) -> bool:
    """Whether both are integers, the second ones positive, as where dimensions are divided."""
    a, b = inputs
    same = a.dtype == b.dtype and a.dtype in _INTEGERS and not attributes.get("broadcast")
    return same and bool((b > 0).all())


def _div(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    if inputs[0].dtype.kind == "f":
        return _arithmetic(np.divide, _FLOATS)(inputs, attributes)
    if not _are_counts(inputs, attributes) or (inputs[0] < 0).any():
        return None
    return np.asarray(np.floor_divide(*inputs))


def _mod(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    has_sign = attributes.get("fmod", 0) and (inputs[0] < 0).any()
    if has_sign or not _are_counts(inputs, attributes):
        return None
    return np.asarray(np.remainder(*inputs))


def _largest(ufunc: np.ufunc) -> Kernel:
    def run(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
        dtype = inputs[0].dtype
        if dtype not in _INTEGERS or any(x.dtype != dtype for x in inputs):
            return None
        return np.asarray(reduce(ufunc, inputs))

    return run


def _logical(ufunc: np.ufunc) -> Kernel:
    def run(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
        if attributes or any(x.dtype != np.bool_ for x in inputs):
            return None
        return np.asarray(ufunc(*inputs))

    return run


def _where(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    condition, a, b = inputs
    if condition.dtype != np.bool_ or a.dtype != b.dtype:
        return None
    return np.where(condition, a, b)


def _range(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    start, limit, delta = inputs
    if any(x.dtype not in _INTEGERS or x.dtype != delta.dtype or x.ndim for x in inputs):
        return None
    return np.arange(int(start), int(limit), int(delta), dtype=delta.dtype) if delta else None


#: conversions every runtime makes alike: a value that is not exact is rounded to the nearest
_SAME_CASTS = {
    (np.dtype(a), np.dtype(b))
    for a, targets in {
        np.bool_: (np.int32, np.int64, np.float32, np.float64, np.float16),
        np.int32: (np.int64, np.float64, np.bool_),
        np.int64: (np.bool_,),
        np.float16: (np.float32, np.float64),
        np.float32: (np.float64, np.float16),
        np.float64: (np.float32,),
    }.items()
    for b in targets
}


def _cast(inputs: Present, attributes: dict[str, Any]) -> np.ndarray | None:
    target = oh.tensor_dtype_to_np_dtype(attributes["to"])
    x = inputs[0]
    if x.dtype == target:
        return x
    if (x.dtype, target) not in _SAME_CASTS:
        return _kept(x, target)
    if x.size > MANY_HALVES and x.dtype == np.float16:
        return from_halves(x, target)
    if x.size > MANY_HALVES and x.dtype == np.float32 and target == np.float16:
        return to_halves(x)
    with np.errstate(all="ignore"):
        return x.astype(target)


def _kept(x: np.ndarray, target: np.dtype) -> np.ndarray | None:
    """Numbers converted to a type that holds them exactly, as every runtime does; else None."""
    if x.dtype not in _NUMBERS or target not in (*_NUMBERS, np.bool_):
        return None
    with np.errstate(all="ignore"):
        converted = x.astype(target)
        same = np.array_equal(converted.astype(x.dtype), x)
    return converted if same else None


def _constant_of_shape(inputs: Present, attributes: dict[str, Any]) -> np.ndarray:
    value = attributes.get("value")
    value = np.zeros((1,), dtype=np.float32) if value is None else np.asarray(value)
    return np.full([int(i) for i in inputs[0]], value.ravel()[0], dtype=value.dtype)


_KERNELS: dict[str, Kernel] = {
    "Add": _arithmetic(np.add),
    "And": _logical(np.logical_and),
    "Cast": _cast,
    "CastLike": lambda x, a: _cast(x[:1], {"to": oh.np_dtype_to_tensor_dtype(x[1].dtype)}),
    "Concat": lambda x, a: np.concatenate(list(x), axis=a["axis"]),
    "ConstantOfShape": _constant_of_shape,
    "Div": _div,
    "Equal": _comparison(np.equal),
    "Expand": lambda x, a: np.array(np.broadcast_to(x[0], np.broadcast_shapes(x[0].shape, x[1]))),
    "Gather": _gather,
    "Greater": _comparison(np.greater),
    "GreaterOrEqual": _comparison(np.greater_equal),
    "Identity": lambda x, a: x[0],
    "Less": _comparison(np.less),
    "LessOrEqual": _comparison(np.less_equal),
    "Max": _largest(np.maximum),
    "Min": _largest(np.minimum),
    "Mod": _mod,
    "Mul": _arithmetic(np.multiply),
    "Neg": _arithmetic(np.negative, _FLOATS),
    "Not": _logical(np.logical_not),
    "Or": _logical(np.logical_or),
    "Range": _range,
    "Reciprocal": _arithmetic(np.reciprocal, _FLOATS),
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Sqrt": _arithmetic(np.sqrt, _FLOATS),
    "Squeeze": _squeeze,
    "Sub": _arithmetic(np.subtract),
    "Transpose": lambda x, a: np.asarray(np.transpose(x[0], a.get("perm")), order="C"),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}


def constant_node_value(node: NodeProto, read: Reader | None = None) -> np.ndarray | None:
    """Value of a `Constant` node, None for the forms that are not dense numerical tensors.

    :param node: the node
    :param read: reads the tensors stored in other files, without it they are unknown
    """
    for att in node.attribute:
        if att.ref_attr_name:
            return None
        if att.name == "value":
            if att.t.data_location != TensorProto.EXTERNAL:
                return tensor_array(att.t)
            return None if read is None else read(att.t)
        if att.name == "value_int":
            return np.array(att.i, dtype=np.int64)
        if att.name == "value_ints":
            return np.array(att.ints, dtype=np.int64)
        if att.name == "value_float":
            return np.array(att.f, dtype=np.float32)
        if att.name == "value_floats":
            return np.array(att.floats, dtype=np.float32)
    return None


def with_embedded_tensors(node: NodeProto, read: Reader | None) -> NodeProto | None:
    """The node, or a copy that holds the tensors its attributes refer to in other files.

    :param node: a node
    :param read: reads these tensors
    :return: None if one cannot be read; no runtime should look for it on its own
    """
    if next(iter_external_tensors(node), None) is None:
        return node
    copy = copy_node(node)
    for tensor in list(iter_external_tensors(copy)):
        array = None if read is None else read(tensor)
        if array is None:
            return None
        tensor.CopyFrom(from_array(array, tensor.name))
    return copy


def _single_node_model(
    node: NodeProto, inputs: dict[str, np.ndarray], opsets: Mapping[str, int]
) -> onnx.ModelProto:
    graph = oh.make_graph(
        [node],
        "constant",
        [
            oh.make_tensor_value_info(n, oh.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in inputs.items()
        ],
        [oh.make_empty_tensor_value_info(o) for o in node.output if o],
    )
    used = {main_domain(node.domain), ""}
    return oh.make_model(
        graph,
        opset_imports=[oh.make_opsetid(d, v) for d, v in opsets.items() if d in used],
        ir_version=ir_version_for(opsets.get("", 1)),
    )


def _run_onnxruntime(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    return list(plain_session(model.SerializeToString()).run(None, inputs))


def _run_reference(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    return list(reference_evaluator(model).run(None, inputs))


def _runtimes(node: NodeProto, opsets: Mapping[str, int]) -> list[Callable[..., list[Any]]]:
    """The runtimes that may run a node. The reference evaluator runs operators the opset does not
    have, and a regular expression in Python, which may never end."""
    domain = main_domain(node.domain)
    defined = schema_of(node.op_type, domain, opsets.get(domain, 1)) is not None
    ends = defined and node.op_type not in _ENDLESS
    return [_run_onnxruntime, _run_reference] if ends else [_run_onnxruntime]


def _can_divide(values: Arrays) -> bool:
    """Whether integers can be divided. A division by zero, or of the lowest one by -1, stops the
    process in onnxruntime."""
    a, b = values
    if b is None or a is None or b.dtype.kind not in "iu":
        return True
    if a.dtype != b.dtype:
        return False  # the node is not valid
    lowest = b.dtype.kind == "i" and bool((a == np.iinfo(a.dtype).min).any())
    return not (b == 0).any() and not (lowest and (b == -1).any())


def evaluate_node(
    node: NodeProto,
    values: Arrays,
    opsets: Mapping[str, int],
    types: Sequence[int] = (),
    read: Reader | None = None,
) -> dict[str, np.ndarray] | None:
    """Computes the outputs of a node without subgraph.

    :param node: the node
    :param values: value of each input, None for a missing one
    :param opsets: version of every domain
    :param types: element type of every output that has a name, a result of another type is refused
    :param read: reads the tensors stored in other files, see :func:`constant_node_value`
    :return: value of every output, None if no runtime can compute it
    """
    domain = main_domain(node.domain)
    if node.op_type == "Constant" and domain == "":
        value = constant_node_value(node, read)
        return None if value is None else {node.output[0]: value}
    if domain == "" and node.op_type in ("Div", "Mod") and not _can_divide(values):
        return None
    kernel = _KERNELS.get(node.op_type) if domain == "" else None
    present = [v for v in values if v is not None]
    if kernel is not None and all(v is None for v in values[len(present) :]):
        try:
            result = kernel(present, attributes_of(node, read))
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError):
            return None  # the node is not valid, it fails if it runs one day
        except UnknownAttributeError:
            return None
        if result is not None:
            return _named([node.output[0]], [result], types)
    embedded = with_embedded_tensors(node, read)
    return None if embedded is None else _run_node(embedded, values, opsets, types)


def _run_node(
    node: NodeProto, values: Arrays, opsets: Mapping[str, int], types: Sequence[int]
) -> dict[str, np.ndarray] | None:
    if why_not_exact(node, values, types):
        return None
    inputs = {n: v for n, v in zip(node.input, values, strict=True) if n and v is not None}
    names = [o for o in node.output if o]
    for run in _runtimes(node, opsets):
        try:
            results = run(_single_node_model(node, inputs, opsets), inputs)
        except Exception:  # a runtime refuses in many ways, the node is kept in the graph
            continue
        tensors = _named(names, results, types)
        if tensors is not None:
            return tensors
    return None


def _named(
    names: Sequence[str], results: Sequence[Any], types: Sequence[int]
) -> dict[str, np.ndarray] | None:
    """Results by name, None if one is not a tensor of the type it should have."""
    tensors: dict[str, np.ndarray] = {}
    for i, (name, result) in enumerate(zip(names, results, strict=True)):
        if not isinstance(result, np.ndarray) and not np.isscalar(result):
            return None
        array = _with_type(np.asarray(result), types[i] if i < len(types) else 0)
        if array is None:
            return None
        tensors[name] = array
    return tensors


def _with_type(array: np.ndarray, elem_type: int) -> np.ndarray | None:
    """The array if it has a type, its bits if a runtime returned them as integers, else None."""
    if elem_type in (0, TensorProto.STRING):
        return array
    expected = oh.tensor_dtype_to_np_dtype(elem_type)
    if array.dtype == expected:
        return array
    # a type numpy does not have: onnxruntime gives the bits
    raw = array.dtype in (np.uint8, np.uint16) and expected.isbuiltin != 1
    same_size = array.dtype.itemsize == expected.itemsize and not is_packed(elem_type)
    return array.view(expected) if raw and same_size else None


def predicted_bytes(elem_type: int | None, shape: Sequence[Any] | None) -> int | None:
    """Size in bytes of a tensor, None when its type or its shape is not known."""
    size = _item_bytes(elem_type) if elem_type and shape is not None else 0
    if not size:
        return None
    for d in shape or ():
        if not isinstance(d, int):
            return None
        size *= d
    return size


@lru_cache(maxsize=1 << 8)
def _item_bytes(elem_type: int) -> int:
    """Size in bytes of an element, 0 when it is not known."""
    if not elem_type or elem_type == TensorProto.STRING or not is_known_type(elem_type):
        return 0
    return int(oh.tensor_dtype_to_np_dtype(elem_type).itemsize)
