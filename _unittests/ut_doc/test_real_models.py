"""The models of two wheels of PyPI, through the script of the documentation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _script() -> ModuleType:
    path = ROOT / "_doc" / "examples" / "optimize_real_models.py"
    spec = importlib.util.spec_from_file_location("optimize_real_models", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()
MODELS = SCRIPT.find_models(str(ROOT / ".models"))


@pytest.mark.skipif(
    len(MODELS) < 4, reason="the wheels are fetched by `make test` or `make models`"
)
@pytest.mark.parametrize("selection", SCRIPT.SELECTIONS)
@pytest.mark.parametrize("label", ["detection", "recognition", "orientation", "silero_vad"])
def test_real_model(label: str, selection: str) -> None:
    row = SCRIPT.optimize(label, MODELS[label], selection, None)
    assert row["relative error"] <= SCRIPT.TOLERANCE
    assert row["nodes after"] < 0.6 * row["nodes before"]
    assert row["bytes after"] <= row["bytes before"]
