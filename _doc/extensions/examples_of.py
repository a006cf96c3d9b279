"""Puts below each function and class of the API the scripts that use it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


@cache
def names_with_examples(path: Path) -> frozenset[str]:
    """The names that sphinx-gallery found in the scripts.

    :param path: the table it wrote
    """
    return frozenset(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else frozenset()


def add_examples(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Ends a docstring with the thumbnails of the scripts.

    :param app: the application
    :param what: `function`, `class`...
    :param name: the full name of the object
    :param obj: the object
    :param options: those of the directive
    :param lines: the docstring, changed in place
    """
    folder = Path(app.srcdir) / app.config.sphinx_gallery_conf["backreferences_dir"]
    known = names_with_examples(folder / "backreferences_all.json")
    if what in {"class", "function"} and name in known:
        lines += ["", f".. minigallery:: {name}", ""]


def setup(app: Sphinx) -> dict[str, Any]:
    """Listens to autodoc."""
    app.connect("autodoc-process-docstring", add_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
