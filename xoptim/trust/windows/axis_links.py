"""Links the axes whose rows meet in the nodes of a window: they may only be cut together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Dim, Shape
from xbuilder.nodes.attributes import attributes_of, has_reference
from xbuilder.nodes.subgraphs import node_captures
from xbuilder.operators.domains import main_domain
from xbuilder.operators.op_traits import BROADCASTING, ELEMENTWISE_UNARY, REDUCTIONS

#: a result and one of its axes
Place = tuple[str, int]
#: what is linked to it is never cut
_WHOLE: Place = ("", 0)
#: element by element, or along an axis whose length they do not depend on
_SAME_SHAPE = (ELEMENTWISE_UNARY - {"Cast", "Identity"}) | {
    *("Cast", "CastLike", "Clip", "Dropout", "Hardmax", "Identity", "LogSoftmax", "Softmax"),
    *("LpNormalization", "MeanVarianceNormalization"),
}
_NORMALIZATIONS = frozenset(
    {"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"}
)
_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_GLOBAL_POOLS = frozenset({"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"})


class AxisLinks:
    """Groups of axes, by union and find.

    :param shapes: shape of each result of the window, None if it is not known
    """

    def __init__(self, shapes: Mapping[str, Shape | None]):
        self.shapes = shapes
        self._parents: dict[Place, Place] = {}
        for name, shape in shapes.items():
            for axis in range(len(shape or ())):
                self._parents[name, axis] = name, axis
        self._parents[_WHOLE] = _WHOLE

    def size(self, place: Place) -> Dim:
        """The length of an axis."""
        shape = self.shapes[place[0]]
        assert shape is not None
        return shape[place[1]]

    def rank(self, name: str) -> int | None:
        """The rank of a result, None if its shape is not known."""
        shape = self.shapes.get(name)
        return None if shape is None else len(shape)

    def link(self, a: Place, b: Place) -> None:
        """Two axes are only cut together."""
        first, second = self._root(a), self._root(b)
        self._parents[first] = second

    def keep(self, *places: Place) -> None:
        """These axes are not cut."""
        for place in places:
            self.link(place, _WHOLE)

    def keep_all(self, names: Iterable[str]) -> None:
        """No axis of these results is cut."""
        for name in names:
            self.keep(*((name, axis) for axis in range(self.rank(name) or 0)))

    def groups(self) -> list[list[Place]]:
        """The groups of axes that may be cut."""
        found: dict[Place, list[Place]] = {}
        for place in self._parents:
            found.setdefault(self._root(place), []).append(place)
        found.pop(self._root(_WHOLE))
        return list(found.values())

    def _root(self, place: Place) -> Place:
        if place not in self._parents:  # what is known of the ranks is wrong
            place = _WHOLE
        while self._parents[place] != place:
            self._parents[place] = place = self._parents[self._parents[place]]
        return place


def link_nodes(
    nodes: Iterable[NodeProto], links: AxisLinks, constants: Mapping[str, np.ndarray]
) -> None:
    """Adds the links of some nodes. Nothing a node reads or gives is cut if it has no rule.

    :param nodes: nodes
    :param links: receives the links
    :param constants: values of the constants
    """
    for node in nodes:
        rule = None if main_domain(node.domain) else _RULES.get(node.op_type)
        reads = [n for n in (*node.input, *node_captures(node)) if n]
        names = [*reads, *(o for o in node.output if o)]
        is_known = all(links.rank(n) is not None for n in names)
        is_linked = (
            rule is not None
            and is_known
            and not has_reference(node)
            and rule(node, links, _Given(attributes_of(node), constants))
        )
        if not is_linked:
            links.keep_all(names)


# -- the rules: each returns False for the forms it does not know


class _Given(NamedTuple):
    """The attributes of a node, and the constants of the window."""

    attributes: Mapping[str, Any]
    constants: Mapping[str, np.ndarray]


_Rule = Callable[[NodeProto, AxisLinks, _Given], bool]


def _rank(links: AxisLinks, name: str) -> int:
    return len(links.shapes[name] or ())


def _has_one_result(node: NodeProto) -> bool:
    return len([o for o in node.output if o]) == 1


def _broadcast(links: AxisLinks, name: str, output: str, others: int = 0) -> None:
    """Links the axes of an operand to those of the result, from the last ones, but for some of the
    last. An axis of 1 meets every row and links nothing."""
    shift = _rank(links, output) - _rank(links, name)
    for axis in range(_rank(links, name) - others):
        place = name, axis
        if links.size(place) != 1 or links.size((output, axis + shift)) == 1:
            links.link(place, (output, axis + shift))


def _all_broadcast(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    if "broadcast" in given.attributes:  # before opset 7
        return False
    for name in filter(None, node.input):
        _broadcast(links, name, node.output[0])
    return True


def _same_shape(node: NodeProto, links: AxisLinks, _: _Given) -> bool:
    for output in filter(None, node.output):
        _broadcast(links, node.input[0], output)
    return True


def _normalization(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    return _has_one_result(node) and _all_broadcast(node, links, given)


def _batch_normalization(node: NodeProto, links: AxisLinks, _: _Given) -> bool:
    if not _has_one_result(node) or _rank(links, node.input[0]) < 2:
        return False
    _broadcast(links, node.input[0], node.output[0])
    for name in node.input[1:]:
        links.link((name, 0), (node.output[0], 1))
    return True


def _spatial(node: NodeProto, links: AxisLinks) -> None:
    """Links the axes a filter moves along: the result's length follows the length of the input."""
    for axis in range(2, _rank(links, node.input[0])):
        links.link((node.input[0], axis), (node.output[0], axis))


