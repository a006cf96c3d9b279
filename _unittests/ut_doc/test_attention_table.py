"""The sets hold the patterns that the measures say to be faster."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path

from xoptim import get_pattern_list
from xoptim.catalogue.speed_gates import read_gates

TABLE = Path(__file__).resolve().parents[2] / "_doc" / "tables" / "attention.csv"
#: above it, a pattern is slower
LIMIT = 1.0


def ratios(table: Path = TABLE) -> dict[str, list[float]]:
    """Time with a pattern over time without, for each size and case."""
    found = defaultdict(list)
    with table.open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            found[row["pattern"]].append(float(row["ratio"]))
            assert row["onnxruntime"]
    return found


def mean_of(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def test_the_gates_are_what_the_tables_say() -> None:
    means = {k: mean_of(v) for k, v in ratios(TABLE.with_name("skip_layer_norm.csv")).items()}
    means = {f"{name}(on_cpu=True)": mean for name, mean in means.items()}
    means.update({k: mean_of(v) for k, v in ratios().items() if "(" in k})
    gates = {g.pattern: g for g in read_gates() if g.processor == "CPU"}
    assert set(means) <= set(gates) and len(means) == 3
    for name, mean in means.items():
        assert gates[name].kept is (mean < LIMIT)


def test_sets_follow_the_table() -> None:
    selected = {p.name for p in get_pattern_list("default+onnxruntime")}
    means = {k: mean_of(v) for k, v in ratios().items()}
    assert {"AttentionGQA", "MultiHeadAttention3D", "GroupQueryAttention3D"} <= set(means)
    for pattern, mean in means.items():
        assert (pattern in selected) == (mean < LIMIT), (pattern, mean)
