"""``xoptim kernels``."""

from __future__ import annotations

import json

from ut_xoptim.cli.command_line import run


def test_one_operator():
    text = run("kernels", "--op", "Relu").output
    assert "onnxruntime" in text and "14+" in text and "int8" in text and "Gelu" not in text


def rows_of(op_type: str) -> list[tuple[str, str]]:
    found = json.loads(run("kernels", "--op", op_type, "--json").stdout)
    return [(r["opset"], r["by"]) for r in found["kernels"] if r["operator"] == op_type]


def test_operators_without_kernel():
    """A session refuses Swish from opset 25: the operators of its function changed."""
    assert rows_of("Swish") == [("24", "function")]
    assert "no kernel for 'SwiGLU'" in run("kernels", "--op", "SwiGLU", code=2).stderr


def test_kernels_stop_at_the_next_definition():
    """No kernel is closed, none is for the definition of opset 25."""
    assert rows_of("Attention") == [
        ("23", "kernel"),
        ("23", "kernel"),
        ("24", "kernel"),
        ("24", "kernel"),
        ("23-24", "function"),
        ("25+", "function"),
    ]
    assert rows_of("RoiAlign")[-1] == ("10-21", "cast")
    assert rows_of("Softmax")[-1] == ("13+", "function")


def test_domain_and_processor():
    found = json.loads(run("kernels", "--op", "Gelu", "--processor", "CUDA", "--json").stdout)
    assert found["provider"] == "CUDAExecutionProvider"
    assert [r["operator"] for r in found["kernels"]] == ["com.microsoft::Gelu"]
    assert "float16" in found["kernels"][0]["types"]
    same = json.loads(run("kernels", "--op", "com.microsoft::Gelu", "--json").stdout)
    assert {r["operator"] for r in same["kernels"]} == {"com.microsoft::Gelu"}


def test_all():
    found = json.loads(run("kernels", "--json").stdout)
    names = {r["operator"] for r in found["kernels"]}
    assert {"Abs", "ai.onnx.ml::LinearRegressor", "com.microsoft::FusedConv"} <= names


def test_all_in_a_table():
    """The longest types take no room from the other columns."""
    lines = run("kernels").output.splitlines()
    assert any(line.split()[:3] == ["com.microsoft::FusedConv", "│", "1+"] for line in lines)


def test_unknown_operator():
    assert "no kernel for 'Nothing'" in run("kernels", "--op", "Nothing", code=2).stderr
