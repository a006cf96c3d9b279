"""The profile of the command: printed, written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from ut_xoptim.cli.command_line import TRANSPOSES, run

MODEL = TRANSPOSES


def test_profile_is_printed(model: Path, tmp_path: Path) -> None:
    told = run("optimize", model, tmp_path / "out.onnx", "--profile").stdout
    tree = told[told.index("optimize:") :].splitlines()
    assert tree[1].startswith("└── model: ") and "4 -> 1 nodes, 4 at most" in tree[1]
    assert any("patterns: " in line for line in tree)
    assert (tmp_path / "out.onnx").exists()


def test_nothing_is_printed_without_it(model: Path) -> None:
    assert "at most" not in run("optimize", model, "--dry-run").stdout


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("p.svg", "<svg "),
        ("p.html", "<!DOCTYPE html>"),
        ("p.txt", "optimize: "),
        ("p.csv", "path,depth,kind,name,calls,time"),
        ("p.json", "[\n"),
    ],
)
def test_profile_is_written(name: str, start: str, model: Path, tmp_path: Path) -> None:
    told = run("optimize", model, "--dry-run", "--profile-output", tmp_path / name).stdout
    assert "at most" not in told, "it is only written"
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert text.startswith(start)
    assert "TransposeTranspose" in text


def test_rows(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    info = json.loads(
        run("optimize", model, "--dry-run", "--json", "--profile-output", path).stdout
    )
    with path.open(encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert [r["path"] for r in rows] == [r["path"] for r in info["profile"]]
    (found,) = [r for r in info["profile"] if r["name"] == "TransposeTranspose"]
    assert found["applications"] == 1 and found["removed"] == 2
    assert json.loads(run("optimize", model, "--dry-run", "--json").stdout)["profile"] is None
