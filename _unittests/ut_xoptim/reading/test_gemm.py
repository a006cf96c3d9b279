"""Attributes of Gemm."""

from __future__ import annotations

import onnx.helper as oh
import pytest
from ut_xoptim.toy_patterns import toy_optimizer

from xoptim.reading.gemm import is_plain


@pytest.mark.parametrize(
    ("op_type", "attributes", "names", "expected"),
    [
        ("MatMul", {}, (), True),
        ("Gemm", {}, (), True),
        ("Gemm", {"alpha": 1.0, "transB": 0}, (), True),
        ("Gemm", {"transB": 1}, (), False),
        ("Gemm", {"transB": 1}, ("alpha", "beta"), True),
        ("Gemm", {"beta": 0.5}, ("alpha", "beta"), False),
    ],
)
def test_is_plain(
    op_type: str, attributes: dict[str, float], names: tuple[str, ...], expected: bool
) -> None:
    node = oh.make_node(op_type, ["a", "b"], ["c"], **attributes)
    assert is_plain(toy_optimizer(), node, *names) == expected
