"""Copies the scripts of the galleries: what they write while they run stays out of the sources."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDERS = ("tutorials", "gallery", "benchmarks")
#: where the copies are, below the sources of the documentation
COPIES = "auto_scripts"


def copy_scripts(app: Sphinx, config: Any) -> None:
    """Copies the folders of scripts, and the tables they read.

    :param app: the application
    :param config: its configuration
    """
    source, target = Path(app.srcdir), Path(app.srcdir) / COPIES
    shutil.rmtree(target, ignore_errors=True)
    for name in FOLDERS:
        shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(source / "tables", target / "tables")


def setup(app: Sphinx) -> dict[str, Any]:
    """Copies before sphinx-gallery reads the folders."""
    app.connect("config-inited", copy_scripts, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
