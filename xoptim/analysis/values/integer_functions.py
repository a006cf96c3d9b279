"""Elementwise functions of one integer: their values, and their constant tails far from 0."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.constants.evaluation import evaluate_node

from ...authoring.context import RewriteContext
from ...authoring.roots import order_of
from ..constants import dtype_of, scalar_constant

#: most nodes of a function
_MOST = 32
#: error bound of Log, above the error of any implementation
_LOG_ERROR = 1e-5
#: two implementations of Log, which must lead to the same values
_LOGS = (np.log, lambda x: np.log(x.astype(np.float64)).astype(x.dtype))
#: integers beyond which a function may be constant
_FAR = (64, 512, 4096)
_INTEGERS = (TensorProto.INT64, TensorProto.INT32)
_TYPES = (*_INTEGERS, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL)

#: operators that are monotonic in each operand, except Abs
_KERNELS: dict[str, Callable[..., Any]] = {
    "Abs": operator.abs,
    "Add": operator.add,
    "And": np.logical_and,
    "Ceil": np.ceil,
    "Div": operator.truediv,
    "Floor": np.floor,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": operator.mul,
    "Neg": operator.neg,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Sign": np.sign,
    "Sub": operator.sub,
}
#: operators of a function
OPERATORS = (*_KERNELS, "Cast", "Log", "Where")


class IntegerFunction(NamedTuple):
    """Nodes that compute a result elementwise from one tensor of integers.

    :param source: the integers
    :param nodes: the nodes, in the order they run
    """

    source: str
    nodes: tuple[NodeProto, ...]

    @property
    def result(self) -> str:
        """The result of the last node."""
        return str(self.nodes[-1].output[0])


class Values(NamedTuple):
    """Values of a function between two integers, around 0; beyond them, it keeps the nearest value.

    :param low: first integer
    :param values: values at low, low + 1, ...
    """

    low: int
    values: np.ndarray


def functions_to(g: RewriteContext, name: str) -> Iterator[IntegerFunction]:
    """Functions of an integer that compute a result, and have no other use, the longest one first.

    Cost: O(nodes of the functions), 32 at most.
    """
    functions, nodes, waiting = [], list[NodeProto](), {name}
    while len(nodes) < _MOST:
        records = [g.store.producers.get(n) for n in waiting]
        known = [r for r in records if r is not None]
        if not known:
            break
        last = max(known, key=order_of)
        node, result = g.store.proto(last), last.outputs[0]
        if last.domain or last.op_type not in OPERATORS or not _is_alone(g, result, nodes, name):
            break
        names = _operands(g, node)
        if names is None:
            break
        nodes.append(node)
        waiting = (waiting - {result}) | names
        if len(waiting) == 1:
            (source,) = waiting
            if g.type_or_none(source) in _INTEGERS:
                functions.append(IntegerFunction(source, tuple(reversed(nodes))))
    yield from reversed(functions)


def _is_alone(g: RewriteContext, result: str, nodes: Sequence[NodeProto], name: str) -> bool:
    """Whether only these nodes, or the reader of the last result, read a result."""
    if result == name:
        return not g.is_used_more_than_once(name)
    return g.is_used_only_by(result, *(n for n in nodes if result in n.input))


def _operands(g: RewriteContext, node: NodeProto) -> set[str] | None:
    """The operands that are not constant; None if an element may depend on several."""
    kind = g.type_or_none(node.output[0])
    if kind not in _TYPES or (node.op_type == "Cast" and kind == TensorProto.BOOL):
        return None
    names = {name for name in node.input if not g.is_constant(name)}
    if len(node.input) == 1:
        return names
    rank = g.rank_or_none(node.output[0])
    numbers = [n for n in node.input if n not in names]
    if not names or any(scalar_constant(g, n, rank) is None for n in numbers):
        return None
    two = len(node.input) == 2 or node.op_type == "Where"
    divides = node.op_type != "Div" or (node.input[1] in numbers and kind not in _INTEGERS)
    return names if two and divides else None


def values_of(g: RewriteContext, function: IntegerFunction, valid: int) -> Values | None:
    """The values of a function. None if it may not be constant far from 0 on both sides, or if the
    rounding of a logarithm decides a value.

    :param function: the function, whose result is an integer
    :param valid: a value below `-valid` or from `valid` on is an error
    """
    evaluation = _Evaluation(g, function)
    for far in _FAR:
        ends = evaluation.ends(far)
        if None not in ends:
            break
    else:
        return None
    lowest = int(np.iinfo(evaluation.dtype).min)
    integers = np.array([lowest, *range(-far, far + 1)], evaluation.dtype)
    (values, known), *others = (evaluation.points(integers, log) for log in (None, *_LOGS))
    if not all(np.array_equal(values, other) for other, _ in others):
        return None
    inside = (values >= -valid) & (values < valid)
    if not known.all() or (inside[0] and values[0] != ends[0]) or not inside[1:].all():
        return None
    return _trimmed(values[1:], far)


def _trimmed(values: np.ndarray, far: int) -> Values:
    """The values without the repetitions of the first and the last one."""
    first, last = 0, 2 * far
    while first < far and values[first + 1] == values[first]:
        first += 1
    while last > far and values[last - 1] == values[last]:
        last -= 1
    return Values(first - far, values[first : last + 1])


class _Evaluation:
    """Evaluates a function of an integer."""

    def __init__(self, g: RewriteContext, function: IntegerFunction):
        self._g, self._function = g, function
        self.dtype = dtype_of(g, function.source)
        names = {n for node in function.nodes for n in node.input if g.is_constant(n)}
        self._constants = {n: g.constant_of(n).reshape(()) for n in names}

    def points(
        self, integers: np.ndarray, log: Callable[[np.ndarray], np.ndarray] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The values at some integers, and where they are known: runtimes disagree on floats no
        integer holds.

        :param integers: arguments of the function
        :param log: implementation of Log, None for the kernel of a runtime
        """
        every = np.ones(integers.shape, dtype=np.bool_)
        found = {name: (value, every) for name, value in self._constants.items()}
        found[self._function.source] = integers, every
        for node in self._function.nodes:
            operands = [found[name] for name in node.input]
            with np.errstate(all="ignore"):
                found[node.output[0]] = self._point(node, operands, log)
        return found[self._function.result]

    def _point(
        self, node: NodeProto, operands: Sequence[Any], log: Callable[..., np.ndarray] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        values = [value for value, _ in operands]
        is_exact = np.logical_and.reduce([k for _, k in operands])
        dtype = dtype_of(self._g, node.output[0])
        if node.op_type == "Where":
            (chosen, sure), (_, a), (_, b) = operands
            return np.where(*values).astype(dtype), sure & np.where(chosen, a, b)
        if node.op_type == "Cast":
            held = self._is_held(values[0], dtype)
            return np.where(held, values[0], 0).astype(dtype), is_exact & held
        if node.op_type == "Log" and log is not None:
            value = log(*values)
        elif node.op_type == "Log":
            made = evaluate_node(node, values, self._g.graph.opsets)
            value = self._g.known(made, "a logarithm cannot be computed")[node.output[0]]
        else:
            value = _KERNELS[node.op_type](*values)
        return np.asarray(value).astype(dtype), is_exact & ~np.isnan(np.asarray(value, np.float64))

    @staticmethod
    def _is_held(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The elements a conversion preserves, except for their fraction."""
        if dtype.kind != "i" or value.dtype.kind != "f":
            return np.ones(value.shape, dtype=np.bool_)
        held: np.ndarray = np.abs(value) < 2.0 ** (8 * dtype.itemsize - 1)
        return held

    def ends(self, far: int) -> tuple[Any, Any]:
        """The values below `-far` and above `far`, None where the function may not be constant.

        The lowest integer, which has no opposite, is excluded.
        """
        largest = int(np.iinfo(self.dtype).max)
        sides = (-largest, -far), (far, largest)
        return self._end(sides[0]), self._end(sides[1])

    def _end(self, side: tuple[int, int]) -> Any:
        numbers = {name: value.item() for name, value in self._constants.items()}
        found: dict[str, _Range] = {name: (v, v) for name, v in numbers.items()}
        for name, value in self._constants.items():
            if value.dtype.kind == "f":
                found[name] = (value[()], value[()])
        found[self._function.source] = side
        for node in self._function.nodes:
            with np.errstate(all="ignore"):
                found[node.output[0]] = self._range(node, found)
        last = found[self._function.result]
        return last[0] if last is not None and last[0] == last[1] else None

    def _range(self, node: NodeProto, found: Mapping[str, _Range]) -> _Range:
        """Bounds of a result from those of the operands."""
        operands = [found[name] for name in node.input]
        if node.op_type == "Where":
            return _chosen(*operands)
        known = [o for o in operands if o is not None]
        if len(known) < len(operands):
            return None
        dtype = dtype_of(self._g, node.output[0])
        corners = [self._corner(node, c, dtype) for c in itertools.product(*known)]
        if node.op_type == "Abs" and known[0][0] <= 0 <= known[0][1]:
            corners.append(0)
        if any(c is None or c != c for c in corners):
            return None
        low, high = min(corners), max(corners)
        if node.op_type == "Log" and low != high:
            low, high = (v + s * _LOG_ERROR * (1 + abs(v)) for s, v in ((-1, low), (1, high)))
        if dtype.kind == "i" and not -np.iinfo(dtype).max <= low <= high <= np.iinfo(dtype).max:
            return None
        return low, high

    @staticmethod
    def _corner(node: NodeProto, operands: Sequence[Any], dtype: np.dtype) -> Any:
        """The result at one corner of the ranges: integers do not overflow, floats keep their
        precision."""
        if node.op_type == "Cast":
            value = operands[0]
            if dtype.kind == "f":
                return dtype.type(value)
            return int(value) if math.isfinite(value) else None
        made = np.log(*operands) if node.op_type == "Log" else _KERNELS[node.op_type](*operands)
        return made if dtype.kind == "f" else int(made)


#: bounds of a result, None if they are not known
_Range = tuple[Any, Any] | None


def _chosen(condition: _Range, first: _Range, second: _Range) -> _Range:
    """Bounds of a Where: those of one branch if the condition is known, of both otherwise."""
    if condition is not None and condition[0] == condition[1]:
        return first if condition[0] else second
    if first is None or second is None:
        return None
    return min(first[0], second[0]), max(first[1], second[1])
