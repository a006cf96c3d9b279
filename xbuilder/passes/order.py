"""The pass that orders the nodes as the option `order` selects."""

from __future__ import annotations

import random

from ..graph.graph import Graph
from ..options import OrderAlgorithm
from .registry import register_count

_SEED = 12345


@register_count("order")
def order(graph: Graph) -> int:
    """Sorts the nodes as the option `order` selects. Cost: O(N log N).

    :return: number of nodes that moved
    """
    algorithm = graph.scope.options.order
    store = graph.store
    before = list(store.nodes)
    if algorithm == OrderAlgorithm.NONE:
        return 0
    if algorithm == OrderAlgorithm.RANDOM:
        generator = random.Random(_SEED)
        store.sort({record: generator.randrange(1 << 30) for record in before})
    else:
        shapes = {record: -1 for record in before if record.op_type in ("Shape", "Size")}
        if not shapes:
            return 0
        store.sort(shapes)
    return sum(a is not b for a, b in zip(before, store.nodes, strict=True))
