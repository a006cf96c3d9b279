"""The fastest model is kept, the original if none is faster."""

from __future__ import annotations

import json
import math

import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import run

import xoptim
from xbuilder.errors import OptionError, XoptimError
from xoptim import MatchResult, PatternOptimization
from xoptim.tasks import keep_faster as module
from xoptim.tasks.keep_faster import ORIGINAL
from xoptim.trust.latency import Latency

#: two nodes of three are useless
TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, n] x) => (float[n, n] y) {
    a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a) y = Neg(b) }"""


class Wrong(PatternOptimization):
    """Neg(x) -> an operator that does not exist."""

    roots = ("Neg",)

    def match(self, g, node, matched):
        return MatchResult(self, [node], self.apply)

    def apply(self, g, node):
        return [g.make_node("Neg", ["missing"], list(node.output))]


def parse() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


@pytest.fixture
def ratios(monkeypatch):
    """The measures are replaced by numbers of nodes: what has fewer is faster, ones of them slow."""
    slow: set[int] = set()

    def compare(first, second, feeds, blocks, seconds):
        counts = [s.nodes for s in (first, second)]
        ratio = (counts[1] / counts[0]) * (3 if counts[1] in slow else 1)
        return Latency(1.0, ratio, ratio, ratio)

    class Session:
        def __init__(self, source, threads):
            model = (
                onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(source)
            )
            self.nodes = len(model.graph.node)

        def run(self, names, feeds):
            assert set(feeds) == {"x"}

    monkeypatch.setattr(module, "compare_sessions", compare)
    monkeypatch.setattr(module, "fast_session", Session)
    return slow


def test_the_fastest_set(ratios):
    done = xoptim.optimize(parse(), keep_faster=60.0, verify=True, sizes={"n": 3})
    first, last = done.trials[0], done.trials[-1]
    assert (first.patterns, first.nodes, first.verdict) == ("default", 1, "faster")
    assert (last.patterns, last.verdict) == ("default", "kept")
    assert [n.op_type for n in done.model.graph.node] == ["Neg"]
    assert {t.patterns for t in done.trials} >= {"default+onnxruntime", "none"}
    assert any(t.verdict == "not faster than default" for t in done.trials)
    assert done.latency is not None and done.verification is not None
    assert "kept: default, 0.333 times the time" in str(done)
    assert json.loads(json.dumps(done.to_dict()))["trials"][-1]["verdict"] == "kept"


def test_the_original(ratios, tmp_path):
    """Nothing is faster: the model is written as it is."""
    ratios.update({1, 3})
    done = xoptim.optimize(parse(), keep_faster=60.0, output=tmp_path / "o.onnx")
    assert done.trials[-1].patterns == ORIGINAL and done.latency is None
    assert "kept: the original, nothing is faster" in str(done)
    assert onnx.load(tmp_path / "o.onnx").graph.node == parse().graph.node


def test_a_pattern_that_slows(ratios):
    """With both patterns, one node is left, which is slow: without one of them, three are not."""
    text = TEXT.replace("y = Neg(b)", "c = Neg(b) d = Neg(c) y = Neg(d)")
    ratios.add(1)
    done = xoptim.optimize(
        onnx.parser.parse_model(text), patterns="TransposeTranspose", keep_faster=60.0
    )
    assert [n.op_type for n in done.model.graph.node] == ["Neg"] * 3
    assert done.trials[-1].verdict == "kept"


def test_no_time(ratios):
    done = xoptim.optimize(parse(), keep_faster=1e-9)
    assert [t.verdict for t in done.trials] == ["faster", "kept"]


def test_targets(ratios):
    done = xoptim.optimize(parse(), keep_faster=60.0, target="openvino")
    assert "default+onnxruntime" not in {t.patterns for t in done.trials}


def test_sizes_that_changed(ratios):
    """The original does not have the dimensions that are asked for."""
    ratios.update({1, 3})
    text = TEXT.replace("n, n", "4, 4")
    done = xoptim.optimize(
        onnx.parser.parse_model(text), keep_faster=60.0, dynamic={"x": ("n", "n")}
    )
    assert done.trials[-1].patterns == ORIGINAL
    assert done.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_failures(ratios, monkeypatch):
    with pytest.raises(XoptimError):
        xoptim.optimize(parse(), patterns=[Wrong()], keep_faster=60.0)
    run_task = module.Optimization.run

    def fail(task):
        if task.patterns is None:
            raise OptionError("no such set\nmore")
        return run_task(task)

    monkeypatch.setattr(module.Optimization, "run", fail)
    done = xoptim.optimize(parse(), keep_faster=60.0)
    (failed,) = (t for t in done.trials if t.patterns == "none")
    assert failed.verdict == "fails: no such set" and math.isnan(failed.ratio)


def test_command(tmp_path):
    path, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(parse(), path)
    options = ("--keep-faster", "--budget", "0.001", "--dim", "n=300")
    done = json.loads(run("optimize", path, out, *options, "--json").stdout)
    assert done["trials"][-1]["patterns"] in ("default", ORIGINAL) and out.exists()
