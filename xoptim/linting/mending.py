"""The mending of a model, tried in memory before it is promised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onnx import ModelProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.features import Feature
from xbuilder.nodes.record import NodeRecord

from ..engine.engine import Engine
from ..engine.observers import Observer
from ..engine.outcomes import Application
from .findings import CODES, NO_KERNEL, Finding, node_title


def mending_options(
    codes: Sequence[str], processor: str = "CPU", features: Iterable[Feature] = ()
) -> OptimizationOptions:
    """The options that mend some kinds of findings and do nothing else than cleaning.

    :param codes: keys of :data:`xoptim.linting.findings.CODES`
    :param processor: processors the model is meant for
    :param features: observers of the rewrites
    """
    patterns = [p for code in codes for p in CODES[code].patterns]
    return OptimizationOptions(
        patterns=patterns or None, processor=processor, features=list(features)
    )


def mending_builder(
    model: str | ModelProto, options: OptimizationOptions, allowed_roots: Sequence[Any] = ()
) -> GraphBuilder:
    """The builder that mends a model when it is exported.

    :param model: a file or a model
    :param options: see :func:`mending_options`
    :param allowed_roots: folders the weights may be in, beside the model's
    """
    return GraphBuilder(
        model,
        infer_shapes_options=True,
        allowed_roots=allowed_roots,
        optimization_options=options,
    )


@dataclass
class MendedNodes(Observer):
    """Records the nodes that rewrites replace, and the reasons of those that are refused.

    :param origins: title of a node written -> titles of the nodes of the file it replaces
    :param refusals: title of a node -> reasons
    """

    origins: dict[str, frozenset[str]] = field(default_factory=dict)
    refusals: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Records a rewrite."""
        if done.refusal:
            text = f"{done.match.pattern.name} leaves it: {done.refusal}"
            for node in done.match.nodes:
                if node is not None and text not in self.refusals[node_title(node)]:
                    self.refusals[node_title(node)].append(text)
            return
        before = frozenset(o for r in done.removed for o in self.origins_of(_title(engine, r)))
        for record in done.written():
            self.origins[_title(engine, record)] = before

    def origins_of(self, title: str) -> frozenset[str]:
        """The nodes of the file that a node replaces, itself if it is one of them."""
        return self.origins.get(title, frozenset({title}))


def _title(engine: Engine, record: NodeRecord) -> str:
    return node_title(engine.store.proto(record))


def confirmed(
    found: Sequence[Finding], left: Sequence[Finding] | None, nodes: MendedNodes
) -> Iterator[Finding]:
    """Marks the findings that the mending mends. A node without kernel that it leaves, or replaces
    by nodes that have none, has the code of those that nothing mends, and the reasons.

    :param found: the findings about the model
    :param left: those about the mended model, None if it cannot be mended
    :param nodes: what the rewrites did
    """
    kept = {(f.code, f.where, f.message) for f in left or ()}
    before = {f.where for f in found}
    failing = {f.where for f in left or () if f.code in NO_KERNEL}
    blamed = {o for where in failing for o in nodes.origins_of(where)}
    unknown = any(not before & nodes.origins_of(where) for where in failing)
    for finding in found:
        if not CODES[finding.code].is_mended:
            yield finding
            continue
        stays = left is None or (finding.code, finding.where, finding.message) in kept
        if finding.code in NO_KERNEL:
            stays |= unknown or finding.where in blamed
        if finding.code != "X006":
            yield replace(finding, fixable=not stays)
        elif stays:
            reasons = nodes.refusals.get(finding.where, ())
            advice = "; ".join(filter(None, [finding.advice, *reasons]))
            yield replace(finding, code="X002", advice=advice)
        else:
            advice = "a rewrite writes operators that have one"
            yield replace(finding, advice=advice, fixable=True)
