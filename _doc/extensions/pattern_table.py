"""Sphinx extension: the directives of the catalogue, ``pattern-filter``, ``pattern-examples``..."""

from __future__ import annotations

import csv
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from drawing_directive import side_by_side
from pattern_models import collect_examples, model_lines
from refusals import reasons_of
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from xoptim.catalogue.database_query import RewriteDatabaseQuery
from xoptim.catalogue.phases import PHASES
from xoptim.catalogue.selection import get_pattern_list
from xoptim.cli.patterns import describe_patterns

DATA = Path(__file__).resolve().parents[1] / "benchmarks" / "data"
FIRED, GAINS = DATA / "fired.csv", DATA / "gains.csv"
#: orders of the patterns of the page
ORDERS = ("name", "latency", "models")
#: models that are named below a pattern
NAMED = 8


class PatternFilter(SphinxDirective):
    """The fields that filter the patterns of the page. Without JavaScript, all of them show."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Makes the fields."""
        rows = describe_patterns()
        choices = {
            "operator": sorted({root for row in rows for root in row["roots"]} - {"*"}),
            "set": sorted({name for row in rows for name in row["sets"] if name not in PHASES}),
            "precision": sorted({row["precision"] for row in rows}),
            "phase": [name for name in PHASES if any(row["phase"] == name for row in rows)],
        }
        fields = "".join(
            f'<select data-field="{field}" aria-label="{field}"><option value="">{field}</option>'
            + "".join(f"<option>{escape(value)}</option>" for value in values)
            + "</select>"
            for field, values in choices.items()
        )
        name = '<input type="search" data-field="text" placeholder="word" aria-label="word">'
        orders = "".join(f'<option value="{k}">sort by {k}</option>' for k in ORDERS)
        order = f'<select data-order aria-label="order">{orders}</select>'
        count = f'<output aria-live="polite" data-unit="patterns">{len(rows)} patterns</output>'
        html = f'<div class="filters">{name}{fields}{order}{count}</div>'
        return [nodes.raw("", html, format="html")]


class PatternGains(SphinxDirective):
    """When, where and with which versions the gains were measured."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Makes a paragraph."""
        self.env.note_dependency(str(GAINS))
        self.env.note_dependency(str(DATA / "about.csv"))
        about = next(row for row in _rows(DATA / "about.csv") if row["table"] == GAINS.name)
        gains = [row for rows in _by_pattern(GAINS).values() for row in rows if row["ratio"]]
        drawn = sum(not row["model"] for row in gains)
        text = (
            f"Measured on {about['date']}, {about['machine']}, mean load {about['load']}, "
            f"{about['versions']}: {drawn} patterns on the model drawn here, {len(gains) - drawn} "
            "measures in models of the corpus."
        )
        return [nodes.paragraph(text=text)]


class PhaseTable(SphinxDirective):
    """The purpose of each phase, with its patterns."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Makes a list of definitions, one by phase."""
        self.env.note_reread()
        rows = describe_patterns()
        found = nodes.definition_list()
        for name, phase in PHASES.items():
            names = [row["name"] for row in rows if row["phase"] == name]
            item = nodes.definition_list_item()
            item += nodes.term(text=f"{name}, position {phase.position:g}")
            text = f"{phase.what}: {', '.join(sorted(names))}."
            item += nodes.definition("", nodes.paragraph(text=text[0].upper() + text[1:]))
            found += item
        return [found]


class PatternExamples(SphinxDirective):
    """The patterns in alphabetical order: what they do, when, and a drawing of one application."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Makes the sections, one by pattern."""
        self.env.note_reread()
        self.env.note_dependency(str(FIRED))
        self.env.note_dependency(str(GAINS))
        examples, fired, gains = collect_examples(), _by_pattern(FIRED), _by_pattern(GAINS)
        members = {m.name: m for m in get_pattern_list(RewriteDatabaseQuery(None))}
        rows = sorted(describe_patterns(), key=lambda row: row["name"].lower())
        return [
            _section(
                row,
                examples[row["name"]],
                reasons_of(members[row["name"]]),
                fired.get(row["name"], []),
                gains.get(row["name"], []),
            )
            for row in rows
        ]


