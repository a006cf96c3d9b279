"""The traces of an optimization: the graph it leaves, the origin of the nodes, some rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import ModelProto

from xbuilder import GraphBuilder, OptimizationOptions

if TYPE_CHECKING:
    from ..reports.page.applications import RewriteExamples
    from ..toolkit.features import Provenance


class Traces(NamedTuple):
    """The knowledge an optimization leaves, which no file holds.

    :param builder: the optimized graph, with the types and shapes of its results
    :param provenance: the origin of each node
    :param examples: the first application of each rewrite
    :param source: the file of the model, or the model
    :param data_roots: folders its weights may be in, beside its own
    """

    builder: GraphBuilder
    provenance: Provenance
    examples: RewriteExamples
    source: Any
    data_roots: Sequence[Path] = ()

    def read_again(self, before: ModelProto) -> GraphBuilder:
        """The graph before the optimization, with the types and shapes of its results.

        :param before: the model that was read
        """
        return GraphBuilder(
            before,
            infer_shapes_options=True,
            optimization_options=OptimizationOptions(patterns=None),
            base_dir=str(self.source.parent) if isinstance(self.source, Path) else None,
            allowed_roots=self.data_roots,
        )
