"""Speculatable nodes: proven not to fail whatever their inputs hold, so that they may run when the
original model would not run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from ..dims import Dim, Shape, exact_div, normalize_axes, prod, prove_equal
from ..errors import UnknownAttributeError
from ..facts.facts import ResultFacts
from ..graph.graph import Graph
from ..nodes.attributes import attributes_of
from ..nodes.record import NodeRecord
from ..operators.op_traits import BROADCASTING, DIVISIONS, ELEMENTWISE_UNARY, FLOATS, REDUCTIONS

#: operators that never fail, whatever the content and the shape of their only input
_UNARY = ELEMENTWISE_UNARY - {"Cast", "Clip"} | {"Shape", "Size"}
#: operators that only fail when the shapes of their inputs cannot be broadcast
_BROADCASTING = BROADCASTING - DIVISIONS - {"BitShift", "PRelu"}


def is_speculatable(
    record: NodeRecord,
    node: NodeProto,
    facts: Callable[[str], ResultFacts],
    graph: Graph,
) -> bool:
    """Whether a node of the main domain is speculatable, proven not to fail when it runs.

    :param record: the node
    :param node: its proto
    :param facts: returns facts that hold wherever the node runs
    :param graph: the graph that contains the node, for its constants
    :return: False if nothing is known of the operator, or if the proof needs an unknown shape
    """
    check = _CHECKS.get(record.op_type)
    if check is None or record.domain or graph.main_opset < 7:
        return False
    try:
        return check(_Case(record, node, facts, graph))
    except UnknownAttributeError:
        return False


class _Case:
    """A node under check, with the facts that hold wherever it runs."""

    def __init__(
        self,
        record: NodeRecord,
        node: NodeProto,
        facts: Callable[[str], ResultFacts],
        graph: Graph,
    ):
        self.record, self.node, self.facts, self.graph = record, node, facts, graph
        parent = graph if graph.parent is None else graph.parent
        self.constraints = parent.facts.constraints

    def attr(self, name: str, default: Any = None) -> Any:
        return attributes_of(self.node, self.graph.constants.read_tensor).get(name, default)

    def has(self, i: int) -> bool:
        return i < len(self.record.inputs) and self.record.inputs[i] != ""

    def shape(self, i: int) -> Shape | None:
        return self.facts(self.record.inputs[i]).shape if self.has(i) else None

    def type(self, i: int) -> int:
        return self.facts(self.record.inputs[i]).type if self.has(i) else 0

    def shapes(self) -> list[Shape] | None:
        """Shapes of the inputs, missing ones left out, None if one is not known."""
        shapes = [self.facts(name).shape for name in self.record.inputs if name]
        known = [shape for shape in shapes if shape is not None]
        return known if len(known) == len(shapes) else None

    def integers(self, name: str, i: int) -> list[int] | None:
        """Integers from an attribute in old opsets, an input in new ones, None if the input is not
        constant."""
        value = self.attr(name)
        if value is None and self.has(i):
            value = self.graph.constants.value(self.record.inputs[i])
        return None if value is None else [int(v) for v in np.asarray(value).ravel()]

    def equal(self, a: Dim, b: Dim) -> bool:
        return prove_equal(a, b, self.constraints) is True


def _always(case: _Case) -> bool:
    return True


def _broadcasts(case: _Case) -> bool:
    """Whether every shape is known and two dimensions of an axis are equal, or one is 1."""
    shapes = case.shapes()
    if shapes is None:
        return False
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    for dims in zip(*padded, strict=True):
        others = [d for d in dims if d != 1]
        if not all(case.equal(others[0], d) for d in others[1:]):
            return False
    return True


def _divides(case: _Case) -> bool:
    """Whether a division broadcasts and is of floats, since an integer cannot be divided by 0."""
    return {case.type(0), case.type(1)} <= FLOATS and _broadcasts(case)


def _casts(case: _Case) -> bool:
    source, target = case.type(0), case.attr("to")
    return source not in (0, TensorProto.STRING) and target != TensorProto.STRING


def _multiplies(case: _Case) -> bool:
    """Whether the inner dimensions of a MatMul are equal and the others can be broadcast."""
    a, b = case.shape(0), case.shape(1)
    if not a or not b:
        return False
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    if not case.equal(a[-1], b[-2]):
        return False
    return _pairs_broadcast(case, a[:-2], b[:-2])


def _pairs_broadcast(case: _Case, a: Shape, b: Shape) -> bool:
    return all(
        x == 1 or y == 1 or case.equal(x, y) for x, y in zip(reversed(a), reversed(b), strict=False)
    )


def _gemm(case: _Case) -> bool:
    a, b = case.shape(0), case.shape(1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return False
    rows, inner = a[::-1] if case.attr("transA", 0) else a
    other, columns = b[::-1] if case.attr("transB", 0) else b
    if not case.equal(inner, other):
        return False
    if not case.has(2):
        return True
    c = case.shape(2)
    if c is None or len(c) > 2:
        return False
    pairs = zip(reversed(c), (columns, rows), strict=False)
    return all(x == 1 or case.equal(x, y) for x, y in pairs)


def _concat(case: _Case) -> bool:
    shapes, axis = case.shapes(), case.attr("axis")
    if axis is None or not shapes or not _in_rank([axis], shapes[0]):
        return False
    first = shapes[0]
    types = {case.type(i) for i in range(len(shapes))}
    if len(types) != 1 or 0 in types or len({len(s) for s in shapes}) != 1:
        return False
    axis %= len(first)
    return all(
        i == axis or case.equal(x, y)
        for s in shapes[1:]
        for i, (x, y) in enumerate(zip(first, s, strict=True))
    )


def _reshape(case: _Case) -> bool:
    """Whether the new shape is known, without 0, and has the same number of elements."""
    shape, target = case.shape(0), case.integers("shape", 1)
    if shape is None or target is None or any(d == 0 or d < -1 for d in target):
        return False
    count, rest = prod(shape), prod(d for d in target if d != -1)
    if target.count(-1) > 1:
        return False
    return exact_div(count, rest) is not None if -1 in target else case.equal(count, rest)


def _in_rank(axes: list[int] | None, shape: Shape | None) -> bool:
    """Whether axes are known, valid and distinct."""
    return axes is not None and shape is not None and normalize_axes(axes, len(shape)) is not None


def _unsqueeze(case: _Case) -> bool:
    shape, axes = case.shape(0), case.integers("axes", 1)
    return shape is not None and axes is not None and _in_rank(axes, (*shape, *([1] * len(axes))))


def _squeeze(case: _Case) -> bool:
    shape, axes = case.shape(0), case.integers("axes", 1)
    if shape is None or (axes is None and case.has(1)):
        return False
    return axes is None or (_in_rank(axes, shape) and all(shape[a] == 1 for a in axes))


def _transposes(case: _Case) -> bool:
    """Whether the permutation is missing, or permutes the dimensions."""
    perm = case.attr("perm")
    return perm is None or sorted(perm) == list(
        range(case.facts(case.record.inputs[0]).known_rank() or 0)
    )


def _one_axis(case: _Case) -> bool:
    return _in_rank([case.attr("axis", -1)], case.shape(0))


def _flatten(case: _Case) -> bool:
    shape, axis = case.shape(0), case.attr("axis", 1)
    return shape is not None and -len(shape) <= axis <= len(shape)


def _reduces(case: _Case) -> bool:
    """Whether the axes are known and no dimension is empty, since some reductions of nothing
    fail."""
    shape, axes = case.shape(0), case.integers("axes", 1)
    if shape is None or any(not isinstance(d, int) or d == 0 for d in shape):
        return False
    if axes is None:
        return not case.has(1)
    return _in_rank(axes, shape)


def _gather(case: _Case) -> bool:
    """Whether the indices are constant and within the axis."""
    shape, axis = case.shape(0), case.attr("axis", 0)
    size = shape[axis] if shape is not None and _in_rank([axis], shape) else None
    if not isinstance(size, int):
        return False
    indices = case.integers("indices", 1)
    return indices is not None and all(-size <= i < size for i in indices)


_CHECKS: dict[str, Callable[[_Case], bool]] = {
    **dict.fromkeys(_UNARY, _always),
    **dict.fromkeys(_BROADCASTING, _broadcasts),
    **dict.fromkeys(REDUCTIONS, _reduces),
    "Cast": _casts,
    "Concat": _concat,
    "Div": _divides,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "LogSoftmax": _one_axis,
    "MatMul": _multiplies,
    "Pow": _divides,
    "Reshape": _reshape,
    "Softmax": _one_axis,
    "Squeeze": _squeeze,
    "Transpose": _transposes,
    "Unsqueeze": _unsqueeze,
}
