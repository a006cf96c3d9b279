"""Registers the shape functions of this project, whose results are not checked: tests compare them
with those of runtimes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .registry import F, ShapeFunction, add_function, trust_shape_functions


def shipped_function(*op_types: str, domain: str = "", since: int = 1) -> Callable[[F], F]:
    """Decorator that registers one function for one or several operators of a family.

    :param op_types: operator types, those of the table of :mod:`.families`
    :param domain: their domain
    :param since: lowest opset of the domain the function is valid for
    """

    def register(function: F) -> F:
        shipped_table([(op_type, function) for op_type in op_types], domain, since)
        return function

    return register


def shipped_table(
    functions: Iterable[tuple[str, ShapeFunction]], domain: str = "", since: int = 1
) -> None:
    """Registers a table of a family.

    :param functions: `(op_type, function)`
    :param domain: domain of the operators
    :param since: lowest opset of the domain the functions are valid for
    """
    for op_type, function in functions:
        add_function(op_type, function, domain, since)
        trust_shape_functions([function])
