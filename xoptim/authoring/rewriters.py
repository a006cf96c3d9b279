"""The base class of what a selection holds and the engine runs: patterns and graph rewriters."""

from __future__ import annotations

from typing import ClassVar

from .levels import priority_of


def short_name(cls: type) -> str:
    """Name of a class without its suffix `Pattern`."""
    name = cls.__name__
    return name[: -len("Pattern")] if name.endswith("Pattern") and name != "Pattern" else name


class Member:
    """Base of patterns, which match nodes, and of rewriters of whole graphs.

    Two instances of one class are equal, unless the class says otherwise: see
    :class:`DistinctMember`.

    Attributes: lower `priority` first, a number or a level of :data:`.LEVELS`; `before`, `behind`,
    names of those of the same level that run after it, before it; `aliases`, its other names;
    `min_opset`, lowest main opset it is valid for; `tags`, sets it belongs to; `phase`;
    `precision`, `exact`, `rounding` or `approximate`; `tolerance`, the relative difference its
    results may have besides the rounding of their type; `for_training_build`, what it writes is for
    another build of onnxruntime than the one whose kernels are known.
    """

    tags: ClassVar[tuple[str, ...]] = ()
    precision: ClassVar[str] = "exact"
    tolerance: ClassVar[float] = 0.0
    phase: ClassVar[str] = ""
    for_training_build: ClassVar[bool] = False
    before: ClassVar[tuple[str, ...]] = ()
    behind: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[tuple[str, ...]] = ()
    priority: int = 1
    min_opset: int = 1
    verbose: int = 0
    #: the class itself, once its declarations were checked
    checked: ClassVar[type | None] = None
    #: the name of its class without `Pattern`, or its own
    name: str = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = short_name(cls)
        if "priority" in cls.__dict__:
            cls.priority = priority_of(cls.priority)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DistinctMember(Member):
    """A member defined by the arguments of its instance: two instances are never equal."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        cls = type(self)
        return f"{cls.__name__}({'' if self.name == short_name(cls) else repr(self.name)})"
