"""Models for patterns written as two graphs, or given by two models."""

from __future__ import annotations

import onnx
from ut_xoptim.unchecked import optimize_toys

from xoptim import EasyPatternOptimization
from xoptim.testing import model_from_text


def graph(
    body: str, inputs: str = "float[a, 4] X, float[a, 4] Z", outputs: str = "", inits: str = ""
) -> str:
    """A model that computes Y from X and Z, and some constants."""
    return f"""agraph ({inputs}) => (float[a, 4] Y{outputs}) <
        float one = {{1}}, float[1] ones = {{1}}, float two = {{2}}{inits}> {{ {body} }}"""


def check_pattern_of(text: str, pattern: EasyPatternOptimization) -> onnx.ModelProto:
    """The pattern applies once."""
    model, rows, _ = optimize_toys(model_from_text(text), [pattern])
    assert sum(r.get("instances", 0) for r in rows if r["pattern"].startswith("apply_")) == 1
    return model
