"""The request of a user to ``xoptim optimize`` and the outcome of the optimization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from xbuilder.files.model_container import ModelContainer

from ..trust.verification import VerificationReport
from .saving import SavingFormat

if TYPE_CHECKING:
    from ..toolkit.profiles import Profile


@dataclass
class Request:
    """The options of the command, once checked.

    :param model: file to read
    :param output: file to write, None to write nothing
    :param stats: file for the rows of the engine
    :param html: file for the report
    :param patterns: selection of patterns, None for none
    :param processor: processors the model is meant for, such as `CPU,CUDA`
    :param max_iter: maximum number of iterations, -1 for no limit but the engine's
    :param data_roots: folders the weights may be in, beside the model's
    :param trust_shapes: the shapes the file declares for computed results are right
    :param public_operators: no rewrite writes an operator onnx does not know in its own domain
    :param keep_functions: calls to local functions are not inlined
    :param saving: where the weights go
    :param target_opset: opset the model is converted to first, None to keep its own
    :param verify: compares the results before writing
    :param rtol: tolerance of the comparison
    :param sizes: sizes of dimensions for the comparison
    :param seed: seed of the random inputs
    :param verbose: verbosity of the engine
    :param as_json: the standard output is for json
    :param profile: prints a profile of the time
    :param profile_output: file for the profile
    :param provenance: records in new nodes the rewrites that wrote them and the nodes they replace
    :param late_checks: big weights are checked when they are written
    """

    model: Path
    output: Path | None
    stats: Path | None = None
    html: Path | None = None
    patterns: str | None = "default"
    processor: str = "CPU"
    max_iter: int = -1
    data_roots: Sequence[Path] = ()
    trust_shapes: bool = False
    public_operators: bool = False
    keep_functions: bool = False
    saving: SavingFormat = field(default_factory=SavingFormat)
    target_opset: int | None = None
    verify: bool = False
    rtol: float = 1e-4
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    verbose: int = 0
    as_json: bool = False
    profile: bool = False
    profile_output: Path | None = None
    provenance: bool = False
    late_checks: bool = True


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
    """

    before: ModelProto
    after: ModelProto
    result: ModelProto | ModelContainer
    statistics: list[dict[str, Any]]
    seconds: float
    verification: VerificationReport | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    profile: Profile | None = None
