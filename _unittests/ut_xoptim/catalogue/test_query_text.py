"""The text of a selection is a query, with parameters of its patterns."""

from __future__ import annotations

import random

import pytest

from xbuilder.errors import OptionError
from xoptim import PatternOptimization, get_pattern_list
from xoptim.catalogue.database_query import RewriteDatabaseQuery as Query
from xoptim.catalogue.order import in_order
from xoptim.catalogue.query_text import SignedName, query_of_names, read_call, read_signed_names
from xoptim.catalogue.registry import all_patterns, pattern_database


def test_terms() -> None:
    assert read_signed_names(" a, B(x=[1, 2]) -c & d ") == [
        SignedName("+", "a"),
        SignedName("+", "B(x=[1, 2])"),
        SignedName("-", "c"),
        SignedName("&", "d"),
    ]
    assert read_signed_names("") == [] and read_signed_names("-a") == [SignedName("-", "a")]
    for text in ("a b", "a;b", "a++b", "a+", "1a"):
        with pytest.raises(OptionError, match="Unable to read the selection"):
            read_signed_names(text)


def test_calls() -> None:
    assert read_call("A(b=1, c='x')") == ("A", {"b": 1, "c": "x"})
    for text in ("A(1)", "A(b=c)", "A(**b)", "A(b=)"):
        with pytest.raises(OptionError, match="expected Name"):
            read_call(text)


def query_of(text: str) -> Query:
    return query_of_names(read_signed_names(text), lambda t: (t[0], t))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", Query([])),
        ("default+onnxruntime-X", Query(["default", "onnxruntime"], exclude="X")),
        ("a,b-c-d&e", Query(["a", "b"], require="e", exclude=["c", "d"])),
        ("a-b+c", Query([], extra_rewrites=[Query("a", exclude="b"), Query("c")])),
        ("a+B(x=1)", Query("a", extra_rewrites=[Query([], extra_rewrites=["B(x=1)"])])),
        ("a-B(x=1)", Query("a", exclude="B")),
    ],
)
def test_query_of_a_text(text: str, query: Query) -> None:
    assert query_of(text) == query


def one_by_one(text: str) -> list[tuple[type, int]]:
    """The meaning of a selection, read from left to right: `+` adds what is not there, parameters
    replace, `-` takes away, `&` keeps. What is left is in the order patterns run."""
    classes = all_patterns()
    rows: dict[type, PatternOptimization] = {}
    for sign, term in read_signed_names(text):
        name, parameters = read_call(term) if term.endswith(")") else (term, {})
        name = name.removesuffix("Pattern")
        found = [c for n, c in classes.items() if name == n or name in (*c.tags, c.phase)]
        if sign == "-":
            rows = {c: p for c, p in rows.items() if c not in found}
        elif sign == "&":
            rows = {c: p for c, p in rows.items() if c in found}
        else:
            for cls in found:
                if parameters or cls not in rows:
                    rows[cls] = cls(**parameters)
    return [(type(p), p.priority) for p in in_order(rows.values())]


def random_texts(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    names = list(all_patterns())
    tags = [t for t, rows in pattern_database().tags().items() if rows]

    def term() -> str:
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(tags)
        if kind < 0.6:
            return f"{rng.choice(names)}Pattern"
        return rng.choice(names) if kind < 0.85 else f"{rng.choice(NUMBERED)}(priority=9)"

    def text() -> str:
        first, *others = (term() for _ in range(rng.randint(1, 7)))
        signs = ("+", ",", " - ", "-", "&")
        return first + "".join(rng.choices(signs, (4, 2, 2, 2, 1))[0] + t for t in others)

    return [text() for _ in range(count)]


NUMBERED = ("TransposeTranspose", "NotNot", "CastCast")


@pytest.mark.parametrize("seed", range(4))
def test_a_text_is_read_from_left_to_right(seed: int) -> None:
    for text in random_texts(seed, 100):
        found = [(type(p), p.priority) for p in get_pattern_list(text)]
        assert found == one_by_one(text), text


def test_a_query_gives_what_its_text_gives() -> None:
    for text in random_texts(10, 50):
        query = pattern_database().as_query(text)
        assert get_pattern_list(query) == get_pattern_list(text), text


# -- parameters of a pattern written in a selection


def test_parameters_of_a_pattern() -> None:
    (pattern,) = get_pattern_list("MatMulAdd(allow_reshape=True)")
    assert pattern.allow_reshape
    patterns = get_pattern_list("default+MatMulAdd(allow_reshape=True)")
    assert [p.allow_reshape for p in patterns if p.name == "MatMulAdd"] == [True]
    assert len(patterns) == len(get_pattern_list("default"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("MatMulAdd(unknown=1)", "does not accept"),
        ("MatMulAdd(1)", "expected Name"),
        ("MatMulAdd(allow_reshape=x y)", "expected Name"),
        ("MatMulAdd(allow_reshape=True, allow_reshape=False)", "expected Name"),
        ("MatMulAdd(**{})", "expected Name"),
        ("default(a=1)", "is a set of patterns"),
        ("Nothing(a=1)", "Unknown pattern"),
    ],
)
def test_wrong_parameters_are_refused(text: str, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        get_pattern_list(text)


def test_a_file_is_not_a_pattern() -> None:
    for text in ("mine.py", "default+./a/mine.py", "mine.py-b"):
        with pytest.raises(OptionError, match=r"mine.py' is a file.*--load .*mine.py"):
            read_signed_names(text)
