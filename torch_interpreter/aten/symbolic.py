"""Python arithmetic on sizes and on numbers read from tensors.

A symbolic scalar has shape ``(1,)``, see :mod:`torch_interpreter.symbols`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import TensorProto

from ..registry import aten
from ..symbols import SymScalar, dim_of, int_vector, vector1d
from .operands import INT64, Operand, Outputs

DOUBLE = TensorProto.DOUBLE
BOOL = TensorProto.BOOL
SymOperand = Operand
_TYPES = {int: INT64, float: DOUBLE, bool: BOOL}


def _kind(x: SymOperand) -> type:
    return x.kind if isinstance(x, SymScalar) else type(x)


def _vectors(g: Any, kind: type, *operands: SymOperand) -> list[Any]:
    return [vector1d(g, x, _TYPES[kind]) for x in operands]


def _wider(*operands: SymOperand) -> type:
    """bool counts as int in python arithmetic."""
    return float if any(_kind(x) is float for x in operands) else int


def _arithmetic(op_type: str) -> Callable[..., SymScalar]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: SymOperand, y: SymOperand) -> SymScalar:
        kind = _wider(x, y)
        name = getattr(g.op, op_type)(*_vectors(g, kind, x, y), outputs=outputs)
        return SymScalar(name, kind)

    return convert


def _comparison(op_type: str) -> Callable[..., SymScalar]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: SymOperand, y: SymOperand) -> SymScalar:
        operands = _vectors(g, _wider(x, y), x, y)
        return SymScalar(getattr(g.op, op_type)(*operands, outputs=outputs), bool)

    return convert


def _logical(op_type: str) -> Callable[..., SymScalar]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: SymOperand, y: SymOperand) -> SymScalar:
        operands = _vectors(g, bool, x, y)
        return SymScalar(getattr(g.op, op_type)(*operands, outputs=outputs), bool)

    return convert


_TABLES: tuple[tuple[Callable[[str], Callable[..., SymScalar]], dict[str, str]], ...] = (
    (
        _arithmetic,
        {
            "operator.add": "Add",
            "operator.sub": "Sub",
            "operator.mul": "Mul",
            "torch.sym_max": "Max",
            "torch.sym_min": "Min",
        },
    ),
    (
        _comparison,
        {
            "operator.eq": "Equal",
            "operator.gt": "Greater",
            "operator.ge": "GreaterOrEqual",
            "operator.lt": "Less",
            "operator.le": "LessOrEqual",
        },
    ),
    (_logical, {"operator.and_": "And", "operator.or_": "Or", "operator.xor": "Xor"}),
)
for _factory, _table in _TABLES:
    for _name, _op_type in _table.items():
        aten(_name)(_factory(_op_type))


@aten("operator.ne")
def ne(g: Any, sts: Any, outputs: Outputs, x: SymOperand, y: SymOperand) -> SymScalar:
    """x != y."""
    operands = _vectors(g, _wider(x, y), x, y)
    return SymScalar(g.op.Not(g.op.Equal(*operands), outputs=outputs), bool)


@aten("operator.not_", "torch.sym_not")
def not_(g: Any, sts: Any, outputs: Outputs, x: SymOperand) -> SymScalar:
    """not x."""
    return SymScalar(g.op.Not(vector1d(g, x, BOOL), outputs=outputs), bool)


@aten("operator.neg")
def neg(g: Any, sts: Any, outputs: Outputs, x: SymOperand) -> SymScalar:
    """-x."""
    return SymScalar(g.op.Neg(x, outputs=outputs), _kind(x))


@aten("operator.truediv")
def truediv(g: Any, sts: Any, outputs: Outputs, x: SymOperand, y: SymOperand) -> SymScalar:
    """x / y, a float."""
    return SymScalar(g.op.Div(*_vectors(g, float, x, y), outputs=outputs), float)


@aten("operator.floordiv")
def floordiv(g: Any, sts: Any, outputs: Outputs, x: SymOperand, y: SymOperand) -> SymScalar:
    """x // y; ONNX's division rounds towards zero, it is the same for positive sizes."""
    kind = _wider(x, y)
    a, b = _vectors(g, kind, x, y)
    if kind is float:
        return SymScalar(g.op.Floor(g.op.Div(a, b), outputs=outputs), float)
    if _positive_size(sts, 0) and _positive_size(sts, 1):
        return SymScalar(g.op.Div(a, b, outputs=outputs), int)
    exact = g.op.Sub(a, g.op.Mod(a, b))
    return SymScalar(g.op.Div(exact, b, outputs=outputs), int)


