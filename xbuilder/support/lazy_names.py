"""The public names of a package, each imported when it is first asked for (PEP 562)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

#: what a package defines: `__getattr__`, `__dir__`, `__all__`
Names: TypeAlias = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]
#: a line of a stub, which may be wrapped
_LINE = re.compile(r"^from (\S+) import \(?\s*(\w+) as \2\b", re.MULTILINE)


def lazy_names(package: str, file: str) -> Names:
    """The names of the stub of a package, which its module imports on first use.

    The stub ``__init__.pyi``, next to the module, is what type checkers and editors read. It holds
    one line for each name.

    :param package: name of the package
    :param file: file of its module
    :return: `__getattr__`, which raises AttributeError for a name that is not in the stub;
        `__dir__`; and `__all__`

    ::

        # __init__.pyi: from .builder.graph_builder import GraphBuilder as GraphBuilder
        __getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
    """
    loader: Any = sys.modules[package].__loader__  # the package may be in a zip
    stub = str(Path(file).with_name("__init__.pyi"))
    modules = read_stub(loader.get_data(stub).decode("utf-8"))

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        if module == ".":
            return import_module(f".{name}", package)
        value = getattr(import_module(module, package), name)
        setattr(sys.modules[package], name, value)  # the next read is that of any attribute
        return value

    names = sorted(modules)
    return get, lambda: sorted({*vars(sys.modules[package]), *names}), names


def read_stub(text: str) -> dict[str, str]:
    """The module of each name in the lines ``from module import name as name`` of a stub.

    :param text: the stub
    """
    return {name: module for module, name in _LINE.findall(text)}
