"""Reports of ``xoptim optimize``: tables, json, rows of statistics."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from xbuilder.operators.opsets import opsets_of

from ...reports.model_summary import compare_ops, count_ops, pattern_totals, weight_bytes
from ...trust.sessions.runtime import VerificationError
from ..options.validation import print_validation
from ..terminal.output import counted, html_console, human_bytes, print_line, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from ...trust.inputs.coverage import Unverified
    from ...trust.outputs import OutputDifference
    from ...trust.verification import VerificationReport
    from .outcome import Outcome, Request


#: the rewrite that turns a Constant node into an initializer
_MOVED = "ConstantToInitializer"
#: number of rows of the table of operators, since a model may have thousands of local functions
_MOST_TYPES = 40
#: the cleaning after the rewrites
_CLEANED = "clean_after_patterns"


def statistics_text(rows: list[dict[str, Any]], path: Path | None) -> str:
    """Renders the rows of the engine in the format of the extension of a file.

    :param rows: rows, they do not all have the same keys
    :param path: `.csv` or `.json`, None gives an empty text
    :return: the content of the file
    """
    if path is None:
        return ""
    if path.suffix == ".json":
        return json.dumps(rows, indent=1, default=str) + "\n"
    buffer = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def verification_as_dict(
    report: VerificationReport | None, missing: Sequence[Unverified] = ()
) -> dict[str, Any] | None:
    """Describes a comparison with values json accepts, None if there was none.

    :param report: the comparison
    :param missing: the bodies that never ran
    """
    if report is None:
        return None
    return {
        "ok": report.ok,
        "rtol": report.rtol,
        "atol": report.atol,
        "max_abs": report.max_abs,
        "max_rel": report.max_rel,
        "sizes": report.sizes,
        "seed": report.seed,
        "draws": report.draws,
        "never_ran": [asdict(body) for body in missing],
        "outputs": report.to_rows(),
    }


def outcome_as_dict(request: Request, outcome: Outcome) -> dict[str, Any]:
    """Describes an optimization with values json accepts.

    :param request: the options of the command
    :param outcome: the result
    :return: a dictionary
    """
    written = None if outcome.failure else request.output
    return {
        "ok": not outcome.failure,
        **_failure(request, outcome),
        "model": str(request.model),
        "output": None if written is None else str(written),
        "files": outcome.files,
        "bytes_written": sum(row["bytes"] for row in outcome.files),
        "patterns": request.patterns,
        "seconds": outcome.seconds,
        **_node_counts("before", outcome.before),
        **_node_counts("after", outcome.after),
        "opset_before": opsets_of(outcome.before).get("", 1),
        "opset_after": opsets_of(outcome.after).get("", 1),
        "weight_bytes_before": weight_bytes(outcome.before),
        "weight_bytes_after": weight_bytes(outcome.after),
        "op_types": compare_ops(outcome.before, outcome.after),
        "private_operators": [r["private"] for r in outcome.statistics if r.get("private")],
        "applied": [r for r in pattern_totals(outcome.statistics) if r["added"] or r["removed"]],
        "verification": verification_as_dict(outcome.verification, outcome.unverified),
        "validation": None if request.validation is None else request.validation.summary.to_dict(),
        "profile": None if outcome.profile is None else outcome.profile.rows(),
    }


def _failure(request: Request, outcome: Outcome) -> dict[str, Any]:
    """The keys of a failed verification: the error as any other one, and the next commands."""
    if not outcome.failure:
        return {}
    return {
        "error": outcome.failure,
        "kind": VerificationError.__name__,
        "next": next_commands(request, outcome),
    }


def next_commands(request: Request, outcome: Outcome) -> list[str]:
    """The next command after a verification that failed, and the option that accepts it.

    :param request: the options of the command
    :param outcome: the result
    """
    how, report = request.comparison, outcome.verification
    if how is None or report is None:
        return []
    options = [] if request.patterns in (None, "default") else ["-p", str(request.patterns)]
    options += [w for path in request.loaded for w in ("--load", str(path))]
    options += ["--trust-shapes"] if request.trust_shapes else []
    if request.positive_dims:
        dims = request.positive_dims
        options += ["--positive-dims", "all" if isinstance(dims, bool) else ",".join(dims)]
    options += ["--keep-functions"] if request.keep_functions else []
    words = ["xoptim", "bisect", str(request.model), *options, *how.options]
    if request.target_opset is not None:  # the converter may be to blame
        words[1:3] = ["optimize", str(request.model), "--dry-run", "--verify"]
    lines = [shlex.join(words)]
    wrong = [row for row in report.rows if not row.ok]
    if all(row.is_rounding for row in wrong):
        atol = float(f"{1.1 * max(row.max_abs for row in wrong):.1e}")
        lines.append(f"--atol {atol:g}, if this is the rounding of the model on these inputs")
    return lines


def _node_counts(when: str, model: ModelProto) -> dict[str, int]:
    """Number of nodes except Constant, since turning one into an initializer is no gain."""
    counts = count_ops(model)
    constants = counts.get("Constant", 0)
    return {
        f"nodes_{when}": sum(counts.values()) - constants,
        f"constant_nodes_{when}": constants,
    }


def html_report(request: Request, outcome: Outcome) -> str:
    """Renders the output of :func:`print_outcome` as an HTML page.

    :param request: the options of the command
    :param outcome: the result
    :return: the page
    """
    out = html_console()
    print_line(out, f"{request.model}, patterns: {request.patterns}")
    print_outcome(request, outcome, out)
    return out.export_html(inline_styles=True)


def print_outcome(request: Request, outcome: Outcome, out: Console) -> None:
    """Prints the result of an optimization.

    :param request: the options of the command
    :param outcome: the result
    :param out: destination
    """
    info = outcome_as_dict(request, outcome)
    _print_nodes(info, out)
    print_line(
        out,
        f"weights: {human_bytes(info['weight_bytes_before'])} -> "
        f"{human_bytes(info['weight_bytes_after'])}",
    )
    if info["opset_before"] != info["opset_after"]:
        print_line(out, f"opset:   {info['opset_before']} -> {info['opset_after']}")
    print_line(out, f"time:    {outcome.seconds:.2f} s")
    changed = [r for r in info["op_types"] if r["delta"] and r["op_type"] != "Constant"]
    if changed:
        rows = [(r["op_type"], r["before"], r["after"], f"{r['delta']:+d}") for r in changed]
        print_table(out, "operators", ["type", "before", "after", "change"], rows[:_MOST_TYPES])
        if len(rows) > _MOST_TYPES:
            print_line(out, f"and {counted(len(rows) - _MOST_TYPES, 'other type')}")
    applied = rewrites(info["applied"])
    if applied:
        print_table(out, "rewrites", ["rewrite", "applied", "removed", "added", "ms"], applied)
    for op_type in info["private_operators"]:
        print_line(
            out,
            f"{op_type}: onnxruntime alone knows it, onnx.checker refuses the model; "
            "--public-operators keeps to the others",
        )
    if request.validation is not None:
        print_validation(request.validation.summary, out)
    if outcome.verification is not None:
        print_verification(outcome.verification, out)
    for missing in outcome.unverified:
        print_line(out, f"not verified: {missing}")
    if request.output is not None and not outcome.failure:
        print_line(out, f"\nwrote {request.output}")
    for row in outcome.files:
        print_line(out, f"  {human_bytes(row['bytes']):>10}  {row['path']}")


def _print_nodes(info: dict[str, Any], out: Console) -> None:
    """Prints the number of nodes except Constant."""
    n, m = info["nodes_before"], info["nodes_after"]
    change = f"{(m - n) / n:+.1%}" if n else "empty graph"
    print_line(out, f"nodes:   {n} -> {m} ({change})")
    moved = sum(r["instances"] for r in info["applied"] if r["pattern"] == _MOVED)
    if moved:
        became = "became an initializer" if moved == 1 else "became initializers"
        nodes = counted(moved, "Constant node")
        print_line(out, f"         {nodes} {became}, Constant nodes are not counted as nodes")


def rewrites(applied: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The rows of the table of rewrites, in the words of a user.

    The rewrite of Constant nodes into initializers is left out, and so are the nodes it temporarily
    leaves.

    :param applied: the result of :func:`xoptim.reports.model_summary.pattern_totals`
    :return: rows: name, applications, nodes removed, nodes added, milliseconds
    """
    passing = sum(r["added"] for r in applied if r["pattern"] == _MOVED)
    rows = []
    for r in applied:
        name, removed, applications = r["pattern"], r["removed"], r["instances"]
        if name == _CLEANED:
            name, removed, applications = "unused nodes", removed - passing, ""
        if name != _MOVED and (removed > 0 or r["added"]):
            ms = f"{r['time_in'] * 1e3:.1f}"
            rows.append((name.replace("_", " "), applications, removed, r["added"], ms))
    return sorted(rows, key=lambda row: -row[2])


