"""One call: the forms of a model it takes, what it gives, what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import pytest

import xoptim
from xbuilder.errors import InvalidModelError, OptionError, XoptimError
from xoptim import MatchResult, PatternOptimization
from xoptim.trust.verification import VerificationError
from xoptim.trust.windows.validation import WrongRewriteError

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) {
    a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a) y = Floor(b) }"""


class Wrong(PatternOptimization):
    """Floor(x) -> Ceil(x), which is wrong."""

    roots = ("Floor",)

    def match(self, g, node, matched):
        return MatchResult(self, [node], self.apply)

    def apply(self, g, node):
        return [g.make_node("Ceil", list(node.input), list(node.output))]


def parse() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


def types(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("form", ["proto", "bytes", "path", "text", "ir"])
def test_forms_of_a_model(form, tmp_path):
    model = parse()
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    if form == "ir":
        model = pytest.importorskip("onnx_ir", reason="its models are read").from_proto(model)
    forms = {"bytes": path.read_bytes(), "path": path, "text": str(path)}
    done = xoptim.optimize(forms.get(form, model))
    assert types(done.model) == ["Floor"]
    assert done.before.graph.name == "g" and done.name == (
        str(path) if form in ("path", "text") else "g"
    )


def test_result(tmp_path):
    done = xoptim.optimize(
        parse(), verify=True, validate=True, measure=True, sizes={"n": 3},
        output=tmp_path / "o.onnx",
    )  # fmt: skip
    assert types(onnx.load(tmp_path / "o.onnx")) == ["Floor"]
    assert done.verification is not None and done.verification.sizes == {"n": 3}
    assert done.validation is not None and done.validation.counts() == {"right": 1}
    assert done.latency is not None
    assert [(m.model, m.nodes) for m in done.latency] == [("before", 3), ("after", 1)]
    assert done.latency[0].sizes == {"x": [3, 4]}
    info = json.loads(json.dumps(done.to_dict()))
    assert (info["nodes_before"], info["nodes_after"], info["patterns"]) == (3, 1, "default")
    assert info["latency"][1]["nodes"] == 1
    statistics = done.statistics
    assert "apply_TransposeTranspose" in set(statistics["pattern"]) and len(done.rows) == len(
        statistics
    )
    done.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for text in (page, str(done), done._repr_html_()):
        assert "TransposeTranspose" in text and "same results" in text and "latency" in text.lower()
    assert done._repr_html_().startswith("<pre") and "\x1b" not in str(done)
    (row,) = done.save(tmp_path / "again.onnx")
    assert row["path"] == str(tmp_path / "again.onnx") and row["bytes"] > 0


def test_nothing_is_written_when_it_is_wrong(tmp_path):
    with pytest.raises(VerificationError, match="differ on 1 of 1"):
        xoptim.optimize(parse(), patterns=[Wrong()], verify=True, output=tmp_path / "o.onnx")
    with pytest.raises(WrongRewriteError, match="Rewrite Wrong is wrong"):
        xoptim.optimize(parse(), patterns=[Wrong()], validate=True, output=tmp_path / "o.onnx")
    assert not list(tmp_path.iterdir())


def test_no_pattern():
    for nothing in (None, "none"):
        assert types(xoptim.optimize(parse(), patterns=nothing).model) == types(parse())


def test_inputs():
    inputs = {"x": np.array([[0.5, 1.5, -2.5, 3]], np.float32)}
    done = xoptim.optimize(parse(), inputs=inputs, verify=True)
    assert done.verification is not None and done.verification.rows[0].shape == (1, 4)


def test_options():
    done = xoptim.optimize(parse(), target_opset=21)
    assert done.to_dict()["opset_before"] == 18 and done.to_dict()["opset_after"] == 21


def test_refusals():
    with pytest.raises(OptionError, match="no option 'pattern'"):
        xoptim.optimize(parse(), pattern="default")
    with pytest.raises(OptionError, match="sizes: nothing is run"):
        xoptim.optimize(parse(), sizes={"n": 3})
    with pytest.raises(OptionError, match="for a torch module"):
        xoptim.optimize(parse(), (1,))
    with pytest.raises(XoptimError, match="3 bytes are no ONNX model"):
        xoptim.optimize(b"abc")
    with pytest.raises(InvalidModelError, match=r"missing\.onnx"):
        xoptim.optimize("missing.onnx")


def test_torch_module():
    torch = pytest.importorskip("torch", reason="a module is converted")

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x.T.T + 0)

    x = torch.rand(3, 4)
    done = xoptim.optimize(Model(), (x,), dynamic_shapes=({0: "n"},), verify=True)
    assert types(done.model) == ["Relu"]
    with pytest.raises(OptionError, match="give args="):
        xoptim.optimize(Model())


def test_the_other_set_is_told():
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[b, n, 4] x, float[b, m, 4] z) => (float[b, n, m] y) {
        t = Transpose<perm = [0, 2, 1]>(z) y = MatMul(x, t) }"""
    model = onnx.parser.parse_model(text)
    done = xoptim.optimize(model)
    assert done.other_matches == 1 and "rewrites 1 node more: default+onnxruntime" in str(done)
    assert types(done.model) == ["Transpose", "MatMul"]
    done = xoptim.optimize(model, patterns="default+onnxruntime")
    assert done.other_matches == 0 and "more: " not in str(done)


def test_a_call_imports_what_it_runs(tmp_path):
    """Neither the other functions of the package nor what checks a model."""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    code = (
        "import sys, xoptim; xoptim.optimize(sys.argv[1])\n"
        "heavy = ('onnxruntime', 'xoptim.linting', 'xoptim.trust.sessions', 'xoptim.trust.windows',\n"
        "         'xoptim.tasks.batch', 'xoptim.tasks.keep_faster', 'xoptim.tasks.measure')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]", out.stderr
