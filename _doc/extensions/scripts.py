"""Copies the scripts of the galleries: what they write while they run stays out of the sources.

A script without a plot or a drawing has a few of its lines as thumbnail.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDERS = ("tutorials", "gallery", "benchmarks")
#: where the copies are, below the sources of the documentation
COPIES = "auto_scripts"
#: where the thumbnails are
THUMBNAILS = "auto_static/thumbnails"
#: lines that show something
_SHOWN = re.compile(r"plt\.|\.plot|^drawn = ", re.M)
#: lines that say what a script is about
_TELLING = re.compile(r"^\s*(@|class |def )|xoptim\.|to_onnx|Export|quantize|generate|check_")


def telling_lines(script: str, count: int = 8, width: int = 26) -> list[str]:
    """The lines of a script that say what it is about.

    :param script: the script
    :param count: number of lines
    :param width: number of letters of a line
    """
    code = script.split('"""', 2)[-1].splitlines()
    code = [line for line in code if line and not line.startswith(("#", "import", "from"))]
    # the lines that follow the first one that tells something, those of a text left out
    first = next((i for i, line in enumerate(code) if _TELLING.search(line)), 0)
    lines = [line for line in code[first:] if not line.lstrip().startswith('"')]
    return [line[: width - 1] + "…" if len(line) > width else line for line in lines[:count]]


def write_thumbnail(lines: list[str], path: Path) -> None:
    """Draws lines of code.

    :param lines: the lines
    :param path: the picture
    """
    from matplotlib.figure import Figure

    fig = Figure(figsize=(4, 2.8), dpi=100, facecolor="#f8f9fb")
    fig.text(
        0.04, 0.93, "\n".join(lines), family="monospace", fontsize=10.5, va="top", color="#24292f"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path)


def add_thumbnails(source: Path, scripts: Path) -> None:
    """Gives a thumbnail to the scripts that show nothing else.

    :param source: the sources of the documentation
    :param scripts: the copies of the scripts
    """
    for path in sorted(scripts.rglob("plot_*.py")):
        text = path.read_text(encoding="utf-8")
        if _SHOWN.search(text):
            continue
        picture = f"{THUMBNAILS}/{path.stem}.png"
        write_thumbnail(telling_lines(text), source / picture)
        title, code = text.split('\n"""\n', 1)
        # above a line of code: alone, it would be shown as an empty block
        comment = f"\n# sphinx_gallery_thumbnail_path = '{picture}'\n"
        code = re.sub(r"^(?=[^#\s])", comment, code, count=1, flags=re.M)
        path.write_text(f'{title}\n"""\n{code}', encoding="utf-8")


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
    add_thumbnails(source, target)


def hide_folders(app: Sphinx, page: str, source: list[str]) -> None:
    """Removes the folder of the build from the messages that scripts printed.

    :param app: the application
    :param page: its name
    :param source: its text, changed in place
    """
    if page.startswith("auto_"):
        source[0] = source[0].replace(f"{Path(app.srcdir) / COPIES}/", "")


def hide_root(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Removes the folder of the checkout from the default values of a signature, None without it.

    The other arguments are those of the event of autodoc.

    :param app: the application
    :param signature: the signature, None for what has none
    :param returns: the type of the result
    """
    root = f"{Path(app.srcdir).parent}/"
    return (signature.replace(root, ""), returns) if root in (signature or "") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Copies before sphinx-gallery reads the folders."""
    app.connect("config-inited", copy_scripts, priority=1)
    app.connect("source-read", hide_folders)
    app.connect("autodoc-process-signature", hide_root)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
