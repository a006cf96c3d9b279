"""The conditions on dynamic dimensions that torch assumed when it chose a branch.

A model that does ``if x.shape[1] > 4`` becomes a graph which is right only for the sizes that
take the same branch as the arguments of the export. The ONNX model does not record that
condition; torch keeps it as a range, in the graph as an assertion, or with its symbols if the
condition goes through a float.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from ..common.traces import last_place
from .counterexamples import (
    Counterexample,
    DynamicSize,
    condition_check,
    find_counterexamples,
)
from .dynamic_shapes import (
    DimensionNamer,
    dynamic_sizes,
    is_symbol,
    removed_dimensions,
    spec_items,
)
from .readable_conditions import readable_condition

_ASSERTION = "aten._assert_scalar.default"
#: what an exported program calls where the model changes a shape, with the new shape
_VIEWS = frozenset(
    {
        torch.ops.aten.view.default,
        torch.ops.aten.reshape.default,
        torch.ops.aten._unsafe_view.default,
        torch.ops.aten.view_copy.default,
        torch.ops.aten._reshape_copy.default,
    }
)
#: torch assumes that every dimension is 2 or more; a size of 0 or 1 usually takes the same branch
_USUAL = 2
#: largest number of sizes at which the longer conditions are tried
_TRIED = 8
#: beginnings of the names of the expressions of sympy that are floats, or come from them
_FLOATS = ("Float", "IntTrueDiv", "ToFloat", "TruncTo", "FloorTo", "CeilTo", "Round", "OpaqueUnary")
_NOWHERE: Mapping[Any, str] = MappingProxyType({})


class Assumption(NamedTuple):
    """A condition on the dynamic dimensions.

    :param text: the condition with the names of the user
    :param sizes: several sizes that do not meet it, by symbol; None if they are not known
    :param place: the line that depends on it, empty if it is not known
    :param is_refused: whether the model is refused if it is wrong at these sizes: the condition
        goes through a float, and no dimension of it is ``Dim.AUTO``
    """

    text: str
    sizes: Sequence[Mapping[str, int]] | None = None
    place: str = ""
    is_refused: bool = False


def assumptions(
    placeholders: Sequence[tuple[str, Any]],
    specs: Sequence[Any],
    module: torch.fx.GraphModule,
    namer: DimensionNamer,
    fails_at: Callable[[Mapping[str, int]], bool] | None = None,
    places: Mapping[Any, str] = _NOWHERE,
) -> list[Assumption]:
    """The conditions that the dynamic dimensions must meet, except those the user asked for.

    torch.compile gives no specification: it makes another graph for the sizes out of the bounds.

    :param placeholders: name and fake value of every input
    :param specs: specification of every input
    :param module: the graph
    :param namer: the names of the dimensions
    :param fails_at: whether the graph is wrong at some sizes, a condition is kept if it is; all
        of them are kept without it
    :param places: the line that gave a bound to a symbol, or that depends on a condition
    :return: ``"265 <= samples"``, ``"seq % 4 == 0"``, and the longer ones with a size that breaks
        each: ``"3.7 < 0.5*seq (not seq=7)"``; the first one if nothing is tried
    """
    dims = _asked(placeholders, specs)
    sizes = [_sizes(*pair) for pair in dims]
    conditions = _conditions(module.graph)
    remainders = {c: text for c in conditions if (text := _remainder(c, namer))}
    least = {d.node.expr: _integer(getattr(asked, "min", None)) or 0 for d, asked in dims}
    found = [
        *(a for dim, asked in dims for a in _bounds(dim, asked, namer, conditions, places)),
        *(_broken_remainder(c, text, sizes, places) for c, text in remainders.items()),
        *_squeezes(module.graph, least, namer),
    ]
    kept = {a.text: a for a in found}.values()
    fails = fails_at or (lambda sizes: True)
    failing = [a for a in kept if a.sizes is None or any(map(fails, a.sizes))]
    automatic = {str(dim.node.expr) for dim, asked in dims if asked is torch.export.Dim.AUTO}
    others = [c for c in conditions if c not in remainders]
    for group in ([c for c in others if _has_float(c)], [c for c in others if not _has_float(c)]):
        broken = list(_broken(group, list(remainders), sizes, fails_at))
        for example in broken:
            name = namer.names.get(example.symbol, example.symbol)
            told = readable_condition(example.condition, namer.names)
            text = f"{told} (not {name}={example.size})"
            names = {symbol.name for symbol in example.condition.free_symbols}
            is_refused = _has_float(example.condition) and not names & automatic
            failing.append(Assumption(text, None, places.get(example.condition, ""), is_refused))
        if broken:
            break
    return failing


def least_sizes(
    placeholders: Sequence[tuple[str, Any]], specs: Sequence[Any], ranges: Mapping[Any, Any]
) -> dict[str, int]:
    """The least sizes of the dynamic dimensions, by symbol of torch, when they are not 0.

    The 2 that torch takes for every dimension is none: its programs still accept 0 and 1, which an
    empty cache has.

    :param placeholders: name and fake value of every input
    :param specs: specification of every input
    :param ranges: the ranges of an exported program
    """
    bounds = [(s.name, _integer(r.lower)) for s, r in ranges.items() if hasattr(s, "name")]
    found = {name: least for name, least in bounds if least and least != _USUAL}
    for dim, asked in _asked(placeholders, specs):
        name, least = str(dim.node.expr), _integer(getattr(asked, "min", None)) or 0
        if least > found.get(name, 0):
            found[name] = least
    return found


def sizes_beside_a_hole(graph: torch.fx.Graph) -> Iterator[Any]:
    """The dimensions that are not 0 in any call that torch accepts: it refuses to tell what -1 is
    in ``x.view(batch, seq, -1, 64)`` when one of the other sizes is 0.

    :param graph: the graph of a model, the branches it calls may not run
    """
    for node in graph.nodes:
        sizes = node.args[1] if node.target in _VIEWS and len(node.args) > 1 else ()
        values = [s.meta.get("val") if isinstance(s, torch.fx.Node) else s for s in sizes]
        dims = [value for value in values if isinstance(value, torch.SymInt)]
        if any(isinstance(value, int) and value == -1 for value in values):
            yield from dims


def _asked(placeholders: Sequence[tuple[str, Any]], specs: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The dimensions of the inputs that are symbols, and what the user asks for each."""
    return [
        (dim, asked)
        for (_, value), spec in zip(placeholders, specs, strict=False)
        if isinstance(value, torch.Tensor)
        for axis, asked in spec_items(spec, value.ndim)
        if is_symbol(dim := value.shape[axis])
    ]


