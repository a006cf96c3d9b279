"""The content of the page of an optimization."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from onnx import ModelProto

from xbuilder.dims import Dim, evaluate, symbols
from xbuilder.dims.errors import DimensionError
from xbuilder.files.tensor_sites import iter_tensor_sites
from xbuilder.support.notebook import shortened
from xbuilder.tensors.bits import pretty_type

from ..reports.costs import Costs, costs_of
from ..reports.drawing.families import family_of
from ..reports.drawing.layout import MissingLayoutError, place
from ..reports.drawing.shapes import ShapeTexts, shape_texts
from ..reports.drawing.svg import drawing_svg
from ..reports.model_summary import tensor_bytes
from ..reports.page.graphs import PageGraphs, page_graphs
from ..reports.page.page import page_html
from ..reports.profile_plot import profile_svg
from ..reports.tables import counted, human_bytes
from ..trust.windows.certificates import WRONG, Summary
from .explain import NearMiss, near_misses_in
from .measure import conditions_of, latency_table
from .report import rewrites
from .verification_tables import other_runtime, outputs_table, verdict_of

if TYPE_CHECKING:
    from ..toolkit.profiles import Profile
    from ..trust.inputs.coverage import Unverified
    from ..trust.verification import VerificationReport
    from .measure import ModelLatency
    from .traces import Traces

#: rows of the tables that have no end
_OPERATORS, _MISSES, _WEIGHTS = 40, 60, 12
#: bytes below which a tensor is no weight
_SMALL = 1 << 10


class Optimized(Protocol):
    """The part of :class:`xoptim.tasks.result.OptimizedModel` the page reads."""

    before: ModelProto
    after: ModelProto
    rows: list[dict[str, Any]]
    seconds: float
    name: str
    patterns: Any
    verification: VerificationReport | None
    unverified: list[Unverified]
    validation: Summary | None
    latency: list[ModelLatency] | None
    profile: Profile | None
    other_matches: int
    traces: Traces | None

    @property
    def failure(self) -> str:
        """The differences between the results of the models."""

    def to_dict(self) -> dict[str, Any]:
        """All that is known, with values json accepts."""


def report_page(done: Optimized) -> str:
    """Writes the page of an optimization.

    :param done: the optimization
    :return: the page
    """
    info = done.to_dict()
    content: dict[str, Any] = {
        "name": done.name or "model",
        "short_name": _short_name(done),
        "patterns": info["patterns"],
        "seconds": f"{done.seconds:.2f} s",
        "verdicts": list(_verdicts(done, info)),
        "operators": _operators(info["op_types"]),
        "skipped": _skipped(done.rows),
        "weights": _weights(done.before),
        **_checks(done),
        **_time(done),
    }
    content |= _traced(done, info)
    return page_html(content)


def _short_name(done: Optimized) -> str:
    """The name of the file of the model, or of its graph."""
    source = None if done.traces is None else done.traces.source
    return (source.name if isinstance(source, Path) else done.name) or "model"


def _traced(done: Optimized, info: Mapping[str, Any]) -> dict[str, Any]:
    """The sections that need the traces: graphs, costs, rewrites, near misses."""
    traces = done.traces
    if traces is None:
        rows = rewrites(info["applied"])
        return {"cards": _cards(done, info, None), "rewrites": [_rewrite(row) for row in rows]}
    first = traces.read_again(done.before)
    after = traces.builder.graph
    costs = costs_of(first.graph, _sizes(done)), costs_of(after, _sizes(done))
    shapes = shape_texts(first.graph), shape_texts(after)
    graphs, undrawn = _graphs(done, traces, shapes)
    content: dict[str, Any] = {"cards": _cards(done, info, costs), "undrawn": undrawn}
    content["drawings"] = [] if graphs is None else graphs.graphs
    content["rewrites"] = list(_examples(rewrites(info["applied"]), traces, graphs is not None))
    content["rewrites_note"] = "Click on a rewrite to see where it first applied." if graphs else ""
    places = {} if graphs is None else graphs.places
    patterns = "default+onnxruntime" if done.patterns is None else done.patterns
    found = near_misses_in(after, patterns)[:_MISSES]
    content["misses"] = [_miss(miss, places) for miss in found]
    return content


# -- graphs


def _graphs(
    done: Optimized, traces: Traces, shapes: tuple[ShapeTexts, ShapeTexts]
) -> tuple[PageGraphs | None, str]:
    """The drawings, and why some of them are missing."""
    origins = traces.provenance.origins

    def origin(result: str) -> tuple[Sequence[str], Sequence[str]] | None:
        found = origins.get(result)
        return None if found is None else (found.rewrites, found.sources)

    try:
        graphs = page_graphs(done.before, done.after, shapes, origin)
    except MissingLayoutError as e:
        return None, str(e)
    if not graphs.too_large:
        return graphs, ""
    titles = ", ".join(graphs.too_large)
    return graphs, f"Too large to be drawn, xoptim extract takes a part of a model: {titles}."


def _examples(
    rows: Sequence[tuple[Any, ...]], traces: Traces, drawn: bool
) -> Iterator[dict[str, Any]]:
    """The rewrites, with the drawings of their first application."""
    found = {name.replace("_", " "): one for name, one in traces.examples.found.items()}
    for i, row in enumerate(rows):
        made, example = _rewrite(row), found.get(row[0])
        if drawn and example is not None:
            sides = (drawing_svg(place(side)) for side in example.drawings(f"x{i}"))
            made |= dict(zip(("before", "after"), sides, strict=True)) | {"doc": example.doc}
        yield made


def _rewrite(row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("name", "applied", "removed", "added", "ms"), row, strict=True))


def _miss(miss: NearMiss, places: Mapping[str, str]) -> dict[str, Any]:
    """A pattern that declined, with its place in the drawing."""
    short = shortened(miss.result, 30)
    return {**asdict(miss), "short": short, "place": places.get(miss.result, "")}


# -- before and after


def _sizes(done: Optimized) -> dict[str, int]:
    """The sizes of the dimensions, those of the verification if it was asked for."""
    return dict(done.verification.sizes) if done.verification is not None else {}


def _cards(
    done: Optimized, info: Mapping[str, Any], costs: tuple[Costs, Costs] | None
) -> list[dict[str, Any]]:
    """Numbers before and after."""
    known = [r for r in info["op_types"] if r["op_type"] != "Constant"]
    types = [sum(1 for r in known if r[side]) for side in ("before", "after")]
    sizes = info["weight_bytes_before"], info["weight_bytes_after"]
    cards = [
        _card("nodes", info["nodes_before"], info["nodes_after"]),
        _card("types of operators", types[0], types[1]),
        _card("weights", sizes[0], sizes[1], human_bytes),
    ]
    if costs is not None and not any(c.uncounted for c in costs):
        cards.append(_cost("operations", costs, [c.total for c in costs], _count))
        cards.append(_cost("memory of activations", costs, [c.peak for c in costs], human_bytes))
    if done.latency is not None:
        first, last = done.latency
        card = _card("time of one run", first.milliseconds, last.milliseconds, words=_milliseconds)
        cards.append({**card, "note": f"ratio {last.low:.3f} to {last.high:.3f}, onnxruntime"})
    if info["opset_before"] != info["opset_after"]:
        cards.append(
            {"what": "opset", "before": info["opset_before"], "after": info["opset_after"]}
        )
    return cards


def _card(
    what: str, before: float, after: float, words: Callable[[Any], str] = "{:,}".format
) -> dict[str, Any]:
    """Two numbers and their ratio."""
    change = f"{after / before - 1:+.1%}" if before else ""
    if before == after or change in ("+0.0%", "-0.0%"):
        change = "the same" if before == after else "nearly the same"
    kind = "good" if after < before else "bad" if after > before else ""
    shown = {"before": words(before), "after": words(after)}
    return {"what": what, **shown, "change": change, "kind": kind}


def _cost(
    what: str, costs: Sequence[Costs], formulas: Sequence[Dim], words: Callable[[Any], str]
) -> dict[str, Any]:
    """Two formulas, with their values for the sizes that are known, 1 for the others."""
    names = sorted({name for formula in formulas for name in symbols(formula)})
    sizes = {name: costs[0].sizes.get(name, 1) for name in names}
    first, last = (_value(formula, sizes) for formula in formulas)
    if first is None or last is None:
        shown = [str(formula) for formula in formulas]
        card: dict[str, Any] = {"what": what, "before": shown[0], "after": shown[1]}
    else:
        card = _card(what, first, last, words)
    note = shortened(f"for {', '.join(f'{n}={sizes[n]}' for n in names)}", 60) if names else ""
    said = f"{formulas[0]} → {formulas[1]}" if names else ""
    return {**card, "note": note, "formula": said}


def _value(formula: Dim, sizes: Mapping[str, int]) -> int | None:
    try:
        return evaluate(formula, sizes)
    except DimensionError:
        return None


def _count(number: float) -> str:
    """A number of operations for a reader: `8.2 G`."""
    for unit in ("", " k", " M", " G"):
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g} T"


def _milliseconds(value: float) -> str:
    return f"{value:.3g} ms"


def _verdicts(done: Optimized, info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The first lines: whether the results are the same, warnings, another set to try."""
    if done.verification is not None:
        if done.verification.ok:
            yield "good", "Verified: both models give the same results."
        else:
            yield "bad", f"The results differ: {done.failure}."
    for missing in done.unverified:
        yield "bad", f"Not verified: {missing}."
    if done.validation is not None:
        kind = "bad" if done.validation.counts().get(WRONG) else "good"
        yield kind, f"Each rewrite was checked: {done.validation.text()}."
    for op_type in info["private_operators"]:
        yield "none", f"{op_type}: onnxruntime alone knows it, onnx.checker refuses the model."
    if done.other_matches:
        nodes = counted(done.other_matches, "node")
        yield "none", f"The set onnxruntime rewrites {nodes} more: default+onnxruntime."


