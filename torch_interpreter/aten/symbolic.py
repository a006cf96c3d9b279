"""Python arithmetic on sizes and on numbers read from tensors.

A symbolic scalar has shape ``(1,)``, see :mod:`torch_interpreter.writing.symbols`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..common.types import is_float
from ..writing.fx_nodes import never_negative, node_argument
from ..writing.graph_writer import GraphWriter, Tensor, op_named
from ..writing.registry import (
    UNKNOWN_OUTPUTS,
    OutputFacts,
    aten,
    aten_table,
    curried,
    find_converter,
)
from ..writing.storage import storage_order
from ..writing.symbols import (
    KIND_TYPES,
    Operand,
    Size,
    SymScalar,
    dim_of,
    dims_of,
    int_vector,
    product,
    vector1d,
)
from .compare import BITWISE, COMPARISONS
from .operands import BOOL, INT64, axis_of

DOUBLE = TensorProto.DOUBLE
#: 1, 2, 4 ... and the weight of the sign in an integer of 64 bits
_POWERS = np.array([*(1 << i for i in range(63)), -(1 << 63)], dtype=np.int64)

# the operators python's operators become between tensors, in the graphs torch.compile gives
_BETWEEN_TENSORS = {
    "operator.add": "aten.add.Tensor",
    "operator.sub": "aten.sub.Tensor",
    "operator.mul": "aten.mul.Tensor",
    "operator.truediv": "aten.div.Tensor",
    "operator.floordiv": "aten.floor_divide.default",
    "operator.mod": "aten.remainder.Tensor",
    "operator.pow": "aten.pow.Tensor_Tensor",
    "operator.neg": "aten.neg.default",
    "operator.ne": "aten.ne.Tensor",
    "operator.and_": "aten.bitwise_and.Tensor",
    "operator.or_": "aten.bitwise_or.Tensor",
    "operator.xor": "aten.bitwise_xor.Tensor",
    "operator.lshift": "aten.bitwise_left_shift.Tensor",
    "operator.rshift": "aten.bitwise_right_shift.Tensor",
    "operator.matmul": "aten.matmul.default",
    "operator.abs": "aten.abs.default",
    "operator.pos": "aten.positive.default",
    "operator.invert": "aten.bitwise_not.default",
    **{f"operator.{name}": f"aten.{name}.Tensor" for name in COMPARISONS},
}


def tensor_form(name: str, operands: Sequence[Any]) -> str:
    """The operator torch calls for a python operator, which also works on tensors."""
    if any(isinstance(x, str) and not isinstance(x, SymScalar) for x in operands):
        return _BETWEEN_TENSORS.get(name, name)
    return name


def _kind(x: Operand) -> type:
    return x.kind if isinstance(x, SymScalar) else type(x)


def _vectors(g: GraphWriter, kind: type, *operands: Operand) -> list[Tensor]:
    return [vector1d(g, x, KIND_TYPES[kind]) for x in operands]


def _wider(*operands: Operand) -> type:
    """The widest python type of some operands; bool counts as int."""
    return float if any(_kind(x) is float for x in operands) else int


@curried
def _arithmetic(op_type: str, g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
    kind = _wider(x, y)
    name = op_named(g, op_type)(*_vectors(g, kind, x, y))
    return SymScalar(name, kind)


@curried
def _comparison(op_type: str, g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
    operands = _vectors(g, _wider(x, y), x, y)
    return SymScalar(op_named(g, op_type)(*operands), bool)


@curried
def _bits(op_types: tuple[str, str], g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
    """A converter of ``&``, ``|`` or ``^``: between conditions, or bit by bit between integers."""
    numeric, logical = op_types
    if _kind(x) is bool and _kind(y) is bool:
        return SymScalar(op_named(g, logical)(*_vectors(g, bool, x, y)), bool)
    operands = _vectors(g, int, x, y)
    if g.main_opset >= 18:
        return SymScalar(op_named(g, numeric)(*operands), int)
    combined = op_named(g, logical)(*(_binary_digits(g, v) for v in operands))
    digits = g.op.Mul(g.op.Cast(combined, to=INT64), _POWERS)
    return SymScalar(g.op.ReduceSumAnyOpset(digits, int_vector([0]), keepdims=1), int)


def _binary_digits(g: GraphWriter, x: Tensor) -> str:
    """The 64 bits of an integer as booleans, the sign last."""
    low = _POWERS[:-1]
    digits = g.op.Mod(g.op.Div(g.op.Sub(x, g.op.Mod(x, low)), low), int_vector([2]))
    sign = g.op.Less(x, int_vector([0]))
    return g.op.Concat(g.op.Cast(digits, to=BOOL), sign, axis=0)


@curried
def _shift(to_the_left: bool, g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
    """A converter of ``<<`` or ``>>``: a product, or a division rounded down."""
    power = pow_(g, 2, y)
    return _product(g, x, power) if to_the_left else floordiv(g, x, power)


_product = _arithmetic("Mul")
aten("operator.mul")(_product)
aten_table(_arithmetic, {"add": "Add", "sub": "Sub"}, "operator.{}")
aten_table(_arithmetic, {"sym_max": "Max", "sym_min": "Min"}, "torch.{}")
aten_table(_comparison, COMPARISONS, "operator.{}")
aten_table(
    _bits, {"and_": BITWISE["and"], "or_": BITWISE["or"], "xor": BITWISE["xor"]}, "operator.{}"
)
aten_table(_shift, {"lshift": True, "rshift": False}, "operator.{}")


@aten("operator.ne")
def ne(g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
    """x != y."""
    operands = _vectors(g, _wider(x, y), x, y)
    return SymScalar(g.op.Not(g.op.Equal(*operands)), bool)


@aten("operator.not_", "torch.sym_not")
def not_(g: GraphWriter, x: Operand) -> SymScalar:
    """not x."""
    return SymScalar(g.op.Not(vector1d(g, x, BOOL)), bool)


@aten("operator.neg")
def neg(g: GraphWriter, x: SymScalar) -> SymScalar:
    """-x."""
    return SymScalar(g.op.Neg(x), _kind(x))


@aten("operator.pos")
def pos(g: GraphWriter, x: SymScalar) -> SymScalar:
    """+x."""
    return x


@aten("operator.abs")
def abs_(g: GraphWriter, x: SymScalar) -> SymScalar:
    """abs(x)."""
    return SymScalar(g.op.Abs(x), _kind(x))


@aten("operator.truediv")
def truediv(
    g: GraphWriter, x: Operand, y: Operand, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> SymScalar:
    """x / y, a float."""
    quotient = None
    is_size = never_negative(node_argument(expected.node, 0))
    if is_size and isinstance(x, SymScalar) and isinstance(y, int) and y > 0:
        quotient = (x, y)
    return SymScalar(g.op.Div(*_vectors(g, float, x, y)), float, quotient)


@aten("operator.floordiv")
def floordiv(
    g: GraphWriter, x: Operand, y: Operand, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> SymScalar:
    """x // y; ONNX's division rounds towards zero, which is the same for sizes."""
    kind = _wider(x, y)
    a, b = _vectors(g, kind, x, y)
    if kind is float:
        return SymScalar(g.op.Floor(g.op.Div(a, b)), float)
    if expected.node is not None and all(map(never_negative, expected.node.args)):
        return SymScalar(g.op.Div(a, b), int)
    exact = g.op.Sub(a, g.op.Mod(a, b))
    return SymScalar(g.op.Div(exact, b), int)