def _positive_size(sts: Any, index: int) -> bool:
    """True if torch knows that an operand is not negative."""
    if sts is None or sts.node is None:
        return False
    arg = sts.node.args[index]
    value = arg if isinstance(arg, int) else arg.meta.get("val")
    if isinstance(value, int):
        return value >= 0
    node = getattr(value, "node", None)
    if node is None or node.shape_env is None:
        return False
    return node.shape_env.bound_sympy(node.expr).lower >= 0


@aten("operator.mod")
def mod(g: Any, sts: Any, outputs: Outputs, x: SymOperand, y: SymOperand) -> SymScalar:
    """x % y for integers, with the sign of y as python does."""
    if _wider(x, y) is float:
        a, b = _vectors(g, float, x, y)
        quotient = g.op.Floor(g.op.Div(a, b))
        return SymScalar(g.op.Sub(a, g.op.Mul(quotient, b), outputs=outputs), float)
    return SymScalar(g.op.Mod(*_vectors(g, int, x, y), outputs=outputs), int)


@aten("operator.pow")
def pow_(g: Any, sts: Any, outputs: Outputs, x: SymOperand, y: SymOperand) -> SymScalar:
    """x ** y."""
    kind = _wider(x, y)
    return SymScalar(g.op.Pow(*_vectors(g, kind, x, y), outputs=outputs), kind)


@aten("torch.sym_float")
def sym_float(g: Any, sts: Any, outputs: Outputs, x: SymOperand) -> SymScalar:
    """float(x)."""
    return SymScalar(g.op.Cast(x, to=DOUBLE, outputs=outputs), float)


@aten("torch.sym_int", "math.trunc")
def sym_int(g: Any, sts: Any, outputs: Outputs, x: SymOperand) -> SymScalar:
    """int(x), a cast truncates."""
    return SymScalar(g.op.Cast(x, to=INT64, outputs=outputs), int)


@aten("torch.sym_ite")
def sym_ite(
    g: Any, sts: Any, outputs: Outputs, b: SymOperand, x: SymOperand, y: SymOperand
) -> SymScalar:
    """x if b else y."""
    kind = _wider(x, y)
    condition = vector1d(g, b, BOOL)
    return SymScalar(g.op.Where(condition, *_vectors(g, kind, x, y), outputs=outputs), kind)


@aten("torch.sym_sum")
def sym_sum(g: Any, sts: Any, outputs: Outputs, values: list[SymOperand]) -> SymScalar:
    """The sum of a list of integers."""
    stacked = g.op.Concat(*_vectors(g, int, *values), axis=0)
    total = g.op.ReduceSumAnyOpset(stacked, int_vector([0]), keepdims=1, outputs=outputs)
    return SymScalar(total, int)


def _rounded(op_type: str) -> Callable[..., SymScalar]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: SymOperand) -> SymScalar:
        if _kind(x) is int:
            return SymScalar(str(x), int)
        return SymScalar(g.op.Cast(getattr(g.op, op_type)(x), to=INT64, outputs=outputs), int)

    return convert


def _square_root(g: Any, sts: Any, outputs: Outputs, x: SymOperand) -> SymScalar:
    return SymScalar(g.op.Sqrt(*_vectors(g, float, x), outputs=outputs), float)


aten("math.ceil")(_rounded("Ceil"))
aten("math.floor")(_rounded("Floor"))
aten("builtins.round")(_rounded("Round"))
aten("torch._sym_sqrt", "torch.sym_sqrt", "math.sqrt")(_square_root)


@aten("aten.sym_size.int")
def sym_size(g: Any, sts: Any, outputs: Outputs, x: str, dim: int) -> int | SymScalar:
    """One dimension of a tensor."""
    return dim_of(g, x, dim)


@aten("aten.sym_numel.default")
def sym_numel(g: Any, sts: Any, outputs: Outputs, x: str) -> SymScalar:
    """The number of elements."""
    return SymScalar(g.op.Reshape(g.op.Size(x), int_vector([1]), outputs=outputs), int)


@aten("aten.item.default", "aten._local_scalar_dense.default")
def item(g: Any, sts: Any, outputs: Outputs, x: str) -> SymScalar:
    """The only number of a tensor."""
    itype = g.get_type(x)
    kind = bool if itype == BOOL else float if itype in (1, 10, 11, 16) else int
    vector = g.op.Reshape(x, int_vector([1]))
    return SymScalar(vector1d(g, SymScalar(vector, kind), _TYPES[kind]), kind)
