"""Operators that give the same results each time, and those that do not."""

from __future__ import annotations

import onnx.helper as oh
import pytest

from xbuilder.nodes.determinism import is_deterministic


@pytest.mark.parametrize(
    "op_type,domain,attributes,inputs,opset,expected",
    [
        ("Add", "", {}, 2, 18, True),
        ("RandomNormal", "", {}, 0, 18, False),
        ("Dropout", "", {}, 1, 18, True),
        ("Dropout", "", {}, 3, 18, False),
        ("Dropout", "", {}, 1, 6, False),
        ("Dropout", "", {"is_test": 1}, 1, 6, True),
        ("MyRandomOp", "d", {}, 1, 1, False),
        ("BiasDropout", "com.microsoft", {}, 1, 1, False),
        ("Other", "d", {"seed": 1}, 1, 1, False),
        ("Other", "d", {}, 1, 1, True),
    ],
)
def test_deterministic(op_type, domain, attributes, inputs, opset, expected):
    names = [f"i{i}" for i in range(inputs)]
    node = oh.make_node(op_type, names, ["y"], domain=domain, **attributes)
    assert is_deterministic(node, op_type, domain, opset) is expected
