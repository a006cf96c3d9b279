"""Wrong arguments given to GraphBuilderPatternOptimization."""

from __future__ import annotations

from typing import Any

import pytest

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xoptim import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text

TEXT = "agraph (float[a] X) => (float[a] Y) { Y = Neg(X) }"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"builder": 3}, "builder expects GraphBuilder or Graph, not 3."),
        ({"builder": None}, "builder expects GraphBuilder or Graph, not None."),
        ({"features": 3}, "features expects list or tuple, not 3."),
        ({"dump_applied_patterns": 3}, "dump_applied_patterns expects a folder, not 3."),
        ({"processor": "TPU"}, "Unknown processor 'TPU', expected CPU, CUDA or both."),
        ({"processor": None}, "Unknown processor None, expected CPU, CUDA or both."),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    builder = GraphBuilder(model_from_text(TEXT))
    with pytest.raises(OptionError) as error:
        GraphBuilderPatternOptimization(**{"builder": builder, **options})
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["max_iter", "stop_after"])
def test_numbers_of_iterations(name: str) -> None:
    optimizer = GraphBuilderPatternOptimization(GraphBuilder(model_from_text(TEXT)))
    with pytest.raises(OptionError, match=f"{name} expects int, not None"):
        optimizer.optimize(**{name: None})
