"""The table of the families is that of the functions their modules register."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import xbuilder.shapes
from xbuilder.errors import OptionError
from xbuilder.shapes import families, get_shape_function, register_shape_function, registry

#: registers the functions of every module, one after the other, and notes which one does
WALK = """
import sys
from importlib import import_module
from pkgutil import walk_packages
import xbuilder.shapes
from xbuilder.shapes import registry

homes, add = {}, registry.add_function

def noted(op_type, function, domain="", since=1, replace=False):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] in ("xbuilder.shapes.registry", "xbuilder.shapes.shipped"):
        frame = frame.f_back
    homes[domain, op_type] = frame.f_globals["__name__"].removeprefix("xbuilder.shapes.")
    return add(op_type, function, domain, since, replace)

registry._TABLE.clear()
for name in [m for m in sys.modules if m.startswith("xbuilder.shapes.") and m.count(".") == 3]:
    del sys.modules[name]  # imported before the functions are noted
import xbuilder.shapes.shipped as shipped
shipped.add_function = noted
for info in walk_packages(xbuilder.shapes.__path__, "xbuilder.shapes."):
    import_module(info.name)
print(sorted((m, d, o) for (d, o), m in homes.items()))
"""


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(xbuilder.__file__).parents[1],
    ).stdout.strip()


def test_the_table_is_complete():
    """A module that registers a function names its operator in families.py."""
    found = set(eval(run(WALK)))
    assert len(found) > 370
    named = {(m, d, o) for (d, o), m in families.HOMES.items()}
    missing, unused = found - named, named - found
    assert not missing, "add them to families.py"
    assert not unused, "no function is registered for them"


def test_a_family_is_imported_when_it_is_asked_for():
    code = (
        "import sys; from xbuilder.shapes import get_shape_function as get; "
        "before = 'xbuilder.shapes.layers.rnn' in sys.modules; "
        "print(before, get('', 'LSTM', 18).__module__, 'xbuilder.shapes.domains.ml' in sys.modules)"
    )
    assert run(code) == "False xbuilder.shapes.layers.rnn False"


def test_a_user_cannot_take_the_place_of_a_family_unseen():
    """The function of the project is known even if nothing asked for it before."""
    code = (
        "from xbuilder.shapes import register_shape_function as register, get_shape_function as get\n"
        "from xbuilder.errors import OptionError\n"
        "try: register('GRU', lambda ctx: None)\n"
        "except OptionError as e: print(e)\n"
        "register('GRU', mine := lambda ctx: None, since=14)\n"
        "print(get('', 'GRU', 13).__module__, get('', 'GRU', 14) is mine)"
    )
    refused, found = run(code).splitlines()
    assert "already registered for 'GRU'" in refused and "rnn" in refused
    assert found == "xbuilder.shapes.layers.rnn True"


def test_a_function_registered_twice_is_refused():
    assert get_shape_function("", "Relu", 18) is not None
    with pytest.raises(OptionError, match="already registered for 'Relu'"):
        register_shape_function("Relu", lambda ctx: None)
    assert ("", "Relu") in registry._TABLE
