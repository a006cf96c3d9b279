"""One model among many: optimized where the job runs, unless it is up to date."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx import __version__ as onnx_version

from xbuilder.errors import XoptimError
from xbuilder.files.writing.temporary_files import temporary_folder
from xbuilder.runtimes.custom_operators import custom_operators
from xbuilder.runtimes.installed import installed_version

from ..catalogue.pattern_files import load_pattern_file
from ..trust.inputs.given_inputs import read_inputs
from ..trust.inputs.random_inputs import open_dimensions
from ..trust.sessions.runtime import structure_of
from .many.digests import digest_of_files, digest_of_values
from .many.places import Output, Source, data_names, local_file
from .optimize import optimize
from .result import OptimizedModel

#: the folder of the output that remembers what was done
RECORDS = ".xoptim"
OPTIMIZED, UP_TO_DATE, FAILED = "optimized", "up to date", "failed"


@dataclass(frozen=True)
class Job:
    """One model to optimize.

    :param source: the model
    :param output: the folder or the address it is written to
    :param options: arguments of :func:`xoptim.optimize`
    :param values: values of some inputs, `name=value`
    :param files: files of inputs
    :param loaded: files of patterns
    :param libraries: libraries of custom operators
    :param page: a page is written next to the model
    :param force: the model is optimized even if it is up to date
    """

    source: Source
    output: Output
    options: Mapping[str, Any] = field(default_factory=dict)
    values: Sequence[str] = ()
    files: Sequence[Path] = ()
    loaded: Sequence[Path] = ()
    libraries: Sequence[str] = ()
    page: bool = False
    force: bool = False

    @property
    def record(self) -> str:
        """The file of the output that remembers this job."""
        return f"{RECORDS}/{self.source.name}.json"

    @property
    def page_name(self) -> str:
        """The file of the page of the model, empty without one."""
        return f"{self.source.name}.html" if self.page else ""

    def row(self, state: str, **values: Any) -> dict[str, Any]:
        """A row of the report.

        :param state: the end of the job
        :param values: what is known of it
        """
        shown = "" if state == FAILED else self.output.shown(self.source.name)
        row = {"model": str(self.source), "name": self.source.name, "state": state, "output": shown}
        page = "" if state == FAILED else self.page_name
        return {**row, **dict.fromkeys(COLUMNS), "page": page, "warnings": [], **values}


#: what is known of an optimized model, None otherwise
COLUMNS = (
    "nodes_before", "nodes_after", "weight_bytes_before", "weight_bytes_after", "seconds",
    "max_rel", "max_abs", "never_ran", "ratio", "error", "kind",
)  # fmt: skip


def optimize_one(job: Job) -> dict[str, Any]:
    """Optimizes a model, unless its content, the options and its output did not change.

    :param job: the model and the options
    :return: a row of the report, a failure is one of them
    """
    try:
        with (
            warnings.catch_warnings(record=True) as said,
            temporary_folder(tempfile.gettempdir(), "xoptim") as folder,
            custom_operators(*job.libraries),
        ):
            row = _optimized(job, Path(folder))
            return {**row, "warnings": [*row["warnings"], *(str(w.message) for w in said)]}
    except Exception as e:
        expected = isinstance(e, (XoptimError, OSError, MemoryError))
        text = str(e) or type(e).__name__
        if isinstance(e, MemoryError):
            text = "not enough memory: more for each process, or fewer processes, gives it some"
        message = text if expected else f"unexpected {type(e).__name__}: {text.splitlines()[0]}"
        return job.row(FAILED, error=message, kind=type(e).__name__)


def _optimized(job: Job, folder: Path) -> dict[str, Any]:
    copied, written = folder / "read", folder / "written"
    copied.mkdir()
    source = local_file(job.source, copied)
    digest = _digest(job, source)
    known = {} if job.force else _known(job, digest)
    if known:
        return {**known, "state": UP_TO_DATE}
    for path in job.loaded:
        load_pattern_file(path)
    options = dict(job.options)
    if options.get("sizes"):
        dims = open_dimensions(structure_of(source))
        options["sizes"] = {n: size for n, size in options["sizes"].items() if n in dims}
    if job.values or job.files:
        options["inputs"] = read_inputs(structure_of(source), job.values, job.files)
    target = job.output.place(job.source.name, written)
    done = optimize(source, output=target, **options)
    made = [Path(row["path"]) for row in done.files]
    if job.page:
        page = job.output.place(job.page_name, written)
        done.report(page)
        made.insert(0, page)
    job.output.send(made, written)
    row = job.row(OPTIMIZED, **_facts(done))
    relative = target.parent
    sizes = {
        (Path(job.source.name).parent / p.relative_to(relative)).as_posix(): p.stat().st_size
        for p in made
    }
    if digest:
        content = {"digest": digest, "files": sizes, "row": row}
        job.output.write(job.record, json.dumps(content, indent=1, default=str).encode())
    return row


def _digest(job: Job, source: Path) -> str:
    """The digest of the content of the model, of the options and of the tools, empty if unknown."""
    options = digest_of_values([dict(job.options), list(job.values), bool(job.page)])
    if not options:
        return ""
    read = [source.parent / name for name in data_names(source)]
    given = [f for p in job.files for f in ([p] if p.is_file() else sorted(p.rglob("*.*")))]
    files = [
        source,
        *(p for p in read if p.is_file()),
        *given,
        *job.loaded,
        *map(Path, job.libraries),
    ]
    tools = [_version(), onnx_version, installed_version()]
    return digest_of_values([options, digest_of_files(files), tools])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("xoptim")
    except PackageNotFoundError:
        return ""


def _known(job: Job, digest: str) -> dict[str, Any]:
    """The row of this job if it was done with this digest and its files are still there."""
    content = job.output.read(job.record)
    if not content or not digest:
        return {}
    try:
        found = json.loads(content)
        same = found["digest"] == digest and all(
            job.output.size(name) == size for name, size in found["files"].items()
        )
        return dict(found["row"]) if same else {}
    except (ValueError, KeyError, TypeError, AttributeError):  # another file
        return {}


def _facts(done: OptimizedModel) -> dict[str, Any]:
    """The values of the report for an optimized model."""
    info = done.to_dict()
    compared = info["verification"] or {}
    names = ("nodes_before", "nodes_after", "weight_bytes_before", "weight_bytes_after", "seconds")
    return {
        **{name: info[name] for name in names},
        "max_rel": compared.get("max_rel"),
        "max_abs": compared.get("max_abs"),
        "never_ran": len(done.unverified) if done.verification is not None else None,
        "ratio": None if done.latency is None else done.latency[-1].ratio,
    }
