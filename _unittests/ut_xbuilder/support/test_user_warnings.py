"""Warnings that point at the code of the user."""

from __future__ import annotations

import contextlib

import onnx.parser
import pytest

from xbuilder import GraphBuilder
from xbuilder.support.user_warnings import warn_user


def test_the_line_is_the_user_s():
    with pytest.warns(UserWarning, match="hello") as found:
        warn_user("hello")
    assert found[0].filename == __file__


def test_decorators_are_no_user():
    """A context manager that decorates a function of the project is between it and the user."""

    @contextlib.contextmanager
    def around():
        yield

    code = compile("def inside(warn):\n    warn('hello')", "inside.py", "exec")
    names = {"__name__": "xoptim.inside"}
    exec(code, names)
    with pytest.warns(UserWarning, match="hello") as found:
        around()(names["inside"])(warn_user)
    assert found[0].filename == __file__


def test_a_warning_from_deep_inside():
    text = "g (float[n, 2] x) => (float[n, 3] y) { y = Abs(x) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {text}')
    with pytest.warns(UserWarning, match="declares something else") as found:
        GraphBuilder(model)
    assert {w.filename for w in found} == {__file__}
