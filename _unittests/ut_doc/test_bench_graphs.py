"""Optimized graphs are recorded, and compared with those of another commit."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "_doc" / "examples"
TWO_BRANCHES = """
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[a, b] x, bool c) => (float[b, a] y)
    <float[1] one = {1}> {
        t = Transpose <perm = [1, 0]> (x)
        u = Transpose <perm = [1, 0]> (t)
        v = Add (u, one)
        w = If (c) <
            then_branch = yes () => (float[a, b] r) { r = Neg (v) },
            else_branch = no () => (float[a, b] s) { e = Exp (v) s = Neg (e) }
        >
        y = Transpose <perm = [1, 0]> (w)
    }
"""
#: the same with other names, in another order
RENAMED = """
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[a, b] input, bool condition) => (float[b, a] output)
    <float[1] number = {1}> {
        t1 = Transpose <perm = [1, 0]> (input)
        t2 = Transpose <perm = [1, 0]> (t1)
        sum = Add (t2, number)
        chosen = If (condition) <
            then_branch = left () => (float[a, b] l) { l = Neg (sum) },
            else_branch = right () => (float[a, b] r) { ex = Exp (sum) r = Neg (ex) }
        >
        output = Transpose <perm = [1, 0]> (chosen)
    }
"""
WITH_FUNCTION = """
    <ir_version: 8, opset_import: ["" : 18, "local" : 1]>
    agraph (float[a] x) => (float[a] y) { y = local.twice (x) }
    <domain: "local", opset_import: ["" : 18]>
    twice (v) => (w) { w = Add (v, v) }
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module("bench_graphs")
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    for name in ("small", "large/model"):
        path = folder / f"{name}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx.parser.parse_model(TWO_BRANCHES), path)
    return folder


def parsed(text: str) -> onnx.ModelProto:
    model: onnx.ModelProto = onnx.parser.parse_model(text)
    return model


def test_names_do_not_matter_to_a_fingerprint(bench: Any) -> None:
    fingerprint = bench.fingerprint
    assert fingerprint(parsed(TWO_BRANCHES)) == fingerprint(parsed(RENAMED))
    moved = parsed(WITH_FUNCTION.replace("(v)", "(v1)").replace("(v, v)", "(v1, v1)"))
    assert fingerprint(parsed(WITH_FUNCTION)) == fingerprint(moved)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{1}", "{2}"),
        ("perm = [1, 0]> (x)", "perm = [0, 1]> (x)"),
        ("e = Exp (v)", "e = Exp (u)"),
        ("Neg (v)", "Abs (v)"),
        ('"" : 18', '"" : 17'),
    ],
)
def test_a_fingerprint_sees_every_other_change(bench: Any, old: str, new: str) -> None:
    assert old in TWO_BRANCHES
    changed = parsed(TWO_BRANCHES.replace(old, new))
    assert bench.fingerprint(changed) != bench.fingerprint(parsed(TWO_BRANCHES))


def test_a_fingerprint_sees_bodies_of_functions(bench: Any) -> None:
    changed = parsed(WITH_FUNCTION.replace("Add", "Mul"))
    assert bench.fingerprint(changed) != bench.fingerprint(parsed(WITH_FUNCTION))


def test_every_node_counts(bench: Any) -> None:
    assert bench.count_operators(parsed(TWO_BRANCHES)) == {
        "Add": 1, "Exp": 1, "If": 1, "Neg": 2, "Transpose": 3,
    }  # fmt: skip
    assert bench.count_operators(parsed(WITH_FUNCTION)) == {"Add": 1, "local.twice": 1}
    assert bench.count_nodes(parsed(WITH_FUNCTION)) == 2


def test_models_have_the_names_of_their_folders(bench: Any, corpus: Path) -> None:
    assert sorted(bench.models_of([corpus])) == ["large", "small"]
    with pytest.raises(ValueError, match="Two models are called 'large'"):
        bench.models_of([corpus, corpus])
    with pytest.raises(FileNotFoundError):
        bench.models_of([EXAMPLES])


def test_a_record_is_the_same_as_itself(
    bench: Any, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    assert bench.main(bench.arguments_of([str(corpus), "--output", str(before)])) == 0
    row = json.loads(before.read_text())["large"]["default"]
    assert row["nodes"] == 6 and row["operators"]["Transpose"] == 1
    words = [str(corpus), "--models", "small", "--output", str(after), "--compare", str(before)]
    assert bench.main(bench.arguments_of(words)) == 0
    printed = capsys.readouterr().out
    assert "default: 1 same" in printed and "1 not measured after: large" in printed


def test_a_corpus_is_stable(bench: Any, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(bench.arguments_of([str(corpus), "--stable"])) == 0
    assert "0 of 4 are not stable" in capsys.readouterr().out


def test_a_selection_in_both_orders(bench: Any) -> None:
    assert bench.both_orders("default") == ["default"]
    assert bench.both_orders("a+b@CUDA") == ["a+b@CUDA", "b+a@CUDA"]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, "same"),
        ({"content": "z"}, "other bytes"),
        ({"content": "z", "structure": "z"}, "other graph"),
        ({"content": "z", "structure": "z", "operators": {"Mul": 2}}, "other operators"),
        ({"nodes": 1, "operators": {"Add": 1}}, "smaller"),
        ({"nodes": 3, "operators": {"Add": 3}}, "LARGER"),
        ({"error": "ValueError: no"}, "ERROR"),
    ],
)
def test_what_changed_is_named(
    bench: Any, capsys: pytest.CaptureFixture[str], changed: dict, status: str
) -> None:
    row = {"nodes": 2, "operators": {"Add": 2}, "structure": "s", "content": "c", "bytes": 5}
    rows = {"model": {"default": row}}, {"model": {"default": {**row, **changed}}}
    assert bench.compare(*rows) == int(status in ("LARGER", "ERROR"))
    assert f"default: 1 {status}" in capsys.readouterr().out


def test_a_model_that_cannot_be_read_is_an_error(bench: Any, tmp_path: Path) -> None:
    path = tmp_path / "corpus" / "wrong.onnx"
    path.parent.mkdir()
    path.write_bytes(b"not a model")
    output = tmp_path / "rows.json"
    assert bench.main(bench.arguments_of([str(path.parent), "--output", str(output)])) == 1
    assert "error" in json.loads(output.read_text())["wrong"]["default"]


def test_a_process_that_ends_starts_again(bench: Any, tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text(
        "import os\nfrom tools.checkouts import serve\n"
        "serve(lambda word: os._exit(3) if word == 'die' else {'word': word})\n"
    )
    with bench.Worker(str(script), tmp_path, []) as worker:
        assert worker.ask("one") == {"word": "one"}
        assert "ended with code 3" in worker.ask("die")["error"]
        assert worker.ask("two") == {"word": "two"}
