"""The table of the families of transformers: how a row is made, what it says of a failure."""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

torch = pytest.importorskip("torch")
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


def test_a_part_of_a_configuration_keeps_its_results(bench: Any) -> None:
    """A backbone that is made small has as many results as before, from layers that exist."""
    tiny = importlib.import_module("corpus.tiny_models")
    backbone = tiny.tiny_config("depth_anything").backbone_config
    assert backbone.out_features == ["stage1", "stage2", "stage3", "stage4"]
    assert backbone.num_hidden_layers == 4
    assert tiny.merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 4}, "d": {"e": 5}}) == {
        "a": {"b": 4, "c": 2},
        "d": {"e": 5},
    }


@pytest.mark.parametrize(
    "family",
    ["bros", "canary", "chinese_clip", "dia", "glm4v_text", "informer", "moonshine", "omniasr_ctc",
     "qwen4_exp_text", "siglip2", "speech_to_text", "table-transformer", "udop",
     "wav2vec2", "zamba"],
)  # fmt: skip
def test_torch_runs_a_tiny_model(bench: Any, family: str) -> None:
    tiny = bench.tiny_model(family)
    with torch.no_grad():
        for sizes in ((2, 8), (3, 11)):
            result = tiny.model(**tiny.inputs(*sizes))
            # dia gives one row for each of its channels
            rows = next(iter(result.values())).shape[0]
            assert rows == sizes[0] * (9 if family == "dia" else 1)


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


def test_a_decision_of_the_example(bench: Any) -> None:
    """A model that the content of a tensor decides is exported, and the line is in the row."""

    class Sign(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2 if x.sum() > 0 else x - 1

    tiny = types.SimpleNamespace(model=Sign())
    with pytest.warns(UserWarning) as found:
        onx = bench.with_ours(tiny, {"x": torch.ones(2, 3)}, {"x": {0: "batch"}})
    assert [n.op_type for n in onx.graph.node] == ["Mul"]
    (text,) = filter(None, map(bench.decision_of, found))
    assert text.startswith("right where test_transformers_table.py:")
    assert text.endswith(", in forward decides as in the example")


def test_a_cause_in_words(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said for the error it explains, and for a family that transformers has."""
    causes = importlib.import_module("corpus.family_causes")
    assert set(causes.CAUSES) <= set(bench.families())

    def fails(*args: Any) -> None:
        raise ValueError("tracing inferred a static shape of 8")

    monkeypatch.setitem(bench.EXPORTERS, "ours", fails)
    words = {f: bench.row_of(f, "causal", "ours")["cause"] for f in ("rwkv", "llama")}
    error = "ValueError: tracing inferred a static shape of 8"
    assert words["rwkv"] == f"a loop of Python on the length makes it a constant ({error})"
    assert words["llama"] == error


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
    """The system ends a process that used its time of the processor, with a signal of its own."""
    monkeypatch.setattr(bench, "row_of", lambda *_: os.kill(os.getpid(), signal.SIGXCPU))
    row = bench.limited(7, "llama", "causal", "ours")
    assert (row["status"], row["cause"]) == ("export", "longer than 7 s")


def test_the_time_of_the_processor_is_limited(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """How busy the machine is does not count."""
    monkeypatch.setattr(
        bench, "row_of", lambda *_: {"error": resource.getrlimit(resource.RLIMIT_CPU)}
    )
    assert bench.limited(7, "llama", "causal", "ours")["error"] == (7, 8)


def test_a_process_that_waits(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It used no time of the processor: the row does not say that it needs much."""
    monkeypatch.setattr("tools.table_rows._WAIT", 2)
    monkeypatch.setattr(bench, "row_of", lambda *_: time.sleep(60))
    row = bench.limited(1, "llama", "causal", "ours")
    assert row["cause"] == "no result after 2 s on a machine that may be busy"


def test_a_process_that_ends(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "row_of", lambda *_: os._exit(3))
    row = bench.limited(1, "llama", "causal", "ours")
    assert (row["status"], row["cause"]) == ("export", "the process ended")


def test_families_not_measured_yet_are_in_the_table(bench: Any, tmp_path: Path) -> None:
    """Rows of families that transformers does not have any more are left out."""
    path = tmp_path / "table.csv"
    known = {
        ("llama", "ours"): {"family": "llama", "exporter": "ours", "status": "right"},
        ("gone", "ours"): {"family": "gone", "exporter": "ours", "status": "right"},
    }
    bench.write_table(path, known, bench.COLUMNS)
    rows = bench.named_rows(path)
    assert {family for family, _ in rows} == set(bench.families())
    assert rows["llama", "ours"]["status"] == "right"
    assert rows["t5", "ours"]["status"] == bench.MISSING
    assert bench.read_table(path, *bench.KEYS)["t5", "ours"]["kind"] == "encoder-decoder"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("sphinx", reason="the documentation is built with it")
    monkeypatch.syspath_prepend(str(EXAMPLES.parent / "extensions"))
    return importlib.import_module("family_table")


TABLE = """family,kind,exporter,cache,status,nodes,error,seconds,cause
a,causal,ours,DynamicCache,right,20,1e-7,2.5,
a,causal,dynamo,,export,,,,no
b,causal,ours,,other sizes,30,1,2,"<wrong>"
b,causal,transformers,,right,40,0,3,
c,vision,ours,,not measured,,,,
"""


def test_the_page_counts_families(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLE, encoding="utf-8")
    header, *lines = page.counts(page.read_families(path))
    found = {(line[0], line[1]): dict(zip(header, line, strict=True)) for line in lines}
    assert found["causal", "ours"]["right"] == found["causal", "ours"]["other sizes"] == "1"
    assert found["causal", "dynamo"]["not measured"] == "1"
    assert found["all", "ours"]["families"] == "3"
    assert found["vision", "ours"]["not measured"] == "1" and ("vision", "dynamo") not in found


def test_the_page_shows_a_row_for_each_family(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLE, encoding="utf-8")
    html = page.filtered_table(page.read_families(path))
    assert html.count("<tr data-kind=") == 3 and "3 families" in html
    assert "<td>20 nodes, 2.5 s</td><td>export</td>" in html and "&lt;wrong&gt;" in html
    assert 'data-state="other-sizes only-another-exporter-is-right"' in html
    assert '<option value="not-measured">' in html
    assert page.filtered_table(page.read_families(page.TABLE)).count("<tr data-kind=") > 300
