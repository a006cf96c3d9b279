"""A graph with the inputs and constants that the readers are asked about."""

from __future__ import annotations

from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import optimizer_of


def optimizer(body: str) -> GraphBuilderPatternOptimization:
    """An optimizer on these nodes, from `X`, `Z`, `U` and constants to `Y`."""
    return optimizer_of(f"""agraph (float[a, 4] X, float[a, 4] Z, float U) => (float[a, 4] Y) <
        float two = {{2}}, float[1] one1 = {{1}}, float[1, 1, 1] deep = {{2}},
        float[4] w = {{1, 2, 3, 4}}> {{ {body} }}""")
