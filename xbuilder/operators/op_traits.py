"""Traits of operators: one table, and the sets of names derived from it at import.

A rewrite, a pass or a shape function tests a set, `op_type in COMMUTATIVE` (they hold names of the
main domain: test the domain as well).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from onnx import NodeProto, TensorProto

Key = tuple[str, str]

#: float type -> first opset whose arithmetic accepts it
FLOAT_SINCE: dict[int, int] = {
    TensorProto.FLOAT: 1,
    TensorProto.DOUBLE: 1,
    TensorProto.FLOAT16: 1,
    TensorProto.BFLOAT16: 13,
}
FLOATS = frozenset(FLOAT_SINCE)
#: floats of 16 bits, the types mixed precision models compute with
HALF_FLOATS = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
#: the other float types, every runtime computes with them
WIDE_FLOATS = FLOATS - HALF_FLOATS
#: types of indices
INDICES = frozenset({TensorProto.INT32, TensorProto.INT64})


class OpTraits(NamedTuple):
    """Traits of one operator.

    :param elementwise: an element of the result only depends on the elements of the operands at the
        same place: one operand (other inputs are scalars), two of them broadcast together, or more
    :param commutative: operands may be exchanged
    :param broadcasts: operands are broadcast, a constant of one element may have rank 0 or 1
    :param keeps_type: the result has the element type of the first operand
    :param division: some content makes it fail: integers divided by zero, negative powers
    :param reduction: removes axes, or makes them 1
    :param axes_input_since: opset in which the attribute `axes` became the second input, 0 if never
    :param carries: the result holds elements of the first input and no other: all of them in the
        same order, all of them in another one, or a choice of them, some maybe several times
    :param random: two runs on the same inputs differ
    :param owns_graphs: has subgraphs
    :param dequantizes: restores the floats of a quantized weight. The runtime keeps the weight as
        it is and fuses the node with its readers, so the node is never folded
    """

    elementwise: Literal["", "unary", "binary", "variadic"] = ""
    commutative: bool = False
    broadcasts: bool = False
    keeps_type: bool = False
    division: bool = False
    reduction: bool = False
    axes_input_since: int = 0
    carries: Literal["", "reshaped", "moved", "chosen"] = ""
    random: bool = False
    owns_graphs: bool = False
    dequantizes: bool = False


_UNARY = OpTraits(elementwise="unary", keeps_type=True)
_PREDICATE = OpTraits(elementwise="unary")
_ARITHMETIC = OpTraits(elementwise="binary", broadcasts=True, keeps_type=True)
_DIVISION = OpTraits(elementwise="binary", broadcasts=True, keeps_type=True, division=True)
_COMMUTES = OpTraits(elementwise="binary", broadcasts=True, keeps_type=True, commutative=True)
_COMPARES = OpTraits(elementwise="binary", broadcasts=True)
_VARIADIC = OpTraits(elementwise="variadic", broadcasts=True, keeps_type=True, commutative=True)
_REDUCES = OpTraits(reduction=True, keeps_type=True, axes_input_since=18)
_RESHAPES, _MOVES, _CHOOSES = (
    OpTraits(carries="reshaped"),
    OpTraits(carries="moved"),
    OpTraits(carries="chosen"),
)
_RANDOM, _OWNER, _DEQUANTIZES = (
    OpTraits(random=True),
    OpTraits(owns_graphs=True),
    OpTraits(dequantizes=True),
)
_ROWS: tuple[tuple[str, str, OpTraits], ...] = (
    ("", "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Clip Cos Cosh Exp Floor", _UNARY),
    ("", "Log Neg Not Reciprocal Round Shrink Sign Sin Sinh Sqrt Tan", _UNARY),
    ("", "Identity", OpTraits(elementwise="unary", keeps_type=True, carries="reshaped")),
    ("", "Cast IsInf IsNaN", _PREDICATE),
    ("", "Celu Elu Erf Gelu HardSigmoid HardSwish LeakyRelu Mish Relu Selu Sigmoid", _UNARY),
    ("", "Softplus Softsign Swish Tanh ThresholdedRelu", _UNARY),
    ("com.microsoft", "Gelu QuickGelu", _UNARY),
    ("", "Add And BitwiseAnd BitwiseOr BitwiseXor Mul Or Xor", _COMMUTES),
    ("", "BitShift Sub", _ARITHMETIC),
    ("", "Div Mod Pow", _DIVISION),
    ("", "Equal", OpTraits(elementwise="binary", broadcasts=True, commutative=True)),
    ("", "Greater GreaterOrEqual Less LessOrEqual", _COMPARES),
    ("", "Max Mean Min Sum", _VARIADIC),
    ("", "Where", OpTraits(elementwise="variadic", broadcasts=True)),
    ("", "PRelu", OpTraits(broadcasts=True, keeps_type=True)),
    ("", "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean", _REDUCES),
    ("", "ReduceMin ReduceProd ReduceSumSquare", _REDUCES),
    ("", "ReduceSum", OpTraits(reduction=True, keeps_type=True, axes_input_since=13)),
    ("", "Squeeze", OpTraits(keeps_type=True, axes_input_since=13, carries="reshaped")),
    ("", "Unsqueeze", OpTraits(keeps_type=True, axes_input_since=13, carries="reshaped")),
    ("", "Flatten Reshape", _RESHAPES),
    ("", "DepthToSpace ReverseSequence SpaceToDepth Transpose", _MOVES),
    ("", "Compress Expand Gather GatherElements GatherND Slice Split Tile", _CHOOSES),
    ("", "InstanceNormalization", OpTraits(keeps_type=True)),
    ("", "Bernoulli Multinomial RandomNormal RandomNormalLike", _RANDOM),
    ("", "RandomUniform RandomUniformLike", _RANDOM),
    ("", "If Loop Scan SequenceMap", _OWNER),
    ("", "DequantizeLinear", _DEQUANTIZES),
    ("com.microsoft", "DequantizeBFP DequantizeLinear DequantizeWithOrder", _DEQUANTIZES),
    ("com.microsoft", "GatherBlockQuantized MatMulBnb4 MatMulNBits", _DEQUANTIZES),
)


def _table(rows: Iterable[tuple[str, str, OpTraits]]) -> dict[Key, OpTraits]:
    """One entry per operator.

    :raises ValueError: an operator is in two rows
    """
    table: dict[Key, OpTraits] = {}
    for domain, names, traits in rows:
        for op_type in names.split():
            if (domain, op_type) in table:
                raise ValueError(f"Operator {domain}::{op_type} is in two rows of the table.")
            table[domain, op_type] = traits
    return table


#: (domain, op_type) -> traits; an operator that is not there has none
TRAITS = _table(_ROWS)


def having(trait: str, value: object = True) -> frozenset[str]:
    """Names of the operators of the main domain with some trait.

    :param trait: a field of :class:`OpTraits`
    :param value: the value it must have
    :return: names

    >>> sorted(having("owns_graphs"))
    ['If', 'Loop', 'Scan', 'SequenceMap']
    """
    return frozenset(op for (d, op), t in TRAITS.items() if not d and getattr(t, trait) == value)


COMMUTATIVE = having("commutative")
BROADCASTING = having("broadcasts")
KEEPS_TYPE = having("keeps_type")
DIVISIONS = having("division")
ELEMENTWISE_UNARY = having("elementwise", "unary")
#: the same of any domain, as `(domain, op_type)`
UNARY_OF_ANY_DOMAIN = frozenset(key for key, t in TRAITS.items() if t.elementwise == "unary")
#: two operands broadcast together, sorted: it declares the roots of patterns
ELEMENTWISE_BINARY = tuple(sorted(having("elementwise", "binary")))
#: the four operations on numbers: they declare the roots of patterns
ARITHMETIC = ("Add", "Sub", "Mul", "Div")
REDUCTIONS = tuple(sorted(having("reduction")))
#: the elements of the first input, in the same order
RESHAPES = having("carries", "reshaped")
#: elements of the first input and no other
CARRIERS = RESHAPES | having("carries", "moved") | having("carries", "chosen")
RANDOM = having("random")
GRAPH_OWNERS = having("owns_graphs")
#: operators of any domain, as `(domain, op_type)`
DEQUANTIZERS = frozenset(key for key, traits in TRAITS.items() if traits.dequantizes)
#: operator -> opset in which its axes became an input
AXES_INPUT_SINCE = {op: t.axes_input_since for (_, op), t in TRAITS.items() if t.axes_input_since}


def is_float_of(elem_type: int | None, opset: int) -> bool:
    """Whether the arithmetic of an opset accepts a float type. Bfloat16 came with opset 13.

    >>> is_float_of(TensorProto.BFLOAT16, 12), is_float_of(TensorProto.FLOAT16, 12)
    (False, True)
    """
    return elem_type in FLOATS and opset >= FLOAT_SINCE[elem_type]


#: operators of the main domain onnxruntime runs in any opset, though onnx added them in a later one
IN_ANY_OPSET = frozenset({"LayerNormalization"})
#: operator of the main domain -> the rank its first inputs must have
EXACT_RANKS = {"Gemm": (2, 2)}


def is_random(nodes: Iterable[NodeProto]) -> bool:
    """Whether one of the nodes is random."""
    return any(
        node.op_type in RANDOM or (node.op_type == "Dropout" and len(node.input) > 2)
        for node in nodes
    )
