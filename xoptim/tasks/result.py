"""An optimized model with all that is known of its optimization."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import ModelProto

from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import write_file
from xbuilder.operators.opsets import opsets_of

from ..reports.model_summary import (
    compare_ops,
    count_ops,
    is_folding_limited,
    pattern_totals,
    weight_bytes,
)
from .saving import SavingFormat, save

if TYPE_CHECKING:
    from ..reports.tables import Output
    from ..toolkit.profiles import Profile
    from ..trust.inputs.coverage import Unverified
    from ..trust.verification import VerificationReport
    from ..trust.windows.certificates import Summary
    from .measure import ModelLatency
    from .traces import Traces


class Trial(NamedTuple):
    """One way to optimize a model, measured.

    :param patterns: the selection
    :param nodes: number of nodes, Constant excepted
    :param ratio: time over the time of the model it is compared with, NaN if it failed
    :param low: a quarter of the comparisons is below
    :param high: a quarter of the comparisons is above
    :param verdict: what was decided

    Example::

        >>> trial = Trial("default", 12, 0.9, 0.88, 0.93, "kept")
        >>> f"{trial.patterns}: {trial.ratio:.0%} of the time, {trial.nodes} nodes, {trial.verdict}"
        'default: 90% of the time, 12 nodes, kept'
    """

    patterns: str
    nodes: int
    ratio: float
    low: float
    high: float
    verdict: str


@dataclass
class OptimizedModel:
    """The result of an optimization.

    :param before: the model that was read, its weights may still be in their file
    :param after: the optimized model; the weights of a large one are in *stored*
    :param stored: what is saved, a model, or the container of a large one
    :param rows: rows of the engine
    :param seconds: time to read and optimize
    :param name: the file of the model, or the name of its graph
    :param patterns: the patterns that were asked for
    :param mended: the nodes that fixed a size which is dynamic now
    :param saving: where :meth:`save` puts the weights
    :param verification: the comparison of the results, None if it was not asked for
    :param unverified: the bodies that never ran, with their rewrites
    :param validation: the certificates of the rewrites, None if they were not asked for
    :param latency: the time both models take, None if it was not asked for
    :param profile: where the time went, None if it was not asked for
    :param other_matches: number of matches of the other set of patterns, if it was asked for
    :param trials: what was measured to choose the patterns, the kept one last
    :param files: the files written, rows with `path`, `bytes`
    :param traces: what the page of the report shows of the optimization

    Example::

        >>> import xoptim
        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (bool[n] x) => (bool[n] y) { a = Not(x)  b = Not(a)  y = Not(b) }"
        >>> done = xoptim.optimize(model_from_text(text), verify=True)
        >>> done.to_dict()["nodes_before"], done.to_dict()["nodes_after"], done.failure
        (3, 1, '')
    """

    before: ModelProto
    after: ModelProto
    stored: ModelProto | ModelContainer
    rows: list[dict[str, Any]]
    seconds: float
    name: str = ""
    patterns: Any = None
    mended: list[str] = field(default_factory=list)
    saving: SavingFormat = field(default_factory=SavingFormat)
    verification: VerificationReport | None = None
    unverified: list[Unverified] = field(default_factory=list)
    validation: Summary | None = None
    latency: list[ModelLatency] | None = None
    profile: Profile | None = None
    other_matches: int = 0
    trials: list[Trial] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    traces: Traces | None = None

    @property
    def model(self) -> ModelProto:
        """The optimized model as one proto.

        :raises InvalidModelError: it is too large for one, :meth:`save` writes it
        """
        if isinstance(self.stored, ModelProto):
            return self.stored
        return self.stored.to_model_proto()

    @property
    def statistics(self) -> Any:
        """The rows of the engine as a `pandas.DataFrame`."""
        from pandas import DataFrame

        return DataFrame(self.rows)

    @property
    def failure(self) -> str:
        """The differences between the results of the models, empty if there is none."""
        return "" if self.verification is None else self.verification.reason

    def save(self, path: str | os.PathLike[str]) -> list[dict[str, Any]]:
        """Writes the model, or nothing if it fails. The weights of a large model are in a file next
        to it, those of a model read with external data too.

        :param path: the file, .onnx, .json or .textproto
        :return: the files written, the model is the last one: rows with `path`, `bytes`
        """
        self.files = save(self.stored, Path(path), self.saving)
        return self.files

    def write_or_serialize(self, folder: Path) -> Path | bytes:
        """The model as onnxruntime reads it: a file if weights leave the model, else its bytes.

        :param folder: where the file is written
        """
        if isinstance(self.stored, ModelContainer):
            return Path(self.stored.save(folder / "after.onnx")[-1])
        content: bytes = self.stored.SerializeToString()
        return content

    def to_dict(self) -> dict[str, Any]:
        """All that is known, with values json accepts: counts of nodes, weights, rewrites applied,
        verification, validation, latency, profile."""
        from .verification_tables import verification_as_dict

        return {
            "patterns": "none" if self.patterns is None else str(self.patterns),
            "seconds": self.seconds,
            **_node_counts("before", self.before),
            **_node_counts("after", self.after),
            "opset_before": opsets_of(self.before).get("", 1),
            "opset_after": opsets_of(self.after).get("", 1),
            "weight_bytes_before": weight_bytes(self.before),
            "weight_bytes_after": weight_bytes(self.after),
            "op_types": compare_ops(self.before, self.after),
            "private_operators": [r["private"] for r in self.rows if r.get("private")],
            "applied": [r for r in pattern_totals(self.rows) if r["added"] or r["removed"]],
            "verification": verification_as_dict(self.verification, self.unverified),
            "validation": None if self.validation is None else self.validation.to_dict(),
            "latency": None if self.latency is None else [m.to_row() for m in self.latency],
            "is_folding_limited": is_folding_limited(self.rows),
            "other_matches": self.other_matches,
            "mended": self.mended,
            "trials": [trial._asdict() for trial in self.trials],
            "profile": None if self.profile is None else self.profile.rows(),
        }

    def print(self, out: Output) -> None:
        """Prints the report: what changed, latency, validation, verification."""
        from ..reports.tables import counted, print_line
        from .report import print_changes

        print_changes(self.to_dict(), out)
        if self.mended:
            nodes = counted(len(self.mended), "node")
            print_line(out, f"\ndynamic: sizes removed from {nodes}: {', '.join(self.mended)}")
        if self.trials:
            print_trials(self.trials, out)
        if self.latency is not None:
            from .measure import print_latency

            print_latency(self.latency, out)
        if self.validation is not None:
            from .verification_tables import print_validation

            print_validation(self.validation, out)
        if self.verification is not None:
            from .verification_tables import print_verification

            print_verification(self.verification, out)
        for missing in self.unverified:
            print_line(out, f"not verified: {missing}")
        if self.other_matches:
            nodes = counted(self.other_matches, "node")
            print_line(
                out,
                f"\nthe set onnxruntime rewrites {nodes} more: default+onnxruntime, if onnxruntime "
                "runs the model",
            )

    def html(self) -> str:
        """The report as a web page that needs no other file: what changed, both graphs, each
        rewrite, what was not rewritten and why, checks, time.

        The graphs are drawn with igraph (`pip install "xoptim[report]"`), otherwise the page says
        that they are not.
        """
        from .page import report_page

        return report_page(self)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as a web page.

        :param path: the file, `.html`
        """
        write_file(path, self.html().encode())

    def __str__(self) -> str:
        from ..reports.tables import as_text

        return as_text(self.print)

    def _repr_html_(self) -> str:
        from ..reports.tables import as_html

        return as_html(self.print)


def print_trials(trials: Sequence[Trial], out: Output) -> None:
    """Prints what was measured to choose the patterns.

    :param trials: the trials, the kept one last
    :param out: destination
    """
    from ..reports.tables import print_table

    rows = [
        (t.patterns, t.nodes, f"{t.ratio:.3f}", f"{t.low:.3f} - {t.high:.3f}", t.verdict)
        for t in trials
    ]
    columns = ["patterns", "nodes", "ratio", "half of the ratios", "verdict"]
    kept = trials[-1]
    why = f"{kept.ratio:.3f} times the time" if kept.high < 1 else "nothing is faster"
    print_table(out, f"kept: {kept.patterns}, {why}", columns, rows)


def _node_counts(when: str, model: ModelProto) -> dict[str, int]:
    """Number of nodes except Constant, since turning one into an initializer is no gain."""
    counts = count_ops(model)
    constants = counts.get("Constant", 0)
    return {
        f"nodes_{when}": sum(counts.values()) - constants,
        f"constant_nodes_{when}": constants,
    }
