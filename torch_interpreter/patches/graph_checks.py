"""Relaxes what torch checks in the graph it exports, which only has to be converted.

* torch refuses some functions of symbolic numbers, such as a logarithm or a sine,
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
_UNTYPED: Any = functions
#: functions torch writes as nodes; it fails on some of the others
_WRITTEN = (
    functions.FloorDiv,
    functions.CleanDiv,
    functions.Mod,
    functions.PythonMod,
    functions.PowByNatural,
)


@contextlib.contextmanager
def accept_symbolic_functions() -> Iterator[None]:
    """Accepts any function of symbolic numbers in an exported graph in this context."""
    types_before = Verifier.allowed_op_types

    def any_function(self: Verifier) -> tuple[type[Any], ...]:
        return (*types_before(self), types.FunctionType, types.BuiltinFunctionType)

    def refused(expr: Any) -> bool:
        return any(not isinstance(f, _WRITTEN) for f in expr.atoms(_UNTYPED.sympy.Function))

    types_changed = patched(Verifier, {"allowed_op_types": any_function})
    with types_changed, patched(symbolic_shapes, {_REFUSED: refused}):
        yield
