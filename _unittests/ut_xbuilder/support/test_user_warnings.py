"""Warnings that point at the code of the user."""

from __future__ import annotations

import onnx.parser
import pytest

from xbuilder import GraphBuilder
from xbuilder.support.user_warnings import warn_user


def test_the_line_is_the_user_s():
    with pytest.warns(UserWarning, match="hello") as found:
        warn_user("hello")
    assert found[0].filename == __file__


def test_a_warning_from_deep_inside():
    text = "g (float[n, 2] x) => (float[n, 3] y) { y = Abs(x) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {text}')
    with pytest.warns(UserWarning, match="declares something else") as found:
        GraphBuilder(model)
    assert {w.filename for w in found} == {__file__}
