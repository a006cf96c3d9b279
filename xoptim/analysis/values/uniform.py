"""Results proven to be all 0, or all 1, without being constants, such as masks that hide
nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto

from xbuilder.operators.op_traits import CARRIERS

from ...authoring.context import RewriteContext
from ...authoring.queries import until_change
from ..constants import is_filled_with, scalar_value
from ..shapes import at_least
from .positions import constant_difference, first_position

#: operators whose result holds elements of the first input, and no other
_MOVES = CARRIERS | {"Cast"}
#: most nodes to visit
_LIMIT = 100


class _Answers(dict[tuple[str, int], bool]):
    """The answers of :func:`is_always`."""


def is_always(g: RewriteContext, name: str, value: int) -> bool:
    """Whether every element of a result is proven to be a value; there may be no element.

    1. a constant, ConstantOfShape; a node that moves or converts such a result, Resize without
       interpolation;
    2. And, Or, Not, Equal of such results; Where, whose condition may be one;
    3. Add, CumSum of zeros;
    4. 0, 1, 2, ..., plus something that is not negative, compared to 0;
    5. positions minus the previous positions.

    The layers of a model often share a mask: the answers are kept while the graph is the same.

    :param name: the result
    :param value: 0 or 1, False or True
    """
    answers, key = until_change(g, _Answers), (name, value)
    if key not in answers:
        answers[key] = _is_always(g, name, value)
    return answers[key]


def _is_always(g: RewriteContext, name: str, value: int) -> bool:
    """Same as :func:`is_always`, which keeps the answers."""
    left = [_LIMIT]

    def every(name: str, value: int) -> bool:
        left[0] -= 1
        if left[0] < 0 or not name:
            return False
        if is_filled_with(g, name, value):
            return True
        record = g.store.producers.get(name)
        if record is None or record.domain:
            return False
        if record.op_type in _MOVES:
            return every(record.inputs[0], value)
        rule = _RULES.get(record.op_type)
        return rule is not None and rule(g, g.store.proto(record), value, every)

    return every(name, value)


Every = Callable[[str, int], bool]


def _both(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    """And, Or: one operand decides, or both have the value."""
    decides = value == (0 if node.op_type == "And" else 1)
    return (any if decides else all)(every(name, value) for name in node.input)


def _where(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    condition, *branches = node.input
    known = [every(name, value) for name in branches]
    return all(known) or (any(known) and every(condition, int(known[0])))


def _filled(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    number = g.get_attribute_with_default(node, "value", np.zeros(1))
    return bool((np.asarray(number) == value).all())


def _add(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    return value == 0 and all(every(name, 0) for name in node.input)


def _not(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    return every(node.input[0], 1 - value)


def _equal(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    """0 == 0, 1 == 1, or 0 == 1."""
    a, b = node.input
    values = [(v, v if value else 1 - v) for v in (0, 1)]
    return any(every(a, one) and every(b, other) for one, other in values)


def _sums(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    return value == 0 and every(node.input[0], 0)


def _sub(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    return constant_difference(g, node) == value


def resizes_elements(g: RewriteContext, node: NodeProto) -> bool:
    """Whether a Resize only repeats elements or drops them: it mixes none and takes none from
    outside."""
    options = g.get_attributes_with_default(
        node, mode="nearest", coordinate_transformation_mode="half_pixel"
    )
    outside = options["coordinate_transformation_mode"] == "tf_crop_and_resize"
    return options["mode"] == "nearest" and not outside


def _resize(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    return resizes_elements(g, node) and every(node.input[0], value)


def _compare(g: RewriteContext, node: NodeProto, value: int, every: Every) -> bool:
    """0, 1, 2, ... >= 0."""
    high, low = tuple(node.input) if node.op_type == "GreaterOrEqual" else node.input[::-1]
    zero, first = scalar_value(g, low), first_position(g, high)
    if value == 0 or zero is None or zero.item() != 0 or first is None:
        return False
    return at_least(g, first, 0)


_RULES: dict[str, Callable[[RewriteContext, NodeProto, int, Every], bool]] = {
    "And": _both,
    "Or": _both,
    "Where": _where,
    "Not": _not,
    "Equal": _equal,
    "Add": _add,
    "CumSum": _sums,
    "Sub": _sub,
    "ConstantOfShape": _filled,
    "Resize": _resize,
    "GreaterOrEqual": _compare,
    "LessOrEqual": _compare,
}
