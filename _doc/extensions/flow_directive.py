"""Directive ``.. flow::``, the way of something through the code as a drawing.

Each line is a step, ``module:object -- what happens there``. Consecutive steps of one room stand in
one frame. The names are checked: a step that does not exist fails the build.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from itertools import groupby
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

WIDTH, ROW, HEAD, GAP = 720, 40, 24, 22
STYLE = "font-family: sans-serif; font-size: 13px; max-width: 100%"


def parse_step(line: str) -> tuple[str, str, str]:
    """Room, name of the object and sentence of a step.

    :raises ValueError: the line is not a step, or the object does not exist
    """
    target, dash, sentence = line.partition(" -- ")
    module, colon, name = target.strip().partition(":")
    if not (dash and colon):
        raise ValueError(f"expected 'module:object -- what happens there', not {line!r}")
    found: Any = import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{module} has no {name}")
        found = getattr(found, part)
    parts = module.split(".")
    room = ".".join(parts[:-1]) if len(parts) > 2 else module
    return room, name, sentence.strip()


def draw(steps: list[tuple[str, str, str]]) -> str:
    """The steps as SVG."""
    y, body = 4, []
    frames = [(room, list(rows)) for room, rows in groupby(steps, key=lambda s: s[0])]
    for i, (room, rows) in enumerate(frames):
        height = HEAD + ROW * len(rows)
        body.append(
            f'<rect x="1" y="{y}" width="{WIDTH - 2}" height="{height}" rx="6" '
            'fill="#8881" stroke="#888"/>'
            f'<text x="12" y="{y + 17}" fill="#888">{escape(room)}</text>'
        )
        for j, (_, name, sentence) in enumerate(rows):
            top = y + HEAD + ROW * j
            body.append(
                f'<text x="24" y="{top + 14}" font-weight="bold" fill="currentColor">'
                f"{escape(name)}</text>"
                f'<text x="24" y="{top + 30}" fill="currentColor">{escape(sentence)}</text>'
            )
        y += height
        if i + 1 < len(frames):
            body.append(
                f'<path d="M {WIDTH // 2} {y} v {GAP - 5} m -5 -5 l 5 5 l 5 -5" fill="none" '
                'stroke="#888" stroke-width="2"/>'
            )
            y += GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 4}" '
        f'style="{STYLE}" role="img">{"".join(body)}</svg>'
    )


class Flow(Directive):
    """The directive."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draws the steps; builders without HTML list them."""
        try:
            steps = [parse_step(line) for line in self.content if line.strip()]
        except (ImportError, ValueError) as e:
            return [self.state.document.reporter.error(str(e), line=self.lineno)]
        text = "\n".join(f"{room}: {name}, {sentence}" for room, name, sentence in steps)
        drawing = nodes.raw("", draw(steps), format="html")
        return [drawing, nodes.raw("", text, format="text")]


def setup(app: Any) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("flow", Flow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