@aten("operator.mod")
def mod(g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
    """x % y for integers, with the sign of y as python does."""
    if _wider(x, y) is float:
        a, b = _vectors(g, float, x, y)
        quotient = g.op.Floor(g.op.Div(a, b))
        return SymScalar(g.op.Sub(a, g.op.Mul(quotient, b)), float)
    return SymScalar(g.op.Mod(*_vectors(g, int, x, y)), int)


@aten("operator.pow")
def pow_(g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
    """x ** y."""
    kind = _wider(x, y)
    return SymScalar(g.op.Pow(*_vectors(g, kind, x, y)), kind)


@aten("torch.sym_float")
def sym_float(g: GraphWriter, x: SymScalar) -> SymScalar:
    """float(x)."""
    return SymScalar(g.op.Cast(x, to=DOUBLE), float)


@aten("torch.sym_int", "math.trunc")
def sym_int(g: GraphWriter, x: SymScalar) -> SymScalar:
    """int(x), a cast truncates."""
    if x.quotient is not None:
        return _whole_quotient(g, *x.quotient)
    return SymScalar(g.op.Cast(x, to=INT64), int)


def _whole_quotient(g: GraphWriter, size: SymScalar, divisor: int, up: bool = False) -> SymScalar:
    """A size divided by a positive integer and rounded, in integers: inference knows the value.

    A float gives the same number, unless the size has more than 53 bits.
    """
    if up and divisor > 1:
        size = SymScalar(g.op.Add(size, int_vector([divisor - 1])))
    return SymScalar(g.op.Div(size, int_vector([divisor])), int)


@aten("torch.sym_ite")
def sym_ite(g: GraphWriter, b: Operand, x: Operand, y: Operand) -> SymScalar:
    """x if b else y."""
    kind = _wider(x, y)
    condition = vector1d(g, b, BOOL)
    return SymScalar(g.op.Where(condition, *_vectors(g, kind, x, y)), kind)


@aten("torch.sym_sum")
def sym_sum(g: GraphWriter, values: list[Operand]) -> SymScalar:
    """The sum of a list of integers."""
    stacked = g.op.Concat(*_vectors(g, int, *values), axis=0)
    total = g.op.ReduceSumAnyOpset(stacked, int_vector([0]), keepdims=1)
    return SymScalar(total, int)


@curried
def _rounded(op_type: str, g: GraphWriter, x: SymScalar) -> SymScalar:
    if x.kind is int:
        return x
    if op_type != "Round" and x.quotient is not None:
        return _whole_quotient(g, *x.quotient, up=op_type == "Ceil")
    return SymScalar(g.op.Cast(op_named(g, op_type)(x), to=INT64), int)


aten("math.ceil")(_rounded("Ceil"))
aten("math.floor")(_rounded("Floor"))
_to_nearest = _rounded("Round")


@aten("builtins.round")
def round_(g: GraphWriter, x: SymScalar, ndigits: int | None = None) -> SymScalar:
    """The nearest integer, half to even; a float with some decimals if *ndigits* is given.

    Python rounds the exact value. Its product by a power of ten may seem to be half way between two
    integers; the error of the product, which is a double, then says which one is the nearest.
    """
    if ndigits is None or x.kind is int:
        return _to_nearest(g, x)
    if ndigits == 0:
        return SymScalar(g.op.Round(x), float)
    power = np.array([10.0 ** abs(ndigits)])
    if ndigits < 0:
        return SymScalar(g.op.Mul(g.op.Round(g.op.Div(x, power)), power), float)
    scaled = g.op.Mul(x, power)
    floor = g.op.Floor(scaled)
    error = _product_error(g, x, power, scaled)
    is_half = g.op.Equal(g.op.Sub(scaled, floor), np.array([0.5]))
    is_between = g.op.And(is_half, g.op.Not(g.op.Equal(error, np.array([0.0]))))
    above = g.op.Cast(g.op.Greater(error, np.array([0.0])), to=DOUBLE)
    nearest = g.op.Where(is_between, g.op.Add(floor, above), g.op.Round(scaled))
    return SymScalar(g.op.Div(nearest, power), float)


def _product_error(g: GraphWriter, x: Tensor, power: np.ndarray, scaled: Tensor) -> str:
    """x * power - scaled, exact: Dekker's product of two doubles."""
    split = 2.0**27 + 1
    wide = g.op.Mul(x, np.array([split]))
    high = g.op.Sub(wide, g.op.Sub(wide, x))
    low = g.op.Sub(x, high)
    top = split * power - (split * power - power)
    rest = power - top  # 0 for a small power
    terms = [(high, rest), (low, top), (low, rest)]
    error = g.op.Sub(g.op.Mul(high, top), scaled)
    for part, factor in terms if rest.any() else terms[1:2]:
        error = g.op.Add(error, g.op.Mul(part, factor))
    return error


@curried
def _function(operator: str, g: GraphWriter, x: Operand) -> SymScalar:
    """A converter of a function of ``math``: the one of the same operator on tensors."""
    on_tensors = find_converter(operator)
    assert on_tensors is not None
    return SymScalar(on_tensors(g, *_vectors(g, float, x)), float)


_FUNCTIONS = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan")
aten_table(_function, {n: f"aten.{n}.default" for n in ("log", "log10")}, "math.{}")
aten_table(
    _function, {name: f"aten.{name}.default" for name in _FUNCTIONS}, "torch._sym_{}", "math.{}"
)
aten("torch.sym_sqrt")(_function("aten.sqrt.default"))


@aten("torch._sym_log2", "math.log2")
def log2(g: GraphWriter, x: Operand) -> SymScalar:
    """The logarithm in base 2, exact for the powers of 2: ``ceil`` may follow."""
    (value,) = _vectors(g, float, x)
    quotient = g.op.Div(g.op.Log(value), np.array([math.log(2)]))
    nearest = g.op.Round(quotient)
    exact = g.op.Equal(g.op.Pow(np.array([2.0]), nearest), value)
    return SymScalar(g.op.Where(exact, nearest, quotient), float)


@aten("aten.size.default", "aten.sym_size.default")
def sizes(g: GraphWriter, x: str) -> list[Size]:
    """Every dimension of a tensor."""
    return dims_of(g, x)


@aten("aten.sym_size.int")
def sym_size(g: GraphWriter, x: str, dim: int) -> int | SymScalar:
    """One dimension of a tensor."""
    return dim_of(g, x, dim)


@aten("aten.sym_numel.default")
def sym_numel(g: GraphWriter, x: str) -> SymScalar:
    """The number of elements."""
    return SymScalar(g.op.Reshape(g.op.Size(x), int_vector([1])), int)


@aten("aten.sym_stride.int", "complex.aten.sym_stride.int")
def sym_stride(
    g: GraphWriter, x: str, dim: int, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> Size:
    """The distance in the storage between two neighbours along a dimension.

    :raises ValueError: the tensor is only a part of its storage
    """
    node = node_argument(expected.node, 0)
    fake = None if node is None else node.meta.get("val")
    order = list(range(g.get_rank(x))) if fake is None else storage_order(fake)
    if order is None:
        raise ValueError("the stride of a tensor which does not fill its storage is not known")
    after = order[order.index(axis_of(dim, len(order))) + 1 :]
    dims = [dim_of(g, x, axis) for axis in after]
    return product(
        g, [SymScalar(g.op.Max(d, int_vector([1]))) if isinstance(d, str) else d for d in dims]
    )


@aten("aten.item.default", "aten._local_scalar_dense.default")
def item(g: GraphWriter, x: str) -> SymScalar:
    """The only number of a tensor."""
    itype = g.get_type(x)
    kind = bool if itype == BOOL else float if is_float(itype) else int
    vector = g.op.Reshape(x, int_vector([1]))
    return SymScalar(vector1d(g, SymScalar(vector, kind), KIND_TYPES[kind]), kind)
