"""The public names of a package, each imported when it is first asked for (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """The function ``__getattr__`` of a package that imports its public names on first use.

    The package imports the same names under ``if TYPE_CHECKING:``, for type checkers and editors.

    :param package: its name
    :param homes: relative or absolute name of a module -> the names it defines; ``"."`` for the
        modules of the package themselves
    :return: the function; it raises AttributeError for a name that is in no module

    ::

        __getattr__ = lazy_names(__name__, {".builder.graph_builder": ("GraphBuilder",)})
    """
    modules = {name: module for module, names in homes.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        if module == ".":
            return import_module(f".{name}", package)
        value = getattr(import_module(module, package), name)
        setattr(sys.modules[package], name, value)  # the next read is that of any attribute
        return value

    return __getattr__