def _rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table of the benchmarks."""
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _by_pattern(path: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of a table of the benchmarks, by pattern."""
    found = defaultdict(list)
    for row in _rows(path):
        found[row["pattern"]].append(row)
    return found


def _section(
    row: dict[str, Any],
    pair: tuple[Any, Any],
    reasons: list[str],
    fired: list[dict[str, str]],
    gains: list[dict[str, str]],
) -> nodes.section:
    """One pattern."""
    name = row["name"]
    section = nodes.section(ids=[f"pattern-{nodes.make_id(name)}"], classes=["rewrite"])
    section += nodes.title(text=name)
    section += _data(row, len(fired), gains)
    section += nodes.paragraph(text=row["summary"])
    section += nodes.paragraph(text=_facts(row))
    section += side_by_side(*pair, shapes=False)
    section += _details("as text", "".join(_pre(model) for model in pair))
    if reasons:
        items = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
        section += _details("declines when", f"<ul>{items}</ul>")
    section += nodes.paragraph(text=_models(sorted(fired, key=lambda m: -int(m["nodes"]))))
    section += nodes.paragraph(text=_gain(gains))
    return section


def _data(row: dict[str, Any], models: int, gains: list[dict[str, str]]) -> nodes.raw:
    """The keys that the fields filter and sort by."""
    ratios = [float(gain["ratio"]) for gain in gains if gain["ratio"]]
    values = {
        "operator": " ".join(row["roots"]),
        "set": " ".join(row["sets"]),
        "precision": row["precision"],
        "phase": row["phase"],
        "text": f"{row['name']} {' '.join(row['aliases'])} {row['summary']}".lower(),
        "models": models,
        "latency": min(ratios, default=""),
    }
    fields = " ".join(f'data-{k}="{escape(str(v), quote=True)}"' for k, v in values.items())
    return nodes.raw("", f"<span hidden {fields}></span>", format="html")


def _facts(row: dict[str, Any]) -> str:
    """Sets, precision, opset, operators."""
    sets = [name for name in row["sets"] if name not in PHASES] or ["none, choose it by name"]
    facts = [f"Set: {', '.join(sets)}", row["precision"], f"phase {row['phase']}"]
    facts.append(f"opset {row['min_opset']} and later")
    if row["roots"]:
        facts.append(f"starts from {', '.join(row['roots'])}")
    if row["aliases"]:
        facts.append(f"also called {', '.join(row['aliases'])}")
    return f"{'; '.join(facts)}."


def _models(models: list[dict[str, str]]) -> str:
    """The models a pattern was applied to."""
    if not models:
        return "No model of the corpus has it."
    nodes_saved = sum(int(row["nodes"]) for row in models)
    names = ", ".join(row["model"] for row in models[:NAMED])
    more = f" and {len(models) - NAMED} more" if len(models) > NAMED else ""
    count = f"{len(models)} model{'s' if len(models) > 1 else ''} of the corpus"
    return f"Applied to {count}, {nodes_saved} nodes fewer: {names}{more}."


def _gain(gains: list[dict[str, str]]) -> str:
    """The latencies with a pattern, as ratios to those without it."""
    if not gains:
        return "Latency: not measured."
    found = []
    for row in gains:
        if not row["ratio"]:
            found.append(f"not measured, {row['why']}")
        elif not row["model"]:
            found.append(f"{float(row['ratio']):.2f} for the model drawn above")
        else:
            found.append(f"{float(row['ratio']):.2f} in {row['model']}")
    return f"Latency: {', '.join(found)}."


def _pre(model: Any) -> str:
    return f"<pre>{escape(model_lines(model))}</pre>"


def _details(title: str, body: str) -> nodes.raw:
    return nodes.raw("", f"<details><summary>{title}</summary>{body}</details>", format="html")


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives."""
    app.add_directive("pattern-filter", PatternFilter)
    app.add_directive("pattern-gains", PatternGains)
    app.add_directive("pattern-examples", PatternExamples)
    app.add_directive("phase-table", PhaseTable)
    return {"version": "4", "parallel_read_safe": True}
