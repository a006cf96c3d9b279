"""Makes the links between the API and the source of a module arrive.

``sphinx.ext.viewcode`` knows one module by which the names of a file are documented. A name that is
documented from another one, a package or the file itself, has another anchor. The index of viewcode
also lists modules without a source, such as ``builtins``.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.viewcode import OUTPUT_DIRNAME, viewcode_anchor


def add_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Adds the anchors that viewcode links to, where they are missing.

    :param app: the application
    :param doctree: a page
    """
    modules = getattr(app.env, "_viewcode_modules", {})
    known = {name for s in doctree.findall(addnodes.desc_signature) for name in s["ids"]}
    for link in doctree.findall(viewcode_anchor):
        source = link["reftarget"].removeprefix(f"{OUTPUT_DIRNAME}/").replace("/", ".")
        _, _, pages, module = modules[source]
        anchor = f"{module}.{link['refid']}"
        if pages[link["refid"]] == link["refdoc"] and anchor not in known:
            link.parent["ids"].append(anchor)
            known.add(anchor)


def forget_modules_without_source(app: Sphinx) -> list[Any]:
    """Removes the modules that have no page from those the index lists.

    :param app: the application
    :return: no page
    """
    modules = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, entry in modules.items() if not entry]:
        del modules[name]
    return []


def setup(app: Sphinx) -> dict[str, Any]:
    """Reads pages after viewcode, and modules before it."""
    app.connect("doctree-read", add_anchors, priority=900)
    app.connect("html-collect-pages", forget_modules_without_source, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
