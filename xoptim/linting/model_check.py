"""Checks a model, and tries what mends it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto

from xbuilder import GraphBuilder
from xbuilder.errors import InvalidModelError, PatternError
from xbuilder.files.model_container import ModelContainer
from xbuilder.graph.graph import Graph
from xbuilder.nested.inlining import inline_functions
from xbuilder.runtimes.processors import processors_of

from . import definition_checks, file_checks, node_checks, unknown_types
from .findings import CHECKS, CODES, SEVERITIES, CheckedModel, Finding
from .node_checks import unlisted_kernels

#: modules whose checks are run, in this order
CHECK_MODULES = (file_checks, unknown_types, definition_checks, node_checks)


#: bytes from which inference does not read a weight of the mended model
_LARGE = 1 << 20


@dataclass(frozen=True)
class CheckReport:
    """The findings about a model.

    :param findings: worst first
    :param nodes: number of nodes that were looked at, bodies included
    :param skipped: what was not checked, and why

    Example::

        >>> from xoptim.testing import model_from_text
        >>> text = "agraph (float[n] x) => (float[n] y) <float[1] w = {1}> { y = Abs(x) }"
        >>> report = check_model(model_from_text(text))
        >>> report.ok, report.fixable, report.findings[0].where
        (True, ('X106',), "tensor 'w'")
    """

    findings: tuple[Finding, ...]
    nodes: int
    skipped: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(f.severity == "error" for f in self.findings)

    @property
    def fixable(self) -> tuple[str, ...]:
        """The codes of the findings that ``--fix`` mends."""
        return tuple(sorted({f.code for f in self.findings if f.fixable}))

    def counts(self) -> dict[str, int]:
        """The number of findings of each severity."""
        found = Counter(f.severity for f in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    def to_rows(self) -> list[dict[str, Any]]:
        """The findings as dictionaries, for `pandas.DataFrame`."""
        return [f.to_row() for f in self.findings]


def check_model(
    model: str | ModelProto, processor: str = "CPU", allowed_roots: Sequence[Any] = ()
) -> CheckReport:
    """Looks for what will not run on a processor and what a reader would not expect.

    :param model: a file or a model
    :param processor: processors the model is meant for, such as `"CPU,CUDA"`
    :param allowed_roots: folders the weights may be in, beside the model's
    :return: the findings, see :data:`xoptim.linting.findings.CODES`
    :raises InvalidModelError: the file is not one of a model
    :raises OptionError: a processor is not known

    ::

        report = check_model("model.onnx")
        print(report.ok, [f.message for f in report.findings])
    """
    processors = processors_of(processor)
    checked, skipped = _imported(model, processors, allowed_roots)
    found = [] if checked.graph is not None else [Finding("X000", "", skipped[0])]
    if checked.graph is None:
        skipped[0] = "the nodes, since the model cannot be imported"
    found.extend(finding for look in CHECKS for finding in look(checked))
    if checked.graph is not None:
        found = _tried(found, model, processor, allowed_roots)
    skipped.extend(unlisted_kernels(checked))
    found.sort(key=lambda f: (SEVERITIES.index(f.severity), f.code))
    return CheckReport(tuple(found), len(checked.nodes), tuple(skipped))


def _imported(
    model: str | ModelProto | ModelContainer,
    processors: tuple[str, ...],
    allowed_roots: Sequence[Any] = (),
) -> tuple[CheckedModel, list[str]]:
    """A model with its types and shapes, functions inlined, and what was skipped; without a graph
    and with the reason if it is refused."""
    path = model if isinstance(model, str) else None
    if isinstance(model, ModelContainer):
        container, model = model, model.proto
    elif isinstance(model, ModelProto):
        container = ModelContainer(model)
    else:
        container = ModelContainer.load(model, allowed_roots)
    graph: Graph | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            graph = GraphBuilder(
                model, infer_shapes_options=True, allowed_roots=allowed_roots
            ).graph
            left: Counter[str] = Counter()
            inline_functions(graph, left=left)
            skipped = [f"{n} calls of functions: {reason}" for reason, n in left.items()]
        except InvalidModelError as e:
            graph, skipped = None, [str(e)]
    given = tuple(dict.fromkeys(str(w.message) for w in caught))
    return CheckedModel(container, graph, processors, path, given), skipped


def _tried(
    found: list[Finding], model: str | ModelProto, processor: str, allowed_roots: Sequence[Any]
) -> list[Finding]:
    """The findings, marked if the mending of the model mends them."""
    codes = sorted({f.code for f in found if CODES[f.code].is_mended})
    if not codes:
        return found
    # what rewrites a model is not imported for one that is only read
    from .mending import MendedNodes, confirmed, mending_builder, mending_options

    nodes = MendedNodes()
    options = mending_options(codes, processor, [nodes])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            container = mending_builder(model, options, allowed_roots).to_onnx(
                large_model=True, inline=False, external_threshold=_LARGE
            )
        except PatternError:
            return list(confirmed(found, None, nodes))
    mended, _ = _imported(container, processors_of(processor))
    looks = (look for look in CHECKS if look is not file_checks.checker)
    return list(confirmed(found, [f for look in looks for f in look(mended)], nodes))
