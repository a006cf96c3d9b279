"""Parses the text of a selection, such as `"default+onnxruntime-CastCast"`, into a query."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from xbuilder.errors import OptionError

from .database_query import RewriteDatabaseQuery

_TOKEN = re.compile(r"\s*([+,&-]?)\s*([A-Za-z_][A-Za-z_0-9]*(?:\(\s*[^)]*\))?)\s*")


class SignedName(NamedTuple):
    """A name with its sign: `+` adds, `-` removes, `&` restricts the result to it."""

    sign: str
    text: str

    @property
    def has_parameters(self) -> bool:
        """Whether the name is followed by parameters."""
        return self.text.endswith(")")


def read_signed_names(text: str) -> list[SignedName]:
    """Splits a selection into terms.

    :raises OptionError: the text is malformed, or it names a file
    """
    file = re.search(r"[^+,&]+\.py\b", text)
    if file is not None:
        raise OptionError(
            f"{file.group()!r} is a file, not the name of a pattern: --load {file.group()} loads "
            "the patterns it registers, their names come after --patterns."
        )
    terms: list[SignedName] = []
    position = 0
    while position < len(text):
        term = _TOKEN.match(text, position)
        if term is None or (terms and not term.group(1)):
            raise OptionError(
                f"Unable to read the selection of patterns {text!r} from {text[position:]!r}; "
                "expected names separated by '+' or ',' (add), '-' (remove) or '&' (keep)."
            )
        terms.append(SignedName((term.group(1) or "+").replace(",", "+"), term.group(2)))
        position = term.end()
    return terms


def read_call(text: str) -> tuple[str, dict[str, Any]]:
    """Parses `Name(parameter=value, ...)` into the name and the parameters.

    :raises OptionError: if it is not written this way
    """
    with contextlib.suppress(SyntaxError, ValueError):
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            parameters = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
            if len(parameters) == len(call.keywords):
                return call.func.id, parameters
    raise OptionError(f"Unable to read {text!r}, expected Name(parameter=value, ...).")


def query_of_names(
    terms: Sequence[SignedName], with_parameters: Callable[[str], tuple[str, Any]]
) -> RewriteDatabaseQuery:
    """Builds the query of some terms, read from left to right: what one removes, a later one may
    add again.

    :param terms: the terms
    :param with_parameters: builds the rewrite of `Name(parameter=value)`, returns its name too
    :return: the query; names to add, then names to remove and to keep, make one query, and the
        following terms make another one, which starts from its result
    """
    query = RewriteDatabaseQuery(())
    for (sign, has_parameters), some in groupby(terms, key=lambda t: (t.sign, t.has_parameters)):
        names, rewrites = [t.text for t in some], list[Any]()
        if has_parameters:
            made = [with_parameters(name) for name in names]
            names, rewrites = [n for n, _ in made], [r for _, r in made]
        if sign == "-":
            query = query.excluding(*names)
        elif sign == "&":
            query = query.requiring(*names)
        else:
            if query.require or query.exclude:
                query = RewriteDatabaseQuery((), extra_rewrites=(query,))
            if rewrites:
                extra = [RewriteDatabaseQuery((), extra_rewrites=(r,)) for r in rewrites]
                query = query.register(*extra)
            elif query.extra_rewrites:
                query = query.register(*[RewriteDatabaseQuery((name,)) for name in names])
            else:
                query = query.including(*names)
    return query
