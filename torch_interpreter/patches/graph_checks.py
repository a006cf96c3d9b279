"""Relaxes what torch checks in the graph it exports, which only has to be converted.

* torch refuses some functions of symbolic numbers, such as a logarithm or a sine,
* it solves the equalities it assumed of one dimension, and fails on those sympy does not solve; it
  calls sympy, for milliseconds, on ``s >= 2``, which is its own solution,
* it writes the conditions it assumed as nodes, and fails on those its printer does not know; those
  on dimensions of the inputs are left where they are, where
  :mod:`torch_interpreter.inputs.dimension_conditions` reads them,
* it forgets what it simplified at each of these conditions, which it does at none of its guards,
* it checks that a module leaves the stack of the modules that are called as it found it, and fails
  once an error stopped a call, even an error the model catches.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._export import utils as export_utils
from torch._export.verifier import Verifier
from torch.export import exported_program
from torch.fx import Tracer
from torch.fx.experimental import symbolic_shapes
from torch.utils._sympy import functions

from .attributes import patched

_INSERT = "insert_deferred_runtime_asserts"
_DEFER = "guard_or_defer_runtime_assert"
_REFUSED = "_has_uninterpretable_sympy_function"
_REDUCE = "reduce_inequalities"
_UNTYPED: Any = functions
_SHAPES: Any = symbolic_shapes
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


def _without_known(insert: Any) -> Any:
    """The pass that writes conditions as nodes, without those on dimensions of the inputs. Torch
    needs the others, on sizes that come from data, when it runs the graph again."""

    def call(module: Any, env: Any, *args: Any, **kwargs: Any) -> Any:
        listed = env.deferred_runtime_asserts
        env.deferred_runtime_asserts = {s: found for s, found in listed.items() if s is not None}
        try:
            return insert(module, env, *args, **kwargs)
        finally:
            env.deferred_runtime_asserts = listed

    return call


def _with_caches(defer: Any) -> Any:
    """The method that adds a condition, which leaves the caches of torch as they are when nothing
    else is known of the dimensions: neither a dimension that another one replaces nor a divisor."""

    def call(env: Any, *args: Any, **kwargs: Any) -> Any:
        version, known = env._version_counter, (len(env.replacements), len(env.divisible))
        count = len(env.deferred_runtime_asserts.get(None, ()))
        result = defer(env, *args, **kwargs)
        if env._version_counter != version:
            is_added = len(env.deferred_runtime_asserts.get(None, ())) > count
            if is_added and known == (len(env.replacements), len(env.divisible)):
                env._version_counter = version
        return result

    return call


@contextlib.contextmanager
def light_conditions() -> Iterator[None]:
    """Makes the conditions that torch assumes cheaper in this context: those on dimensions of the
    inputs are no nodes of the graph, and leave its caches as they are."""
    insert, env = _without_known(getattr(export_utils, _INSERT)), _SHAPES.ShapeEnv
    with (
        patched(export_utils, {_INSERT: insert}),
        patched(exported_program, {_INSERT: insert}),
        patched(env, {_DEFER: _with_caches(vars(env)[_DEFER])}),
    ):
        yield


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


@contextlib.contextmanager
def accept_caught_errors() -> Iterator[None]:
    """Accepts that a model catches the error of a module it calls in this context: it tries a call
    with one argument more, for example."""
    before = Tracer.call_module

    def call_module(
        self: Tracer,
        m: torch.nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        depth = len(self.module_stack)
        try:
            return before(self, m, forward, args, kwargs)
        except BaseException:
            while len(self.module_stack) > depth:
                self.module_stack.popitem()
            raise

    with patched(Tracer, {"call_module": call_module}):
        yield
