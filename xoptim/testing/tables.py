"""Tests of patterns written as tables of models that change or are refused.

A table maps a pattern to its cases; the cases are a dictionary `{name: row}`, a list of rows, or
one row. A row is two texts, and options of the check where this case needs its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .checks import check_no_match, check_pattern

Row = tuple[Any, ...]
Table = Mapping[str, Mapping[str, Row] | list[Row] | Row]


def table_rows(table: Table) -> Iterator[tuple[str, str, Row]]:
    """Enumerates `(pattern, name of the case, row)`; a case without a name has its rank."""
    for pattern, cases in table.items():
        if isinstance(cases, tuple):
            yield pattern, "", cases
        elif isinstance(cases, Mapping):
            yield from ((pattern, name, row) for name, row in cases.items())
        else:
            yield from ((pattern, str(i), row) for i, row in enumerate(cases))


def _options(pattern: str, name: str, row: Row, common: Mapping[str, Any]) -> dict[str, Any]:
    if not (2 <= len(row) <= 3 and all(isinstance(options, dict) for options in row[2:])):
        raise ValueError(
            f"Case {name!r} of {pattern!r} is two texts and maybe a dictionary of options, "
            f"not {len(row)} values {[type(value).__name__ for value in row]}."
        )
    return {**common, **(row[2] if len(row) == 3 else {})}


def _parametrized(
    test: Callable[..., None], table: Table, common: Mapping[str, Any]
) -> Callable[..., None]:
    import pytest

    cases = [
        pytest.param(pattern, *row[:2], _options(pattern, name, row, common), id=title)
        for pattern, name, row in table_rows(table)
        for title in [f"{pattern}: {name}" if name else pattern]
    ]
    mark = pytest.mark.parametrize(("pattern", "first", "second", "options"), cases)
    parametrized: Callable[..., None] = mark(test)
    return parametrized


def rewrite_tests(table: Table, **options: Any) -> Callable[..., None]:
    """Makes the test of models that patterns change, one case of pytest for each.

    :param table: rows are `(model before, model expected after)`
    :param options: arguments of :func:`check_pattern` for every case; a row may add its own
    :return: the test function, parametrized
    :raises ValueError: a row has another form

    ::

        MODELS = {
            "NotNot": {
                "two": (
                    "g (bool[a] x) => (bool[a] y) { n = Not(x) m = Not(n) y = Identity(m) }",
                    "g (bool[a] x) => (bool[a] y) { y = Identity(x) }",
                ),
            },
        }
        test_rewrites = rewrite_tests(MODELS)
    """

    def test_rewrites(pattern: str, first: Any, second: Any, options: dict[str, Any]) -> None:
        check_pattern(first, second, pattern, **options)

    return _parametrized(test_rewrites, table, options)


def refusal_tests(table: Table, **options: Any) -> Callable[..., None]:
    """Makes the test of models that patterns refuse, one case of pytest for each.

    :param table: rows are `(model, regular expression found in the reason)`
    :param options: arguments of :func:`check_no_match` for every case; a row may add its own
    :return: the test function, parametrized
    :raises ValueError: a row has another form

    ::

        REFUSED = {
            "NotNot": {
                "alone": ("g (bool[a] x) => (bool[a] y) { y = Not(x) }", "no Not before"),
            },
        }
        test_refuses = refusal_tests(REFUSED)
    """

    def test_refuses(pattern: str, first: Any, second: str, options: dict[str, Any]) -> None:
        check_no_match(first, pattern, second, **options)

    return _parametrized(test_refuses, table, options)
