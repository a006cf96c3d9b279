"""Finding the rewrite to blame."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.parser
import pytest
from click.testing import CliRunner

from xoptim import MatchResult, PatternOptimization, get_pattern_list
from xoptim.cli.main import main
from xoptim.trust import bisection
from xoptim.trust.bisection import bisect_rewrites, find_wrong_rewrite
from xoptim.trust.sessions import session_process
from xoptim.trust.sessions.session_process import start_child
from xoptim.trust.verification import VerificationError
from xoptim.trust.windows import sessions
from xoptim.trust.windows.sessions import shared_sessions

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) {
    t1 = Transpose<perm: ints = [1, 0]>(x)
    t2 = Transpose<perm: ints = [1, 0]>(t1)
    a = Sigmoid(t2)
    b = Neg(a)
    c = Transpose<perm: ints = [1, 0]>(b)
    d = Transpose<perm: ints = [1, 0]>(c)
    e = Floor(d)
    y = Neg(e)
}
"""


class WrongPattern(PatternOptimization):
    """Floor(x) -> Ceil(x), which is wrong."""

    roots = ("Floor",)

    def match(self, g, node, matched):
        return MatchResult(self, [node], self.apply)

    def apply(self, g, node):
        return [g.make_node("Ceil", list(node.input), list(node.output))]


class UnknownOpPattern(WrongPattern):
    """Floor(x) -> an operator that does not exist."""

    def apply(self, g, node):
        return [g.make_node("FloorSpecial", list(node.input), list(node.output), domain="nobody")]


def parse() -> onnx.ModelProto:
    return onnx.parser.parse_model(MODEL)


def test_right_patterns():
    assert find_wrong_rewrite(parse(), "TransposeTranspose") is None


def test_a_right_model_is_optimized_twice(monkeypatch):
    """Once for its results and the places of its rewrites, once for their windows."""
    made = []
    original = bisection.GraphBuilder
    monkeypatch.setattr(
        bisection, "GraphBuilder", lambda *a, **k: made.append(0) or original(*a, **k)
    )
    done = bisect_rewrites(parse(), "TransposeTranspose")
    assert (done.rewrites, done.runs, done.windows.counts()) == (2, 1, {"right": 2})
    assert len(made) == 2


def test_one_process_runs_the_model_and_the_windows(monkeypatch):
    started = []

    def start():
        started.append(start_child())
        return started[-1]

    monkeypatch.setattr(session_process, "start_child", start)
    monkeypatch.setattr(sessions, "start_child", start)
    shared_sessions().end()
    done = bisect_rewrites(onnx.parser.parse_model(MODEL), isolated=True)
    assert done.wrong is None and done.windows.certificates
    (process,) = started
    assert process.poll() is None, "the next windows need it"


@pytest.mark.parametrize("order", [0, 1])
def test_wrong_pattern_is_named(order, tmp_path):
    patterns = ["TransposeTranspose", WrongPattern()]
    wrong = find_wrong_rewrite(parse(), patterns[::-1] if order else patterns, folder=tmp_path)
    assert wrong is not None
    assert wrong.patterns == ["Wrong"]
    assert wrong.position >= 1
    assert "'y'" in wrong.reason
    assert wrong.report is not None and not wrong.report.ok
    assert sorted(p.name.split("_")[-1] for p in wrong.files) == ["after.onnx", "before.onnx"]
    types = {p.name.split("_")[-1]: onnx.load(p).graph.node[0].op_type for p in wrong.files}
    assert types == {"before.onnx": "Floor", "after.onnx": "Ceil"}


def test_a_model_that_does_not_run_is_wrong():
    wrong = find_wrong_rewrite(parse(), ["TransposeTranspose", UnknownOpPattern()])
    assert wrong is not None
    assert wrong.patterns == ["UnknownOp"]
    assert "does not load" in wrong.reason and wrong.report is None


class OtherShapePattern(WrongPattern):
    """Floor(x) -> Size(x), of another type."""

    def apply(self, g, node):
        return [g.make_node("Size", list(node.input), list(node.output))]


