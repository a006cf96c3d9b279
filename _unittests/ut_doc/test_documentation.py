"""The documentation tells the truth: its code runs, its links resolve, it builds."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from architecture_rules import ROOMS, room_of

from xoptim.catalogue.registry import all_patterns
from xoptim.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
FRAGMENTS = ROOT / "_doc" / "changes"
PAGES = [ROOT / "README.rst", *sorted((ROOT / "_doc").rglob("*.rst"))]
PAGES = [page for page in PAGES if page.parent != FRAGMENTS and "auto_" not in str(page)]
TUTORIALS = sorted((ROOT / "_doc" / "tutorials").rglob("plot_*.py"))
#: subcommands that a page of the contributors adds
ADDED = {"opsets"}


def python_blocks(text: str) -> list[str]:
    """Returns the blocks ``.. code-block:: python`` of a page, dedented."""
    blocks = []
    for found in re.finditer(r"^( *)\.\. code-block:: python\n((?:\1 +.*\n|\s*\n)+)", text, re.M):
        block = textwrap.dedent(found.group(2)).strip("\n") + "\n"
        if not block.startswith(":caption:"):  # a file of the project
            blocks.append(block)
    return blocks


def with_code() -> list[Path]:
    return [p for p in PAGES if python_blocks(p.read_text(encoding="utf-8"))]


def test_blocks_are_found():
    text = "a\n\n.. code-block:: python\n\n    x = 1\n\n    y = 2\n\nend\n"
    assert python_blocks(text) == ["x = 1\n\ny = 2\n"]
    assert ROOT / "README.rst" in with_code()


@pytest.mark.parametrize("page", with_code(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_code_runs(page, tmp_path, monkeypatch):
    """The blocks of a page run one after the other, as a reader would paste them."""
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(page.read_text(encoding="utf-8"))
    if any(re.search(r"^(import|from) torch", block, re.M) for block in blocks):
        pytest.importorskip("torch")
    namespace: dict = {"__name__": "page"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)


def commands_of(text: str) -> Iterator[list[str]]:
    """The words of each command of a page, in a sentence or in a block."""
    inline = re.findall(r"``(xoptim [^`]+)``", text)
    blocks = re.findall(r"^ {4,}(xoptim -.*|xoptim .*--.*|xoptim \S+\.onnx .*)$", text, re.M)
    for command in (*inline, *blocks):
        one = " ".join(re.sub(r"\n\s*(# )?", " ", command).split()).split(" | ")[0]
        words = shlex.split(one, comments=True)[1:]
        if words and words[0] not in ADDED:
            yield words


def unknown_options(words: list[str]) -> list[str]:
    """The options of a command that it does not have."""
    context = click.Context(main)
    name = next((w for w in words if not w.startswith("-")), "")
    command = main.get_command(context, name) or main.get_command(context, "optimize")
    assert command is not None
    known = {o for p in (*command.params, *main.params) for o in (*p.opts, *p.secondary_opts)}
    options = [w.split("=")[0] for w in words if re.match("--?[a-z]", w)]
    return [o for o in options if o not in known | {"--help"}]


def test_commands_are_found() -> None:
    text = "``xoptim optimize\n    a.onnx --verify`` and\n\n::\n\n    xoptim a.onnx --fast | jq .\n"
    assert list(commands_of(text)) == [["optimize", "a.onnx", "--verify"], ["a.onnx", "--fast"]]
    assert unknown_options(["optimize", "a.onnx", "--verify", "-q"]) == []
    assert unknown_options(["a.onnx", "--fast"]) == ["--fast"]


@pytest.mark.parametrize("page", [*PAGES, *TUTORIALS], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_options_exist(page: Path) -> None:
    found = {
        shlex.join(words): unknown
        for words in commands_of(page.read_text(encoding="utf-8"))
        if (unknown := unknown_options(words))
    }
    assert found == {}


@pytest.mark.parametrize("package", sorted(ROOMS))
def test_rooms_are_listed_in_the_order_of_their_imports(package):
    text = (ROOT / "_doc" / "design.rst").read_text(encoding="utf-8")
    table = re.search(rf"^folders of ``{package}``.*?\n=+ +=+\n(.*?)\n=+ +=+\n", text, re.M | re.S)
    names = [n.removesuffix(".py") for n in re.findall(r"^``([\w.]+)``", table.group(1), re.M)]
    places = [room_of(f"{package}.{name}") for name in names]
    assert len(names) > 5 and places == sorted(places)
    assert max(places) < len(ROOMS[package])


def test_every_page_is_in_a_toctree():
    listed = {"index", "conf"}
    for page in PAGES[1:]:
        for block in re.findall(r"\.\. toctree::\n((?: +.*\n|\s*\n)+)", page.read_text() + "\n"):
            names = (line.strip() for line in block.splitlines())
            folder = page.parent.relative_to(ROOT / "_doc")
            listed |= {(folder / n).as_posix() for n in names if n and not n.startswith(":")}
    found = {p.relative_to(ROOT / "_doc").with_suffix("").as_posix() for p in PAGES[1:]}
    assert found <= listed


def test_catalogue_has_an_example_for_every_pattern(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "_doc" / "extensions"))
    from pattern_models import collect_examples, model_lines

    examples = collect_examples()
    names = {cls.__name__.removesuffix("Pattern") for cls in all_patterns().values()}
    assert set(examples) == names
    same = [name for name, (a, b) in examples.items() if model_lines(a) == model_lines(b)]
    assert same == ["BinaryInvestigation"], "it only looks"


def test_an_example_is_a_pair_of_models(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "_doc" / "extensions"))
    from pattern_models import model_lines, pair_of

    before = "g (float[a] x) => (float[a] y) { y = Identity(x) }"
    after = before.replace("Identity", "Abs")
    for entry in ((before, after), {"first": (before, after), "second": None}):
        assert "Abs(x)" in model_lines(pair_of(entry)[1])
    assert pair_of((*pair_of((before, after)), "more")) == pair_of((before, after))
    for entry in ({}, (before,), (before, "a reason"), ("a => b", "b => c"), [before, after], 3):
        assert pair_of(entry) is None


@pytest.mark.slow
def test_demo(tmp_path):
    """The commands `make demo` runs."""
    pytest.importorskip("torch")
    script = ROOT / "_doc" / "examples" / "plot_demo_mlp.py"
    done = subprocess.run(
        [sys.executable, str(script), "--output", str(tmp_path)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for expected in ("----- before", "----- after", "what each pattern did", "ratio"):
        assert expected in done.stdout
    written = {p.name for p in tmp_path.iterdir()}
    assert {
        "mlp.onnx",
        "mlp.optimized.onnx",
        "mlp.dot",
        "mlp.optimized.dot",
        "report.html",
    } <= written


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("furo") is None, reason="furo is not installed")
def test_documentation_builds(tmp_path):
    pytest.importorskip("sphinx", reason="the documentation is built by sphinx")
    pytest.importorskip("torch", reason="the documentation shows torch_interpreter")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, str(ROOT / "_doc"), str(tmp_path / "html")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
