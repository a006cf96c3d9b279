"""The sets hold the patterns of attention that the measures say to be faster."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path

from xoptim import get_pattern_list

TABLE = Path(__file__).resolve().parents[2] / "_doc" / "attention.csv"
#: above it, a pattern is slower
LIMIT = 1.0


def ratios() -> dict[str, list[float]]:
    """Time with a pattern over time without, for each size and case."""
    found = defaultdict(list)
    with TABLE.open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            found[row["pattern"]].append(float(row["ratio"]))
            assert row["onnxruntime"]
    return found


def test_sets_follow_the_table() -> None:
    selected = {p.name for p in get_pattern_list("default+onnxruntime")}
    means = {k: math.exp(sum(map(math.log, v)) / len(v)) for k, v in ratios().items()}
    assert {"AttentionGQA", "MultiHeadAttention3D", "GroupQueryAttention3D"} <= set(means)
    for pattern, mean in means.items():
        assert (pattern in selected) == (mean < LIMIT), (pattern, mean)
