"""Writes the page of an optimization: one file, no other file nor network is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..drawing.families import FAMILIES
from ..drawing.svg import drawing_style

_DATA = Path(__file__).parent / "data"
#: identifiers and titles of the sections
SECTIONS = (
    ("summary", "Before and after"),
    ("graph", "Graph"),
    ("rewrites", "Rewrites"),
    ("misses", "Not rewritten"),
    ("checks", "Checks"),
    ("time", "Time"),
)


def page_html(content: Mapping[str, Any]) -> str:
    """Writes a page.

    :param content: what the template `data/page.html` shows, by name; texts are escaped, drawings
        (`svg`, `before` and `after` of a rewrite, `profile`) are not
    :return: the page

    ::

        Path("report.html").write_text(page_html(content), encoding="utf-8")
    """
    from markupsafe import Markup

    swatches = "\n".join(
        f".swatch.f-{f.name} {{ background: light-dark({f.light[0]}, {f.dark[0]}); "
        f"border-color: light-dark({f.light[1]}, {f.dark[1]}); }}"
        for f in FAMILIES.values()
    )
    style = (_DATA / "page.css").read_text(encoding="utf-8")
    return render(
        "page.html",
        **content,
        sections=SECTIONS,
        families=FAMILIES.values(),
        style=Markup("\n".join([style, drawing_style(dark=True), swatches])),
        script=Markup((_DATA / "page.js").read_text(encoding="utf-8")),
    )


def render(template: str, **content: Any) -> str:
    """Fills a template.

    :param template: its name in the folder `data`
    :param content: what it shows, by name; texts are escaped, `markupsafe.Markup` is not
    """
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(
        loader=FileSystemLoader(_DATA), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.finalize = _shown
    return environment.get_template(template).render(**content)


def _shown(value: Any) -> Any:
    """A value as the page shows it: control characters are written in hexadecimal."""
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in value)
    return value
