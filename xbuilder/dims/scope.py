"""Scopes of the names of dimensions: what each name means in each graph of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError
from ..support.argument_types import shown
from ..support.names import NameAllocator
from .api import Dim, Shape, normalize, substitute, symbols
from .constraints import Constraints
from .text import quote


@dataclass(slots=True)
class DimensionNames:
    """The names of dimensions shared by all graphs of a model.

    :param allocator: allocates names
    :param generated: names made for unknown dimensions
    :param of_bodies: names given to the dimensions a body declares on its own
    :param taken: names of a dimension of an input, or of the first result declared with them
    """

    allocator: NameAllocator = field(default_factory=NameAllocator)
    generated: set[str] = field(default_factory=set)
    of_bodies: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)


def opaque(text: str) -> str:
    """The symbol for a name of dimension in a file, which may look like a formula, or a number.

    >>> opaque("n"), opaque("batch size"), opaque("n + 1"), opaque("7")
    ('n', 'batch size', '`n + 1`', '`7`')
    """
    normal = normalize(text)
    alone = normal == text and isinstance(normal, str) and symbols(normal) == {text}
    return text if alone else quote(text)


def as_written(dim: str) -> str:
    """The name a file gives to a dimension, see :func:`opaque`.

    >>> as_written("`n + 1`"), as_written("n"), as_written("2*`n + 1`")
    ('n + 1', 'n', '2*`n + 1`')
    """
    inner = dim[1:-1].replace("``", "`")
    return inner if dim != inner and quote(inner) == dim else dim


def _size(dim: Any) -> int:
    size = int(dim.__index__()) if hasattr(dim, "__index__") else -1
    if size < 0:
        raise OptionError(f"A dimension is a name, an integer >= 0 or None, not {shown(dim)}.")
    return size


class DimensionScope:
    """The dimensions of one graph.

    ONNX scopes the names a file declares to the graph that declares them. A body has its own,
    unless *meanings* maps one of them to a dimension of the outer graph.

    :param names: names shared by the graphs of the model
    :param constraints: constraints on the dimensions of this graph
    :param meanings: dimensions of the outer graph, by name a body declares; None for a graph that
        is not a body
    """

    __slots__ = ("constraints", "is_body", "meanings", "names")

    def __init__(
        self,
        names: DimensionNames,
        constraints: Constraints,
        meanings: Mapping[str, Dim] | None = None,
    ):
        self.names = names
        self.constraints = constraints
        self.is_body = meanings is not None
        self.meanings: dict[str, Dim] = dict(meanings or {})

    def new(self, hint: str = "") -> str:
        """Makes a fresh symbol for an unknown dimension."""
        name = self.unique(f"{hint or 'd'}__0")
        self.names.generated.add(name)
        self.constraints.add_generated(name)
        return name

    def unique(self, prefix: str) -> str:
        """Reserves an unused name of dimension."""
        return self.names.allocator.unique(prefix)

    def normalize(self, dim: str) -> Dim:
        """Puts a dimension in normal form, and reserves the names it holds."""
        normal = normalize(dim)
        if isinstance(normal, str):
            for symbol in symbols(normal):
                self.names.allocator.reserve(symbol)
        return normal

    def clean_shape(self, shape: Sequence[Dim | None]) -> Shape:
        """Normalises dimensions; symbols are reserved, None becomes a fresh symbol.

        :raises OptionError: a dimension is something else than a name, an integer above or equal to
            0, or None
        """
        if isinstance(shape, str) or not isinstance(shape, Iterable):
            raise OptionError(f"A shape is a sequence of dimensions, not {shown(shape)}.")
        dims: list[Dim] = []
        for d in shape:
            if d is None:
                dims.append(self.new("unk"))
            elif isinstance(d, str):
                dims.append(self.normalize(d))
            else:
                dims.append(_size(d))
        return tuple(dims)

    def declared(self, dim: str, is_formula: bool = False) -> Dim:
        """Dimension declared by a value info of a file.

        A symbol belongs to the graph that declares it. The one of a body gets a name of its own,
        unless :attr:`meanings` already holds it.

        :param dim: the text of the file
        :param is_formula: `n + 1` is the dimension `n` plus one; otherwise it is a name, which
            proves nothing about the size
        """
        normal = self.normalize(dim if is_formula else opaque(dim))
        if not self.is_body or isinstance(normal, int):
            return normal
        for symbol in symbols(normal):
            if symbol not in self.meanings:
                local = self.unique(symbol if symbol.isidentifier() else "body")
                self.meanings[symbol] = local
                self.names.of_bodies.add(local)
        return substitute(normal, self.meanings)

    def take(self, shape: Shape | None) -> None:
        """Marks the names of a shape as taken by its dimensions. No other dimension takes them."""
        for dim in shape or ():
            if isinstance(dim, str):
                self.names.taken |= symbols(dim)

    def label(self, dim: Dim, name: Dim) -> Dim:
        """The name a file declares for an unknown dimension, if no other one has it.

        A label proves nothing: two dimensions of one name may have different sizes.

        :param dim: the dimension
        :param name: its name in the file
        """
        free = not isinstance(name, int) and symbols(name) == {name}
        if self.is_body or not free or name in self.names.taken or dim not in self.names.generated:
            return dim
        self.names.taken.add(str(name))
        return name

    def is_written(self, dim: Dim) -> bool:
        """Whether a symbolic dimension may be written in a file where none was declared.

        A name made by the builder is not written, nor, in a body, a name that means something else
        there.
        """
        if self.is_generated(dim):
            return False
        of_bodies, meanings = self.names.of_bodies, self.meanings
        return not of_bodies or not any(
            s in of_bodies or meanings.get(s, s) != s for s in symbols(dim)
        )

    def is_generated(self, dim: Dim) -> bool:
        """Whether a dimension depends on a symbol made by the builder."""
        generated = self.names.generated
        if isinstance(dim, int) or not generated:
            return False
        return dim in generated or any(s in generated for s in symbols(dim))
