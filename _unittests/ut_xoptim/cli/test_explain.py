"""``xoptim explain``."""

from __future__ import annotations

import json

import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import run

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[a, b] x) => (float[a, b] y, float[b, a] t) {
    s = Transpose <perm = [1, 0]> (x)
    u = Identity (s)
    r = Transpose <perm = [1, 0]> (u)
    t = Transpose <perm = [1, 0]> (x)
    y = Neg (r)
}
"""


def answers(*args: object) -> dict[str, str]:
    rows = json.loads(run("explain", *args, "--json").stdout)
    return {r["result"]: r["answer"] for r in rows}


def test_every_root(model):
    found = answers(model, "TransposeTranspose")
    assert set(found) == {"s", "r", "t"}
    assert all("(transpose.py:" in answer for answer in found.values())


def test_after_other_patterns(model):
    """The Identity between them hides the other one."""
    found = answers(model, "TransposeTranspose", "--after", "NotNot")
    assert any(answer.startswith("MatchResult") for answer in found.values())


def test_one_node(model):
    assert list(answers(model, "TransposeTranspose", "r")) == ["r"]
    assert "is not a root" in answers(model, "TransposeTranspose", "y")["y"]


def test_table(model):
    text = run("explain", model, "TransposeTranspose").output
    assert "Transpose" in text and "answer" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Nothing"], "Nothing"),
        (["default"], "one is explained at a time"),
        (["TransposeTranspose", "nothing"], "No node is called 'nothing'"),
        (["TransposeTranspose", "--after", "Nothing"], "Nothing"),
    ],
)
def test_bad_use(model, arguments, message):
    assert message in run("explain", model, *arguments, code=2).stderr


def test_no_root(model):
    assert "the model has no Gather" in run("explain", model, "GatherGather").output


def test_one_line_for_one_answer(tmp_path):
    """The same refusal for many nodes is one line."""
    lines = " ".join(f"t{i + 1} = Transpose<perm = [1, 0, 2]>(t{i})" for i in range(5))
    text = f"g (float[a, b, c] t0) => (float[d, e, f] y) {{ {lines} y = Neg(t5) }}"
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}'), path)
    table = run("explain", path, "TransposeGather").output
    assert "t1, t2, t3 and 2 more" in table and "5 nodes" in table
    assert len(json.loads(run("explain", path, "TransposeGather", "--json").stdout)) == 5


def test_near_misses(model):
    rows = json.loads(
        run("explain", model, "--op", "Transpose", "--after", "none", "--json").stdout
    )
    assert rows and {"pattern", "visited", "reason", "count"} <= set(rows[0])
    assert "the farthest first" in run("explain", model, "--node", "y").output
    assert "no pattern declines after the first node" in run("explain", model).output
    text = run("explain", model, "TransposeTranspose", "--op", "Neg", code=2).stderr
    assert "try every pattern" in text
