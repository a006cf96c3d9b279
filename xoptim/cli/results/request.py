"""The request of a user to ``xoptim optimize``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...tasks.optimization import Optimization
from ..options.checks import Checks
from ..options.optimize_options import Assumptions
from ..options.signature_options import SignatureOptions
from ..options.verify_options import Comparison
from ..terminal.paths import target_of
from .report_files import ReportFiles

if TYPE_CHECKING:
    from ...toolkit.profiles import Profile
    from ...trust.windows.validation import Validation


class Request(NamedTuple):
    """The options of the command, once checked.

    :param optimization: what to optimize, and how
    :param assumed: what the user states about the model
    :param signature: the changes of the signature
    :param output: file to write, None to write nothing
    :param force: the file to write may be a model with other inputs or outputs
    :param loaded: files of patterns the selection may name
    :param comparison: compares the results before writing, None does not
    :param checks: what is checked beside the results
    :param how: the inputs of the comparison and of the measure
    :param reports: the files written beside the model
    :param as_json: the standard output is for json
    """

    optimization: Optimization
    assumed: Assumptions
    signature: SignatureOptions
    output: Path | None
    force: bool
    loaded: Sequence[Path]
    comparison: Comparison | None
    checks: Checks
    how: Comparison
    reports: ReportFiles
    as_json: bool

    @property
    def model(self) -> Path:
        """The file to read."""
        path: Path = self.optimization.model
        return path

    @property
    def runs(self) -> bool:
        """Whether the models run."""
        return self.comparison is not None or self.measures

    @property
    def measures(self) -> bool:
        """Whether the time of the models is measured."""
        return self.checks.measure or self.checks.keep_faster

    def of(self, model: Path, output: Path | None) -> Request:
        """The same request for another model."""
        one = replace(self.optimization, model=model)
        return self._replace(optimization=one, output=output)

    def fresh(self, **changes: Any) -> Optimization:
        """The optimization, with observers of its own.

        :param changes: other values of its options
        """
        arguments = self.how.arguments(self.model) if self.runs else {}
        if "inputs" in arguments:  # they have the names of the first model
            from ...surgery.signature import cast_inputs

            new = self.signature.renamed
            sets = arguments["inputs"]
            sets = [{new.get(n, n): v for n, v in one.items()} for one in sets]
            arguments["inputs"] = [cast_inputs(one, self.signature.cast) for one in sets]
        measured = {name: arguments.get(name) for name in ("inputs", "sizes", "seed")}
        if self.output is not None:
            changes["folder"] = target_of(self.output).absolute().parent
        return replace(
            self.optimization,
            comparison=None if self.comparison is None else arguments,
            measured=measured if self.measures else None,
            validation=self._validation(),
            profile=self._profile(),
            **changes,
        )

    def _validation(self) -> Validation | None:
        """The checks of each rewrite, if they are asked for."""
        if not self.checks.validates:
            return None
        from ...trust.windows.validation import Validation

        return Validation(self.checks.windows)

    def _profile(self) -> Profile | None:
        """The measure of the optimization, if it is asked for."""
        if not self.reports.profiles:
            return None
        from ...toolkit.profiles import Profile

        return Profile()
