"""Sphinx extension: directives ``pattern-filter``, ``pattern-examples``, ``phase-table``."""

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

FIRED = Path(__file__).resolve().parents[1] / "benchmarks" / "data" / "fired.csv"
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
        count = f'<output aria-live="polite" data-unit="patterns">{len(rows)} patterns</output>'
        return [nodes.raw("", f'<div class="filters">{name}{fields}{count}</div>', format="html")]


class PhaseTable(SphinxDirective):
    """What each phase is for, with its patterns."""

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
        examples, fired = collect_examples(), models_by_pattern()
        members = {m.name: m for m in get_pattern_list(RewriteDatabaseQuery(None))}
        rows = sorted(describe_patterns(), key=lambda row: row["name"].lower())
        return [
            _section(row, examples[row["name"]], reasons_of(members[row["name"]]), fired)
            for row in rows
        ]


def models_by_pattern() -> dict[str, list[dict[str, str]]]:
    """The models of the corpus each pattern was applied to, from a table of the benchmarks.

    :return: pattern -> rows with `model`, `times`, `nodes`
    """
    found = defaultdict(list)
    with FIRED.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            found[row["pattern"]].append(row)
    return found


def _section(
    row: dict[str, Any],
    pair: tuple[Any, Any],
    reasons: list[str],
    fired: dict[str, list[dict[str, str]]],
) -> nodes.section:
    """One pattern."""
    name = row["name"]
    section = nodes.section(ids=[f"pattern-{nodes.make_id(name)}"], classes=["rewrite"])
    section += nodes.title(text=name)
    section += _data(row)
    section += nodes.paragraph(text=row["summary"])
    section += nodes.paragraph(text=_facts(row))
    section += side_by_side(*pair, shapes=False)
    section += _details("as text", "".join(_pre(model) for model in pair))
    if reasons:
        items = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
        section += _details("declines when", f"<ul>{items}</ul>")
    models = sorted(fired.get(name, []), key=lambda m: -int(m["nodes"]))
    section += nodes.paragraph(text=_models(models))
    return section


def _data(row: dict[str, Any]) -> nodes.raw:
    """What the filter reads."""
    values = {
        "operator": " ".join(row["roots"]),
        "set": " ".join(row["sets"]),
        "precision": row["precision"],
        "phase": row["phase"],
        "text": f"{row['name']} {' '.join(row['aliases'])} {row['summary']}".lower(),
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


def _pre(model: Any) -> str:
    return f"<pre>{escape(model_lines(model))}</pre>"


def _details(title: str, body: str) -> nodes.raw:
    return nodes.raw("", f"<details><summary>{title}</summary>{body}</details>", format="html")


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives."""
    app.add_directive("pattern-filter", PatternFilter)
    app.add_directive("pattern-examples", PatternExamples)
    app.add_directive("phase-table", PhaseTable)
    return {"version": "3", "parallel_read_safe": True}
