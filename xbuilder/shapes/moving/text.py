"""Operators on strings."""

from __future__ import annotations

from ...facts.facts import ResultFacts
from ..arithmetic.elementwise import broadcast_facts
from ..common import BOOL, FLOAT, INT64, STRING, facts_like, refuses_negative, several
from ..context import ShapeContext
from ..shipped import shipped_function


@shipped_function("StringConcat")
def string_concat(ctx: ShapeContext) -> ResultFacts:
    """Concatenation element by element, with broadcasting."""
    return broadcast_facts(ctx, STRING, ctx.facts(0), ctx.facts(1))


@shipped_function("StringSplit")
def string_split(ctx: ShapeContext) -> list[ResultFacts]:
    """One more axis, as long as the longest split; and the length of each."""
    facts = ctx.facts(0)
    counts = facts_like(facts, INT64)
    if facts.shape is None:
        rank = None if facts.rank is None else facts.rank + 1
        return several(ctx, ResultFacts(STRING, None, rank), counts)
    return several(ctx, ResultFacts(STRING, (*facts.shape, ctx.new_dim("split"))), counts)


@shipped_function("RegexFullMatch")
def regex_full_match(ctx: ShapeContext) -> ResultFacts:
    """One boolean for each string."""
    return facts_like(ctx.facts(0), BOOL)


@shipped_function("StringNormalizer")
def string_normalizer(ctx: ShapeContext) -> ResultFacts:
    """Stop words are removed: `(n,)` or `(1, n)`, any length when there are some."""
    facts = ctx.facts(0)
    if not ctx.attr("stopwords"):
        return facts_like(facts, STRING)
    rank = facts.known_rank()
    if rank not in (1, 2):
        return ResultFacts(STRING)
    return ResultFacts(STRING, (1,) * (rank - 1) + (ctx.new_dim("words"),))


@shipped_function("TfIdfVectorizer")
@refuses_negative
def tfidf_vectorizer(ctx: ShapeContext) -> ResultFacts:
    """The last axis counts the n-grams of the vocabulary."""
    indexes = ctx.attr("ngram_indexes")
    shape = ctx.shape(0)
    if shape is None or indexes is None:
        return ResultFacts(FLOAT, None, ctx.rank(0))
    return ResultFacts(FLOAT, (*shape[:-1], max(indexes, default=-1) + 1))
