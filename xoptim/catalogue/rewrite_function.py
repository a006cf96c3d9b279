"""The decorator `rewrite`: a function becomes a pattern, registered under the sets it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from itertools import chain
from typing import Any

from ..authoring.operator_names import DECLARATIONS
from ..authoring.rewrite import Rewrite, RewriteFunction
from .registry import check_precision, register_pattern

#: attributes of a pattern made of words, in the order of the parameters of :func:`rewrite`
_WORDS = (*DECLARATIONS, "prepares", "before", "behind", "aliases")


def rewrite(
    *tags: str,
    root: str | Iterable[str],
    after: str | Iterable[str] = (),
    reads: str | Iterable[str] | Mapping[str, Iterable[str]] = (),
    beyond: str | Iterable[str] = (),
    read_by: str | Iterable[str] = (),
    rank: int = 0,
    prepares: str | Iterable[str] = (),
    before: str | Iterable[str] = (),
    behind: str | Iterable[str] = (),
    aliases: str | Iterable[str] = (),
    min_opset: int = 1,
    priority: int | str = "usual",
    precision: str = "exact",
    tolerance: float = 0.0,
    sole_use: bool = False,
    name: str = "",
) -> Callable[[RewriteFunction], type[Rewrite]]:
    """Decorator that turns a function into a pattern.

    The function takes `g` (:class:`RewriteContext`) and the root, and returns the right-hand side,
    see :meth:`Rewrite.rewrite`. `clip_clip` gives `ClipClipPattern`, `"ClipClip"` in a selection.

    :param tags: sets it belongs to; without any, it is not registered, a list of patterns gives it
    :param root: operator type(s) it starts from
    :param after: operator type(s) that give the first input; other roots are refused without a call
    :param reads: operator type(s) one of which produces any input of the root; or those by root
    :param beyond: operator type(s) one of which produces an input of a node that does, likewise
    :param read_by: operator type(s) one of which reads a result of the root, likewise
    :param rank: rank of the first result of the root, likewise if it is known
    :param prepares: function(s) it outlines for other rewrites, see :meth:`RewriteContext.outline`
    :param before: name(s) of rewrites of the same priority that run after it, on the same nodes
    :param behind: name(s) of rewrites of the same priority that run before it
    :param aliases: other name(s) of the pattern, those of patterns it does the work of
    :param min_opset: lowest main opset
    :param priority: `"first"`, `"usual"`, ..., see :data:`.LEVELS`, or a number, lower ones first
    :param precision: `exact`, `rounding` or `approximate`
    :param tolerance: see :func:`.register_pattern`
    :param sole_use: see :class:`Rewrite`
    :param name: name of the pattern, when it is not the one the function gives
    :raises OptionError: an operator of the main domain does not exist

    ::

        @rewrite("default", root="Not", after="Not")
        def not_not(g, outer):
            '''Not(Not(x)) -> x'''
            return g.before(outer, "Not").input[0]
    """
    reads_of, read = _by_root(reads)
    declared = _declared(root, after, read, beyond, read_by, prepares, before, behind, aliases)
    declared |= {"min_opset": min_opset, "priority": priority, "precision": precision}
    declared |= {"tolerance": tolerance, "rank": rank}

    def decorate(function: RewriteFunction) -> type[Rewrite]:
        cls = _pattern_of(function, name, {**declared, "reads_of": reads_of, "sole_use": sole_use})
        return register_pattern(*tags, **declared)(cls) if tags else cls

    return decorate


def _pattern_of(function: RewriteFunction, name: str, declared: dict[str, Any]) -> type[Rewrite]:
    check_precision(name or function.__name__, declared["precision"])
    short = name or "".join(p.title() for p in function.__name__.split("_"))
    members = {"__doc__": function.__doc__, "__module__": function.__module__, **declared}
    return type(f"{short}Pattern", (Rewrite,), {**members, "rewrite": staticmethod(function)})


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    # the order of a set is another one in each process, what a card declares is compared with it
    return tuple(sorted(names) if isinstance(names, Set) else names)


def _declared(*words: str | Iterable[str]) -> dict[str, Any]:
    """The attributes of a pattern that are made of words."""
    return dict(zip(_WORDS, map(_names, words), strict=True))


def _by_root(
    reads: str | Iterable[str] | Mapping[str, Iterable[str]],
) -> tuple[dict[str, tuple[str, ...]], str | Iterable[str]]:
    """The operators that each root reads, empty if all roots read the same, then all of them."""
    if not isinstance(reads, Mapping):
        return {}, reads
    reads_of = {root: _names(reads[root]) for root in reads}
    return reads_of, dict.fromkeys(chain.from_iterable(reads_of.values()))
