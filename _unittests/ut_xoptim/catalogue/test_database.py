"""Databases of rewrites: registered, nested, queried."""

from __future__ import annotations

import io
from typing import Any

import pytest

from xbuilder.errors import OptionError
from xoptim import PatternOptimization
from xoptim.catalogue.database import ProxyDatabase, RewriteDatabase
from xoptim.catalogue.database_query import RewriteDatabaseQuery as Query


def make(name: str) -> type[PatternOptimization]:
    return type(f"{name}Pattern", (PatternOptimization,), {})


@pytest.fixture
def database() -> RewriteDatabase:
    """Four rewrites: two tags which cross."""
    found = RewriteDatabase("toys")
    found.register("A", make("A"), "small", "red", position=3)
    found.register("B", make("B"), "big", "red", position="1.5")
    found.register("C", make("C"), "small", "blue", position=2)
    found.register("D", make("D"), "big", "blue")
    return found


def names(database: RewriteDatabase, *what: Any) -> str:
    entries = database.entries_of(database.as_query(*what))
    assert [e.rewrite for e in entries] == database.select(*what) == database.query(*what)
    return "".join(e.name for e in entries)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(None), "ABCD"),
        (Query([]), ""),
        (Query("small"), "AC"),
        (Query(["small", "red"]), "ABC"),
        (Query(["red", "small"]), "ABC"),
        (Query(["blue", "A", "APattern"]), "ACD"),
        (Query("toys"), "ABCD"),
        (Query(None, require=["small", "red"]), "A"),
        (Query(["small", "big"], require="red"), "AB"),
        (Query("small", exclude=["blue", "B"]), "A"),
        (Query(None, exclude="CPattern"), "ABD"),
        (Query(None, position_cutoff=2), "BD"),
        (Query(None).before("2.5"), "BCD"),
        (Query("small").including("B").excluding("A"), "BC"),
        (Query(None).including("A").requiring("big"), "BD"),
        ("small+B", "ABC"),
        ("B+small", "ABC"),
        ("red-big", "A"),
        ("red&big", "B"),
        ("red-big+B", "AB"),
        ("B,toys", "ABCD"),
    ],
)
def test_queries(database: RewriteDatabase, query: Any, expected: str) -> None:
    assert names(database, query) == expected


def test_words_with_a_sign(database: RewriteDatabase) -> None:
    """Their order does not matter, as opposed to a text."""
    assert names(database, "-A", "+small", "&blue") == names(database, "+small", "&blue", "-A")
    assert names(database, "-A", "+small") == "C" and names(database, "-A+small") == "AC"


def test_extra_rewrites(database: RewriteDatabase) -> None:
    mine, other = make("Mine"), database["B"](priority=7)
    found = database.select(Query("red").register(mine, other))
    assert found == [database["A"], other, mine] and found[1] is other, "B is replaced"
    assert database.select(Query("small", require="red").register(mine))[1] is mine
    assert database.select(Query("red", exclude="Mine").register(mine)) == [
        database["A"],
        database["B"],
    ]
    assert names(database, Query((), extra_rewrites=[Query("blue"), Query("small")])) == "ACD"
    nested = Query((), require="small", exclude="A", extra_rewrites=[Query(["red", "blue"])])
    assert names(database, nested) == "C"
    (entry,) = database.entries_of(Query((), extra_rewrites=[(mine, "50.2")]))
    assert entry.position == 50.2
    (entry,) = database.entries_of(Query((), extra_rewrites=[other]))
    assert entry.position == 1.5, "the one it has in the database"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("smal", "Did you mean small"),
        ("E", "Unknown pattern or set of patterns 'E'"),
        (Query("small", exclude="bigg"), "Did you mean big"),
        (Query((), extra_rewrites=[Query("smal")]), "Did you mean small"),
        (Query("small", subquery={"A": Query("B")}), "'A' is not a database"),
        (Query("small", subquery={"E": Query("B")}), "Unknown"),
        ("small(a=1)", "is a set of patterns, it has no parameter"),
        ("E(a=1)", "Unknown"),
        ("A(a=1)", "does not accept 'A.a=1.', it has"),
        (3, "A query is a RewriteDatabaseQuery or words, not 3"),
    ],
)
def test_refused_queries(database: RewriteDatabase, query: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        database.select(query)


def test_parameters(database: RewriteDatabase) -> None:
    (pattern,) = database.select("small+A(priority=5)+C-C")
    assert pattern.priority == 5
    (pattern,) = database.select("red&A(priority=5)+A(priority=6)")
    assert pattern.priority == 6


def test_decorator() -> None:
    database = RewriteDatabase()

    @database.register("one", "two", position=4)
    class FirstPattern(PatternOptimization):
        """First."""

    @database.register("two", name="Other")
    class SecondPattern(PatternOptimization):
        """Second."""

    @database.register
    class ThirdPattern(PatternOptimization):
        """Third."""

    assert database.select("two") == [FirstPattern, SecondPattern]
    assert database["First"] is database["FirstPattern"] is FirstPattern
    assert database["Other"] is SecondPattern and database.select("Third") == [ThirdPattern]
    fourth = make("Fourth")()
    assert database.register(fourth, "one") is fourth and database["Fourth"] is fourth
    assert [e.position for e in database] == [4.0, None, None, None]
    assert database.tags() == {"one": ["First", "Fourth"], "two": ["First", "Other"]}
    assert len(database) == 4 and repr(database) == "RewriteDatabase('', 4 rewrites)"


def test_refused_registrations(database: RewriteDatabase) -> None:
    with pytest.raises(OptionError, match="'A' is already registered"):
        database.register("A", make("E"))
    with pytest.raises(OptionError, match="'A' is already registered"):
        database.register(make("A"))
    with pytest.raises(OptionError, match="'small' is a tag, it cannot be the name"):
        database.register("small", make("E"))
    with pytest.raises(OptionError, match="'B' is the name of a rewrite, it cannot be a tag"):
        database.register("E", make("E"), "B")
    with pytest.raises(OptionError, match="has no name, give one"):
        database.register(object())
    with pytest.raises(OptionError, match="A position is a number"):
        database.register("E", make("E"), position="last one")
    with pytest.raises(OptionError, match="A tag or a name is a string which is not empty"):
        database.register("E", make("E"), "small", 3)
    assert "E" not in database and len(database) == 4


def test_removed(database: RewriteDatabase) -> None:
    database.declare("kept")
    database.register("E", make("E"), "once", "kept")
    database.remove("EPattern")
    assert "E" not in database and "once" not in database and "EPattern" not in database
    assert database.select("kept") == [] and names(database, "toys") == "ABCD"
    with pytest.raises(OptionError, match="Unknown"):
        database.remove("E")
    database.register("once", make("E"))


@pytest.fixture
def nested(database: RewriteDatabase) -> RewriteDatabase:
    outer = RewriteDatabase()
    outer.register("first", RewriteDatabase("first"), "early", position=0)
    outer.register("toys", database, position=10)
    outer["first"].register("E", make("E"), "small", position=99)
    database.register("F", make("F"), "small")
    outer.register("G", make("G"), "small", position=20)
    return outer


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query("small"), "ACEFG"),
        (Query(["G", "first"]), "EG"),
        (Query("small", position_cutoff=10), "E"),
        (Query("small", exclude="toys"), "EG"),
        (Query("small", exclude="early"), "ACFG"),
        (Query("small", subquery={"toys": Query("big")}), "BDEG"),
        (Query("small", subquery={"toys": Query(None, position_cutoff=2)}), "BDEFG"),
        (Query("small", extra_rewrites=[Query("toys")]), "ABCDEFG"),
        ("small&toys", "ACF"),
        ("first+toys-small", "BD"),
    ],
)
def test_nested(nested: RewriteDatabase, query: Any, expected: str) -> None:
    assert names(nested, query) == expected


