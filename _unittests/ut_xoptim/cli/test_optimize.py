"""``xoptim optimize``: what it writes, what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx.parser
import pytest
from click.testing import CliRunner
from onnx import TensorProto
from ut_xoptim.cli.command_line import (
    TRANSPOSES,
    cycle,
    files,
    functions,
    missing_external,
    not_onnx,
    one_node,
    ops,
    parse,
    run,
)

from xbuilder.files.model_container import ModelContainer
from xoptim.cli.main import main

MODEL = TRANSPOSES


def test_optimize(model, tmp_path):
    content = model.read_bytes()
    out = tmp_path / "out.onnx"
    result = run("optimize", model, "-o", out)
    assert ops(out) == ["Neg"]
    assert "nodes:   4 -> 1 (-75.0%)" in result.output
    assert "TransposeTranspose" in result.output
    assert f"wrote {out}" in result.output.replace("\n", "")
    assert model.read_bytes() == content
    assert files(tmp_path) == {"model.onnx", "out.onnx"}


@pytest.mark.parametrize("start", [["optimize"], []])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_output_without_option(start, options, model, tmp_path):
    """As onnxsim and onnxslim: the model to read, the model to write."""
    out = tmp_path / "out.onnx"
    run(*start, model, out, *options)
    assert ops(out) == ["Neg"]
    out.unlink()
    run(*start, model, *options, "-o", out)
    assert ops(out) == ["Neg"]


def test_optimize_verify_and_stats(model, tmp_path):
    out, stats = tmp_path / "out.onnx", tmp_path / "stats.csv"
    result = run(
        "optimize", model, "-o", out, "--patterns", "default+onnxruntime", "--verify",
        "--dim", "batch=3", "--dim", "seq=5", "--stats", stats,
    )  # fmt: skip
    assert "same results" in result.output
    assert "batch=3" in result.output and "[3, 5, 4]" in result.output
    with stats.open(encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert {"pattern", "time_in", "added", "removed"} <= set(rows[0])
    assert any("TransposeTranspose" in row["pattern"] for row in rows)


def test_optimize_json(model, tmp_path):
    out, stats = tmp_path / "out.onnx", tmp_path / "stats.json"
    result = run("optimize", model, "-o", out, "--json", "--verify", "--stats", stats, "-v")
    info = json.loads(result.stdout)
    assert info["ok"] is True
    assert (info["nodes_before"], info["nodes_after"]) == (4, 1)
    assert (info["constant_nodes_before"], info["constant_nodes_after"]) == (0, 0)
    assert {"op_type": "Transpose", "before": 2, "after": 0, "delta": -2} in info["op_types"]
    assert info["verification"]["ok"] is True
    assert info["verification"]["outputs"][0]["output"] == "y"
    assert isinstance(json.loads(stats.read_text()), list)


def test_optimize_without_patterns(model, tmp_path):
    out = tmp_path / "out.onnx"
    run("optimize", model, "-o", out, "--patterns", "none")
    assert ops(out) == ["Transpose", "Transpose", "Neg"]
    run("optimize", model, "-o", out, "--patterns", "default-TransposeTranspose")
    assert ops(out).count("Transpose") == 2


def test_dry_run_writes_nothing(model, tmp_path):
    result = run("optimize", model, "--dry-run", "--verify")
    assert "4 -> 1" in result.output
    assert files(tmp_path) == {"model.onnx"}


def test_external_data_follows(tmp_path):
    weights = np.arange(5000, dtype=np.float32)
    proto = one_node("Add", inputs=["x", "w"])
    proto.graph.initializer.append(onh.from_array(weights, "w"))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5000
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 5000
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    onnx.save(proto, source / "m.onnx", save_as_external_data=True, location="m.data")
    run("optimize", source / "m.onnx", "-o", target / "o.onnx", "--verify")
    found = onh.to_array(onnx.load(target / "o.onnx").graph.initializer[0])
    assert np.array_equal(found, weights)


def test_weights_behind_a_link_need_a_data_root(tmp_path):
    cache, folder = tmp_path / "blobs", tmp_path / "snapshot"
    cache.mkdir()
    folder.mkdir()
    proto = one_node("Add", inputs=["x", "w"])
    proto.graph.initializer.append(onh.from_array(np.ones(5000, np.float32), "w"))
    onnx.save(proto, cache / "m.onnx", save_as_external_data=True, location="m.data")
    (cache / "m.onnx").rename(folder / "m.onnx")
    (folder / "m.data").symlink_to(cache / "m.data")
    args = ["optimize", folder / "m.onnx", "-o", tmp_path / "o.onnx"]
    assert "m.data" in run(*args, code=1).stderr
    run(*args, "--data-root", cache)
    assert np.array_equal(
        onh.to_array(onnx.load(tmp_path / "o.onnx").graph.initializer[0]), [1] * 5000
    )


BAD_USAGE = {
    "no output": ([], "xoptim optimize model.onnx OUTPUT, or -o OUTPUT, or --dry-run"),
    "output twice": (["out.onnx", "-o", "out.onnx"], "given twice"),
    "three files": (["out.onnx", "other.onnx"], "MODEL and OUTPUT are expected, or several models"),
    "a batch and one output": (["--output-dir", ".", "-o", "out.onnx"], "is for one model"),
    "a batch and one report": (["--output-dir", ".", "--report", "r.html"], "is for one model"),
    "dimension without verify": (["-o", "out.onnx", "--dim", "batch=4"], "without --verify"),
    "tolerance without verify": (["-o", "out.onnx", "--rtol", "0.1"], "without --verify"),
    "unknown option": (["-o", "out.onnx", "--pattern", "default"], "--patterns"),
    "unknown pattern": (["-o", "out.onnx", "-p", "TransposTranspose"], "TransposeTranspose"),
    "unknown set": (["-o", "out.onnx", "-p", "default+onnxruntme"], "onnxruntime"),
    "unknown removed": (["-o", "out.onnx", "-p", "default-CastCat"], "CastCast"),
    "bad dimension": (["-o", "out.onnx", "--verify", "--dim", "batch"], "batch=4"),
    "unknown dimension": (["-o", "out.onnx", "--verify", "--dim", "bacth=4"], "batch"),
    "processor": (["-o", "out.onnx", "--processor", "TPU"], "CPU"),
    "statistics": (["-o", "out.onnx", "--stats", "stats.xls"], ".csv"),
    "two sizes": (["--dry-run", "--verify", "--dim", "seq=4", "--dim", "seq=5"], "two sizes"),
    "odd digits": (["--dry-run", "--verify", "--dim", "seq=²"], "name=size"),
    "seed": (["--dry-run", "--verify", "--seed", "-1"], "--seed"),
    "tolerance": (["--dry-run", "--verify", "--rtol", "nan"], "nan is not a number"),
    "no pattern": (["--dry-run", "-p", " "], "'none' selects no pattern"),
    "iterations": (["--dry-run", "--max-iter", "many"], "--max-iter"),
    "report is not a page": (["-o", "out.onnx", "--report", "out.onnx"], ".html, .htm"),
    "statistics are the output": (["-o", "o.json", "--stats", "o.json"], "written twice"),
    "profile": (["--dry-run", "--profile-output", "p.xls"], ".svg"),
    "profile is the output": (["-o", "o.json", "--profile-output", "o.json"], "written twice"),
    "no data root": (["-o", "out.onnx", "--data-root", "nowhere"], "nowhere"),
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage(case, model, tmp_path, monkeypatch):
    args, expected = BAD_USAGE[case]
    monkeypatch.chdir(tmp_path)
    result = run("optimize", "model.onnx", *args, code=2)
    assert expected in " ".join(result.stderr.replace("│", "").split())
    assert files(tmp_path) == {"model.onnx"}


def test_keep_functions(tmp_path):
    """2**30 nodes from 60: refused in the words of the command, which offers another way."""
    path, out = tmp_path / "many.onnx", tmp_path / "out.onnx"
    onnx.save(functions(31, 2), path)
    error = run("optimize", path, out, code=1).stderr
    assert "keep them with --keep-functions" in error and "inline" not in error
    run("optimize", path, out, "--keep-functions")
    assert len(onnx.load(out).functions) == 31


def test_trust_shapes(tmp_path):
    """The file calls N the first dimension of y, which the caller chooses."""
    text = "g (float[N,M] x, int64[2] s) => (float[N,M] y) { y = Reshape(x, s) }"
    path = tmp_path / "declared.onnx"
    onnx.save(parse('<ir_version: 8, opset_import: ["" : 18]>' + text), path)
    for option, expected in (([], "Reshape"), (["--trust-shapes"], "Identity")):
        run("optimize", path, tmp_path / "out.onnx", *option)
        assert [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node] == [expected]
    # s is 3, 4 with this seed: the two models differ only if the declared shape is trusted
    sizes = ["--dim", "N=12", "--dim", "M=1", "--seed", 22]
    assert "every rewrite is right" in run("bisect", path, *sizes).output
    assert "rewrite 1 is to blame" in run("bisect", path, *sizes, "--trust-shapes", code=1).output


def test_constant_size(tmp_path):
    """The table of 512 x 512 products is larger than the model that computes it."""
    text = """g (float[n,512] x) => (float[n,512] y) {
        a = Range(zero, size, one)
        b = Unsqueeze(a, last)
        c = Mul(b, a)
        y = MatMul(x, c)
    }"""
    weights = "<float zero = {0}, float size = {512}, float one = {1}, int64[1] last = {1}>"
    head = '<ir_version: 8, opset_import: ["" : 18]>'
    path, out = tmp_path / "table.onnx", tmp_path / "out.onnx"
    onnx.save(parse(head + text.replace("{", weights + " {", 1)), path)
    for size, types, is_limited in (
        (None, ["Mul", "MatMul"], True),
        (1000, ["Range", "Unsqueeze", "Mul", "MatMul"], True),
        (512 * 512 * 4, ["MatMul"], False),
    ):
        options = [] if size is None else ["--constant-size", size]
        said = run("optimize", path, out, "--force", "-p", "none", *options).output
        assert ("--constant-size BYTES" in said) is is_limited, size
        assert [n.op_type for n in onnx.load(out).graph.node] == types
    assert "-1 is not in the range" in run("optimize", path, "--constant-size", -1, code=2).stderr


def test_positive_dims(tmp_path):
    """Without elements, the Reshape copies the 8 of x: [-1, 0, 4] gives (0, 8, 4)."""
    text = """g (float[n,8] x, float[k] z) => (float[R,S,4] y, float[k] t) {
        a = Shape <start: int = 0, end: int = 1> (x)
        b = Constant <value_ints: ints = [-1]> ()
        c = Constant <value_ints: ints = [4]> ()
        s = Concat <axis: int = 0> (b, a, c)
        y = Reshape(x, s)
        t = Neg(z)
    }"""
    path, out = tmp_path / "halves.onnx", tmp_path / "out.onnx"
    onnx.save(parse('<ir_version: 8, opset_import: ["" : 18]>' + text), path)
    for names in (None, "k", "n", "n,k", "all"):
        options = [] if names is None else ["--positive-dims", names]
        run("optimize", path, out, "--force", "--validate", *options)
        types = [n.op_type for n in onnx.load(out).graph.node]
        assert ("Concat" in types) is (names in (None, "k")), names
    assert "names 'm'" in run("optimize", path, out, "--positive-dims", "m", code=2).stderr
    sizes = ["--dim", "n=0", "--dim", "k=2"]
    assert "every rewrite is right" in run("bisect", path, *sizes).output
    wrong = run("bisect", path, *sizes, "--positive-dims", "all", code=1).output
    assert "is to blame" in wrong, "what the user says is not so"
    options = [*sizes, "--positive-dims", "n,k", "--verify"]
    failed = run("optimize", path, out, "--force", *options, code=1)
    assert "--positive-dims n,k" in failed.stderr


def undefined(path: Path) -> None:
    path.write_bytes(one_node("Add", inputs=["x", "nobody"]).SerializeToString())


def short_external(path: Path) -> None:
    missing_external(path)
    path.with_name("gone.data").write_bytes(bytes(100))


def damaged(path: Path) -> None:
    proto = one_node("Add", inputs=["x", "w"])
    proto.graph.initializer.append(onh.from_array(np.ones(4, np.float32), "w"))
    proto.graph.initializer[0].raw_data = bytes(7)
    path.write_bytes(proto.SerializeToString())


def nameless(path: Path) -> None:
    proto = one_node("Neg")
    proto.graph.initializer.add(data_type=TensorProto.FLOAT, dims=[3])
    path.write_bytes(proto.SerializeToString())


def duplicated(path: Path) -> None:
    again = oh.make_node("Neg", ["x"], ["y"])
    path.write_bytes(one_node("Abs", more=[again]).SerializeToString())


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "write,expected",
    [
        (not_onnx, "text file"),
        (cycle, "cycle"),
        (undefined, "nobody"),
        (missing_external, "gone.data"),
        (short_external, "gone.data' which has 100 bytes"),
        (damaged, "tensor 'w' is damaged: its content has 7 bytes, its type FLOAT"),
        (nameless, "bad.onnx' is damaged: its field float_data has 0 values"),
        (duplicated, "Result 'y' is produced twice"),
        (empty, "empty"),
    ],
)
def test_bad_model(write, expected, tmp_path):
    path = tmp_path / "bad.onnx"
    write(path)
    result = run("optimize", path, "-o", tmp_path / "out.onnx", code=1)
    assert expected in result.stderr
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.strip().splitlines()) == 1
    assert files(tmp_path) <= {"bad.onnx", "gone.data"}
    told = json.loads(run("optimize", path, "--dry-run", "--json", code=1).stdout)
    assert expected in told["error"] and told["kind"].endswith("Error")


def test_truncated_anywhere(tmp_path):
    """Some lengths leave a shorter model that is valid: it may be optimized, never a traceback."""
    content = parse().SerializeToString()
    path = tmp_path / "bad.onnx"
    codes = set()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        result = CliRunner().invoke(main, ["optimize", str(path), "--dry-run", "--json"])
        told = json.loads(result.stdout)
        assert told["ok"] is (result.exit_code == 0), size
        assert "unexpected" not in told.get("error", ""), told
        codes.add(result.exit_code)
    assert codes <= {0, 1} and 1 in codes


def test_missing_file(tmp_path):
    result = run("optimize", tmp_path / "none.onnx", "-o", tmp_path / "out.onnx", code=2)
    assert "does not exist" in result.stderr


def test_failed_verification_writes_nothing(model, tmp_path, monkeypatch):
    """The optimizer is replaced by one that breaks the model."""
    import xbuilder

    wrong = ModelContainer(parse(MODEL.replace("Neg", "Abs")))
    monkeypatch.setattr(xbuilder.GraphBuilder, "to_onnx", lambda *_, **__: (wrong, []))
    out, stats = tmp_path / "out.onnx", tmp_path / "stats.csv"
    result = run("optimize", model, "-o", out, "--verify", "--stats", stats, code=1)
    assert "differ on 1 of 1 output" in result.stderr
    assert files(tmp_path) == {"model.onnx"}
    assert "verification: results differ" in result.stdout and "operators" in result.stdout
    assert "wrote" not in result.stdout
    assert f"next: xoptim bisect {model}\n" in result.stderr
    assert "--atol" not in result.stderr, "the sign of a number is no rounding"
    options = ["--seed", "3", "--atol", "1e-06", "-p", "default+ml", "--dim", "batch=2"]
    result = run("optimize", model, "-o", out, "--verify", "--json", *options, code=1)
    told = json.loads(result.stdout)
    assert (told["ok"], told["kind"], told["output"]) == (False, "VerificationError", None)
    assert "differ" in told["error"] and told["verification"]["outputs"][0]["where"]
    options = "-p default+ml --dim batch=2 --atol 1e-06 --seed 3"
    assert told["next"] == [f"xoptim bisect {model} {options}"]


def test_a_difference_that_may_be_rounding(model, tmp_path, monkeypatch):
    """The next command says how to accept it."""
    import xbuilder

    text = MODEL.replace("Neg(", "Mul(k, ").replace("{", "{ k = Constant<value_float=-1.001>()", 1)
    wrong = ModelContainer(parse(text))
    monkeypatch.setattr(xbuilder.GraphBuilder, "to_onnx", lambda *_, **__: (wrong, []))
    result = run("optimize", model, "--dry-run", "--verify", code=1)
    atol = result.stderr.split("next: --atol ")[1].split(",")[0]
    run("optimize", model, "--dry-run", "--verify", "--atol", atol)


def test_an_existing_output_survives_a_failure(tmp_path):
    out = tmp_path / "out.onnx"
    out.write_bytes(b"precious")
    path = tmp_path / "bad.onnx"
    cycle(path)
    run("optimize", path, "-o", out, code=1)
    assert out.read_bytes() == b"precious"


def test_inputs_too_large_to_be_made(model):
    args = ["--dim", f"batch={10**13}", "--verify", "--dry-run"]
    error = run("optimize", model, *args, code=1).stderr
    assert error.startswith(f"Error: input 'x' would have shape ({10**13}, 2, 4)")
    assert "give other sizes or real inputs" in error


def test_public_operators(tmp_path):
    """A model onnx.checker refuses is announced, or not written."""
    text = """g (float[a,8] x) => (float[a,8] y) <int64[1] axes = {-1}, float e = {1e-5}> {
        q = Mul(x, x) m = ReduceMean<keepdims=1>(q, axes) v = Add(m, e) s = Sqrt(v) y = Div(x, s) }"""
    path, out = tmp_path / "rms.onnx", tmp_path / "out.onnx"
    private = "SimplifiedLayerNormalization"
    onnx.save(parse('<ir_version: 8, opset_import: ["" : 18]>' + text), path)
    args = ("optimize", path, out, "-p", "default+onnxruntime")
    printed = run(*args).stdout
    assert printed.count("onnx.checker refuses this model") == 1
    assert f"opset 18 has no {private}; --public-operators writes none" in printed
    assert json.loads(run(*args, "--json").stdout)["private_operators"] == [private]
    for options in (["-p", "default+onnxruntime", "--public-operators"], ["--target", "any"]):
        assert "refuses" not in run("optimize", path, out, *options).stdout
        onnx.checker.check_model(onnx.load(out))
    run("optimize", path, out, "--target", "onnxruntime")
    assert private in ops(out)
    assert "'onnxruntime-cuda'" in run("optimize", path, out, "--target", "ort", code=2).stderr


def test_provenance(model, tmp_path):
    """The nodes a rewrite wrote record it, in the file."""
    text = "g (float[n, 4] x, float[4, 3] w, float[3] b) => (float[n, 3] y) "
    text = '<ir_version: 10, opset_import: ["" : 18]>' + text
    model.write_bytes(parse(text + "{ p = MatMul(x, w) y = Add(p, b) }").SerializeToString())
    written = {"xoptim.rewrites": "MatMulAdd", "xoptim.sources": "p, y"}
    for options, expected in ([], {}), (["--provenance"], written):
        run("optimize", model, tmp_path / "out.onnx", *options)
        (node,) = onnx.load(tmp_path / "out.onnx").graph.node
        assert {p.key: p.value for p in node.metadata_props} == expected
