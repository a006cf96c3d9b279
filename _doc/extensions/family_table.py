"""Sphinx extension: directives ``family-counts`` and ``family-table``, read from the table that
``bench_transformers.py`` writes."""

from __future__ import annotations

import csv
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TABLE = Path(__file__).resolve().parents[1] / "tables" / "transformers.csv"
EXPORTERS = ("ours", "dynamo", "transformers")
MISSING = "not measured"
#: the states of a family, the steps in their order
STATES = (
    "right",
    "export",
    "onnxruntime",
    "same sizes",
    "other sizes",
    "torch runs the model",
    MISSING,
)
BEHIND = "only another exporter is right"

Row = dict[str, str]
Families = dict[str, dict[str, Row]]


def read_families(path: Path) -> Families:
    """The rows of every family by exporter.

    :param path: the table
    """
    found: Families = {}
    with path.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            found.setdefault(row["family"], {})[row["exporter"]] = row
    return found


def counts(families: Families) -> list[list[str]]:
    """How many families of each kind are in each state, for this project and each exporter that
    measured some: lists of cells, the first one is the header.

    :param families: the rows by family and exporter
    """
    kinds = Counter(rows["ours"]["kind"] for rows in families.values())
    found = [["kind", "exporter", "families", *STATES]]
    for kind in [*kinds, "all"]:
        for exporter in EXPORTERS:
            states = Counter(
                state_of(rows, exporter)
                for rows in families.values()
                if kind in ("all", rows["ours"]["kind"])
            )
            if exporter == "ours" or set(states) != {MISSING}:
                numbers = [states.total(), *(states[state] for state in STATES)]
                found.append([kind, exporter, *map(str, numbers)])
    return found


def state_of(rows: dict[str, Row], exporter: str) -> str:
    """The state of a family with an exporter.

    :param rows: the rows of the family by exporter
    :param exporter: name of an exporter
    """
    return rows[exporter]["status"] if exporter in rows else MISSING


class FamilyCounts(SphinxDirective):
    """How many families of each kind are right, fail at a step, are not measured."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Makes the table of the counts."""
        self.env.note_dependency(str(TABLE))
        header, *lines = counts(read_families(TABLE))
        return [nodes.raw("", _table(header, [(line, "") for line in lines]), format="html")]


class FamilyTable(SphinxDirective):
    """A row for each family, with fields that filter them. Without JavaScript, all of them show."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Makes the fields and the table."""
        self.env.note_dependency(str(TABLE))
        return [nodes.raw("", filtered_table(read_families(TABLE)), format="html")]


def filtered_table(families: Families) -> str:
    """The fields that filter, then the table, as HTML.

    :param families: the rows by family and exporter
    """
    kinds = sorted({rows["ours"]["kind"] for rows in families.values()})
    states = [s for s in STATES if any(state_of(f, "ours") == s for f in families.values())]
    fields = "".join(
        f'<select data-field="{name}" aria-label="{name}"><option value="">{name}</option>'
        + "".join(f'<option value="{_word(v)}">{escape(v)}</option>' for v in values)
        + "</select>"
        for name, values in (("kind", kinds), ("state", [*states, BEHIND]))
    )
    search = '<input type="search" data-field="text" placeholder="word" aria-label="word">'
    count = f'<output aria-live="polite" data-unit="families">{len(families)} families</output>'
    header = ["family", "kind", "cache", *EXPORTERS, "cause"]
    lines = [(_line(name, rows), _data(name, rows)) for name, rows in families.items()]
    return f'<div class="filters">{search}{fields}{count}</div>{_table(header, lines)}'


def _line(family: str, rows: dict[str, Row]) -> list[str]:
    """The cells of a family."""
    own = rows["ours"]
    cells = [_cell(rows[name]) if name in rows else "" for name in EXPORTERS]
    return [family, own["kind"], own["cache"], *cells, own["cause"]]


def _cell(row: Row) -> str:
    """The nodes and the time of an export that is right, or its state."""
    if row["status"] != "right":
        return row["status"]
    return f"{row['nodes']} nodes, {row['seconds']} s"


def _data(family: str, rows: dict[str, Row]) -> str:
    """The attributes that the filter reads."""
    states = [state_of(rows, "ours")]
    others = any(state_of(rows, name) == "right" for name in EXPORTERS[1:])
    if states[0] != "right" and others:
        states.append(BEHIND)
    own = rows["ours"]
    values = {
        "kind": _word(own["kind"]),
        "state": " ".join(map(_word, states)),
        "text": f"{family} {own['cache']} {own['cause']}".lower(),
    }
    return " ".join(f'data-{k}="{escape(v, quote=True)}"' for k, v in values.items())


def _word(text: str) -> str:
    """A value without spaces, which the filter compares word by word."""
    return text.replace(" ", "-")


def _table(header: list[str], lines: list[tuple[list[str], str]]) -> str:
    """A table of HTML: the cells of each line, its attributes."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    rows = "".join(
        f"<tr {attributes}>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>"
        for line, attributes in lines
    )
    table = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="table-wrapper"><table class="docutils measures">{table}</table></div>'


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives."""
    app.add_directive("family-counts", FamilyCounts)
    app.add_directive("family-table", FamilyTable)
    return {"version": "1", "parallel_read_safe": True}
