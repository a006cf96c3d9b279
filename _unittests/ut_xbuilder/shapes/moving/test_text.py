"""Strings."""

from __future__ import annotations

from ut_xbuilder.shapes.shape_cases import infer, is_fresh, shape_of

from xbuilder.facts.facts import ResultFacts

X = ResultFacts(8, ("a", 3))


def test_elementwise() -> None:
    """Shapes go through."""
    assert infer("StringConcat", [X, ResultFacts(8, (1, 3))])[0] == X
    assert infer("RegexFullMatch", [X])[0] == ResultFacts(9, ("a", 3))


def test_split() -> None:
    """One more axis, of fresh length."""
    pieces, counts = infer("StringSplit", [X], 2)
    assert pieces.shape[:2] == ("a", 3) and is_fresh(pieces.shape[2])
    assert counts == ResultFacts(7, ("a", 3))
    assert infer("StringSplit", [ResultFacts(8, None, 1)], 1)[0] == ResultFacts(8, None, 2)


def test_normalizer() -> None:
    """The length changes with stop words only."""
    x = ResultFacts(8, (1, "a"))
    assert infer("StringNormalizer", [x])[0] == x
    found = shape_of("StringNormalizer", [x], attributes={"stopwords": ["w"]})
    assert found[0] == 1 and is_fresh(found[1])


def test_tfidf() -> None:
    """As many columns as the highest index."""
    given = {"attributes": {"ngram_indexes": [0, 4, 2]}}
    assert infer("TfIdfVectorizer", [ResultFacts(7, ("a", 9))], **given)[0] == ResultFacts(
        1, ("a", 5)
    )
    assert infer("TfIdfVectorizer", [ResultFacts(7, (9,))], **given)[0] == ResultFacts(1, (5,))
    assert infer("TfIdfVectorizer", [ResultFacts(7, None, 2)], **given)[0].rank == 2
