"""The table of the operators of torch: how a row is made, what the page says of it."""

from __future__ import annotations

import importlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

DOC = Path(__file__).resolve().parents[2] / "_doc"


@pytest.fixture
def bench() -> Iterator[Any]:
    pytest.importorskip("torch")
    sys.path.insert(0, str(DOC / "examples"))
    yield importlib.import_module("bench_opinfo")
    sys.path.remove(str(DOC / "examples"))


def test_the_page_names_every_operator_that_is_refused(bench: Any) -> None:
    rows = [
        r for r in bench.read_table(bench.TABLE, *bench.KEYS).values() if r["exporter"] == "ours"
    ]
    refused = {r["operator"] for r in rows if r["status"] == "refused"}
    text = (DOC / "torch" / "torch_operators.rst").read_text()
    text = text.split("    * - operators\n")[1].split("\nDetection models")[0]
    cells = re.findall(r"^    \* - (.*)$", text, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"``([^`]+)``", cell)} == refused
    assert {r["status"] for r in rows} == {"right", "refused", "no sample"}
    assert len(refused) < 30 and len(rows) > 600


def test_the_page_counts_both_exports(bench: Any) -> None:
    rows = bench.read_table(bench.TABLE, *bench.KEYS).values()
    text = (DOC / "torch" / "torch_operators.rst").read_text()
    counted = {
        (exporter, status): int(count)
        for status, *counts in re.findall(r"^\*([a-z ]+)\*  +(\d+)  +(\d+)$", text, re.MULTILINE)
        for exporter, count in zip(("ours", bench.DYNAMIC), counts, strict=True)
    }
    found = Counter((row["exporter"], row["status"]) for row in rows)
    assert {way: count for way, count in counted.items() if count} == found


def test_rows(bench: Any) -> None:
    assert bench.row_of("add", "ours")["status"] == "right"
    row = bench.row_of("linalg.ldl_factor_ex", "ours")
    assert row["status"] == "refused"
    assert row["cause"] == "No converter for operator 'aten.linalg_ldl_factor_ex.default'"
    assert bench.row_of("bitwise_not", "ours")["status"] == "no sample"


def test_a_result_that_is_wrong(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any) -> onnx.ModelProto:
        proto = bench.with_ours(*args)
        for node in proto.graph.node:
            node.op_type = {"Add": "Sub"}.get(node.op_type, node.op_type)
        return proto

    monkeypatch.setitem(bench.EXPORTERS, "ours", wrong)
    row = bench.row_of("add", "ours")
    assert row["status"] == "wrong" and row["cause"].startswith("result 0: ")


def test_the_other_exporter_that_fails(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("outside") from ValueError("inside\nof it")

    monkeypatch.setitem(bench.EXPORTERS, "dynamo", fails)
    row = bench.row_of("add", "dynamo")
    assert (row["status"], row["cause"]) == ("refused", "inside of it")


def test_an_operator_that_takes_too_long(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits, and the processor does nothing."""
    monkeypatch.setattr(bench, "row_of", lambda *_: time.sleep(600))
    row = bench.limited(0.1, "add", "ours")
    assert (row["status"], row["cause"]) == (
        "crashed",
        "no result after 2 s on a machine that may be busy",
    )
