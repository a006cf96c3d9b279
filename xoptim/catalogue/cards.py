"""Cards of patterns: their declarations, read before their modules are imported.

The cards of the patterns of this project are in one file next to the compiled modules, written as
Python writes these: in the folder ``__pycache__``, or the one of ``PYTHONPYCACHEPREFIX``, and not
at all with ``-B``. The file holds the time and the size of every module of the two packages. If one
of them changed, if one was added or removed, or if the file cannot be read, the modules are
imported and the file is written again.
"""

from __future__ import annotations

import contextlib
import inspect
import marshal
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx

from ..authoring.rewriters import Member

if TYPE_CHECKING:
    from xbuilder.nodes.record import Key

    from ..authoring.patterns import PatternOptimization

#: the folders of the packages whose modules say what a pattern declares
FOLDERS = tuple(Path(__file__).resolve().parents[2] / name for name in ("xbuilder", "xoptim"))
#: what the modules were when the cards were made
Stamp: TypeAlias = tuple[Any, ...]
#: attributes of a class that its card repeats
_REPEATED = (
    "__module__",
    "__name__",
    "after",
    "aliases",
    "before",
    "behind",
    "beyond",
    "has_lazy_declarations",
    "min_opset",
    "name",
    "needs",
    "phase",
    "precision",
    "prepares",
    "priority",
    "rank",
    "read_by",
    "reads",
    "reads_of",
    "receives_nodes",
    "roots",
    "tags",
    "usual",
)


class PatternCard:
    """The declarations of a class of patterns, under the same names as in
    :class:`.PatternOptimization`.

    :param declared: the values of the attributes, and the documentation
    """

    __name__: str
    __doc__: str | None
    after: tuple[str, ...]
    aliases: tuple[str, ...]
    #: whether it has a method that says if it may match
    asks: bool
    before: tuple[str, ...]
    behind: tuple[str, ...]
    beyond: tuple[str, ...]
    has_lazy_declarations: bool
    min_opset: int
    name: str
    needs: tuple[frozenset[Key], ...]
    phase: str
    precision: str
    prepares: tuple[str, ...]
    priority: int
    rank: int
    read_by: tuple[str, ...]
    reads: tuple[str, ...]
    reads_of: dict[str, tuple[str, ...]]
    receives_nodes: bool
    roots: tuple[str, ...]
    tags: tuple[str, ...]
    usual: frozenset[int]
    #: the class, once its module is imported
    cls: type[PatternOptimization] | None = None

    def __init__(self, declared: dict[str, Any]):
        vars(self).update(declared)

    @classmethod
    def of(cls, pattern: type[PatternOptimization]) -> PatternCard:
        """The card of a class."""
        from ..authoring.patterns import PatternOptimization

        declared = {name: getattr(pattern, name) for name in _REPEATED}
        asks = pattern.may_match is not PatternOptimization.may_match
        return cls({**declared, "__doc__": inspect.getdoc(pattern), "asks": asks})

    def __repr__(self) -> str:
        return f"<card of {self.__module__}.{self.__name__}>"

    def load(self) -> type[PatternOptimization]:
        """The class. Its module is imported, and registers it."""
        if self.cls is None:
            import_module(self.__module__)
        assert self.cls is not None, f"{self.__module__} registers {self.name}"
        return self.cls


def is_member(declared: Any) -> bool:
    """Whether an object is a pattern, a rewriter, the class of one, or a card."""
    if isinstance(declared, type):
        return issubclass(declared, Member)
    return isinstance(declared, (Member, PatternCard))


def card_file() -> Path | None:
    """The file of the cards, None if Python keeps no compiled module."""
    try:
        return Path(cache_from_source(__file__)).with_suffix(".cards")
    except NotImplementedError:
        return None


def current_stamp() -> Stamp | None:
    """The stamp of the modules as they are, None if they are not files. Cost: O(modules)."""
    found: list[tuple[str, int, int]] = []
    try:
        for folder in FOLDERS:
            _add_modules(str(folder), found)
    except OSError:
        return None
    return onnx.__version__, *sorted(found)


def _add_modules(folder: str, found: list[tuple[str, int, int]]) -> None:
    with os.scandir(folder) as rows:
        for row in rows:
            if row.name.endswith(".py"):
                seen = row.stat()
                found.append((row.path, seen.st_mtime_ns, seen.st_size))
            elif row.name != "__pycache__" and row.is_dir():
                _add_modules(row.path, found)


def read_cards(path: Path | None, stamp: Stamp | None) -> list[PatternCard] | None:
    """The cards of a file, in the order the patterns run.

    :param path: the file
    :param stamp: that of the modules
    :return: None if there is no such file, or if it is of other modules
    """
    if path is None or stamp is None:
        return None
    try:
        kept, rows = marshal.loads(path.read_bytes())
        return [PatternCard(row) for row in rows] if kept == stamp else None
    except (OSError, EOFError, ValueError, TypeError):
        return None


def write_cards(
    path: Path | None, stamp: Stamp | None, patterns: Iterable[type[PatternOptimization]]
) -> None:
    """Writes the cards of some classes, if Python writes compiled modules and the file can be.

    :param path: the file
    :param stamp: that of the modules, before they were imported
    :param patterns: the classes, in the order they run
    """
    if path is None or stamp is None or sys.dont_write_bytecode:
        return
    rows = [vars(PatternCard.of(pattern)) for pattern in patterns]
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError, ValueError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(marshal.dumps((stamp, rows)))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
