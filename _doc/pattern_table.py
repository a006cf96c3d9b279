"""Sphinx extension: directives ``pattern-table``, ``pattern-examples``, ``phase-table``."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from pattern_models import collect_examples, model_lines
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from xoptim.catalogue.phases import PHASES
from xoptim.cli.patterns import describe_patterns

COLUMNS = (("pattern", 24), ("what it does", 50), ("precision", 12), ("opset", 7), ("priority", 7))


class PatternTable(SphinxDirective):
    """One table for each set of patterns."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Makes the sections, one by set."""
        self.env.note_reread()  # the database may change while the page does not
        sets: dict[str, list[dict[str, Any]]] = {}
        for row in describe_patterns():
            for name in row["sets"] or ["(in no set)"]:
                sets.setdefault(name, []).append(row)
        return [self._section(name, rows) for name, rows in sorted(sets.items())]

    def _section(self, name: str, rows: list[dict[str, Any]]) -> nodes.section:
        section = nodes.section(ids=[f"patterns-{name.strip('()').replace(' ', '-')}"])
        section += nodes.title(text=f"{name} ({len(rows)})")
        section += self._table(rows)
        return section

    @staticmethod
    def _table(rows: list[dict[str, Any]]) -> nodes.table:
        group = nodes.tgroup(cols=len(COLUMNS))
        group += [nodes.colspec(colwidth=width) for _, width in COLUMNS]
        head, body = nodes.thead(), nodes.tbody()
        head += _row([nodes.paragraph(text=title) for title, _ in COLUMNS])
        for row in rows:
            cells = [_link(row["name"])]
            for key in ("summary", "precision", "min_opset", "priority"):
                cells.append(nodes.paragraph(text=str(row[key])))
            body += _row(cells)
            for alias in row["aliases"]:
                same = nodes.paragraph(text="the same as ")
                same += _link(row["name"]).children[0]
                empty = [nodes.paragraph() for _ in COLUMNS[2:]]
                body += _row([nodes.paragraph(text=alias), same, *empty])
        group += [head, body]
        table = nodes.table()
        table += group
        return table


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
    """The graph before and after each pattern, from the tests of the pattern."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Makes the sections, one by pattern in alphabetical order."""
        self.env.note_reread()
        examples = collect_examples()
        summaries = {row["name"]: row["summary"] for row in describe_patterns()}
        return [self._section(name, summaries[name], examples[name]) for name in sorted(summaries)]

    @staticmethod
    def _section(name: str, summary: str, pair: tuple[Any, Any]) -> nodes.section:
        section = nodes.section(ids=[_anchor(name)])
        section += nodes.title(text=name)
        section += nodes.paragraph(text=summary)
        group = nodes.tgroup(cols=2)
        group += [nodes.colspec(colwidth=50), nodes.colspec(colwidth=50)]
        head, body = nodes.thead(), nodes.tbody()
        head += _row([nodes.paragraph(text=title) for title in ("before", "after")])
        texts = [model_lines(model) for model in pair]
        body += _row([nodes.literal_block(text, text, language="text") for text in texts])
        group += [head, body]
        table = nodes.table()
        table += group
        section += table
        return section


def _anchor(name: str) -> str:
    return f"pattern-{nodes.make_id(name)}"


def _link(name: str) -> nodes.paragraph:
    paragraph = nodes.paragraph()
    paragraph += nodes.reference(text=name, refuri=f"#{_anchor(name)}", internal=True)
    return paragraph


def _row(cells: list[nodes.Node]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        entry = nodes.entry()
        entry += cell
        row += entry
    return row


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives."""
    app.add_directive("pattern-table", PatternTable)
    app.add_directive("pattern-examples", PatternExamples)
    app.add_directive("phase-table", PhaseTable)
    return {"version": "2", "parallel_read_safe": True}