def _conv(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    x, weight, output = node.input[0], node.input[1], node.output[0]
    links.link((x, 0), (output, 0))
    _spatial(node, links)
    links.keep(*((weight, axis) for axis in range(2, _rank(links, weight))))
    is_transposed = node.op_type == "ConvTranspose"
    if "output_shape" in given.attributes:
        return False
    gives, takes = (weight, int(is_transposed)), (weight, int(not is_transposed))
    if given.attributes.get("group", 1) != 1:
        links.keep(gives, takes, (x, 1), (output, 1))
    links.link(gives, (output, 1))
    links.link(takes, (x, 1))
    for bias in filter(None, node.input[2:]):
        links.link((bias, 0), (output, 1))
    return True


def _pool(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    if not _has_one_result(node):
        return False
    _spatial(node, links)
    return _global_pool(node, links, given)


def _global_pool(node: NodeProto, links: AxisLinks, _: _Given) -> bool:
    for axis in (0, 1):
        links.link((node.input[0], axis), (node.output[0], axis))
    return True


def _matmul(node: NodeProto, links: AxisLinks, _: _Given) -> bool:
    a, b, output = node.input[0], node.input[1], node.output[0]
    ranks = _rank(links, a), _rank(links, b), _rank(links, output)
    if min(ranks) < 2:
        return False
    links.link((a, ranks[0] - 1), (b, ranks[1] - 2))
    links.link((a, ranks[0] - 2), (output, ranks[2] - 2))
    links.link((b, ranks[1] - 1), (output, ranks[2] - 1))
    for name in (a, b):
        _broadcast(links, name, output, 2)
    return True


def _gemm(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    a, b, output = node.input[0], node.input[1], node.output[0]
    left, right = bool(given.attributes.get("transA")), bool(given.attributes.get("transB"))
    links.link((a, int(not left)), (b, int(right)))
    links.link((a, int(left)), (output, 0))
    links.link((b, int(not right)), (output, 1))
    for name in filter(None, node.input[2:]):
        _broadcast(links, name, output)
    return True


def _transpose(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    rank = _rank(links, node.input[0])
    for i, axis in enumerate(given.attributes.get("perm") or reversed(range(rank))):
        links.link((node.input[0], axis), (node.output[0], i))
    return True


def _concat(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    reads = node.input if node.op_type == "Concat" else node.input[:1]
    links.keep_all(node.input[len(reads) :])
    names = [n for n in (*reads, *node.output) if n]
    rank = _rank(links, node.input[0])
    joined = given.attributes.get("axis", 0) % max(rank, 1)
    for name in names:
        for axis in range(rank):
            if axis == joined:
                links.keep((name, axis))
            else:
                links.link((name, axis), (names[0], axis))
    return True


def _axes(node: NodeProto, given: _Given, rank: int, index: int = 1) -> list[int] | None:
    """The axes of a node, an attribute or an input, None if they are not known or not given."""
    found = given.attributes.get("axes")
    if found is None and len(node.input) > index and node.input[index] in given.constants:
        found = given.constants[node.input[index]].ravel().tolist()
    return None if not found else [int(a) % max(rank, 1) for a in found]


def _reduction(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    rank = _rank(links, node.input[0])
    axes = _axes(node, given, rank)
    if axes is None:
        return False
    links.keep_all(node.input[1:])
    kept = list(range(rank)) if given.attributes.get("keepdims", 1) else _others(rank, axes)
    for i, axis in enumerate(kept):
        if axis not in axes:
            links.link((node.input[0], axis), (node.output[0], i))
    return True


def _others(rank: int, axes: Iterable[int]) -> list[int]:
    return [a for a in range(rank) if a not in set(axes)]


def _squeeze(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    long, short = node.input[0], node.output[0]
    if node.op_type == "Unsqueeze":
        long, short = short, long
    axes = _axes(node, given, _rank(links, long))
    if axes is None:
        return False
    links.keep_all(node.input[1:])
    for i, axis in enumerate(_others(_rank(links, long), axes)):
        links.link((long, axis), (short, i))
    return True


def _slice(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    data, output = node.input[0], node.output[0]
    rank = _rank(links, data)
    cut = _axes(node, given, rank, 3)
    if cut is None:
        return False
    links.keep_all(node.input[1:])
    links.keep(*((name, axis) for name in (data, output) for axis in cut))
    for axis in _others(rank, cut):
        links.link((data, axis), (output, axis))
    return True


def _gather(node: NodeProto, links: AxisLinks, given: _Given) -> bool:
    data, indices, output = node.input[0], node.input[1], node.output[0]
    chosen = given.attributes.get("axis", 0) % max(_rank(links, data), 1)
    links.keep((data, chosen))
    for axis in range(_rank(links, indices)):
        links.link((indices, axis), (output, chosen + axis))
    for axis in _others(_rank(links, data), [chosen]):
        shift = _rank(links, indices) - 1 if axis > chosen else 0
        links.link((data, axis), (output, axis + shift))
    return True


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(BROADCASTING, _all_broadcast),
    **dict.fromkeys(_SAME_SHAPE, _same_shape),
    **dict.fromkeys(_NORMALIZATIONS, _normalization),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(_GLOBAL_POOLS, _global_pool),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(("Conv", "ConvTranspose"), _conv),
    **dict.fromkeys(("Concat", "Split"), _concat),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), _squeeze),
    "BatchNormalization": _batch_normalization,
    "Gather": _gather,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Slice": _slice,
    "Transpose": _transpose,
}
