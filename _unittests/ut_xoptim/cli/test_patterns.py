"""``xoptim patterns``: lists, queries, tags, summary."""

from __future__ import annotations

import json

import onnx
import pytest
from click.shell_completion import ShellComplete
from ut_xoptim.cli.command_line import TRANSPOSES, run

from xoptim import get_pattern_list
from xoptim.catalogue import registry
from xoptim.catalogue.phases import PHASES
from xoptim.catalogue.registry import pattern_database
from xoptim.cli.main import main


def listed(*arguments: str) -> list[str]:
    return [row["name"] for row in json.loads(run("patterns", "--json", *arguments).output)]


@pytest.mark.parametrize(
    ("arguments", "selection"),
    [
        (["default&merge"], "default&merge"),
        (["--query", "-Cast &canonicalize +default"], "default&canonicalize-Cast"),
        (["--query", "default"], "default"),
        (["default", "--before", "1"], "default&merge"),
        (["default-Cast+CastCast", "--before", "1"], "default&merge"),
        (["NotNot-Cast+merge", "--before", "0.5"], "merge"),
        (["none"], "none"),
    ],
)
def test_queries(arguments: list[str], selection: str) -> None:
    assert listed(*arguments) == [p.name for p in get_pattern_list(selection)]


def test_phase_of_each_pattern() -> None:
    (row,) = json.loads(run("patterns", "--json", "CastCast").output)
    assert row["phase"] == "canonicalize" and row["sets"] == ["default"]
    line = run("patterns", "CastCast").output.splitlines()[-1]
    words = line.replace("│", " ").split()
    assert words[:4] == ["CastCast", "default", "canonicalize", "exact"]


def test_no_pattern() -> None:
    assert run("patterns", "none").output.strip().startswith("0 patterns\n")


def test_tags() -> None:
    rows = json.loads(run("patterns", "--json", "--tags").output)
    assert set(PHASES) < set(rows) and "SameChildren" in rows["merge"]
    text = run("patterns", "--tags").output
    assert all(phase.what in text for phase in PHASES.values())
    rows = json.loads(run("patterns", "--json", "--tags", "default&merge").output)
    assert set(rows) == {"default", "exact", "merge"}


def test_summary() -> None:
    lines = run("patterns", "--summary", "default&merge").output.splitlines()
    names = [line.replace("│", " ").split() for line in lines if line.strip()][3:]
    merged = len(pattern_database().select("default&merge"))
    assert names[0][:3] == ["0", "merge", f"({merged})"] and names[1][0] == "SameChildren"
    assert [words[1:3] for words in names[merged + 1 :]] == [
        [phase, "(0)"] for phase in list(PHASES)[1:]
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["default", "--query", "default"], "two ways to say the same thing"),
        (["--query", " "], "the selection of patterns is empty"),
        (["--query", "defaul"], "Did you mean default"),
        (["--before", "x"], "A position is a number"),
    ],
)
def test_misused(arguments: list[str], message: str) -> None:
    done = run("patterns", *arguments, code=2)
    assert message in done.output


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A file of patterns, forgotten after the test."""
    monkeypatch.setattr(registry, "PATTERNS", registry.pattern_database().copy())
    path = tmp_path / "mine.py"
    path.write_text(
        "from xoptim import rewrite\n"
        "@rewrite(root='Neg')\n"
        "def loaded_neg(g, node):\n"
        "    return g.op.Abs(node.input[0])\n"
    )
    return path


def test_patterns_of_a_file(loaded, tmp_path):
    rows = json.loads(run("patterns", "LoadedNeg", "--load", loaded, "--json").stdout)
    assert [r["name"] for r in rows] == ["LoadedNeg"]
    model = tmp_path / "model.onnx"
    model.write_bytes(onnx.parser.parse_model(TRANSPOSES).SerializeToString())
    how = (model, "--load", loaded, "-p", "LoadedNeg")
    run("optimize", *how, "-o", tmp_path / "out.onnx")
    types = [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node]
    assert types == ["Transpose", "Transpose", "Abs"]
    assert "LoadedNeg" in run("bisect", *how, code=1).output
    answers = run("explain", model, "LoadedNeg", "--load", loaded).output
    assert "MatchResult: LoadedNeg replaces" in answers


def test_a_file_of_patterns_that_fails(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("import nothing_of_this_name")
    assert "ModuleNotFoundError" in run("patterns", "--load", path, code=2).stderr
    assert "does not exist" in run("patterns", "--load", tmp_path / "no.py", code=2).stderr


def test_one_pattern():
    assert run("patterns", "CastCast").output.strip().startswith("1 pattern\n")


def test_patterns_take_one_line_each():
    """So that grep works."""
    lines = [line for line in run("patterns").output.splitlines() if line.strip()]
    assert len(lines) == 3 + len(registry.all_patterns())


def test_globs_of_names() -> None:
    found = listed("softmax*")
    assert "SoftmaxGuard" in found and all(name.startswith("Softmax") for name in found)
    without = listed("default-Cast*")
    assert set(listed("default")) - set(without) == {
        n for n in listed("default") if n[:4] == "Cast"
    }
    assert "'Zork*': no pattern has such a name" in run("patterns", "Zork*", code=2).output
    assert "no glob comes after '&'" in run("patterns", "default&Cast*", code=2).output


def test_patterns_that_look_at_an_operator() -> None:
    assert listed("Softmax*", "--op", "MatMul") == ["SoftmaxGuard"]
    found = listed("--op", "Gelu")
    assert {"BiasGelu", "FastGelu"} < set(found) and "CastCast" not in found
    message = run("patterns", "CastCast", "--op", "Csat", code=2).output
    assert "None of 1 pattern looks at 'Csat', did you mean Cast?" in message


def test_the_table_is_sorted() -> None:
    lines = run("patterns", "default").output.splitlines()[3:]
    names = [line.split()[0] for line in lines if line.strip()]
    assert len(names) > 100 and names[1:] == sorted(names[1:])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("patterns CastC", "CastCast"),
        ("optimize -p default+onnxr", "default+onnxruntime"),
        ("tune model.onnx --base default-castcast", "default-CastCast"),
        ("bat", "batch"),
    ],
)
def test_a_shell_completes_names(words: str, expected: str) -> None:
    complete = ShellComplete(main, {}, "xoptim", "_XOPTIM_COMPLETE")
    *before, last = words.split()
    assert expected in [item.value for item in complete.get_completions(before, last)]
