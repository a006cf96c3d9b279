"""Light dataclasses do what dataclasses do."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest

from xbuilder.support.light_dataclass import light_dataclass

MAKERS: list[Callable[..., Any]] = [dataclass, light_dataclass]
OPTIONS: list[dict[str, bool]] = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"eq": False, "slots": True},
    {"kw_only": True},
]


def made(maker: Callable[..., Any], options: dict[str, bool]) -> Any:
    @maker(**options)
    class Sample:
        """A class with every kind of field."""

        name: str
        size: float = 1.0
        rows: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False, compare=False)
        total: int = field(init=False)
        seen: list[int] = field(init=False, default_factory=list)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", len(self.rows))

    return Sample


@light_dataclass(frozen=True, slots=True)
class Point:
    """A class that pickle finds."""

    x: float
    y: float = 0.0


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_as_dataclass(options: dict[str, bool]) -> None:
    expected, found = (made(maker, options) for maker in MAKERS)
    assert str(inspect.signature(found)) == str(inspect.signature(expected))
    assert found.__init__.__qualname__ == expected.__init__.__qualname__
    assert [f.name for f in fields(found)] == [f.name for f in fields(expected)]
    assert hasattr(found(name="a"), "__dict__") == hasattr(expected(name="a"), "__dict__")
    for given in (
        {"name": "a"},
        {"name": "b", "size": 2.0, "rows": [1]},
        {"name": "c", "hidden": 4},
    ):
        one, other = found(**given), expected(**given)
        assert repr(one) == repr(other)
        assert asdict(one) == asdict(other)
        assert (one == found(**given)) == (other == expected(**given))
        assert repr(replace(one, size=5.0)) == repr(replace(other, size=5.0))
        assert one.rows is not found(name="a").rows
        assert repr(copy.copy(one)) == repr(other)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_hash_and_comparison(options: dict[str, bool]) -> None:
    for cls in (made(maker, options) for maker in MAKERS):
        one, other = cls(name="a"), cls(name="a", hidden=5)
        assert (one == other) == options.get("eq", True)
        assert one != cls(name="b")
        assert one.__eq__(3) is NotImplemented
        assert (cls.__hash__ is None) == (options.get("eq", True) and not options.get("frozen"))


def test_hash_of_equal_objects() -> None:
    assert len({Point(1.0), Point(1.0, 0.0), Point(2.0)}) == 2
    nan = float("nan")
    assert Point(nan) == Point(nan)  # as tuples are: the same object is equal to itself


def test_frozen() -> None:
    point = Point(1.0)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.deepcopy(point) == point


def test_constructor_is_compiled_when_it_is_read() -> None:
    sample = made(light_dataclass, {})
    assert not inspect.isfunction(vars(sample)["__init__"])
    with pytest.raises(TypeError, match="name"):
        sample()
    assert inspect.isfunction(vars(sample)["__init__"])


def test_own_methods_are_kept() -> None:
    @light_dataclass(frozen=True)
    class Own:
        """A class that compares in its own way."""

        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == Own(2) and hash(Own(1)) == 7 and repr(Own(1)) == "own"


def test_inheritance() -> None:
    @light_dataclass()
    class Base:
        """The first fields."""

        x: int
        y: int = 2

    @light_dataclass()
    class Derived(Base):
        """Another field."""

        z: int = 3

    assert Derived(1) == Derived(1, 2, 3)
    assert repr(Derived(1)).endswith("Derived(x=1, y=2, z=3)")
    assert Base(1) != Derived(1)


def test_text_of_a_cycle() -> None:
    @light_dataclass()
    class Node:
        """May hold itself."""

        inside: list[Any] = field(default_factory=list)

    node = Node()
    node.inside.append(node)
    assert repr(node).endswith("Node(inside=[...])")
