"""The tests near a change, printed as paths for pytest: what ``make test-fast`` runs.

::

    python _unittests/near_change.py [--base COMMIT]

The change is what differs from the commit where the branch left ``main``, files git does not know
yet included. Tests mirror modules, so each file names its tests:

1. a test is its own test;
2. ``xbuilder/x/y.py`` has ``_unittests/ut_xbuilder/x/test_y.py``, and ``test_y_*.py`` beside it;
3. ``xbuilder/x/__init__.py`` has the tests of ``_unittests/ut_xbuilder/x``, a ``conftest.py`` those
   beside it;
4. a module without tests of its own has those of the modules that import it: the ones of its folder,
   the others if there is none there, and those of its folder if nothing imports it. So has a file
   that tests share;
5. any other file has the tests that write its name, a page of ``_doc`` those of the documentation.

The architecture is always tested, and so is the table of the files of a folder that changes. A
change that has no test gets a short list.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from architecture_rules import imported_modules

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("xbuilder", "xoptim", "torch_interpreter")
TESTS = "_unittests"
#: always run
ALWAYS = "test_architecture"
#: folder of modules that a table lists -> the test of the table
TABLES = {
    "xbuilder/shapes/": f"{TESTS}/ut_xbuilder/shapes/test_families.py",
    "xoptim/cli/": f"{TESTS}/ut_xoptim/cli/test_main.py",
    "xoptim/patterns/": f"{TESTS}/ut_xoptim/catalogue/test_phases.py",
}
#: run when nothing maps: one test of each package, and one of the whole way
SHORT = ("test_graph_builder", "test_optimizer", "test_clip", "test_to_onnx")
#: where a branch may have started
BRANCHES = ("main", "origin/main")


def git(root: Path, *arguments: str) -> list[str]:
    """The lines a git command prints, none if it fails."""
    command = ["git", "-C", str(root), "-c", "core.quotePath=false", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files(root: Path, base: str | None = None) -> list[str]:
    """The files that differ from *base*, and those git does not know.

    :param root: a checkout
    :param base: a commit, the default is where the branch left ``main``, the last commit on ``main``
    """
    head = git(root, "rev-parse", "HEAD")
    starts = [git(root, "merge-base", "HEAD", branch) for branch in BRANCHES]
    start = base or next((s[0] for s in starts if s and s != head), "HEAD")
    changed = git(root, "diff", "--name-only", "--no-renames", start, "--")
    return sorted({*changed, *git(root, "ls-files", "--others", "--exclude-standard")})


class NearTests:
    """Maps the files of a checkout to their tests; every path is relative and has slashes."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        folders = [root / name for name in (*PACKAGES, TESTS)]
        paths = [path for folder in folders for path in folder.rglob("*.py")]
        self.sources = sorted(p.relative_to(root).as_posix() for p in paths)
        self.tests = [p for p in self.sources if is_test(p)]

    def near(self, changed: Iterable[str]) -> list[str]:
        """The tests to run after a change.

        :param changed: paths of the files
        """
        changed = list(changed)
        found = {test for path in changed for test in self.of(path)}
        tables = {TABLES[f] for f in TABLES for path in changed if path.startswith(f)}
        found |= tables & set(self.tests)
        return sorted(found | self.named(ALWAYS)) if found else self.short()

    def short(self) -> list[str]:
        """The tests of a change that has none."""
        return sorted(self.named(ALWAYS, *SHORT))

    def named(self, *names: str) -> set[str]:
        """The tests with one of these names, wherever they are."""
        return {test for test in self.tests if Path(test).stem in names}

    def of(self, path: str) -> set[str]:
        """The tests of one file."""
        if is_test(path):
            return {path} & set(self.tests)
        if path.endswith(".py") and path.split("/")[0] in (*PACKAGES, TESTS):
            return self.mirror(path) or self.of_importers(path) or self.of_folder(path)
        return self.that_write(path)

    def mirror(self, path: str) -> set[str]:
        """The tests at the place of a file: those of its folder if it is about a folder."""
        beside, name = self.of_folder(path), Path(path).stem
        if name in ("__init__", "conftest"):
            return beside
        return {test for test in beside if f"{Path(test).stem}_".startswith(f"test_{name}_")}

    def of_folder(self, path: str) -> set[str]:
        """The tests of the modules of a folder, or those beside a file of ``_unittests``."""
        package, _, inner = path.partition("/")
        place = f"{TESTS}/ut_{package}/{inner}" if package in PACKAGES else path
        return {test for test in self.tests if folder_of(test) == folder_of(place)}

    def of_importers(self, path: str) -> set[str]:
        """The tests of the modules that import a module: the nearest ones, step by step."""
        seen, paths = {path}, [path]
        while paths:
            names = {dotted(p) for p in paths}
            paths = [p for p in self.sources if p not in seen and names & self._imports(p)]
            seen.update(paths)
            here = [p for p in paths if folder_of(p) == folder_of(path)]
            for modules in ([p for p in here if not p.endswith("__init__.py")], here, paths):
                found = {test for p in modules for test in ({p} if is_test(p) else self.mirror(p))}
                if found:
                    return found
        return set()

    @cache  # noqa: B019 - one instance for each process
    def _imports(self, path: str) -> frozenset[str]:
        """The modules a file imports, and their packages."""
        tree = ast.parse((self.root / path).read_text(encoding="utf-8"))
        names = imported_modules(tree, dotted(path), path.endswith("/__init__.py"), hints=True)
        return frozenset(part for _, name, _ in names for part in (name, name.rpartition(".")[0]))

    def that_write(self, path: str) -> set[str]:
        """The tests where the name of a file stands, those of the documentation for a page."""
        file = Path(path)
        name = file.stem if file.suffix == ".py" else file.name
        word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
        texts = {test: (self.root / test).read_text(encoding="utf-8") for test in self.tests}
        found = {test for test, text in texts.items() if word.search(text)}
        return found or (self.named("test_documentation") if path.startswith("_doc/") else set())


def is_test(path: str) -> bool:
    """Whether a path is one of a file of tests."""
    return path.startswith(f"{TESTS}/") and Path(path).match("test_*.py")


def folder_of(path: str) -> str:
    """The folder of a file."""
    return path.rpartition("/")[0]


def dotted(path: str) -> str:
    """The name under which a module is imported; ``_unittests`` is in the path of python."""
    name = path.removesuffix("/__init__.py").removesuffix(".py").removeprefix(f"{TESTS}/")
    return name.replace("/", ".")


def main(arguments: list[str] | None = None) -> Iterator[str]:
    """The tests of the command line."""
    parser = argparse.ArgumentParser(description="Prints the tests near a change.")
    parser.add_argument("--base", help="a commit, the default is where the branch left main")
    base = parser.parse_args(arguments).base
    yield from NearTests().near(changed_files(ROOT, base))


if __name__ == "__main__":
    print("\n".join(main()))
