"""Draws a profile as an icicle chart, in SVG or in an HTML page without dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..toolkit.profiles import ProfileNode, profile_text
from ..toolkit.profiles.profile_text import describe

#: pixels
_WIDTH, _ROW, _LETTER, _THINNEST = 1200.0, 22, 6.6, 0.4
_COLOURS = {
    "run": "#c6cbd1",
    "graph": "#9ecae1",
    "pass": "#a1d99b",
    "phase": "#fdd0a2",
    "rewriter": "#fdae6b",
    "step": "#dadaeb",
}
#: color of a rewriter that never applied
_IN_VAIN = "#fc9272"

Box = tuple[ProfileNode, float, float, int]


def boxes(root: ProfileNode, width: float) -> Iterator[Box]:
    """Computes the boxes of a profile: one row for each level, widths are times.

    :param root: the outermost line
    :param width: its width
    :return: each line, its left side, its width, its row; boxes too thin to be seen are left out
    """
    stack: list[Box] = [(root, 0.0, width, 0)]
    while stack:
        node, left, wide, row = stack.pop()
        if wide < _THINNEST:
            continue
        yield node, left, wide, row
        inside = sum(c.time for c in node.children.values())
        scale = wide / max(node.time, inside) if max(node.time, inside) > 0 else 0.0
        for child in node.sorted_children():
            stack.append((child, left, child.time * scale, row + 1))
            left += child.time * scale


def profile_svg(root: ProfileNode) -> str:
    """Draws a profile. Inner lines are below, the longest first; red rewriters never applied.

    :param root: the outermost line, `profile.root`
    :return: the drawing; the name of a line and its counts show under the mouse
    """
    found = list(boxes(root, _WIDTH))
    height = (1 + max(row for *_, row in found)) * _ROW
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height}" '
        f'width="{_WIDTH:g}" height="{height}" font-family="monospace" font-size="11">'
    ]
    rows.extend(_drawn(*box) for box in found)
    return "\n".join([*rows, "</svg>", ""])


def _drawn(node: ProfileNode, left: float, wide: float, row: int) -> str:
    in_vain = node.kind == "rewriter" and not node.total("applications")
    colour = _IN_VAIN if in_vain else _COLOURS.get(node.kind, "#eeeeee")
    top = row * _ROW
    label = node.name[: max(0, int((wide - 4) / _LETTER))]
    text = f'<text x="{left + 3:.2f}" y="{top + 15}">{escape(label)}</text>' if label else ""
    return (
        f"<g><title>{escape(f'{node.kind} {describe(node)}')}</title>"
        f'<rect x="{left:.2f}" y="{top}" width="{wide:.2f}" height="{_ROW - 1}" fill="{colour}" '
        f'stroke="white" stroke-width="0.5"/>{text}</g>'
    )


def profile_html(root: ProfileNode, title: str = "profile") -> str:
    """A page with the drawing and the profile as text.

    :param root: the outermost line, `profile.root`
    :param title: title of the page
    """
    return (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"\n<body><h1>{escape(title)}</h1>\n{profile_svg(root)}"
        f"<pre>{escape(profile_text(root))}</pre>\n</body></html>\n"
    )
