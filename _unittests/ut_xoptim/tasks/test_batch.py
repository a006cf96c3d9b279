"""``xoptim.batch``: what is done, what is left, what fails."""

from __future__ import annotations

import json
import os

import onnx
import pytest

import xoptim
from xbuilder.errors import OptionError
from xoptim.catalogue import registry
from xoptim.tasks.many.places import file_system

MODEL = """<ir_version: 8, opset_import: ["" : 20]>
g (float[n, 4] x) => (float[n, 4] y) {{ t = Identity(x) y = {}(t) }}"""
#: patterns that wrong models meet
PATTERNS = '''
import os, signal, time
from xoptim import rewrite

@rewrite(root="Erf")
def die(g, node):
    """Kills the process."""
    os.kill(os.getpid(), signal.SIGSEGV)

@rewrite(root="Gelu")
def slow(g, node):
    """Takes too long."""
    time.sleep(100)

@rewrite(root="Sin")
def wrong(g, node):
    """Sin(x) -> Cos(x)."""
    return g.op.Cos(node.input[0])
'''


def content(op_type="Neg"):
    return onnx.parser.parse_model(MODEL.format(op_type)).SerializeToString()


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Patterns read from files are forgotten after each test."""
    monkeypatch.setattr(registry, "PATTERNS", registry.pattern_database().copy())


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    for name, op_type in {"a": "Neg", "b": "Abs", "deep/c": "Exp"}.items():
        path = folder / f"{name}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(op_type))
    return folder


def states(report):
    return {row["name"]: row["state"] for row in report.rows}


def test_a_folder(models, tmp_path):
    seen = []
    done = xoptim.batch(
        models, tmp_path / "out", jobs=1, on_done=lambda row, n, total: seen.append((n, total))
    )
    assert done.ok and seen == [(1, 3), (2, 3), (3, 3)]
    assert states(done) == dict.fromkeys(["a.onnx", "b.onnx", "deep/c.onnx"], "optimized")
    ops = [n.op_type for n in onnx.load(tmp_path / "out" / "deep" / "c.onnx").graph.node]
    assert ops == ["Exp"]
    assert [(r["nodes_before"], r["nodes_after"]) for r in done.rows] == [(2, 1)] * 3


def test_only_what_changed_is_done_again(models, tmp_path):
    out = tmp_path / "out"

    def again(**options):
        return [r["state"][:2] for r in xoptim.batch(models, out, jobs=1, **options).rows]

    assert again() == ["op"] * 3
    (models / "a.onnx").write_bytes(content("Cos"))
    (out / "b.onnx").unlink()
    assert again() == ["op", "op", "up"], "another content, no output"
    assert again() == ["up"] * 3
    assert again(patterns="default+onnxruntime") == ["op"] * 3
    assert again(patterns="default+onnxruntime", force=True) == ["op"] * 3
    (out / ".xoptim" / "a.onnx.json").write_text("{")
    assert again(patterns="default+onnxruntime") == ["op", "up", "up"], "a damaged record"


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_failures_are_rows(models, tmp_path):
    """A process that dies or takes too long, wrong results, no model: the others are done."""
    for name, op_type in {"dead": "Erf", "slow": "Gelu", "wrong": "Sin"}.items():
        (models / f"{name}.onnx").write_bytes(content(op_type))
    (models / "none.onnx").write_text("no model")
    patterns = tmp_path / "patterns.py"
    patterns.write_text(PATTERNS, encoding="utf-8")
    options = {"patterns": "default+Die+Slow+Wrong", "load": [patterns], "verify": True}
    done = xoptim.batch(models, tmp_path / "out", jobs=1, timeout=20, **options)
    assert not done.ok
    assert [name for name, state in states(done).items() if state == "optimized"] == [
        "a.onnx", "b.onnx", "deep/c.onnx",
    ]  # fmt: skip
    errors = {row["name"]: (row["kind"], row["error"]) for row in done.failed}
    assert errors["dead.onnx"][0] == "LostProcess" and "SIGSEGV" in errors["dead.onnx"][1]
    assert errors["slow.onnx"] == ("LostProcess", "stopped, it took more than 20 s")
    assert errors["wrong.onnx"][0] == "VerificationError"
    assert errors["none.onnx"][0] == "InvalidModelError"
    assert not (tmp_path / "out" / "wrong.onnx").exists()
    assert done.rows[0]["max_rel"] == 0


def test_addresses(tmp_path):
    """The memory of this process is read and written by this process."""
    pytest.importorskip("fsspec")
    system, _ = file_system("memory://")
    try:
        system.pipe_file("/zoo/deep/a.onnx", content())
        out = "memory://small"
        assert states(xoptim.batch("memory://zoo", out, pages=True)) == {"deep/a.onnx": "optimized"}
        assert states(xoptim.batch("memory://zoo", out, pages=True)) == {
            "deep/a.onnx": "up to date"
        }
        assert len(onnx.load_from_string(system.cat_file("/small/deep/a.onnx")).graph.node) == 1
        assert b"<html" in system.cat_file("/small/deep/a.onnx.html")
        done = xoptim.batch("memory://zoo", tmp_path / "out")
        assert done.ok and (tmp_path / "out" / "deep" / "a.onnx").exists()
    finally:
        system.store.clear()


def test_wrong_options_are_told_once(models, tmp_path):
    for options, message in [
        ({"procesor": "CPU"}, "batch has no option 'procesor', did you mean processor"),
        ({"output": 1, "patterns": "defalt"}, "multiple values"),
        ({"patterns": "defalt"}, "defalt"),
        ({"dask": "tcp://127.0.0.1:1"}, "no dask scheduler answers"),
    ]:
        with pytest.raises((OptionError, TypeError), match=message):
            xoptim.batch(models, tmp_path / "out", **options)


def test_sizes_are_for_the_models_that_have_the_dimension(tmp_path):
    path = tmp_path / "models" / "fixed.onnx"
    path.parent.mkdir()
    fixed = MODEL.replace("float[n, 4]", "float[3, 4]").format("Neg")
    path.write_bytes(onnx.parser.parse_model(fixed).SerializeToString())
    path.with_name("free.onnx").write_bytes(content())
    done = xoptim.batch(path.parent, tmp_path / "out", jobs=1, verify=True, sizes={"n": 2})
    assert done.ok, done.failed


def test_the_report(models, tmp_path):
    (models / "a<b>.onnx").write_text("no model")
    done = xoptim.batch(models, tmp_path / "out", jobs=1, pages=True, measure=True)
    text = str(done)
    assert "4 models: 3 optimized, 1 failed" in text and "2 -> 1" in text and "ratio" in text
    assert "a<b>.onnx: " in text, "the error has a line"
    done.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'href="out/deep/c.onnx.html"' in page and "a&lt;b&gt;.onnx" in page
    assert (tmp_path / "out" / "deep" / "c.onnx.html").exists() and "a<b>" not in page
    done.report(tmp_path / "report.json")
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert not found["ok"] and len(found["models"]) == 4
    with pytest.raises(OptionError, match=r"\.html, \.htm, \.json"):
        done.report(tmp_path / "report.pdf")
    assert list(done.statistics["state"]).count("failed") == 1
    assert "3 optimized" in done._repr_html_()
