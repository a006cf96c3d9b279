"""The examples that train models with onnxruntime."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

EXAMPLES = Path(__file__).resolve().parents[2] / "_doc" / "examples"


@pytest.fixture(autouse=True)
def _examples() -> Iterator[None]:
    import torch

    torch._dynamo.reset()
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


@pytest.mark.slow
def test_a_gpt2_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example: Any = importlib.import_module("plot_train_gpt2")
    eager, with_onnx = example.main(40, tmp_path)
    assert with_onnx[-1] < 0.6 * with_onnx[0]
    assert max(abs(a - b) for a, b in zip(eager, with_onnx, strict=True)) < 1e-3
    assert {"forward_0.onnx", "backward_0.onnx"} <= {p.name for p in tmp_path.iterdir()}
    assert "largest difference between the losses" in capsys.readouterr().out


@pytest.mark.slow
def test_graphs_of_training(tmp_path: Path) -> None:
    """Gradients are those of eager mode, the script checks them; fewer nodes stay."""
    example: Any = importlib.import_module("training_graphs")
    words = ["--models", "cnn", "--output", str(tmp_path)]
    rows = example.main(example.arguments_of(words))
    assert [r["graph"] for r in rows] == ["cnn_forward_0", "cnn_backward_0"]
    for row in rows:
        saved = onnx.load(tmp_path / f"{row['graph']}.onnx")
        assert len(saved.graph.node) == row["nodes"] > row["default"]
        assert row["default"] >= row["default+onnxruntime"]
