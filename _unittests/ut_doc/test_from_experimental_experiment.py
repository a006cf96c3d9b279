"""Every public name of the page for users of experimental-experiment exists, with its parameters."""

from __future__ import annotations

import csv
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xbuilder
import xoptim

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "_doc" / "tables" / "from_experimental_experiment.csv"


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def owner_of(first: str) -> Any:
    """The object the first word of a name stands for."""
    if first == "g":
        return xoptim.GraphBuilderPatternOptimization(xbuilder.GraphBuilder(18), [])
    if first in ("xoptim", "torch_interpreter"):
        return importlib.import_module(first)
    return getattr(xbuilder, first, None) or getattr(xoptim, first)


def found(name: str) -> Any:
    first, *rest = name.split(".")
    owner = xbuilder.GraphBuilder(18) if first == "GraphBuilder" and rest else owner_of(first)
    for i, word in enumerate(rest):
        if not hasattr(owner, word):
            importlib.import_module(".".join([first, *rest[: i + 1]]))
        owner = getattr(owner, word)
    return owner


def in_order(wanted: list[str], known: Iterator[str]) -> bool:
    return all(name in known for name in wanted)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["name"].strip("`"))
def test_a_name_has_its_parameters_and_a_test(row: dict[str, str]) -> None:
    name = row["name"].strip("`")
    if name.startswith("torch_interpreter"):
        pytest.importorskip("torch")
    known = found(name)
    wanted = [p.strip() for p in row["parameters"].split(",") if p.strip()]
    if wanted:
        assert in_order(wanted, iter(inspect.signature(known).parameters)), name
    assert row["meaning"]
    test = ROOT / "_unittests" / row["tested in"]
    assert name.rpartition(".")[2] in test.read_text(encoding="utf-8")


def test_names_are_unique() -> None:
    names = [row["name"] for row in rows()]
    assert len(names) == len(set(names)) > 140
