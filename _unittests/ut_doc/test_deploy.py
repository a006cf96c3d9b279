"""The files of ``_doc/deploy``: the action, the hook, the image; the archives on a bare machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "_doc" / "deploy"
MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) { t = Identity(x) y = Neg(t) }"""


@pytest.fixture
def models(tmp_path):
    """A folder of one model, and the command on the path."""
    folder = tmp_path / "repository" / "models"
    folder.mkdir(parents=True)
    onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in {"xoptim": '-m xoptim "$@"', "python": '"$@"'}.items():
        path = tools / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}\n', encoding="utf-8")
        path.chmod(0o755)
    return folder


def environment(models, **variables):
    path = f"{models.parents[1] / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **variables}


def check(folder, tmp_path, **inputs):
    """Runs the last step of the action."""
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((DEPLOY / "check_models" / "action.yml").read_text(encoding="utf-8"))
    given = {name: value["default"] for name, value in action["inputs"].items()} | inputs
    step = action["runs"]["steps"][-1]
    names = {key: re.search(r"inputs\.([\w-]+)", text)[1] for key, text in step["env"].items()}
    variables = {key: given[name] for key, name in names.items()}
    summary = tmp_path / "summary.md"
    variables |= {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(summary)}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder.parent,
        env=environment(folder, **variables),
        capture_output=True,
        text=True,
        check=False,
    )
    return done, summary.read_text(encoding="utf-8") if summary.exists() else ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_action(models, tmp_path):
    done, summary = check(models, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "| models/model.onnx | 2 | 1 | 0 |  |" in summary
    done, summary = check(models, tmp_path, **{"max-nodes": "1"})
    assert done.returncode == 1 and "2 nodes are over the limit of 1" in summary
    assert "::error::models/model.onnx: 2 nodes" in done.stderr
    (models / "wrong.onnx").write_text("no model")
    done, summary = check(models, tmp_path)
    assert done.returncode == 1 and "looks like a text file" in summary
    done, summary = check(models, tmp_path, models="nothing")
    assert done.returncode == 2 and "does not exist" in done.stderr


def test_the_hook(models):
    yaml = pytest.importorskip("yaml")
    (repository,) = yaml.safe_load((DEPLOY / "pre-commit-config.yaml").read_text("utf-8"))["repos"]
    (hook,) = repository["hooks"]
    assert re.search(hook["files"], "models/model.onnx") and not hook["pass_filenames"]
    (models.parent / ".git").mkdir()
    for state in ("optimized", "up to date"):
        done = subprocess.run(
            hook["entry"].split(),
            cwd=models.parent,
            env=environment(models),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 and f"1 {state}" in done.stdout, done.stderr


def test_the_image_has_what_the_wheel_needs():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = {
        name for line in re.findall(r"^COPY (.+) /source", text, re.M) for name in line.split()
    }
    assert {"pyproject.toml", "README.rst", "LICENSE", "xbuilder", "xoptim"} <= copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["whl", "tar.gz"])
def test_archives_on_a_bare_machine(models, tmp_path, kind):
    """The wheel and the sources install in a new environment, which optimizes a model."""

    def call(*words: object) -> str:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [str(word) for word in words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    call(sys.executable, "-m", "venv", tmp_path / "tools")
    call(tmp_path / "tools/bin/python", *pip, "build")
    option = "--wheel" if kind == "whl" else "--sdist"
    call(tmp_path / "tools/bin/python", "-m", "build", option, "-o", tmp_path / "dist", ROOT)
    (archive,) = (tmp_path / "dist").glob(f"xoptim-*.{kind}")
    call(sys.executable, "-m", "venv", tmp_path / "bare")
    call(tmp_path / "bare/bin/python", *pip, archive)
    command = tmp_path / "bare/bin/xoptim"
    assert call(command, "--version").startswith("xoptim, version ")
    assert "1 optimized" in call(
        command, "batch", models, "--output-dir", tmp_path / "o", "--verify"
    )
    assert len(onnx.load(tmp_path / "o" / "model.onnx").graph.node) == 1
