"""Configuration of the documentation, built with ``make doc``."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "_doc")]

project = "xoptim"
author = "the xoptim developers"
copyright = "2026, the xoptim developers"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "flow_directive",
    "pattern_table",
]
exclude_patterns = ["_build", "changes", "examples"]
html_theme = "furo"
html_title = f"xoptim {release}"
pygments_style = "default"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": True}
# types are written for readers in docstrings: they are not all targets of links
nitpicky = False
