"""Models are written whole, or not at all."""

from __future__ import annotations

from ut_xoptim.cli.command_line import (
    TRANSPOSES,
    files,
    run,
)

MODEL = TRANSPOSES


def test_failure_while_writing_leaves_nothing(model, tmp_path, monkeypatch):
    import xoptim.cli.saving as module

    def fail(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(module, "save_model", fail)
    stats = tmp_path / "stats.csv"
    result = run("optimize", model, "-o", tmp_path / "out.onnx", "--stats", stats, code=1)
    assert "No space left" in result.stderr
    assert files(tmp_path) == {"model.onnx"}
