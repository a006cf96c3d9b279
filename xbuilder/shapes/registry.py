"""The registry of shape functions, by domain, operator type and opset.

The functions of this project are imported by family, when one of their operators is asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import TypeVar

from ..errors import OptionError
from ..facts.facts import ResultFacts
from ..support.walking import import_all
from .context import ShapeContext
from .families import HOMES

RewriteResult = ResultFacts | list[ResultFacts] | tuple[ResultFacts, ...] | None
ShapeFunction = Callable[[ShapeContext], RewriteResult]
#: a shape function, decorators do not change its type
F = TypeVar("F", bound=ShapeFunction)

#: registered functions with the versions they start from, by domain and operator type
_TABLE: dict[tuple[str, str], list[tuple[int, ShapeFunction]]] = {}
#: functions whose results are not checked, by identity: some objects have no hash
_TRUSTED: dict[int, ShapeFunction] = {}


def register_shape_function(
    op_type: str, function: ShapeFunction, domain: str = "", since: int = 1, replace: bool = False
) -> ShapeFunction:
    """Registers a shape function for an operator, custom operators included.

    :param op_type: operator type
    :param function: takes a :class:`ShapeContext`, returns facts for each output, None if unknown
    :param domain: domain of the operator
    :param since: lowest opset of the domain the function is valid for
    :param replace: replaces an existing function instead of refusing it
    :return: the function

    ::

        def my_op(ctx):
            return ResultFacts(type=ctx.type(0), shape=ctx.shape(0))

        register_shape_function("MyOp", my_op, domain="my.domain")
    """
    _load_family(domain, op_type)
    return add_function(op_type, function, domain, since, replace)


def _load_family(domain: str, op_type: str) -> None:
    """Imports the family of an operator, which registers its functions."""
    module = HOMES.get((domain, op_type))
    if module is not None:
        import_module(f"{__package__}.{module}")


@lru_cache(maxsize=1)
def load_families() -> None:
    """Imports every family."""
    import_all(str(__package__), import_module(str(__package__)).__path__)


def add_function(
    op_type: str, function: ShapeFunction, domain: str = "", since: int = 1, replace: bool = False
) -> ShapeFunction:
    """Adds a function to the table, see :func:`register_shape_function`.

    :param op_type: operator type
    :param function: the function
    :param domain: domain of the operator
    :param since: lowest opset of the domain the function is valid for
    :param replace: replaces an existing function instead of refusing it
    :return: the function
    :raises OptionError: there is one already
    """
    versions = _TABLE.setdefault((domain, op_type), [])
    replaced = [i for i, (version, _) in enumerate(versions) if version == since]
    if replaced and not replace:
        first = versions[replaced[0]][1]
        raise OptionError(
            f"A shape function is already registered for {op_type!r} in domain {domain!r} since "
            f"opset {since}, {function_name(first)}: give another opset to since, or replace=True."
        )
    for i in replaced:
        del versions[i]
    versions.append((since, function))
    versions.sort(key=lambda row: row[0])
    find_shape_function.cache_clear()
    return function


def function_name(function: ShapeFunction) -> str:
    """Name of a function in a message."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', '?')}.{name}"


def shape_function(*op_types: str, domain: str = "", since: int = 1) -> Callable[[F], F]:
    """Decorator that registers one function for one or several operators (see above)."""

    def register(function: F) -> F:
        for op_type in op_types:
            register_shape_function(op_type, function, domain, since)
        return function

    return register


def get_shape_function(domain: str, op_type: str, opset: int) -> ShapeFunction | None:
    """The function of the highest version not above *opset*, None if there is none."""
    return find_shape_function(domain, op_type, opset)[0]


@lru_cache(maxsize=4096)
def find_shape_function(domain: str, op_type: str, opset: int) -> tuple[ShapeFunction | None, bool]:
    """The function :func:`get_shape_function` returns, and whether its result is checked."""
    if (domain, op_type) not in _TABLE:
        _load_family(domain, op_type)
    if (domain, op_type) not in _TABLE:  # a new family is found by itself
        load_families()
    rows = _TABLE.get((domain, op_type), ())
    i = bisect_right([version for version, _ in rows], opset)
    function = rows[i - 1][1] if i else None
    return function, function is not None and not is_trusted(function)


def trust_shape_functions(functions: Iterable[ShapeFunction]) -> None:
    """Stops checking the results of some functions, because tests compare them with those of
    runtimes. A contradiction with known facts is then an error, it is a warning otherwise.

    :param functions: registered functions
    """
    _TRUSTED.update((id(function), function) for function in functions)
    find_shape_function.cache_clear()


def is_trusted(function: ShapeFunction) -> bool:
    """Whether the result of a function is not checked, see :func:`trust_shape_functions`."""
    return id(function) in _TRUSTED


def registered_operators() -> list[tuple[str, str, int]]:
    """The registered operators: `(domain, op_type, since)`."""
    load_families()
    return sorted((d, o, since) for (d, o), rows in _TABLE.items() for since, _ in rows)
