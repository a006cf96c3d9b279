"""Puts the built documentation of a version into the folder of the site.

::

    make site SITE=../site

The site keeps each version in a folder of its name. The latest one is also at the root, where links
from elsewhere arrive, and ``versions.json`` lists what the menu of every page offers. Nothing is
uploaded: the folder is a checkout of the branch that the forge serves.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: file that lists the versions
LISTED = "versions.json"
#: what a build leaves beside the pages
PRIVATE = shutil.ignore_patterns(".doctrees", ".buildinfo*")


def versions_in(site: Path) -> list[str]:
    """The versions that have a folder, the latest first.

    :param site: the folder of the site
    """
    found = [
        p.name for p in site.iterdir() if p.is_dir() and re.fullmatch(r"\d+\.\d+\.\d+", p.name)
    ]
    return sorted(found, key=lambda name: [int(n) for n in name.split(".")], reverse=True)


def publish(built: Path, site: Path, version: str, address: str) -> list[str]:
    """Adds a version to the site, or replaces it.

    The pages of the other versions do not change. An older version does not become the one at the
    root.

    :param built: the built documentation
    :param site: the folder of the site, created if needed
    :param version: its version, `1.2.3`
    :param address: address of the site
    :return: the versions of the site, the latest first
    :raises ValueError: the version is not three numbers, or nothing is built
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"A version is three numbers, such as 1.2.3, not {version!r}.")
    if not (built / "index.html").exists():
        raise ValueError(f"{built} has no index.html: build the documentation first, make doc.")
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(built, site / version, ignore=PRIVATE)
    known = versions_in(site)
    if version == known[0]:
        _replace_root(built, site, known)
    rows = [{"version": n, "url": f"{address}{n}/" if i else address} for i, n in enumerate(known)]
    (site / LISTED).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    (site / ".nojekyll").touch()  # folders whose names start with _ are served
    return known


def _replace_root(built: Path, site: Path, versions: Sequence[str]) -> None:
    """Replaces the pages at the root; what no build wrote stays, such as the name of a domain."""
    for name in {path.name for version in versions for path in (site / version).iterdir()}:
        old = site / name
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
    shutil.copytree(built, site, ignore=PRIVATE, dirs_exist_ok=True)


def main(built: Path, site: Path) -> str:
    """Publishes the version of ``pyproject.toml`` at the address the build was made for.

    :param built: the built documentation
    :param site: the folder of the site
    :return: what was done, in words
    """
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    listed = json.loads((built / LISTED).read_text("utf-8")) if (built / LISTED).exists() else []
    known = publish(built, site, version, listed[0]["url"] if listed else "")
    at_root = " and at the root" if version == known[0] else ""
    return f"version {version} is in {site / version}{at_root}; versions: {', '.join(known)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Adds the built documentation to the site.")
    parser.add_argument("built", type=Path, help="the built documentation")
    parser.add_argument("site", type=Path, help="the folder of the site")
    args = parser.parse_args()
    try:
        print(main(args.built, args.site))
    except ValueError as e:
        sys.exit(f"Error: {e}")
