"""Python arithmetic on sizes and on numbers read from tensors.

A symbolic scalar has shape ``(1,)``, see :mod:`torch_interpreter.writing.symbols`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from onnx import TensorProto

from ..common.types import is_float
from ..writing.graph_writer import GraphWriter, Tensor, op_named
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten, aten_table
from ..writing.symbols import KIND_TYPES, Operand, SymScalar, dim_of, int_vector, vector1d
from .compare import COMPARISONS
from .operands import BOOL, INT64

DOUBLE = TensorProto.DOUBLE

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


def _arithmetic(op_type: str) -> Callable[..., SymScalar]:
    def convert(g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
        kind = _wider(x, y)
        name = op_named(g, op_type)(*_vectors(g, kind, x, y))
        return SymScalar(name, kind)

    return convert


def _comparison(op_type: str) -> Callable[..., SymScalar]:
    def convert(g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
        operands = _vectors(g, _wider(x, y), x, y)
        return SymScalar(op_named(g, op_type)(*operands), bool)

    return convert


def _logical(op_type: str) -> Callable[..., SymScalar]:
    def convert(g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
        operands = _vectors(g, bool, x, y)
        return SymScalar(op_named(g, op_type)(*operands), bool)

    return convert


aten_table(_arithmetic, {"add": "Add", "sub": "Sub", "mul": "Mul"}, "operator.{}")
aten_table(_arithmetic, {"sym_max": "Max", "sym_min": "Min"}, "torch.{}")
aten_table(_comparison, COMPARISONS, "operator.{}")
aten_table(_logical, {"and_": "And", "or_": "Or", "xor": "Xor"}, "operator.{}")


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


@aten("operator.truediv")
def truediv(g: GraphWriter, x: Operand, y: Operand) -> SymScalar:
    """x / y, a float."""
    return SymScalar(g.op.Div(*_vectors(g, float, x, y)), float)


@aten("operator.floordiv")
def floordiv(
    g: GraphWriter, x: Operand, y: Operand, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> SymScalar:
    """x // y; ONNX's division rounds towards zero, which is the same for sizes."""
    kind = _wider(x, y)
    a, b = _vectors(g, kind, x, y)
    if kind is float:
        return SymScalar(g.op.Floor(g.op.Div(a, b)), float)
    if expected.node is not None and all(map(_is_size, expected.node.args)):
        return SymScalar(g.op.Div(a, b), int)
    exact = g.op.Sub(a, g.op.Mod(a, b))
    return SymScalar(g.op.Div(exact, b), int)


def _is_size(operand: Any) -> bool:
    """Whether torch knows that an operand is not negative."""
    value = operand.meta.get("val") if isinstance(operand, torch.fx.Node) else operand
    if isinstance(value, int):
        return value >= 0
    if not isinstance(value, torch.SymInt) or value.node.shape_env is None:
        return False
    return bool(value.node.shape_env.bound_sympy(value.node.expr).lower >= 0)


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
    return SymScalar(g.op.Cast(x, to=INT64), int)


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


def _rounded(op_type: str) -> Callable[..., SymScalar]:
    def convert(g: GraphWriter, x: SymScalar) -> SymScalar:
        if x.kind is int:
            return x
        return SymScalar(g.op.Cast(op_named(g, op_type)(x), to=INT64), int)

    return convert


def _square_root(g: GraphWriter, x: Operand) -> SymScalar:
    return SymScalar(g.op.Sqrt(*_vectors(g, float, x)), float)


aten("math.ceil")(_rounded("Ceil"))
aten("math.floor")(_rounded("Floor"))
aten("builtins.round")(_rounded("Round"))
aten("torch._sym_sqrt", "torch.sym_sqrt", "math.sqrt")(_square_root)


@aten("aten.sym_size.int")
def sym_size(g: GraphWriter, x: str, dim: int) -> int | SymScalar:
    """One dimension of a tensor."""
    return dim_of(g, x, dim)


@aten("aten.sym_numel.default")
def sym_numel(g: GraphWriter, x: str) -> SymScalar:
    """The number of elements."""
    return SymScalar(g.op.Reshape(g.op.Size(x), int_vector([1])), int)


@aten("aten.item.default", "aten._local_scalar_dense.default")
def item(g: GraphWriter, x: str) -> SymScalar:
    """The only number of a tensor."""
    itype = g.get_type(x)
    kind = bool if itype == BOOL else float if is_float(itype) else int
    vector = g.op.Reshape(x, int_vector([1]))
    return SymScalar(vector1d(g, SymScalar(vector, kind), KIND_TYPES[kind]), kind)