def print_verification(report: VerificationReport, out: Console) -> None:
    """Prints a comparison: one row by output.

    :param report: the comparison
    :param out: destination
    """
    rows: list[tuple[object, ...]] = []
    for r in report.rows:
        sizes = f"{r.max_abs:.3g}", f"{r.max_rel:.3g}"
        rows.append((r.output, r.dtype, list(r.shape), *sizes, _place(r), r.reason))
    where = ", ".join(f"{k}={v}" for k, v in report.sizes.items())
    if report.draws > 1:
        where = f"{report.draws} sets of inputs, the first {f'with {where}' if where else 'plain'}"
    elif where:
        where = f"with {where}"
    verdict = "same results" if report.ok else "results differ"
    title = f"verification: {verdict}, tolerance {report.rtol:g}" + (f", {where}" if where else "")
    columns = ["output", "type", "shape", "max abs", "max rel", "at", "remark"]
    for place in (6, 5):  # columns that say nothing
        if not any(row[place] for row in rows):
            columns = [*columns[:place], *columns[place + 1 :]]
            rows = [(*row[:place], *row[place + 1 :]) for row in rows]
    print_table(out, title, columns, rows, left=3)


def _place(row: OutputDifference) -> str:
    """The index of the largest difference of an output."""
    return str(list(row.where)) if row.where and row.max_rel else ""
