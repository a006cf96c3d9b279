"""The change log, and the fragments of the next version."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CHANGES = PROJECT["tool"]["towncrier"]
LOG = (ROOT / CHANGES["filename"]).read_text(encoding="utf-8")
VERSION = re.compile(r"^(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)\n\++$", re.M)


def test_last_version_is_that_of_the_project():
    versions = VERSION.findall(LOG)
    assert versions[0][0] == PROJECT["project"]["version"]
    dates = [date for _, date in versions]
    assert dates == sorted(dates, reverse=True)


def test_a_version_is_short():
    """It says the things a user can do; the catalogue describes the rewrites."""
    for text in VERSION.split(LOG)[3::3]:
        assert 5 < len(text.splitlines()) < 200


def test_fragments_have_a_kind():
    kinds = {kind["directory"] for kind in CHANGES["type"]}
    for path in (ROOT / CHANGES["directory"]).glob("[!.]*"):
        name, kind, end = path.name.split(".")
        assert re.fullmatch(r"\d+|\+[\w-]+", name), path
        assert kind in kinds and end == "rst", path
        assert path.read_text(encoding="utf-8").strip(), path


def test_fragments_become_a_version(tmp_path):
    """The command of `make changes`, in a copy."""
    pytest.importorskip("towncrier")
    folder = tmp_path / CHANGES["directory"]
    folder.mkdir(parents=True)
    (folder / "41.added.rst").write_text("``xoptim print`` shows the shapes.", encoding="utf-8")
    (folder / "+odd.fixed.rst").write_text("A model of one node.", encoding="utf-8")
    for name in ("pyproject.toml", CHANGES["filename"]):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "99.0.0"]
    subprocess.run([*command, "--date", "2030-01-31"], cwd=tmp_path, check=True)
    log = (tmp_path / CHANGES["filename"]).read_text(encoding="utf-8")
    assert VERSION.findall(log)[0] == ("99.0.0", "2030-01-31")
    new = log.partition("\n99.0.0 ")[2].partition(f"\n{PROJECT['project']['version']} ")[0]
    assert re.findall(r"^(\w+)\n-+$", new, re.M) == ["Added", "Fixed"]
    assert "\n- ``xoptim print`` shows the shapes. (#41)\n" in new
    assert log.endswith(LOG.partition(CHANGES["start_string"])[2])
