"""``xoptim config``."""

from __future__ import annotations

import json

import pytest
from ut_xoptim.cli.command_line import run


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "xoptim.toml"
    path.write_text("rtol = 1e-3\n[optimize]\nverify = true\n", encoding="utf-8")
    return path


def test_what_the_file_gives(path):
    found = json.loads(run("config", "--json").stdout)
    assert found["file"] == str(path)
    rows = {(row["command"], row["option"]): row for row in found["options"]}
    assert rows["optimize", "--verify"]["value"] is True
    assert rows["bisect", "--rtol"]["value"] == "0.001" and ("info", "--rtol") not in rows
    assert "optimize.verify" in run("config").output


def test_every_option_of_a_command(path):
    rows = json.loads(run("config", "optimize", "--json").stdout)["options"]
    values = {row["option"]: (row["value"], row["from"]) for row in rows}
    assert values["--rtol"] == ("0.001", "rtol") and values["--processor"] == ("CPU", "")
    assert values["--dim"] == ("", "") and len(values) > 30


def test_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no xoptim.toml, no [tool.xoptim]" in run("config").output
    assert json.loads(run("config", "--json").stdout) == {"ok": True, "file": None, "options": []}
    assert "no command 'optimise'" in run("config", "optimise", code=2).output