def _operators(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the table of operators, with the lengths of their bars."""
    known = [r for r in rows if r["op_type"] != "Constant"]
    shown = sorted(known, key=lambda r: (-max(r["before"], r["after"]), r["op_type"]))[:_OPERATORS]
    most = max((max(r["before"], r["after"]) for r in shown), default=1) or 1
    return [
        {
            **row,
            "family": family_of(row["op_type"].rpartition(".")[2]).name,
            "before_width": round(100 * row["before"] / most, 1),
            "after_width": round(100 * row["after"] / most, 1),
        }
        for row in shown
    ]


def _skipped(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """The reasons of the passes that left nodes as they are, and how many."""
    totals: Counter[str] = Counter()
    for row in rows:
        if row.get("skipped"):
            totals[str(row["pattern"]).replace("_", " ")] += row["skipped"]
    return totals.most_common()


def _weights(model: ModelProto) -> list[tuple[str, str, str]]:
    """The largest weights of a model, which are not read."""
    tensors = [site.tensor for site in iter_tensor_sites(model)]
    found = sorted((t for t in tensors if tensor_bytes(t) >= _SMALL), key=tensor_bytes)[::-1]
    return [
        (
            shortened(t.name, 60),
            f"{pretty_type(t.data_type)}{list(t.dims)}",
            human_bytes(tensor_bytes(t)),
        )
        for t in found[:_WEIGHTS]
    ]


# -- checks and time


def _checks(done: Optimized) -> dict[str, Any]:
    """The comparison of the results, and the certificates of the rewrites."""
    content: dict[str, Any] = {}
    report = done.verification
    if report is not None:
        text = verdict_of(report) + (f"; {other_runtime(report)}" if report.not_loaded else "")
        columns, rows = outputs_table(report)
        content["verification"] = {
            "kind": "good" if report.ok else "bad",
            "text": text,
            "columns": columns,
            "rows": rows,
            "bodies": _bodies(report),
        }
    if done.validation is not None:
        content["validation"] = _certificates(done.validation)
    return content


def _bodies(report: VerificationReport) -> list[tuple[str, int, str]]:
    """The bodies of the model that ran, and those that did not."""
    rows = [(body, "yes") for body in report.ran] + [(body, "no") for body in report.never_ran]
    rows.sort(key=lambda row: row[0].number)
    return [(body.name, body.nodes, ran) for body, ran in rows]


def _certificates(summary: Summary) -> dict[str, Any]:
    """The certificates, one row by rewrite and by verdict."""
    rows = [
        (
            r["pattern"],
            r["verdict"],
            ", ".join(r["methods"]),
            r["instances"],
            r["windows"],
            f"{r['max_rel']:.3g}",
            shortened(r["reason"], 120),
        )
        for r in summary.rows()
    ]
    return {
        "kind": "bad" if summary.counts().get(WRONG) else "good",
        "text": f"{counted(len(summary.certificates), 'rewrite')}: {summary.text()}, in "
        f"{summary.seconds:.2f} s",
        "columns": ["rewrite", "verdict", "checked by", "times", "windows", "max rel", "remark"],
        "rows": rows,
    }


def _time(done: Optimized) -> dict[str, Any]:
    """The latency of the models and the profile of the optimization."""
    content: dict[str, Any] = {}
    if done.latency is not None:
        columns, rows = latency_table(done.latency)
        content["latency"] = {"columns": columns, "rows": rows, "note": conditions_of(done.latency)}
    if done.profile is not None:
        content["profile"] = profile_svg(done.profile.root)
    return content
