"""Queries of a database of rewrites."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from xbuilder.errors import OptionError
from xoptim.catalogue.database_query import RewriteDatabaseQuery as Query


def test_words() -> None:
    assert Query("one").include == ("one",) and Query(None).include is None
    assert Query(["b", "a", "b"]).include == ("a", "b")
    assert Query({"b", "c", "a"}).include == ("a", "b", "c")
    for words in (["b", "c"], ("c", "b", "c")):
        assert Query(words, words, words) == Query(["b", "c"], ["c", "b"], {"b", "c"}), "sets"
    query = Query(["a"], ["b"], ["c"])
    assert query.words() == ("a", "b", "c")
    assert query.including("a", "d").include == ("a", "d") and query.include == ("a",)
    assert query.requiring("e").require == ("b", "e")
    assert query.excluding("f").exclude == ("c", "f")
    assert query == Query("a", "b", "c") != query.excluding("f")


def test_cutoff() -> None:
    assert Query("a").position_cutoff == inf
    assert Query("a", position_cutoff="50.2").position_cutoff == 50.2
    assert Query("a").before(3).position_cutoff == 3.0


def test_extra_rewrites() -> None:
    query = Query("a").register(1, 2)
    assert query.extra_rewrites == (1, 2) and query.register(3).extra_rewrites == (1, 2, 3)


def test_inner_query() -> None:
    other = Query("b")
    query = Query("a", position_cutoff=2, subquery={"x": other}, extra_rewrites=[3])
    assert query.inner("x") is other
    assert query.inner("y") == Query("a", subquery={"x": other})


@pytest.mark.parametrize(
    ("include", "require", "exclude", "taken"),
    [
        (["a"], (), (), True),
        (["z", "b", "a"], (), (), True),
        (["z"], (), (), False),
        ([], (), (), False),
        (None, (), (), True),
        (None, ["a", "b"], (), True),
        (None, ["a", "z"], (), False),
        (["a"], "b", ["z"], True),
        (["a"], "b", ["z", "b"], False),
    ],
)
def test_takes(include: Any, require: Any, exclude: Any, taken: bool) -> None:
    assert Query(include, require, exclude).takes(frozenset("ab")) == taken


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"include": [3]}, "A tag or a name is a string"),
        ({"include": "a", "exclude": [""]}, "which is not empty"),
        ({"include": "a", "position_cutoff": "x"}, "A position is a number"),
        ({"include": "a", "position_cutoff": float("nan")}, "A position is a number"),
        ({"include": "a", "subquery": {"x": "y"}}, "'x' is not a RewriteDatabaseQuery"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Query(**arguments)
