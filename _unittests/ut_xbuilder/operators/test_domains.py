"""Names of domains."""

from __future__ import annotations

from xbuilder.operators.domains import main_domain


def test_the_main_domain_has_two_names():
    assert main_domain("ai.onnx") == "" and main_domain("x") == "x"
