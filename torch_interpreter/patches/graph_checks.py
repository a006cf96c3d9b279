"""Relaxes what torch checks in the graph it exports, which only has to be converted.

* torch refuses some functions of symbolic numbers, such as a logarithm or a sine,
* it solves the equalities it assumed of one dimension, and fails on those sympy does not solve; it
  calls sympy, for milliseconds, on ``s >= 2``, which is its own solution,
* it writes the conditions it assumed as nodes, and fails on those its printer does not know; no
  node is needed, :mod:`torch_interpreter.inputs.dimension_conditions` reads them where they are.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from torch._export.verifier import Verifier
from torch.fx.experimental import symbolic_shapes
from torch.utils._sympy import functions

from .attributes import patched

_REFUSED = "_has_uninterpretable_sympy_function"
_REDUCE = "reduce_inequalities"
_UNTYPED: Any = functions
_SYMPY: Any = _UNTYPED.sympy
_INEQUALITIES: Any = _SYMPY.solvers.inequalities
#: functions torch writes as nodes; it fails on some of the others
_WRITTEN = (
    functions.FloorDiv,
    functions.CleanDiv,
    functions.Mod,
    functions.PythonMod,
    functions.PowByNatural,
)


def _without_unsolved(solve: Any) -> Any:
    """The method that solves what torch assumed, where an equality that sympy does not solve is a
    condition as another."""

    def call(self: Any) -> None:
        for symbol in list(self._symbols_with_equalities):
            try:
                _INEQUALITIES.reduce_inequalities(self._univariate_inequalities[symbol], symbol)
            except NotImplementedError:
                self._symbols_with_equalities.discard(symbol)
        solve(self)

    return call


def _solved_once(reduce: Any) -> Any:
    """The function of sympy that solves conditions on one symbol, which keeps what it found."""
    found: dict[Any, Any] = {}

    def call(conditions: Any, symbol: Any) -> Any:
        key = frozenset(conditions), symbol
        if key not in found:
            bound = next(iter(conditions)) if len(conditions) == 1 else None
            if isinstance(bound, _SYMPY.Ge) and bound.lhs == symbol and bound.rhs.is_Integer:
                found[key] = bound.reversed
            else:
                found[key] = reduce(conditions, symbol)
        return found[key]

    return call


@contextlib.contextmanager
def accept_symbolic_functions() -> Iterator[None]:
    """Accepts any function of symbolic numbers in an exported graph in this context."""
    types_before = Verifier.allowed_op_types

    def any_function(self: Verifier) -> tuple[type[Any], ...]:
        return (*types_before(self), types.FunctionType, types.BuiltinFunctionType)

    def refused(expr: Any) -> bool:
        return any(not isinstance(f, _WRITTEN) for f in expr.atoms(_UNTYPED.sympy.Function))

    constraints = symbolic_shapes.DimConstraints
    with (
        patched(Verifier, {"allowed_op_types": any_function}),
        patched(symbolic_shapes, {_REFUSED: refused}),
        patched(_INEQUALITIES, {_REDUCE: _solved_once(_INEQUALITIES.reduce_inequalities)}),
        patched(constraints, {"solve": _without_unsolved(constraints.solve)}),
    ):
        yield
