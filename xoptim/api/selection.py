"""From what a user writes (`"default+onnxruntime-CastCast"`) to a list of patterns."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from collections.abc import Iterable
from typing import Any

from xbuilder.close_names import closest_names
from xbuilder.errors import OptionError

from .members import Member
from .patterns import PatternOptimization
from .registry import all_patterns, tags

_TOKEN = re.compile(r"\s*([+,-]?)\s*([A-Za-z_][A-Za-z_0-9]*(?:\(\s*[^)]*\))?)\s*")


def _unknown(name: str) -> OptionError:
    known = [*all_patterns(), *tags()]
    close = closest_names(name, known)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return OptionError(
        f"Unknown pattern or set of patterns {name!r}.{hint} "
        f"Sets are {sorted(tags())}; command `xoptim patterns` lists everything."
    )


def _read_call(text: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters written `Name(parameter=value, ...)`."""
    with contextlib.suppress(SyntaxError, ValueError):
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            parameters = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
            if len(parameters) == len(call.keywords):
                return call.func.id, parameters
    raise OptionError(f"Unable to read {text!r}, expected Name(parameter=value, ...).")


def _with_parameters(text: str, verbose: int) -> PatternOptimization:
    """`"MatMulAdd(allow_reshape=True)"`: one pattern with its parameters."""
    name, parameters = _read_call(text)
    cls = type(_named(name, verbose)[0])
    if len(_named(name, verbose)) != 1:
        raise OptionError(f"{name!r} is a set of patterns, it has no parameter.")
    try:
        return cls(verbose=verbose, **parameters)
    except TypeError:
        known = [p for p in inspect.signature(cls).parameters if p != "verbose"]
        raise OptionError(f"Pattern {name!r} does not accept {text!r}, it has {known}.") from None


def _named(name: str, verbose: int) -> list[PatternOptimization]:
    if name.endswith(")"):
        return [_with_parameters(name, verbose)]
    patterns = all_patterns()
    if name in patterns:
        return [patterns[name](verbose=verbose)]
    if name.endswith("Pattern") and name[:-7] in patterns:
        return [patterns[name[:-7]](verbose=verbose)]
    by_tag = tags()
    if name in by_tag:
        return [patterns[n](verbose=verbose) for n in by_tag[name]]
    raise _unknown(name)


def _parse(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or (tokens and not found.group(1)):
            raise OptionError(
                f"Unable to read the selection of patterns {text!r} from {text[position:]!r}; "
                "expected names separated by '+' or ',' (add) or '-' (remove)."
            )
        tokens.append((found.group(1) or "+", found.group(2)))
        position = found.end()
    return tokens


def get_pattern_list(
    positive_list: Any = "default", negative_list: Any = None, verbose: int = 0
) -> list[Member]:
    """Makes the list of patterns a user asks for, and of rewriters if there are some in it.

    :param positive_list: a selection (`"default+onnxruntime-CastCast"`, `"A,B"`), None or `"none"`
        for no pattern, or a list of names, classes and instances
    :param negative_list: what to take away, same forms
    :param verbose: verbosity of the patterns
    :return: instances, each class once, in the order of the database for a set
    :raises OptionError: a name is not known, close names are suggested
    """
    selected = _select(positive_list, verbose)
    for member in selected:
        if isinstance(member, PatternOptimization):
            _check_names(member)
    if negative_list is not None:
        removed = {type(p) for p in _select(negative_list, verbose)}
        selected = [p for p in selected if type(p) not in removed]
    return selected


def _check_names(pattern: PatternOptimization) -> None:
    """Checks what a pattern declares: a word would be read letter by letter."""
    for attribute in ("roots", "after", "reads", "read_by"):
        names = getattr(pattern, attribute)
        if not isinstance(names, (tuple, list)) or not all(isinstance(n, str) for n in names):
            raise OptionError(
                f"Attribute {attribute} of pattern {pattern.name} must be a tuple of operator "
                f"types, not {names!r}; write ({str(names)!r},) for one type."
            )


def _select(what: Any, verbose: int) -> list[Member]:
    if what is None:
        return []
    if isinstance(what, str) and what.strip().lower() == "none":
        return []
    if isinstance(what, str):
        rows: list[Member] = []
        for sign, name in _parse(what):
            found = _named(name, verbose)
            if sign == "-":
                removed = {type(p) for p in found}
                rows = [p for p in rows if type(p) not in removed]
            elif name.endswith(")"):
                rows = [found[0] if p == found[0] else p for p in rows]
                rows.extend(found)
            else:
                rows.extend(found)
        return _unique(rows)
    if isinstance(what, Member):
        return [what]
    if isinstance(what, type) and issubclass(what, PatternOptimization):
        return [what(verbose=verbose)]
    if isinstance(what, Iterable):
        return _unique([p for item in what for p in _select(item, verbose)])
    raise OptionError(
        f"A selection of patterns is None, a string, or a list of names, classes and instances, "
        f"not {type(what)}."
    )


def _unique(patterns: list[Member]) -> list[Member]:
    """Keeps the first instance of each class; generated classes all differ."""
    return list(dict.fromkeys(patterns))


def one_pattern(what: Any) -> PatternOptimization:
    """The pattern of a selection that has one.

    :raises OptionError: it has none or several, or is a rewriter of graphs
    """
    found = get_pattern(what)
    if not isinstance(found, PatternOptimization):
        raise OptionError(f"{what!r} works on a whole graph, it is not a pattern.")
    return found


def get_pattern(obj: Any, as_list: bool = False, verbose: int = 0) -> Any:
    """Makes one pattern out of a name, a class or an instance.

    :param obj: what to make it from
    :param as_list: returns a list, a selection of several patterns is then accepted
    :param verbose: verbosity of the pattern
    :raises OptionError: the name is not known, or is a set and *as_list* is False
    """
    rows = _select(obj, verbose)
    if as_list:
        return rows
    if len(rows) != 1:
        raise OptionError(
            f"{obj!r} gives {len(rows)} patterns, one was expected; use as_list=True."
        )
    return rows[0]
