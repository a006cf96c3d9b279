"""The modules people write: how a row of their table is made, what the table says."""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

pytest.importorskip("pandas")
DOC = Path(__file__).resolve().parents[2] / "_doc"


@pytest.fixture
def bench() -> Iterator[Any]:
    pytest.importorskip("torch")
    sys.path.insert(0, str(DOC / "examples"))
    yield importlib.import_module("bench_written")
    sys.path.remove(str(DOC / "examples"))


def test_every_module_is_right_in_the_table(bench: Any) -> None:
    rows = list(csv.DictReader(bench.TABLE.read_text().splitlines()))
    ours = {r["module"]: r["status"] for r in rows if r["exporter"] == "ours"}
    assert ours == dict.fromkeys(bench.MODULES, "right")
    assert {r["module"] for r in rows if r["exporter"] == "dynamo"} == set(bench.MODULES)


@pytest.mark.parametrize("name", ["Chunks", "Correlation", "PyramidOfMeans", "Spline"])
def test_a_row(bench: Any, name: str) -> None:
    row = bench.row_of(name, "ours")
    assert row["status"] == "right", row


@pytest.mark.long
def test_every_row(bench: Any) -> None:
    rows = [bench.row_of(name, "ours") for name in bench.MODULES]
    assert [row for row in rows if row["status"] != "right"] == []


def test_a_model_that_is_wrong(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any) -> onnx.ModelProto:
        proto = bench.with_ours(*args)
        for node in proto.graph.node:
            node.op_type = {"Sin": "Cos", "Cos": "Sin"}.get(node.op_type, node.op_type)
        return proto

    monkeypatch.setitem(bench.EXPORTERS, "ours", wrong)
    row = bench.row_of("Rotary", "ours")
    assert row["status"] == "same sizes" and row["cause"].startswith("ValueError: error")
