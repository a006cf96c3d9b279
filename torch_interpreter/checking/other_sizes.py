"""Draws other sizes of the dynamic dimensions, among those torch's guards allow."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from ..inputs.counterexamples import Check, condition_check
from ..inputs.dynamic_shapes import spec_items, user_name
from ..inputs.examples import resized
from ..inputs.inputs import ModelInput

#: largest number of combinations of sizes that are tried
_MOST = 20_000


def other_sizes(
    inputs: Sequence[ModelInput], leaves: Sequence[Any], specs: Sequence[Any] = ()
) -> list[Any] | None:
    """The leaves of the arguments with larger dynamic dimensions, where the content is repeated.

    A dimension that is computed from others (``past + seq``) follows them, and the sizes satisfy
    what torch assumed when it traced the model. A symbol keeps its size if it cannot change.

    :param inputs: the leaves of the arguments
    :param leaves: their values
    :param specs: specifications of their dynamic dimensions; those with one name have one size
    :return: the new values, None if no dimension can change
    """
    symbols, env = _symbols(inputs, leaves)
    if not symbols:
        return None
    conditions = [*_conditions(env, symbols), *_equal_names(inputs, specs)]
    sizes = _larger(symbols, conditions, env)
    if sizes is None:
        return None
    return at_sizes(inputs, leaves, sizes)


def _symbols(inputs: Sequence[ModelInput], leaves: Sequence[Any]) -> tuple[dict[str, int], Any]:
    """The symbols of the dimensions, their values, and the environment of torch."""
    symbols: dict[str, int] = {}
    env: Any = None
    for model_input, value in zip(inputs, leaves, strict=True):
        for dim, size in _dimensions(model_input.fake, value):
            env = dim.node.shape_env
            if dim.node.expr.is_Symbol:
                symbols[dim.node.expr.name] = int(size)
            known = getattr(env, "backed_var_to_val", None)  # a newer torch
            known = env.var_to_val if known is None else known
            for symbol in dim.node.expr.free_symbols & known.keys():
                symbols.setdefault(symbol.name, int(known[symbol]))
    return symbols, env


def _dimensions(fake: Any, value: Any) -> Iterator[tuple[Any, int]]:
    """The dynamic dimensions of a leaf, and the integer a leaf is."""
    if isinstance(fake, torch.SymInt) and not fake.node.expr.is_number:
        yield fake, int(value)
    elif isinstance(fake, torch.Tensor) and isinstance(value, torch.Tensor):
        for dim, size in zip(fake.shape, value.shape, strict=True):
            if isinstance(dim, torch.SymInt) and not dim.node.expr.is_number:
                yield dim, size


def _conditions(env: Any, hints: Mapping[str, int]) -> Iterator[tuple[frozenset[str], Check]]:
    """The conditions torch assumed, with the symbols they are about."""
    deferred = itertools.chain(*env.deferred_runtime_asserts.values())
    for guard in (*env.guards, *deferred):
        expr = guard.expr.xreplace(env.replacements)
        check = condition_check(expr, hints)
        if check is not None:
            yield frozenset(symbol.name for symbol in expr.free_symbols), check


def _equal_names(
    inputs: Sequence[ModelInput], specs: Sequence[Any]
) -> Iterator[tuple[frozenset[str], Check]]:
    """The conditions that the names of the user add: one name is one size."""
    first: dict[str, str] = {}
    for model_input, spec in zip(inputs, specs, strict=False):
        shape = getattr(model_input.fake, "shape", ())
        for axis, asked in spec_items(spec, len(shape)):
            name, dim = user_name(asked), shape[axis]
            if name is None or not isinstance(dim, torch.SymInt) or not dim.node.expr.is_Symbol:
                continue
            symbol = dim.node.expr.name
            other = first.setdefault(name, symbol)
            if other != symbol:
                yield frozenset({other, symbol}), functools.partial(_are_equal, other, symbol)


def _are_equal(a: str, b: str, sizes: Mapping[str, int]) -> bool:
    return sizes[a] == sizes[b]


def _larger(
    hints: Mapping[str, int], conditions: list[tuple[frozenset[str], Check]], env: Any
) -> dict[str, int] | None:
    """Larger sizes that satisfy the conditions, as many as possible."""
    ranges = {symbol.name: found for symbol, found in env.var_to_range.items()}
    choices = {}
    for i, (name, hint) in enumerate(hints.items()):
        steps = [hint + 1 + (i + k) % 3 for k in range(3)]
        candidates = [*steps, 2 * hint, hint]
        known = ranges.get(name)
        choices[name] = [
            n for n in candidates if known is None or n == hint or known.lower <= n <= known.upper
        ]
    tied = {name for names, _ in conditions if len(names) > 1 for name in names}
    sizes = dict(hints)
    for name in hints.keys() - tied:
        own = [check for names, check in conditions if name in names]
        free = (n for n in choices[name] if all(c({**hints, name: n}) for c in own))
        sizes[name] = next(free, hints[name])
    order = [name for name in hints if name in tied]
    combined = itertools.islice(itertools.product(*(choices[n] for n in order)), _MOST)
    tried = [dict(zip(order, values, strict=True)) for values in combined]
    for values in sorted(tried, key=lambda v: sum(hints[n] == size for n, size in v.items())):
        found = {**sizes, **values}
        if all(check(found) for _, check in conditions):
            return found if found != hints else None
    return None


def at_sizes(
    inputs: Sequence[ModelInput], leaves: Sequence[Any], sizes: Mapping[str, int]
) -> list[Any]:
    """The leaves of the arguments where some dimensions have other sizes.

    :param inputs: the leaves of the arguments
    :param leaves: their values
    :param sizes: symbols of torch and their sizes, the others do not change
    """
    symbols, _ = _symbols(inputs, leaves)
    wanted = {**symbols, **sizes}
    return [_resized(i.fake, value, wanted) for i, value in zip(inputs, leaves, strict=True)]


def allowed_sizes(
    inputs: Sequence[ModelInput], leaves: Sequence[Any], tried: Sequence[int]
) -> Iterator[dict[str, int]]:
    """Sizes of one dimension, then of all those that have the same one, which meet what torch
    assumed when it traced the model.

    :param inputs: the leaves of the arguments
    :param leaves: their values
    :param tried: the sizes
    """
    symbols, env = _symbols(inputs, leaves)
    checks = [check for _, check in _conditions(env, symbols)] if symbols else []
    ranges = {symbol.name: found for symbol, found in env.var_to_range.items()} if symbols else {}
    for (name, hint), size in itertools.product(symbols.items(), tried):
        alike = [other for other, known in symbols.items() if known == hint]
        for changed in {(name,): None, tuple(alike): None}:
            sizes = dict.fromkeys(changed, size)
            in_range = all(n not in ranges or size in ranges[n] for n in changed)
            if in_range and all(check({**symbols, **sizes}) for check in checks):
                yield sizes


def evaluator(inputs: Sequence[ModelInput], leaves: Sequence[Any]) -> Callable[[Any, int], int]:
    """A function that computes a dimension, or gives its second argument if it is not known.

    :param inputs: the leaves of the arguments
    :param leaves: their values, which give the sizes of the symbols
    """
    sizes, _ = _symbols(inputs, leaves)
    known: dict[Any, int | None] = {}

    def evaluate(dim: Any, default: int) -> int:
        if isinstance(dim, int):
            return dim
        expr = dim.node.expr if isinstance(dim, torch.SymInt) else dim
        if expr not in known:
            found = _evaluate(dim, sizes, -1)
            known[expr] = None if found < 0 else found
        size = known[expr]
        return default if size is None else size

    return evaluate


def elements_at(
    inputs: Sequence[ModelInput], leaves: Sequence[Any], sizes: Mapping[str, int]
) -> int:
    """The number of elements of the leaves :func:`at_sizes` would make.

    :param inputs: the leaves of the arguments
    :param leaves: their values
    :param sizes: symbols of torch and their sizes
    """
    wanted = {**_symbols(inputs, leaves)[0], **sizes}
    return sum(
        math.prod(_evaluate(d, wanted, n) for d, n in zip(i.fake.shape, v.shape, strict=True))
        for i, v in zip(inputs, leaves, strict=True)
        if isinstance(i.fake, torch.Tensor) and isinstance(v, torch.Tensor)
    )


def _resized(fake: Any, value: Any, sizes: Mapping[str, int]) -> Any:
    """A value with other sizes."""
    if isinstance(fake, torch.SymInt):
        return _evaluate(fake, sizes, int(value))
    if not isinstance(fake, torch.Tensor) or not isinstance(value, torch.Tensor):
        return value
    for axis, dim in enumerate(fake.shape):
        value = resized(value, axis, _evaluate(dim, sizes, value.shape[axis]))
    return value


def _evaluate(dim: Any, sizes: Mapping[str, int], size: int) -> int:
    if not isinstance(dim, torch.SymInt):
        return size
    expr = dim.node.expr
    found = expr.subs({symbol: sizes.get(symbol.name, symbol) for symbol in expr.free_symbols})
    return int(found) if found.is_Integer else size
