"""Options in ``xoptim.toml`` and in ``pyproject.toml``."""

from __future__ import annotations

import json

import pytest
from ut_xoptim.cli.command_line import TRANSPOSES, run

from xbuilder.errors import OptionError
from xoptim.cli.main import main
from xoptim.cli.terminal.settings import find_settings, read_settings

MODEL = TRANSPOSES


def write(folder, text, name="xoptim.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_closest_file(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    project = write(tmp_path, "[tool.xoptim]\nverify = true\n", "pyproject.toml")
    write(deep, "[tool.other]\nx = 1\n", "pyproject.toml")
    assert find_settings(deep) == project
    write(deep, "not toml = = for another tool", "pyproject.toml")
    assert find_settings(deep) == project
    own = write(tmp_path / "a", "")
    assert find_settings(deep) == own


def test_values(tmp_path):
    """Tables are for commands, other keys for every command that has the option."""
    path = write(
        tmp_path,
        """patterns = "default+onnxruntime"
        dim = {batch = 2, "x[0]" = 3}
        [optimize]
        rtol = 1e-3
        verify = true
        dim = "seq=4"
        keep-outputs = ["a", "b"]
        data-root = "weights"
        [check]
        log = "log.txt"
        """,
    )
    found = read_settings(path, main)
    assert found.values["optimize"] == {
        "patterns": "default+onnxruntime",
        "sizes": ["seq=4"],
        "rtol": "0.001",
        "verify": True,
        "keep_outputs": "a,b",
        "data_roots": [str(tmp_path / "weights")],
    }
    assert found.values["verify"] == {"sizes": ["batch=2", "x[0]=3"]}
    assert read_settings(write(tmp_path, "[patterns]\nsummary = true"), main).values == {
        "patterns": {"what": "summary"}
    }
    assert found.values["check"]["log"] == str(tmp_path / "log.txt")
    assert found.keys["optimize", "rtol"] == "optimize.rtol"
    assert found.keys["bisect", "patterns"] == "patterns"


@pytest.mark.parametrize(
    "text,message",
    [
        ("paterns = 'default'", "'paterns' of .* is no option and no command, did you mean pat"),
        ("[optimise]\nverify = true", "'optimise' of .* did you mean optimize"),
        (
            "[optimize]\nverfy = true",
            "'verfy' of .* no option of xoptim optimize, did you mean ver",
        ),
        ("[verify]\npatterns = 'none'", "'patterns' of .* no option of xoptim verify"),
        ("[optimize]\nverify = 1", "'optimize.verify' of .* is 1, true or false is expected"),
        ("rtol = ", "cannot be read: Invalid value"),
    ],
)
def test_errors_name_the_file_and_the_key(tmp_path, text, message):
    with pytest.raises(OptionError, match=message):
        read_settings(write(tmp_path, text), main)


def test_the_command_reads_them(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "dim = {batch = 2, seq = 3}\n[optimize]\nverify = true\n")
    words = ["optimize", model, "--dry-run", "--json"]
    assert json.loads(run(*words).stdout)["verification"]["sizes"] == {"batch": 2, "seq": 3}
    found = json.loads(run(*words, "--dim", "batch=5").stdout)
    assert found["verification"]["sizes"]["batch"] == 5, "the command line comes first"
    assert json.loads(run("--no-config", *words).stdout)["verification"] is None
    other = write(tmp_path, "[optimize]\nmax-iter = 1\n", "other.toml")
    assert json.loads(run("--config", other, *words).stdout)["verification"] is None


@pytest.mark.parametrize(
    "text,place",
    [
        ("rtol = 'a'", "(rtol of "),
        ("[optimize]\ndim = ['batch']", "(optimize.dim of "),
        ("[optimize]\nexternal = 'here'", "(optimize.external of "),
    ],
)
def test_a_wrong_value(model, tmp_path, monkeypatch, text, place):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, text)
    result = run("optimize", model, "--dry-run", "--json", code=2)
    assert f"{place}{path})" in json.loads(result.stdout)["error"]
    message = run("optimize", model, "--dry-run", "--rtol", "b", "--external", "there", code=2)
    assert "Invalid value" in message.stderr
