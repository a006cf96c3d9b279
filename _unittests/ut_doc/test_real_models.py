"""The models of two wheels of PyPI, through the script of the documentation."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import onnx
import pytest

from xoptim.trust.verification import verify_models

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
#: what the table of README calls them
LABELS = {
    "detection": "text detection",
    "recognition": "text recognition",
    "orientation": "text orientation",
    "silero_vad": "voice detection",
}


def nodes_in_readme(label: str) -> list[int]:
    """The row of a model: before, then after each selection."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    row = re.search(rf"^{LABELS[label]} +(\d+) +(\d+) +(\d+)$", text, re.M)
    assert row is not None, label
    return [int(number) for number in row.groups()]


@pytest.mark.skipif(
    len(MODELS) < 4, reason="the wheels are fetched by `make test` or `make models`"
)
@pytest.mark.parametrize("selection", SCRIPT.SELECTIONS)
@pytest.mark.parametrize("label", LABELS)
def test_real_model(label: str, selection: str) -> None:
    row = SCRIPT.optimize(label, MODELS[label], selection, None)
    assert row["refused"] == ""
    assert row["nodes after"] < 0.62 * row["nodes before"], "Constant nodes are not counted"
    assert row["bytes after"] <= row["bytes before"]
    before, *after = nodes_in_readme(label)
    promised = after[SCRIPT.SELECTIONS.index(selection)]
    assert row["nodes before"] == before
    assert row["nodes after"] <= promised, "the README promises more than what is done"


@pytest.mark.skipif(
    len(MODELS) < 4, reason="the wheels are fetched by `make test` or `make models`"
)
def test_the_detection_of_text_is_verified_whatever_the_seed(tmp_path: Path) -> None:
    """Its probabilities are near 0 on noise, where Sigmoid is less precise than the tolerance."""
    path = MODELS["detection"]
    SCRIPT.optimize("detection", path, "default", tmp_path)
    after = tmp_path / "detection.default.onnx"
    reports = [verify_models(path, after, seed=seed) for seed in range(10)]
    assert all(report.ok for report in reports), [report.reason for report in reports]
    wrong = onnx.load(after)
    for node in wrong.graph.node:
        node.op_type = {"Relu": "Abs"}.get(node.op_type, node.op_type)
    assert not any(verify_models(path, wrong, seed=seed).ok for seed in range(3))
