"""Facts that several files of the project state: versions, Pythons, tools, forms of the forge."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHON = re.compile(r"Programming Language :: Python :: (3\.\d+)")
GITHUB = ROOT / ".github"
YAML = [ROOT / ".pre-commit-config.yaml", *sorted(GITHUB.rglob("*.yml"))]


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def load(path: Path) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def pythons() -> list[str]:
    """The versions of Python that the classifiers name."""
    found = [PYTHON.fullmatch(text) for text in PROJECT["project"]["classifiers"]]
    return [match.group(1) for match in found if match]


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in load(path)["jobs"].values() for step in job["steps"]]


def test_version_is_written_once() -> None:
    written = PROJECT["project"]["version"]
    assert runpy.run_path(str(ROOT / "_doc" / "conf.py"))["release"] == written
    assert f'"{written}"' not in text_of("_doc/conf.py") + text_of("xoptim/cli/main.py")
    assert 'version("xoptim")' in text_of("xoptim/cli/main.py"), "what is installed"


def test_pythons_agree() -> None:
    """The oldest Python is the same everywhere, workflows run each of them."""
    oldest, *others = pythons()
    numbers = [int(name.removeprefix("3.")) for name in (oldest, *others)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert PROJECT["project"]["requires-python"] == f">={oldest}"
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert f"Python >= {oldest}," in text_of("Makefile")
    assert f"Python {oldest} or later" in text_of("README.rst")
    assert f"for Python {oldest} to {pythons()[-1]}." in text_of("CHANGELOGS.rst")
    jobs = load(GITHUB / "workflows" / "tests.yml")["jobs"]
    assert jobs["systems"]["strategy"]["matrix"]["python"] == pythons()
    rows = jobs["commands"]["strategy"]["matrix"]["include"]
    assert {row["python"] for row in rows} <= set(pythons())
    assert [row["python"] for row in rows if "oldest" in row["command"]] == [oldest]


def test_every_dependency_has_a_floor() -> None:
    """`make test-oldest` installs it; what is pinned is its own floor."""
    groups = [PROJECT["project"]["dependencies"]]
    groups += PROJECT["project"]["optional-dependencies"].values()
    wanted = [text for group in groups for text in group if not text.startswith("xoptim[")]
    floor = r"[\w-]+(>=|==)[\d.]+(; python_version < '[\d.]+')?"
    free = [text for text in wanted if not re.fullmatch(floor, text)]
    allowed = {"furo", "build", "twine"}
    assert len(wanted) > 10 and set(free) <= allowed


def test_the_tools_of_the_hooks_are_those_of_the_tests() -> None:
    pinned = [text for text in PROJECT["project"]["optional-dependencies"]["test"] if "==" in text]
    hooks = [hook for repo in load(YAML[0])["repos"] for hook in repo["hooks"]]
    used = [text for hook in hooks for text in hook.get("additional_dependencies", [])]
    assert len(used) == 2 and set(used) <= set(pinned)


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_yaml_is_valid(path: Path) -> None:
    assert isinstance(load(path), dict)


@pytest.mark.parametrize("path", sorted(GITHUB.glob("workflows/*.yml")), ids=lambda path: path.name)
def test_workflows(path: Path) -> None:
    """They may only read, unless a job says otherwise, and every action has a version."""
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow[True], "on is a boolean in YAML 1.1"
    for step in steps(path):
        assert ("run" in step) != ("uses" in step)
        assert "uses" not in step or re.search(r"@(v\d+|release/v\d+)$", step["uses"])


def test_links_to_other_sites_are_checked_every_week() -> None:
    """And only then: another site may not stop a change."""
    job = load(GITHUB / "workflows" / "tests.yml")["jobs"]["links"]
    assert job["if"] == "github.event_name == 'schedule'"
    assert any("make linkcheck " in step.get("run", "") for step in job["steps"])


def test_the_site_is_pushed_from_the_checkout() -> None:
    """Its worktrees may have no credentials, and a second run has nothing to commit."""
    steps_of = load(GITHUB / "workflows" / "publish.yml")["jobs"]["documentation"]["steps"]
    last = steps_of[-1]["run"]
    assert "cd " not in last and last.splitlines()[-1] == "git push origin gh-pages"
    assert "diff --cached --quiet ||" in last


def test_publishing_needs_no_secret() -> None:
    path = GITHUB / "workflows" / "publish.yml"
    jobs = load(path)["jobs"]
    assert jobs["pypi"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in path.read_text(encoding="utf-8")
    made = f"dist/{PROJECT['project']['name']}-${{GITHUB_REF_NAME#v}}.tar.gz"
    assert any(made in step.get("run", "") for step in jobs["build"]["steps"])


@pytest.mark.parametrize(
    "path", sorted(GITHUB.glob("ISSUE_TEMPLATE/[0-9]*.yml")), ids=lambda p: p.stem
)
def test_issue_forms(path: Path) -> None:
    form = load(path)
    assert form["name"] and form["description"] and form["labels"]
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    assert all(field["type"] in ("input", "textarea") for field in form["body"])
    assert all(field["attributes"]["label"] for field in form["body"])


def test_paths_of_the_guide_exist() -> None:
    """The files that AGENTS.md and the policies name."""
    for guide in ("AGENTS.md", ".github/SECURITY.md"):
        paths = re.findall(r"(?<![\w/])_?(?:doc|unittests)/[\w/.]+\b", text_of(guide))
        missing = [p for p in paths if not (ROOT / p).exists() and "ut_PACKAGE" not in p]
        assert paths and missing == []
