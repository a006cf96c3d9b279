"""Finds sizes that make conditions false, when the conditions are too long to be read."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch.utils._sympy.printers import PythonPrinter

#: number of sizes tried on both sides of the size in the arguments; enough for a period of 64
_AROUND = 64
#: largest number of conditions considered
_CONDITIONS = 200

Check = Callable[[Mapping[str, int]], bool]


class DynamicSize(NamedTuple):
    """The sizes of one dynamic dimension."""

    #: the symbol torch uses
    symbol: str
    #: its size in the arguments of the export
    hint: int | None
    least: int
    #: None if there is no limit
    most: int | None


class Counterexample(NamedTuple):
    """A size that makes a condition false."""

    symbol: str
    size: int
    condition: Any


def find_counterexamples(
    conditions: Sequence[Any],
    known: Sequence[Any],
    sizes: Sequence[DynamicSize],
    different: bool = False,
) -> Iterator[Counterexample]:
    """Sizes that make some conditions false while the other dimensions keep the sizes of the
    arguments.

    :param conditions: expressions of sympy; those on anything else than the dimensions are ignored,
        and so are those the arguments do not satisfy
    :param known: conditions a size must satisfy to be tried
    :param sizes: the dimensions
    :param different: the sizes are tried: looks for those that break ``a != b`` too, which usually
        changes nothing, and for those that a product of sizes usually has not
    :return: for each dimension, the nearest size that breaks each of the conditions, then the
        farthest one: both sides of a decision often agree where it changes
    """
    hints = {s.symbol: s.hint for s in sizes if s.hint is not None}
    checks, required, usual = dict[Any, Check](), list[Check](), list[Check]()
    for expr in (*known, *conditions[:_CONDITIONS]):
        if (check := condition_check(expr, hints)) is None:
            continue
        if expr in known:
            required.append(check)
        elif _is_usual(expr, different):
            usual.append(check)
        else:
            checks[expr] = check
    for size in {s.symbol: s for s in sizes if s.symbol in hints}.values() if checks else ():
        near = [{**hints, size.symbol: value} for value in _candidates(size)]
        tried = _meeting_all(near, required)
        ordinary = _meeting_all(tried, usual)
        for found in _breaking(checks, size.symbol, ordinary, tried if different else []):
            firsts = {value: expr for expr, value in reversed(found.items())}
            for value in sorted(firsts, key=lambda v: abs(v - hints[size.symbol])):
                yield Counterexample(size.symbol, value, firsts[value])


def _meeting_all(
    tried: Sequence[Mapping[str, int]], checks: Sequence[Check]
) -> Sequence[Mapping[str, int]]:
    """The sizes that meet all conditions."""
    for check in checks:
        tried = list(filter(check, tried))
    return tried


def _breaking(
    checks: Mapping[Any, Check],
    symbol: str,
    ordinary: Sequence[Mapping[str, int]],
    others: Sequence[Mapping[str, int]],
) -> tuple[dict[Any, int], dict[Any, int]]:
    """The first and the last size that break each condition, *others* if no *ordinary* one does."""
    nearest, farthest = dict[Any, int](), dict[Any, int]()
    for expr, check in checks.items():
        broken = [values[symbol] for values in ordinary if not check(values)]
        broken = broken or [values[symbol] for values in others if not check(values)]
        if broken:
            nearest[expr], farthest[expr] = broken[0], broken[-1]
    return nearest, farthest


def _is_usual(expr: Any, different: bool) -> bool:
    """Whether a condition usually holds: it differs for sizes of 0 or 1 only, or is ``a != b``.

    torch assumes sizes of 2 or more, and that a product or a stride differs from another one.
    """
    kind, args = expr.func.__name__, expr.args
    if kind == "Unequality" and not different:
        return True
    small = {"GreaterThan": 1, "StrictGreaterThan": 1, "LessThan": 0, "StrictLessThan": 0}.get(kind)
    # no size is negative: 0 <= n - 4 * ((n + 3) // 4) says that n is a multiple of 4
    least = 0 if kind.startswith("Strict") else 1
    return small is not None and bool(args[small].is_Integer and least <= args[small] <= 2)


def python_text(expr: Any) -> str:
    """An expression of torch as Python."""
    return str(PythonPrinter().doprint(expr)).replace("OpaqueUnaryFn_", "math.")


@functools.lru_cache(maxsize=1024)
def _compiled(expr: Any) -> CodeType:
    """A condition as code, which several searches evaluate."""
    return compile(python_text(expr), "<condition>", "eval")


def condition_check(expr: Any, hints: Mapping[str, int]) -> Check | None:
    """A condition as a function of the sizes.

    :param expr: a condition of sympy
    :param hints: the sizes in the arguments, by symbol
    :return: None if it needs something else, or is false for the arguments
    """
    if not {s.name for s in expr.free_symbols} <= set(hints):
        return None
    try:
        code = _compiled(expr)
        if not eval(code, {"math": math, "torch": torch}, dict(hints)):
            return None
    except Exception:  # sympy prints no Python for some functions
        return None

    def check(values: Mapping[str, int]) -> bool:
        try:
            return bool(eval(code, {"math": math, "torch": torch}, dict(values)))
        except ArithmeticError:
            return True

    return check


def _candidates(size: DynamicSize) -> Iterator[int]:
    """Other sizes of a dimension, first those near its size in the arguments."""
    hint = size.hint or 0
    # a size in thousands, of a sound: odd steps down to nothing, up to twice it
    far = range(hint // _AROUND | 1, hint, hint // _AROUND | 1) if hint > _AROUND else ()
    for step in (*range(1, _AROUND + 1), *far):
        for value in (hint + step, hint - step):
            if value >= size.least and (size.most is None or value <= size.most):
                yield value
