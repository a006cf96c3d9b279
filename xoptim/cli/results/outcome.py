"""The request of a user to ``xoptim optimize`` and the outcome of the optimization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from xbuilder.files.model_container import ModelContainer

from ...trust.inputs.coverage import Unverified
from ...trust.verification import VerificationReport
from ...trust.windows.validation import Validation
from ..options.saving import SavingFormat
from ..options.verify_options import Comparison

if TYPE_CHECKING:
    from ...toolkit.profiles import Profile


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of the command, once checked.

    :param model: file to read
    :param output: file to write, None to write nothing
    :param force: the file to write may be a model with other inputs or outputs
    :param patterns: selection of patterns, None for none
    :param loaded: files of patterns it may name
    :param processor: processors the model is meant for, such as `CPU,CUDA`
    :param max_iter: maximum number of iterations, -1 for no limit but the engine's
    :param trust_shapes: the shapes the file declares for computed results are right
    :param positive_dims: dimensions of the inputs that are never 0, True for all of them
    :param public_operators: no rewrite writes an operator onnx does not know in its own domain
    :param keep_functions: calls to local functions are not inlined
    :param data_roots: folders the weights may be in, beside the model's
    :param saving: where the weights go
    :param target_opset: opset the model is converted to first, None to keep its own
    :param comparison: compares the results before writing, None does not
    :param validation: checks each rewrite, None does not
    :param stats: file for the rows of the engine
    :param html: file for the report
    :param profile: prints a profile of the time
    :param profile_output: file for the profile
    :param provenance: records in new nodes the rewrites that wrote them and the nodes they replace
    :param late_checks: big weights are checked when they are written
    :param as_json: the standard output is for json
    :param verbose: verbosity of the engine
    """

    model: Path
    output: Path | None
    force: bool
    patterns: str | None
    loaded: Sequence[Path]
    processor: str
    max_iter: int
    trust_shapes: bool
    positive_dims: bool | tuple[str, ...]
    public_operators: bool
    keep_functions: bool
    data_roots: Sequence[Path]
    saving: SavingFormat
    target_opset: int | None
    comparison: Comparison | None
    validation: Validation | None
    stats: Path | None
    html: Path | None
    profile: bool
    profile_output: Path | None
    provenance: bool
    late_checks: bool
    as_json: bool
    verbose: int


@dataclass
class Outcome:
    """The result of an optimization, with its statistics.

    :param before: the model that was read, its weights may still be in their file
    :param after: the optimized model
    :param result: the object to save, a model, or the container of a large one
    :param statistics: rows of the engine
    :param seconds: time to read and optimize
    :param verification: the comparison of the results, None if it was not asked for
    :param files: the files written, rows with `path`, `bytes`
    :param profile: a profile of the time, None if it was not asked for
    :param unverified: the bodies that never ran, with their rewrites
    """

    before: ModelProto
    after: ModelProto
    result: ModelProto | ModelContainer
    statistics: list[dict[str, Any]]
    seconds: float
    verification: VerificationReport | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    profile: Profile | None = None
    unverified: list[Unverified] = field(default_factory=list)

    @property
    def failure(self) -> str:
        """The differences between the results of the models, empty if there is none."""
        return "" if self.verification is None else self.verification.reason
