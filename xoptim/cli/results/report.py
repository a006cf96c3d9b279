"""The report of ``xoptim optimize``: json, the files written, what to type next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...reports.tables import Output
    from ...tasks.result import OptimizedModel
    from .request import Request


def outcome_as_dict(request: Request, done: OptimizedModel) -> dict[str, Any]:
    """Describes an optimization with values json accepts.

    :param request: the options of the command
    :param done: the optimization
    """
    written = None if done.failure else request.output
    return {
        "ok": not done.failure,
        **_failure(request, done),
        "model": str(request.model),
        "output": None if written is None else str(written),
        "files": done.files,
        "bytes_written": sum(row["bytes"] for row in done.files),
        **done.to_dict(),
    }


def _failure(request: Request, done: OptimizedModel) -> dict[str, Any]:
    """The keys of a failed verification: the error as any other one, and the next commands."""
    from ...trust.sessions.runtime import VerificationError

    if not done.failure:
        return {}
    return {
        "error": done.failure,
        "kind": VerificationError.__name__,
        "next": next_commands(request, done),
    }


def next_commands(request: Request, done: OptimizedModel) -> list[str]:
    """The next command after a verification that failed, and the option that accepts it.

    :param request: the options of the command
    :param done: the optimization
    """
    how, task, report = request.comparison, request.optimization, done.verification
    if how is None or report is None:
        return []
    options = [] if task.patterns in (None, "default") else ["-p", str(task.patterns)]
    options += [w for path in request.loaded for w in ("--load", str(path))]
    options += request.assumed.words
    options += ["--keep-functions"] if task.keep_functions else []
    words = ["xoptim", "bisect", str(request.model), *options, *how.options]
    if (
        task.target_opset is not None or request.signature.is_changed
    ):  # the converter may be to blame
        words[1:3] = ["optimize", str(request.model), "--dry-run", "--verify"]
        words += request.signature.words
    lines = [shlex.join(words)]
    wrong = [row for row in report.rows if not row.ok]
    if all(row.is_rounding for row in wrong):
        atol = float(f"{1.1 * max(row.max_abs for row in wrong):.1e}")
        lines.append(f"--atol {atol:g}, if this is the rounding of the model on these inputs")
    return lines


def print_outcome(request: Request, done: OptimizedModel, out: Output) -> None:
    """Prints the result of an optimization and the files written.

    :param request: the options of the command
    :param done: the optimization
    :param out: destination
    """
    from ...reports.tables import human_bytes, print_line

    done.print(out)
    if done.failure:
        return
    size = human_bytes(sum(row["bytes"] for row in done.files))
    if request.output is not None:
        print_line(out, f"\nwrote {request.output}, {size}")
    for row in done.files if len(done.files) > 1 else ():
        print_line(out, f"  {human_bytes(row['bytes']):>10}  {row['path']}")
