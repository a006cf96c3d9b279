"""Facts read from the content of a constant: type, shape, small integers, a uniform value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import TensorProto

from ..facts.facts import MAX_TRACKED, ResultFacts, Value
from .initializers import initializer_type_shape

_TRACKED_TYPES = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


def tensor_facts(value: Any, array: Callable[[], np.ndarray | None]) -> ResultFacts:
    """Facts of a constant. Its content is read only when it is tracked.

    :param value: TensorProto or array, for its type and its shape
    :param array: reads the content
    """
    elem_type, shape = initializer_type_shape(value)
    content = None
    small = len(shape) == 0 or (len(shape) == 1 and shape[0] <= MAX_TRACKED)
    if small and elem_type in _TRACKED_TYPES:
        found = array()
        content = None if found is None else tracked_value(found)
    return ResultFacts(elem_type, shape, None, content)


def tracked_value(array: np.ndarray) -> Value:
    """Content of an array as shape functions read it, None if it is too big or not integer."""
    if array.ndim > 1 or array.size > MAX_TRACKED or array.dtype.kind not in "ib":
        return None
    return int(array) if array.ndim == 0 else tuple(int(i) for i in array)


def known_content(facts: ResultFacts) -> np.ndarray | None:
    """The tensor whose content is tracked when every element is an integer, None otherwise."""
    value = facts.value
    if value is None or facts.type not in _TRACKED_TYPES:
        return None
    if isinstance(value, str) or (isinstance(value, tuple) and str in map(type, value)):
        return None
    return np.array(value, dtype=oh.tensor_dtype_to_np_dtype(facts.type))


def uniform_item(array: np.ndarray) -> Any:
    """The value every element of an array has; None if they differ, if it is empty or of strings.

    ::

        uniform_item(np.ones((2, 3)))  # 1.0
    """
    if array.size == 0 or array.dtype.kind in "OUS":
        return None
    first, last = array.flat[0], array.flat[-1]
    return first if bool(first == last) and bool((array == first).all()) else None