def _sizes(dim: Any, asked: Any) -> DynamicSize:
    """The range of sizes that a dimension may have."""
    found = dim.node.shape_env.var_to_range.get(dim.node.expr)
    least = (_integer(getattr(asked, "min", None)), _integer(getattr(found, "lower", None)), _USUAL)
    most = (_integer(getattr(asked, "max", None)), _integer(getattr(found, "upper", None)))
    return DynamicSize(
        str(dim.node.expr),
        dim.node.hint,
        max(bound for bound in least if bound is not None),
        min((bound for bound in most if bound is not None), default=None),
    )


def _bounds(
    dim: Any,
    asked: Any,
    namer: DimensionNamer,
    known: Sequence[Any],
    places: Mapping[Any, str],
) -> Iterator[Assumption]:
    """The bounds that torch found and the user did not give.

    :param dim: a dimension
    :param asked: its specification
    :param namer: the names of the dimensions
    :param known: conditions that a size out of the bounds must meet, each one if any size does
    :param places: the line that gave a bound to a symbol, or that depends on a condition
    """
    expr = dim.node.expr
    ranges = dim.node.shape_env.var_to_range
    found = ranges.get(expr)
    if found is None:
        return
    lower, most = _integer(found.lower) or 0, _integer(found.upper)
    least = max(_USUAL, _integer(getattr(asked, "min", None)) or 0)
    allowed = _integer(getattr(asked, "max", None))
    text, tried, bounds = namer.text(expr), [], []
    if lower > least:
        tried = _meeting(range(lower - 1, least - 1, -1), dim, known)
        bounds = [Assumption(f"{lower} <= {text}", tried, places.get((expr.name, lower), ""))]
    if most is not None and (allowed is None or most < allowed):
        end = most + 65 if allowed is None else min(allowed, most + 65)
        larger = _meeting(range(most + 1, end + 1), dim, known)
        place = places.get((expr.name, most), "")
        if bounds and lower == most:
            alike = [s.name for s, r in ranges.items() if r == found]
            both = [dict.fromkeys(alike, n) for sizes in (tried, larger) for n in sizes[0].values()]
            yield Assumption(f"{text} == {lower}", [*tried, *larger, *both], place)
            return
        bounds.append(Assumption(f"{text} <= {most}", larger, place))
    yield from bounds


