"""Tests of xbuilder.support.lazy_names: the public names of the packages, imported on use."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import xbuilder
import xoptim
import xoptim.authoring
import xoptim.catalogue
import xoptim.toolkit.features
from xbuilder.support.lazy_names import lazy_names, read_stub

PACKAGES = (
    xbuilder,
    xoptim,
    xoptim.authoring,
    xoptim.catalogue,
    xoptim.toolkit,
    xoptim.toolkit.features,
)


def seen_by_type_checkers(package) -> dict[str, str]:
    """The names the stub of a package exports, with their modules."""
    text = Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    found = {}
    for node in ast.parse(text).body:
        assert isinstance(node, ast.ImportFrom), ast.unparse(node)
        for alias in node.names:
            assert alias.asname == alias.name, "otherwise, type checkers do not export it"
            found[alias.name] = "." * node.level + (node.module or "")
    return found


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_the_names_are_those_type_checkers_see(package):
    homes = seen_by_type_checkers(package)
    text = Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert read_stub(text) == homes and sorted(homes) == package.__all__
    # a module that is imported becomes an attribute of its package, in place of the name
    modules = {info.name for info in pkgutil.iter_modules(package.__path__)}
    assert modules & set(homes) == {name for name, home in homes.items() if home == "."}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_every_name_is_there(package):
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)
        assert name in dir(package)
    with pytest.raises(AttributeError, match=rf"'{package.__name__}' has no attribute 'nothing'"):
        _ = package.nothing
    with pytest.raises(ImportError, match="nothing"):
        exec(f"from {package.__name__} import nothing")


def test_a_name_is_imported_once(tmp_path):
    lines = ["from .support.rows import complete_rows as complete_rows"]
    lines += ["from . import options as options", "from .errors import (", "    A as A,", ")"]
    (tmp_path / "__init__.pyi").write_text("\n".join(lines))
    get, _, names = lazy_names("xbuilder", str(tmp_path / "__init__.py"))
    assert names == ["A", "complete_rows", "options"]
    assert get("complete_rows") is xbuilder.complete_rows
    assert get("options") is sys.modules["xbuilder.options"]
    del xbuilder.complete_rows


def test_importing_the_packages_imports_no_module_of_theirs():
    code = (
        "import sys, xbuilder, xoptim; "
        "print(sorted(m for m in sys.modules if m.startswith(('xbuilder', 'xoptim', 'onnx', 'numpy'))))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    few = ["xbuilder", "xbuilder.support", "xbuilder.support.lazy_names", "xoptim"]
    assert ast.literal_eval(out.stdout) == few


def test_a_package_in_a_zip(tmp_path):
    """As in an application that is one file."""
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("boxed/__init__.pyi", "from .two import TWO as TWO\n")
        archive.writestr("boxed/two.py", "TWO = 2\n")
        text = "from xbuilder.support.lazy_names import lazy_names\n\n"
        text += "__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)\n"
        archive.writestr("boxed/__init__.py", text)
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'app.zip')!r}); "
    code += "import boxed; assert (boxed.TWO, boxed.__all__) == (2, ['TWO'])"
    subprocess.run([sys.executable, "-c", code], check=True)
