"""Sphinx extension: the directive ``pattern-table`` lists the registered patterns."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from xoptim.cli_patterns import describe_patterns

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
        head += _row([title for title, _ in COLUMNS])
        for row in rows:
            values = ("name", "summary", "precision", "min_opset", "priority")
            body += _row([str(row[key]) for key in values])
        group += [head, body]
        table = nodes.table()
        table += group
        return table


def _row(texts: list[str]) -> nodes.row:
    row = nodes.row()
    for text in texts:
        entry = nodes.entry()
        entry += nodes.paragraph(text=text)
        row += entry
    return row


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("pattern-table", PatternTable)
    return {"version": "1", "parallel_read_safe": True}