def _broken(
    group: Sequence[Any],
    known: Sequence[Any],
    sizes: Sequence[DynamicSize],
    fails_at: Callable[[Mapping[str, int]], bool] | None,
) -> Iterator[Counterexample]:
    """The sizes at which a graph is wrong, each one meeting the conditions that those before break:
    together they are the conditions to tell. The first one if nothing is tried.

    :param group: the conditions
    :param known: those that every size must meet
    :param sizes: the dimensions
    :param fails_at: whether the graph is wrong at some sizes
    """
    told = list(known)
    for _ in range(_TRIED if fails_at else 1):
        left = [c for c in group if c not in told]
        tried = _distinct(find_counterexamples(left, told, sizes, fails_at is not None))
        broken = next(
            (c for c in tried if not fails_at or any(map(fails_at, _tries(c, sizes)))), None
        )
        if broken is None:
            return
        yield broken
        told.append(broken.condition)


def _distinct(found: Iterator[Counterexample]) -> Iterator[Counterexample]:
    """The first sizes that differ from those before."""
    kept = {(c.symbol, c.size): c for c in reversed(list(found))}
    return itertools.islice(reversed(list(kept.values())), _TRIED)


def _tries(found: Counterexample, sizes: Sequence[DynamicSize]) -> Iterator[Mapping[str, int]]:
    """A size of one dimension, then of all those that have the same one in the arguments: a model
    may refuse two buffers of two lengths."""
    yield {found.symbol: found.size}
    hints = {s.symbol: s.hint for s in sizes}
    alike = [s for s in sizes if s.hint == hints[found.symbol] and s.symbol != found.symbol]
    if alike and all(s.least <= found.size and (s.most or found.size) >= found.size for s in alike):
        yield dict.fromkeys((found.symbol, *(s.symbol for s in alike)), found.size)


def _meeting(sizes: Sequence[int], dim: Any, known: Sequence[Any]) -> list[Mapping[str, int]]:
    """The first and the last sizes that meet the conditions on a dimension, but those that none
    of the sizes meets."""
    name, meeting = str(dim.node.expr), list(sizes)
    for condition in known:
        check = condition_check(condition, {name: dim.node.hint})
        if check is not None:
            meeting = [n for n in meeting if check({name: n})] or meeting
    return [{name: n} for n in dict.fromkeys((meeting[0], meeting[-1]))]


def _broken_remainder(
    expr: Any, text: str, sizes: Sequence[DynamicSize], places: Mapping[Any, str]
) -> Assumption:
    """A divisibility condition and the nearest size that does not meet it."""
    found = next(find_counterexamples([expr], [], sizes), None)
    return Assumption(text, [{found.symbol: found.size}] if found else None, places.get(expr, ""))


def _integer(bound: Any) -> int | None:
    """The bound as an integer, None when there is none."""
    return int(bound) if isinstance(bound, int) or getattr(bound, "is_Integer", False) else None


def _conditions(graph: torch.fx.Graph) -> list[Any]:
    """The conditions that a graph asserts when it runs, and those torch does not write in it."""
    found: dict[Any, None] = {}
    for node in graph.nodes:
        condition = node.args[0] if str(node.target) == _ASSERTION and node.args else None
        value = condition.meta.get("val") if isinstance(condition, torch.fx.Node) else None
        if isinstance(value, torch.SymBool):
            found[value.node.expr] = None
    size = next(dynamic_sizes(graph), None)
    if size is not None and size.node.shape_env is not None:
        deferred = size.node.shape_env.deferred_runtime_asserts
        found.update((a.expr, None) for listed in deferred.values() for a in listed)
    return list(found)


def _has_float(condition: Any) -> bool:
    """Whether a condition computes a float from a size."""
    is_float = type(condition).__name__.startswith(_FLOATS)
    return is_float or any(map(_has_float, condition.args))


def _squeezes(
    graph: torch.fx.Graph, least: Mapping[Any, int], namer: DimensionNamer
) -> Iterator[Assumption]:
    """The conditions under which torch removes the dimensions that a graph removes.

    :param graph: the graph
    :param least: the dimensions of the inputs and the smallest size the user asked for
    :param namer: the names of the dimensions
    """
    for node in graph.nodes:
        for axis, removed in removed_dimensions(node).items():
            expr = node.args[0].meta["val"].shape[axis].node.expr
            if least.get(expr, 2) < 2:
                sizes = [{expr.name: _USUAL if removed else 1}] if expr.is_Symbol else None
                text = f"{namer.text(expr)} {'==' if removed else '!='} 1"
                yield Assumption(text, sizes, last_place(node.meta.get("stack_trace") or ""))


def _remainder(expr: Any, namer: DimensionNamer) -> str:
    """A divisibility condition on one dimension as text, empty for any other condition."""
    if expr.func.__name__ == "Equality" and expr.args[1] == 0:
        left = expr.args[0]
        if left.func.__name__ in ("Mod", "PythonMod"):
            base, divisor = left.args
            if base.is_Symbol and divisor.is_Integer and base.name in namer.names:
                return f"{namer.text(base)} % {divisor} == 0"
    return ""
