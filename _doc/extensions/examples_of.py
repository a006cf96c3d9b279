"""Puts an example below each name of the API: scripts that use it, a page, or one of its tests."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOC = Path(__file__).resolve().parents[1]
TESTS = DOC.parent / "_unittests"
_BLOCK = re.compile(r"^\.\. code-block:: python\n((?: +.*\n|\s*\n)+)", re.M)
PACKAGES = ("xbuilder", "xoptim", "torch_interpreter")
#: longest test that is shown, in lines
LONGEST = 30
#: thumbnails below a name, a row of the page
MOST = 4


@cache
def scripts_by_name(path: Path) -> dict[str, list[str]]:
    """The scripts in which sphinx-gallery found each name, the tutorials first.

    :param path: the table it wrote
    """
    table = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: [f"{row[1]}/{row[0]}" for row in rows] for name, rows in table.items()}


def thumbnails(name: str, scripts: Sequence[str], folder: Path) -> list[str]:
    """The directive that shows the scripts of a name, the first ones if there are many.

    :param name: the full name
    :param scripts: their paths
    :param folder: the folder of the documentation
    """
    few = [Path(path).relative_to(folder).as_posix() for path in scripts[:MOST]]
    shown = name if len(scripts) <= MOST else " ".join(few)
    return ["", f".. minigallery:: {shown}", ""]


@dataclass(frozen=True)
class Use:
    """A short test that uses a name of the project.

    :param file: its file
    :param code: its code
    :param module: the module that the test imports the name from
    """

    file: str
    code: str
    module: str


def _imported(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """The names that a test module imports from the project: local name -> module, name."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGES)
        for alias in node.names
    }


@cache
def uses_by_name() -> dict[str, list[Use]]:
    """The short tests that use each name of the project, the shortest first."""
    found: dict[str, list[Use]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        lines, tree = source.splitlines(), ast.parse(source)
        file, imported = path.relative_to(TESTS.parent).as_posix(), _imported(tree)
        for test in tree.body:
            if not (isinstance(test, ast.FunctionDef) and test.name.startswith("test_")):
                continue
            if (test.end_lineno or 0) - test.lineno >= LONGEST:
                continue
            code = "\n".join(lines[test.lineno - 1 : test.end_lineno])
            used = {imported.get(n.id) for n in ast.walk(test) if isinstance(n, ast.Name)}
            used |= {
                (n.value.id, n.attr)
                for n in ast.walk(test)
                if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
                if n.value.id in PACKAGES
            }
            for module, name in filter(None, used):
                found.setdefault(name, []).append(Use(file, code, module))
    for tests in found.values():
        tests.sort(key=lambda use: len(use.code))
    return found


@cache
def pages_by_name() -> dict[str, list[Use]]:
    """The pages whose code uses each name of the project; the tests run this code."""
    found: dict[str, list[Use]] = {}
    for path in sorted(DOC.rglob("*.rst")):
        page = path.relative_to(DOC).with_suffix("").as_posix()
        if page.startswith(("auto_", "api/", "changes/")):
            continue
        blocks = _BLOCK.findall(path.read_text(encoding="utf-8"))
        try:
            tree = ast.parse("\n".join(map(textwrap.dedent, blocks)))
        except SyntaxError:  # a part of a program
            continue
        for module, name in _imported(tree).values():
            found.setdefault(name, []).append(Use(page, "", module))
    return found


def page_of(name: str, obj: Any) -> Use | None:
    """The page whose code uses a function or a class, None if there is none.

    :param name: its name, without a module
    :param obj: the object
    """
    return next((use for use in pages_by_name().get(name, []) if _names(use, name, obj)), None)


def _names(use: Use, name: str, obj: Any) -> bool:
    """Whether a name is the one of the object where it is used."""
    return getattr(importlib.import_module(use.module), name, None) is obj


def example_of(name: str, obj: Any) -> Use | None:
    """The test that shows a function or a class, None if no short test does.

    :param name: its name, without a module
    :param obj: the object
    """
    uses = [use for use in uses_by_name().get(name, []) if _names(use, name, obj)]
    # the tests of x/y.py are in ut_package/x/test_y.py
    package, _, module = getattr(obj, "__module__", "").partition(".")
    folders, _, file = module.rpartition(".")
    mirror = "/".join(["_unittests", f"ut_{package}", *folders.split("."), f"test_{file}.py"])
    return next((use for use in uses if use.file == mirror), next(iter(uses), None))


def add_examples(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Ends a docstring with the thumbnails of the scripts, a page, or a test.

    :param app: the application
    :param what: `function`, `class`...
    :param name: the full name of the object
    :param obj: the object
    :param options: those of the directive
    :param lines: the docstring, changed in place
    """
    if what not in {"class", "exception", "function"}:
        return
    folder = Path(app.srcdir) / app.config.sphinx_gallery_conf["backreferences_dir"]
    scripts = scripts_by_name(folder / "backreferences_all.json").get(name)
    if scripts:
        lines += thumbnails(name, scripts, Path(app.srcdir))
    elif not has_code(obj):
        lines += example_lines(name.rpartition(".")[2], obj)


def has_code(obj: Any) -> bool:
    """Whether a docstring has an example."""
    text = inspect.getdoc(obj) or ""
    return ">>>" in text or "::\n" in text or ".. code-block::" in text


def example_lines(name: str, obj: Any) -> list[str]:
    """The lines of rst that name a page or show a test, folded; none without an example.

    :param name: what it is about
    :param obj: the object
    """
    page, test = page_of(name, obj), example_of(name, obj)
    if page is not None:
        return ["", f"Example in :doc:`/{page.file}`.", ""]
    if test is None:
        return []
    body = textwrap.indent(test.code, "       ").splitlines()
    title = f".. dropdown:: Example, from ``{test.file}``"
    return ["", title, "", "    .. code-block:: python", "", *body, ""]


def setup(app: Sphinx) -> dict[str, Any]:
    """Listens to autodoc."""
    app.connect("autodoc-process-docstring", add_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