def test_a_rule_of_the_engine_is_broken():
    """The rewrite is named, it is no failure of the search."""
    wrong = find_wrong_rewrite(
        parse(), [*get_pattern_list("TransposeTranspose"), OtherShapePattern()]
    )
    assert wrong is not None and wrong.patterns == ["OtherShape"] and wrong.report is None
    assert wrong.position == 3 and "changes the type or the shape" in wrong.reason


class EndlessPattern(WrongPattern):
    """Sigmoid(x) -> Sigmoid(Max(x, 0)), again and again, in both branches."""

    roots = ("Sigmoid",)

    def apply(self, g, node):
        name = g.unique_name("m")
        zero = g.make_initializer("zero", np.array(0, dtype=np.float32))
        return [
            g.make_node("Max", [node.input[0], zero], [name]),
            g.make_node("Sigmoid", [name], list(node.output)),
        ]


def test_a_wrong_rewrite_after_one_that_never_ends():
    """The graph where it never ends is put back, that of the other branch is wrong at once."""
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[n] x, bool c) => (float[n] y) {
        y = If(c) <
            then_branch = t () => (float[n] o) { a = Abs(x)  o = Sigmoid(a) },
            else_branch = e () => (float[n] o) { o = Sigmoid(x) }
        >
    }"""
    wrong = find_wrong_rewrite(onnx.parser.parse_model(text), [EndlessPattern()])
    assert wrong is not None and wrong.patterns == ["Endless"] and "is wrong" in wrong.reason


def test_inside_a_subgraph():
    body = "f = Floor(x)\n"
    text = f"""
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[n] x, bool c) => (float[n] y) {{
        y = If(c) <
            then_branch = t () => (float[n] o) {{ {body} o = Neg(f) }},
            else_branch = e () => (float[n] o) {{ {body} o = Abs(f) }}
        >
    }}"""
    wrong = find_wrong_rewrite(onnx.parser.parse_model(text), [WrongPattern()])
    assert wrong is not None and wrong.patterns == ["Wrong"]


def test_a_broken_original_is_not_a_rewrite():
    model = onnx.parser.parse_model(MODEL.replace("Sigmoid(t2)", "nobody.Op(t2)"))
    model.opset_import.add(domain="nobody", version=1)
    with pytest.raises(VerificationError, match="first model"):
        find_wrong_rewrite(model, [WrongPattern()])


def test_passes_may_be_to_blame(monkeypatch):
    from xbuilder import GraphBuilder

    wrong_model = onnx.parser.parse_model(MODEL.replace("Floor", "Ceil"))
    monkeypatch.setattr(GraphBuilder, "to_onnx", lambda *_, **__: (wrong_model, []))
    wrong = find_wrong_rewrite(parse(), "TransposeTranspose")
    assert wrong is not None and wrong.position == 0 and wrong.patterns == []


def test_command(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    onnx.save(parse(), path)
    args = ["bisect", str(path), "-p", "TransposeTranspose", "--dim", "n=3"]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0
    assert "every rewrite is right: 2 rewrites, 1 output compared, n=3, largest" in done.output
    info = json.loads(CliRunner().invoke(main, [*args, "--json"]).stdout)
    assert info["ok"] is True and (info["rewrites"], info["models_compared"]) == (2, 1)
    assert info["sizes"] == {"n": 3} and [row["output"] for row in info["outputs"]] == ["y"]

    import xoptim.cli.bisect as module

    def with_wrong(model, patterns, **kwargs):
        return bisect_rewrites(model, [patterns, WrongPattern()], **kwargs)

    monkeypatch.setattr(module, "bisect_rewrites", with_wrong)
    folder = tmp_path / "wrong"
    failed = CliRunner().invoke(main, [*args, "-o", str(folder)])
    assert failed.exit_code == 1
    assert "Wrong" in failed.stdout and len(list(folder.iterdir())) == 2
    info = json.loads(CliRunner().invoke(main, [*args, "--json"]).stdout)
    assert info["ok"] is False and info["patterns"] == ["Wrong"]
    assert info["rewrites"] == 3 and info["models_compared"] > 2 and info["max_rel"] > 0
