"""Whether anything tells -0.0 from 0.0: the inverse of one is -inf, of the other one inf."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.record import Key, NodeRecord
from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import FLOATS

from ...authoring.outlining import INTERMEDIATE
from ...authoring.queries import GraphQueries, until_change
from ..constants import scalar_value

#: reason of a refusal
SEEN = "the sign of a zero may be seen: its inverse is infinite"
#: operators whose result is the same for both zeros
_BLIND = frozenset(
    {
        *("Abs", "ArgMax", "ArgMin", "Cos", "Cosh", "Equal", "Exp", "Greater", "GreaterOrEqual"),
        *("IsInf", "IsNaN", "Less", "LessOrEqual", "Log", "LogSoftmax", "LogSumExp", "NonZero"),
        *("QuantizeLinear", "DynamicQuantizeLinear", "ReduceL1", "ReduceL2", "ReduceLogSumExp"),
        *("ReduceSumSquare", "Shape", "Sigmoid", "Size", "Softmax", "Softplus"),
    }
)
#: domains whose operators are known: none of the others divides by what it reads
_KNOWN = frozenset({"", "ai.onnx.ml", MICROSOFT, INTERMEDIATE})
#: operators that may compute anything
_ANYTHING = frozenset({"If", "Loop", "Scan", "SequenceMap", "BitCast", "Det", "Inverse"})
#: operators that may see the sign of a zero
_SEERS = _ANYTHING | {"Div", "Pow", "Reciprocal"}


class _Seen(dict[str, bool]):
    """Results whose sign of zero is seen, or not, in one state of the graph."""

    #: whether a node of the graph may see one, None before it is asked
    anywhere: bool | None = None


def sees_sign_of_zero(g: GraphQueries, name: str) -> bool:
    """Whether a node, near or far after a result, may give something else if a zero changes its
    sign. The outputs of a model do not count: -0.0 and 0.0 are equal.

    1. Reciprocal, Div for its second operand, Pow unless the exponent is positive;
    2. a control flow, a local function, an operator of an unknown domain, the end of a body.

    Cost: O(operators) if the graph has none of these, otherwise O(nodes after the result), once for
    each state of the graph.

    :param name: a result; the sign of an integer is never seen
    """
    kind = g.type_or_none(name)
    if kind and kind not in FLOATS:
        return False
    known = until_change(g, _Seen)
    if known.anywhere is None:
        others = _ends_elsewhere(g) or bool(g.store.captures)
        known.anywhere = others or any(map(_may_see, g.store.bucket_keys()))
    return known.anywhere and _walk(g, name, known)


def _ends_elsewhere(g: GraphQueries) -> bool:
    """Whether the outputs are results of another graph: those of a body or of a local function."""
    return g.graph.parent is not None or g.graph.is_function


def _may_see(key: Key) -> bool:
    """Whether nodes of an operator may see the sign of a zero."""
    domain, op_type = key
    return domain not in _KNOWN or op_type in _SEERS


def _walk(g: GraphQueries, name: str, known: dict[str, bool]) -> bool:
    """Depth first: a result is seen if one of its readers sees it, or a result of a reader is."""
    elsewhere = _ends_elsewhere(g)
    stack: list[tuple[str, list[str] | None]] = [(name, None)]
    while stack:
        current, after = stack.pop()
        if after is not None:
            known[current] = any(known.get(o, True) for o in after)
            continue
        if current in known:
            continue
        answers = [(r, _reads(g, r, current)) for r in g.store.readers(current)]
        is_result = elsewhere and g.is_output(current)
        if is_result or any(answer is None for _, answer in answers):
            known[current] = True
            continue
        after = [o for r, passes in answers if passes for o in r.outputs if o]
        stack.append((current, after))
        stack.extend((o, None) for o in after if o not in known)
    return known[name]


def _reads(g: GraphQueries, record: NodeRecord, name: str) -> bool | None:
    """None if a node sees the sign of a zero, False if its results are the same for both, True if
    it may pass it on."""
    if record.domain not in _KNOWN or record.op_type in _ANYTHING or record.captured:
        return None
    if record.domain:
        return True
    if record.op_type in _BLIND:
        return False
    rule = _RULES.get(record.op_type)
    return True if rule is None else rule(g, g.store.proto(record), name)


def _divides(g: GraphQueries, node: NodeProto, name: str) -> bool | None:
    return None if node.input[1] == name else True


def _adds(g: GraphQueries, node: NodeProto, name: str) -> bool | None:
    """A number that is not 0 is added: both zeros give this number."""
    others = [other for other in node.input if other != name]
    value = scalar_value(g, others[0]) if len(others) == 1 else None
    return value is None or bool((value == 0).any())


def _multiplies(g: GraphQueries, node: NodeProto, name: str) -> bool | None:
    """A square is 0.0 for both."""
    return bool(node.input[0] != node.input[1])


def _raises(g: GraphQueries, node: NodeProto, name: str) -> bool | None:
    if node.input[0] != name:
        return False
    value = scalar_value(g, node.input[1])
    exponent = 0.0 if value is None else float(value.item())
    if exponent <= 0:
        return None
    return exponent % 2 != 0


def _bounded(g: GraphQueries, node: NodeProto, name: str) -> bool | None:
    """The result is at least a positive number."""
    lows = node.input[1:2] if node.op_type == "Clip" else [n for n in node.input if n != name]
    values = [scalar_value(g, n) for n in lows if n]
    return not any(v is not None and bool((v > 0).all()) for v in values)


def _converts(g: GraphQueries, node: NodeProto, name: str) -> bool | None:
    return g.type_or_none(node.output[0]) in (*FLOATS, None, 0)


_RULES = {
    "Add": _adds,
    "Cast": _converts,
    "Clip": _bounded,
    "Div": _divides,
    "Max": _bounded,
    "Mul": _multiplies,
    "Pow": _raises,
    "Reciprocal": lambda g, node, name: None,
    "Sub": _adds,
}


def is_negative_zero(value: np.ndarray) -> np.ndarray:
    """Whether each number is -0.0.

    :param value: floats

    >>> is_negative_zero(np.array([-0.0, 0.0, -1.0])).tolist()
    [True, False, False]
    """
    found: np.ndarray = (value == 0) & np.signbit(value)
    return found
