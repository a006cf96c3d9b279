"""Lists the versions of the change log in the sidebar, and in ``versions.json`` for older sites."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

CHANGES = Path(__file__).resolve().parents[2] / "CHANGELOGS.rst"


def versions_of(changes: str, base: str, current: str) -> list[tuple[str, str]]:
    """The versions and the addresses of their sites, the latest first.

    :param changes: the change log
    :param base: address of the site: the latest version is there, each of the others in a folder
    :param current: the version of this site
    """
    names = re.findall(r"^(\d+\.\d+\.\d+)\b.*\n[=+]+$", changes, re.M)
    names = list(dict.fromkeys([*([] if current in names else [current]), *names]))
    return [(name, f"{base}{name}/" if i else base) for i, name in enumerate(names)]


def add_versions(app: Sphinx, config: Any) -> None:
    """Gives the versions to the template of the sidebar.

    :param app: the application
    :param config: its configuration
    """
    base = config.html_baseurl
    config.html_context["versions"] = versions_of(CHANGES.read_text("utf-8"), base, config.version)
    config.html_context["versions_url"] = f"{base}versions.json"


def write_versions(app: Sphinx, error: Exception | None) -> None:
    """Writes the list that the sites of all the versions read.

    :param app: the application
    :param error: what failed
    """
    if error is None and app.builder.format == "html":
        rows = [{"version": n, "url": url} for n, url in app.config.html_context["versions"]]
        (Path(app.outdir) / "versions.json").write_text(json.dumps(rows, indent=1), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Listens to the build."""
    app.connect("config-inited", add_versions)
    app.connect("build-finished", write_versions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