def test_nested_names(nested: RewriteDatabase) -> None:
    assert [e.name for e in nested] == list("ABCDEFG") and len(nested) == 7
    assert nested["A"] is nested["toys"]["A"] and "blue" in nested and "purple" not in nested
    assert nested.tags()["small"] == list("ACEFG")
    with pytest.raises(OptionError, match="'A' is already registered"):
        nested.register("A", make("H"))
    with pytest.raises(OptionError, match="a ProxyDatabase repeats it"):
        nested.register("again", nested["toys"])
    with pytest.raises(OptionError, match="a ProxyDatabase repeats it"):
        nested.register("itself", nested)
    nested.remove("A")
    assert "A" not in nested["toys"] and "A" not in nested


def test_copy(nested: RewriteDatabase) -> None:
    other = nested.copy()
    other["toys"].register("H", make("H"), "purple")
    nested["first"].register("I", make("I"), "green")
    assert "H" in other and "purple" in other and "H" not in nested and "purple" not in nested
    assert "I" in nested and "I" not in other and "green" not in other


def test_proxy(nested: RewriteDatabase) -> None:
    nested.register("again", ProxyDatabase(nested["toys"]), position=30)
    assert names(nested, "big") == "BD", "one rewrite is selected once"
    assert names(nested, Query("big", exclude="toys")) == ""
    assert names(nested, Query("G", subquery={"again": Query("A")})) == "AG"
    nested["again"].register("H", make("H"))
    assert "H" in nested["toys"] and nested["again"].query("H") == [nested["H"]]
    nested.remove("H")
    assert "H" not in nested["again"] and "HPattern" not in nested["again"]
    other = nested["again"].copy()
    other.register("H", make("H"))
    assert other.query("H") == [other["H"]] and "H" not in nested


def test_summary(nested: RewriteDatabase) -> None:
    file = io.StringIO()
    nested.print_summary(file)
    rows = [line.split() for line in file.getvalue().splitlines()]
    cells = [[c for c in row if c not in "│┃"] for row in rows]
    assert ["0", "first", "(1)", "RewriteDatabase", "early"] in cells
    assert ["1.5", "B", "BPattern", "big", "red", "toys"] in cells
    assert ["G", "GPattern", "small"] not in cells and ["20", "G", "GPattern", "small"] in cells
    rows = list(nested.summary_rows(Query("big")))
    assert [name.strip() for _, name, _, _ in rows] == ["first (0)", "toys (2)", "B", "D"]
    file = io.StringIO()
    nested.print_summary(file, Query("big"))
    assert "BPattern" in file.getvalue() and "APattern" not in file.getvalue()


def test_reorder(nested: RewriteDatabase) -> None:
    """Inner databases follow, a proxy too; what is registered after comes after."""
    nested.register("again", ProxyDatabase(nested["toys"]), position=30)
    everything = Query(None)
    assert names(nested, everything) == "".join(e.name for e in nested)
    nested.reorder(lambda e: -ord(e.name))
    expected = "".join(sorted((e.name for e in nested), reverse=True))
    assert names(nested, everything) == "".join(e.name for e in nested) == expected
    assert names(nested["toys"], everything) == "FDCBA" == names(nested["again"], everything)
    assert [e.name for e in nested["toys"].entries()] == list("FDCBA")
    nested["toys"].register("Z", make("Z"))
    assert names(nested, everything) == expected + "Z"
