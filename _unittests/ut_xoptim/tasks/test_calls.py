"""The functions of the package: each is there, typed, and one of the commands."""

from __future__ import annotations

import onnx.parser
import pytest

import xoptim
from xoptim.cli.main import main
from xoptim.tasks import calls

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) { a = Relu(x) y = Neg(a) }"""


@pytest.mark.parametrize("name", calls.__all__)
def test_every_function(name):
    function = getattr(xoptim, name)
    assert name in xoptim.__all__ and function is getattr(calls, name)
    assert ":return:" in function.__doc__ and "return" in function.__annotations__
    others = {"convert": "optimize", "near_misses": "explain", "summary": "info"}
    assert others.get(name, name) in main.commands


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        xoptim.optimise  # noqa: B018


def test_diff():
    first, second = (onnx.parser.parse_model(t) for t in (MODEL, MODEL.replace("Neg", "Abs")))
    assert xoptim.diff(first, first).same and not xoptim.diff(first, second).same


def test_explain():
    (row,) = xoptim.explain(onnx.parser.parse_model(MODEL), "NotNot", ["a"])
    assert "is not a root of NotNot" in row["answer"]
