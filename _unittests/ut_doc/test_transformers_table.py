"""The table of the families of transformers: how a row is made, what it says of a failure."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

pytest.importorskip("transformers")
EXAMPLES = Path(__file__).resolve().parents[2] / "_doc" / "examples"


@pytest.fixture
def bench() -> Iterator[Any]:
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("bench_transformers")
    sys.path.remove(str(EXAMPLES))


def test_every_family_has_a_kind(bench: Any) -> None:
    found = bench.families()
    assert len(found) > 300
    assert found["llama"] == ("causal", "LlamaForCausalLM")
    assert found["t5"][0] == "encoder-decoder" and found["vit"][0] == "vision"


def test_a_tiny_configuration_keeps_a_layer_of_each_sort(bench: Any) -> None:
    tiny = importlib.import_module("corpus.tiny_models")
    config = tiny.tiny_config("qwen3_next")
    assert sorted(set(config.layer_types)) == ["full_attention", "linear_attention"]
    assert config.num_hidden_layers == 2 and config.hidden_size == 32


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_a_row(bench: Any, family: str) -> None:
    kind = bench.families()[family][0]
    row = bench.row_of(family, kind, "ours")
    assert row["status"] == "right", row
    assert row["nodes"] > 20 and row["cache"] == ("DynamicCache" if kind == "causal" else "")


@pytest.mark.long
@pytest.mark.parametrize(
    "family",
    ["bamba", "deepseek_v3", "gpt_oss", "jamba", "mamba2", "minimax", "mixtral", "whisper"],
)
def test_more_rows(bench: Any, family: str) -> None:
    row = bench.row_of(family, bench.families()[family][0], "ours")
    assert row["status"] == "right", row


def test_a_model_that_is_wrong(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant changed after the export makes the results others than those of torch."""

    def wrong(*args: Any) -> onnx.ModelProto:
        proto = bench.with_ours(*args)
        name = next(i.name for i in proto.graph.initializer if "embed_tokens" in i.name)
        weight = next(i for i in proto.graph.initializer if i.name == name)
        weight.raw_data = onnx.numpy_helper.to_array(weight)[::-1].tobytes()
        return proto

    monkeypatch.setitem(bench.EXPORTERS, "ours", wrong)
    row = bench.row_of("llama", "causal", "ours")
    assert row["status"] == "same sizes" and row["cause"].startswith("ValueError: error")


def test_an_exporter_that_fails(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> None:
        raise RuntimeError("nothing works\nanywhere")

    monkeypatch.setitem(bench.EXPORTERS, "ours", fails)
    row = bench.row_of("llama", "causal", "ours")
    assert (row["status"], row["cause"]) == ("export", "RuntimeError: nothing works")
    unknown = bench.row_of("no such family", "causal", "ours")
    assert unknown["status"] == "torch runs the model"


def test_the_table_is_completed(bench: Any, tmp_path: Path) -> None:
    rows = {("b", "ours"): {"family": "b", "exporter": "ours", "status": "right", "nodes": 3}}
    path = tmp_path / "table.csv"
    assert bench.read_table(path, *bench.KEYS) == {}
    bench.write_table(path, rows, bench.COLUMNS)
    read = bench.read_table(path, *bench.KEYS)
    assert read["b", "ours"]["nodes"] == "3" and read["b", "ours"]["cause"] == ""
    more = {**read, ("a", "ours"): {"family": "a", "exporter": "ours"}}
    bench.write_table(path, more, bench.COLUMNS)
    assert list(bench.read_table(path, *bench.KEYS)) == [("a", "ours"), ("b", "ours")]


def test_a_family_that_takes_too_long(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of the processor counts, not how busy the machine is."""

    def works(*_: Any) -> None:
        time.sleep(2)
        while True:
            pass

    monkeypatch.setattr(bench, "row_of", works)
    row = bench.limited(1, "llama", "causal", "ours")
    assert (row["status"], row["cause"]) == ("export", "longer than 1 s")


def test_a_process_that_ends(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "row_of", lambda *_: os._exit(3))
    row = bench.limited(1, "llama", "causal", "ours")
    assert (row["status"], row["cause"]) == ("export", "the process ended")
