"""Checks the links between the pages that were built: files and anchors.

Sphinx checks the references of the sources. This extension reads the pages as a browser does, so it
also checks what directives, templates and galleries write as HTML. A link that leads nowhere is a
warning. ``make linkcheck`` checks the links to other sites.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
#: attributes that hold the address of a page or of a file
ADDRESSES = ("href", "src")


class Page(HTMLParser):
    """The anchors of a page, and the addresses it links to.

    :param text: the page, in HTML
    """

    def __init__(self, text: str):
        super().__init__()
        self.anchors = {"", "top"}  # both are the beginning of the page
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Reads the attributes of an element."""
        for name, value in attrs:
            if value and name == "id":
                self.anchors.add(value)
            elif value and name in ADDRESSES:
                self.links.add(value)


def broken_links(site: Path) -> Iterator[tuple[str, str]]:
    """The links of a site that lead to no file or to no anchor, with the page they are on.

    :param site: the folder of the built pages
    """
    site = site.resolve()
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].anchors if target in pages else {unquote(address.fragment)}
            if not target.exists() or unquote(address.fragment) not in anchors:
                yield path.relative_to(site).as_posix(), link


def warn(app: Sphinx, exception: Exception | None) -> None:
    """Warns about each broken link, once the pages are written.

    :param app: the application
    :param exception: what stopped the build, or None
    """
    if exception is None and app.builder.name == "html":
        for page, link in broken_links(Path(app.outdir)):
            LOGGER.warning("%s links to %r, which does not exist", page, link)


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the check, after the extensions that write files.

    :param app: the application
    """
    app.connect("build-finished", warn, priority=900)
    return {"parallel_read_safe": True}
