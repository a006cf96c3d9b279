"""Measures sympy against xbuilder.dims: ``python _unittests/ut_xbuilder/dims/measure_sympy.py``.

The figures are copied in the docstring of ``xbuilder/dims/expr.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import sympy
from sympy.core.cache import clear_cache

import xbuilder.dims as d
from xbuilder.dims import api, bounds, parse, prove

SYMBOLS = {n: sympy.Symbol(n, integer=True, nonnegative=True) for n in ("a", "b", "seq")}
a, b, seq = SYMBOLS["a"], SYMBOLS["b"], SYMBOLS["seq"]
CACHES = [
    value
    for module in (api, parse, bounds, prove)
    for value in vars(module).values()
    if hasattr(value, "cache_clear")
]
OPERATIONS: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
    ("add(seq, 1)", lambda: seq + 1, lambda: d.add("seq", 1)),
    (
        "normalize 2*seq-seq (a text)",
        lambda: str(sympy.expand(sympy.sympify("2*seq-seq", locals=SYMBOLS))),
        lambda: d.normalize("2*seq-seq"),
    ),
    ("mul(a+1, b+2)", lambda: sympy.expand((a + 1) * (b + 2)), lambda: d.mul("a+1", "b+2")),
    (
        "floordiv(4*a+2, 2)",
        lambda: sympy.floor((4 * a + 2) / 2),
        lambda: d.floordiv("4*a+2", 2),
    ),
    (
        "prove_equal((a-1)//2+1, (a+1)//2)",
        lambda: sympy.simplify(sympy.floor((a - 1) / 2) + 1 - sympy.floor((a + 1) / 2)),
        lambda: d.prove_equal("(a-1)//2+1", "(a+1)//2"),
    ),
    ("prove_ge(a+b, a)", lambda: a + b >= a, lambda: d.prove_ge("a+b", "a")),
]


def first(function: Callable[[], object], times: int = 300) -> float:
    """The median duration in microseconds with empty caches."""
    durations = []
    for _ in range(times):
        clear_cache()
        for cache in CACHES:
            cache.cache_clear()
        begin = time.perf_counter()
        function()
        durations.append(time.perf_counter() - begin)
    return median(durations) * 1e6


def cached(function: Callable[[], object], times: int) -> float:
    """The mean duration in microseconds once everything is cached."""
    function()
    begin = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - begin) / times * 1e6


def main() -> None:
    """Prints the table."""
    print(f"{'operation':36s} {'sympy: first':>14s} {'cached':>9s} {'ours: first':>12s} cached")
    for name, theirs, ours in OPERATIONS:
        print(
            f"{name:36s} {first(theirs):14.1f} {cached(theirs, 300):9.2f} "
            f"{first(ours):12.1f} {cached(ours, 20000):.3f}"
        )


if __name__ == "__main__":
    main()
