"""Tables of the comparison of two models, and of the checks of rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..reports.tables import Output
    from ..trust.inputs.coverage import Unverified
    from ..trust.outputs import OutputDifference
    from ..trust.verification import VerificationReport
    from ..trust.windows.certificates import Summary


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
        "not_loaded": report.not_loaded,
        "outputs": report.to_rows(),
    }


def print_verification(report: VerificationReport, out: Output) -> None:
    """Prints a comparison: one row by output.

    :param report: the comparison
    :param out: destination
    """
    from ..reports.tables import print_line, print_table, verdict_style

    title, style = f"verification: {verdict_of(report)}", verdict_style(report.ok)
    print_table(out, title, *outputs_table(report), left=3, style=style)
    if report.not_loaded:
        print_line(out, other_runtime(report))


def verdict_of(report: VerificationReport) -> str:
    """Describes a comparison in one line: the verdict, the tolerance, the inputs."""
    where = ", ".join(f"{k}={v}" for k, v in report.sizes.items())
    if report.draws > 1:
        where = f"{report.draws} sets of inputs" + (f", the first with {where}" if where else "")
    elif where:
        where = f"with {where}"
    verdict = "same results" if report.ok else "results differ"
    return f"{verdict}, tolerance {report.rtol:g}" + (f", {where}" if where else "")


def outputs_table(report: VerificationReport) -> tuple[list[str], list[list[Any]]]:
    """The columns and the rows of the table of a comparison, one row by output."""
    from ..reports.tables import without_empty

    rows: list[tuple[object, ...]] = []
    for r in report.rows:
        sizes = f"{r.max_abs:.3g}", f"{r.max_rel:.3g}"
        rows.append((r.output, r.dtype, list(r.shape), *sizes, _place(r), r.reason))
    columns = ["output", "type", "shape", "max abs", "max rel", "at", "remark"]
    return without_empty(columns, rows, ["at", "remark"])


def other_runtime(report: VerificationReport) -> str:
    """The sentence on a model that onnxruntime did not run."""
    return f"{report.not_loaded}; the reference evaluator of onnx ran instead"


def _place(row: OutputDifference) -> str:
    """The index of the largest difference of an output."""
    return str(list(row.where)) if row.where and row.max_rel else ""


def print_validation(summary: Summary, out: Output) -> None:
    """Prints the number of rewrites by verdict, and those that are not simply right.

    :param summary: the certificates
    :param out: destination
    """
    from ..reports.tables import counted, print_line, print_table
    from ..trust.windows.certificates import RIGHT

    count = counted(len(summary.certificates), "rewrite")
    print_line(out, f"validation: {count}, {summary.text()}, in {summary.seconds:.2f} s")
    rows = [
        (r["pattern"], r["verdict"], r["instances"], f"{r['max_rel']:.3g}", r["reason"])
        for r in summary.rows()
        if r["verdict"] != RIGHT or r["reason"]
    ]
    if rows:
        columns = ["rewrite", "verdict", "times", "max rel", "remark"]
        print_table(out, "checks with a remark", columns, rows, left=2)
