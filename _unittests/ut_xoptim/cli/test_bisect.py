"""``xoptim bisect``."""

from __future__ import annotations

import onnx
import onnx.parser
from ut_xoptim.cli.command_line import (
    functions,
    run,
)

from xbuilder.nested import inlining


def test_bisect_keeps_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(inlining, "GROWTH", 1)
    monkeypatch.setattr(inlining, "GROWTH_RATIO", 1)
    path = tmp_path / "many.onnx"
    onnx.save(functions(8, 2), path)
    assert "keep them with --keep-functions" in run("bisect", path, code=1).stderr
    assert "every rewrite is right" in run("bisect", path, "--keep-functions").output
