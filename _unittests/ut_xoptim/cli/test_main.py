"""The command: what it writes, what it prints, how it fails."""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx.parser
import pytest
from click.testing import CliRunner
from onnx import TensorProto
from ut_xoptim.cli.command_line import TRANSPOSES, run

from xbuilder.files.model_container import ModelContainer
from xbuilder.nested import inlining
from xoptim.api.registry import all_patterns
from xoptim.cli.main import main
from xoptim.cli.output import with_options

ROOT = Path(__file__).resolve().parents[3]
MODEL = TRANSPOSES


def parse(text: str = MODEL) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def one_node(op_type: str, **kwargs) -> onnx.ModelProto:
    """A model of one node that no parser would accept."""
    node = oh.make_node(op_type, kwargs.get("inputs", ["x"]), ["y"])
    x = oh.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])
    y = oh.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])
    graph = oh.make_graph([node, *kwargs.get("more", [])], "g", [x], [y])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=8)


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def ops(path: Path) -> list[str]:
    return [n.op_type for n in onnx.load(path).graph.node]


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


def test_moved_constants_are_no_gain(tmp_path):
    path = tmp_path / "m.onnx"
    constant = "k = Constant<value_floats: floats = [1.5, 2.5, 3.5, 4.5]>()\n    y = Mul(c, k)"
    onnx.save(parse(MODEL.replace("y = Neg(c)", constant)), path)
    lines = run("optimize", path, "--dry-run").output.splitlines()
    assert lines[0] == "nodes:   4 -> 1 (-75.0%)"
    assert lines[1].split(",")[0].strip() == "1 Constant node became an initializer"
    table = lines[lines.index("rewrites") :]
    assert not [line for line in lines[2:] if "Constant" in line]
    removed = [line.split() for line in table[3:] if line.strip()]
    assert ["TransposeTranspose", "2"] in [[words[0], words[4]] for words in removed]
    assert not [line for line in table if "clean_after" in line or "_" in line]


def test_one_pattern():
    assert run("patterns", "CastCast").output.strip().startswith("1 pattern\n")


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_piped_tables_have_the_width_of_the_terminal(tmp_path):
    """A pager shows what goes through the pipe: the standard error is still the terminal."""
    import fcntl
    import pty
    import struct
    import termios

    text = MODEL.replace("Identity", "Abs").replace("y", "a_long_name_of_an_output_" * 6)
    onnx.save(parse(text), tmp_path / "m.onnx")
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
    command = [sys.executable, "-m", "xoptim", tmp_path / "m.onnx", "--dry-run", "--verify"]
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TERM": "xterm"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=terminal, check=True, text=True,
    )  # fmt: skip
    os.close(terminal)
    os.close(master)
    table = done.stdout.split("verification")[1].splitlines()[1:]
    assert max(map(len, table)) in range(60, 71)


def test_options_are_named_as_typed(tmp_path):
    for folder in ("in", "out", "elsewhere"):
        (tmp_path / folder).mkdir()
    model = tmp_path / "in" / "m.onnx"
    missing_external(model)
    data = tmp_path / "elsewhere" / "allowed_roots"
    data.write_bytes(bytes(20000))
    model.with_name("gone.data").symlink_to(data)
    error = run("optimize", model, "--dry-run", code=1).stderr
    assert "give its folder in --data-root if you trust" in error
    assert "elsewhere/allowed_roots'" in error
    assert "in --data-root if you trust" in run("bisect", model, code=1).stderr
    assert with_options("give allowed_roots", None) == "give --data-root of xoptim optimize"
    args = [model, tmp_path / "out" / "m.onnx", "--refer-to-source"]
    args += ["--data-root", tmp_path / "elsewhere"]
    error = run(*args, code=1).stderr
    assert "option --refer-to-source" in error and "no --refer-to-source" in error


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


def test_html_report(model, tmp_path):
    page = tmp_path / "report.html"
    run("optimize", model, "--dry-run", "--verify", "--html", page)
    text = page.read_text(encoding="utf-8")
    assert "<html" in text and "TransposeTranspose" in text and "-75.0%" in text


def test_json_counts_constants_apart(tmp_path):
    """A Constant that becomes an initializer is no gain."""
    path = tmp_path / "constant.onnx"
    constant = "k = Constant<value_floats: floats = [1.5, 2.5, 3.5, 4.5]>()"
    onnx.save(
        onnx.parser.parse_model(
            '<ir_version: 9, opset_import: ["" : 18]>'
            f"g (float[a, 4] x) => (float[a, 4] y) {{ {constant} y = Mul(x, k) }}"
        ),
        path,
    )
    info = json.loads(run("optimize", path, "--dry-run", "--json").stdout)
    assert (info["nodes_before"], info["nodes_after"]) == (1, 1)
    assert (info["constant_nodes_before"], info["constant_nodes_after"]) == (1, 0)


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
    "output and dry run": (["out.onnx", "--dry-run"], "not both"),
    "two outputs": (["-o", "out.onnx", "--dry-run"], "not both"),
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
    "output folder": (["-o", "nowhere/out.onnx"], "does not exist"),
    "two sizes": (["--dry-run", "--verify", "--dim", "seq=4", "--dim", "seq=5"], "two sizes"),
    "odd digits": (["--dry-run", "--verify", "--dim", "seq=²"], "name=size"),
    "seed": (["--dry-run", "--verify", "--seed", "-1"], "--seed"),
    "tolerance": (["--dry-run", "--verify", "--rtol", "nan"], "nan is not a number"),
    "no pattern": (["--dry-run", "-p", " "], "'none' selects no pattern"),
    "iterations": (["--dry-run", "--max-iter", "many"], "--max-iter"),
    "report is not a page": (["-o", "out.onnx", "--html", "out.onnx"], ".html, .htm"),
    "report is the output": (["-o", "out.html", "--html", "./out.html"], "written twice"),
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


def functions(count: int, called: int) -> onnx.ModelProto:
    """Functions that call one of the others: twice makes 2**count nodes."""
    opsets = [oh.make_opsetid("", 18), oh.make_opsetid("mine", 1)]
    made = [
        oh.make_function("mine", "F0", ["a"], ["b"], [oh.make_node("Relu", ["a"], ["b"])], opsets)
    ]
    for i in range(1, count):
        names = ["a", *(f"t{k}" for k in range(1, called)), "b"]
        pairs = itertools.pairwise(names)
        calls = [oh.make_node(f"F{i - 1}", [x], [y], domain="mine") for x, y in pairs]
        made.append(oh.make_function("mine", f"F{i}", ["a"], ["b"], calls, opsets))
    proto = one_node(f"F{count - 1}")
    proto.graph.node[0].domain = "mine"
    proto.opset_import.append(opsets[1])
    proto.functions.extend(made)
    return proto


def test_keep_functions(tmp_path):
    """2**30 nodes from 60: refused in the words of the command, which offers another way."""
    path, out = tmp_path / "many.onnx", tmp_path / "out.onnx"
    onnx.save(functions(31, 2), path)
    error = run("optimize", path, out, code=1).stderr
    assert "keep them with --keep-functions" in error and "inline" not in error
    run("optimize", path, out, "--keep-functions")
    assert len(onnx.load(out).functions) == 31


def test_bisect_keeps_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(inlining, "GROWTH", 1)
    monkeypatch.setattr(inlining, "GROWTH_RATIO", 1)
    path = tmp_path / "many.onnx"
    onnx.save(functions(8, 2), path)
    assert "keep them with --keep-functions" in run("bisect", path, code=1).stderr
    assert "every rewrite is right" in run("bisect", path, "--keep-functions").output


def test_a_table_of_many_types_is_cut(tmp_path):
    path = tmp_path / "many.onnx"
    onnx.save(functions(60, 1), path)
    printed = run("optimize", path, tmp_path / "out.onnx").stdout
    assert len(printed.splitlines()) < 60
    assert "and 20 other types" in printed


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


def not_onnx(path: Path) -> None:
    path.write_bytes(b"this is not a model" * 10)


def cycle(path: Path) -> None:
    a = oh.make_node("Add", ["x", "b"], ["a"])
    b = oh.make_node("Neg", ["a"], ["b"])
    path.write_bytes(one_node("Add", inputs=["a", "b"], more=[a, b]).SerializeToString())


def undefined(path: Path) -> None:
    path.write_bytes(one_node("Add", inputs=["x", "nobody"]).SerializeToString())


def missing_external(path: Path) -> None:
    proto = one_node("Add", inputs=["x", "w"])
    proto.graph.initializer.append(onh.from_array(np.ones(5000, np.float32), "w"))
    onnx.save(proto, path, save_as_external_data=True, location="gone.data")
    path.with_name("gone.data").unlink()


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
    result = run("optimize", model, "-o", out, "--verify", "--json", code=1)
    assert json.loads(result.stdout)["ok"] is False
    assert "differ" in json.loads(result.stdout)["error"]


def test_an_existing_output_survives_a_failure(tmp_path):
    out = tmp_path / "out.onnx"
    out.write_bytes(b"precious")
    path = tmp_path / "bad.onnx"
    cycle(path)
    run("optimize", path, "-o", out, code=1)
    assert out.read_bytes() == b"precious"


def test_failure_while_writing_leaves_nothing(model, tmp_path, monkeypatch):
    import xoptim.cli.saving as module

    def fail(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(module, "save_model", fail)
    stats = tmp_path / "stats.csv"
    result = run("optimize", model, "-o", tmp_path / "out.onnx", "--stats", stats, code=1)
    assert "No space left" in result.stderr
    assert files(tmp_path) == {"model.onnx"}


def test_unexpected_error_is_one_line_unless_asked(model, tmp_path, monkeypatch):
    import xbuilder

    def fail(*_, **__):
        raise ZeroDivisionError("by zero\nand more")

    monkeypatch.setattr(xbuilder.GraphBuilder, "to_onnx", fail)
    args = ["optimize", model, "-o", tmp_path / "out.onnx"]
    result = run(*args, code=1)
    assert result.stderr.strip() == (
        "Error: unexpected ZeroDivisionError: by zero (--traceback shows where)"
    )
    for option in ("--traceback", "-vv"):
        shown = CliRunner().invoke(main, [*map(str, args), option])
        assert shown.exit_code == 1
        assert "Traceback (most recent call last)" in shown.stderr


JSON_ERRORS = {
    "unknown option": (["optimize", "m.onnx", "--foo", "--json"], 2, "--foo"),
    "no value": (["optimize", "m.onnx", "--json", "-o"], 2, "-o"),
    "unknown command": (["optimise", "--json"], 2, "optimise"),
    "no model": (["print", "--json"], 2, "MODEL"),
    "no file": (["dot", "nowhere.onnx", "--json"], 2, "nowhere.onnx"),
    "too much": (["patterns", "default", "default", "--json"], 2, "extra argument"),
    "unknown pattern": (["bisect", "m.onnx", "-p", "nope", "--json"], 2, "nope"),
}


@pytest.mark.parametrize("case", JSON_ERRORS)
def test_json_is_alone_whatever_is_wrong(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(parse(), "m.onnx")
    args, code, expected = JSON_ERRORS[case]
    told = json.loads(run(*args, code=code).stdout)
    assert told["ok"] is False and expected in told["error"]


def test_interrupted_json(model, monkeypatch):
    """An interruption may come while the standard output is redirected."""

    def interrupt(*_, **__):
        sys.stdout = sys.stderr
        raise KeyboardInterrupt

    monkeypatch.setattr("xoptim.cli.optimize.run_optimization", interrupt)
    out = sys.stdout
    try:
        result = CliRunner().invoke(main, ["optimize", str(model), "--dry-run", "--json"])
    finally:
        sys.stdout = out
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "interrupted"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_full_standard_output(model):
    """The answer cannot be printed: it is told, once, on the standard error."""
    for args in (["--json"], []):
        command = [sys.executable, "-m", "xoptim", "optimize", str(model), "--dry-run", *args]
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr


def test_warnings_are_for_the_user(tmp_path):
    proto = one_node("Neg")
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    result = run("optimize", path, "--dry-run", "--json")
    assert result.stderr.startswith("Warning: The model declares something else")
    assert ".py" not in result.stderr and json.loads(result.stdout)["ok"] is True


def test_inputs_too_large_to_be_made(model):
    args = ["--dim", f"batch={10**13}", "--verify", "--dry-run"]
    error = run("optimize", model, *args, code=1).stderr
    assert error.startswith(f"Error: input 'x' would have shape ({10**13}, 2, 4)")
    assert "give other sizes or real inputs" in error


def test_not_enough_memory(model, monkeypatch):
    def load(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 8 TiB")

    monkeypatch.setattr("xbuilder.GraphBuilder.__init__", load)
    error = run("optimize", model, "--dry-run", code=1).stderr
    assert error.startswith("Error: not enough memory: Unable to allocate 8 TiB")


def test_json_errors(tmp_path):
    path = tmp_path / "bad.onnx"
    not_onnx(path)
    info = json.loads(run("optimize", path, "--dry-run", "--json", code=1).stdout)
    assert info["ok"] is False and info["kind"] == "InvalidModelError"
    onnx.save(parse(), path)
    info = json.loads(run("optimize", path, "--dry-run", "--json", "-p", "Nope", code=2).stdout)
    assert info["ok"] is False and "Nope" in info["error"]


def test_help_and_version():
    assert "optimize" in run("--help").output
    assert "--patterns" in run("optimize", "--help").output
    assert "xoptim" in run("--version").output
    run("nothing", code=2)


def test_python_m(model, tmp_path):
    def call(*args: object) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "xoptim", *map(str, args)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    out = tmp_path / "out.onnx"
    done = call("optimize", model, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nodes_after"] == 1
    assert ops(out) == ["Neg"]
    bad = tmp_path / "bad.onnx"
    not_onnx(bad)
    failed = call("optimize", bad, "-o", tmp_path / "other.onnx")
    assert failed.returncode == 1
    assert failed.stderr.startswith("Error: ") and "Traceback" not in failed.stderr
    assert not (tmp_path / "other.onnx").exists()
    assert call("optimize", model).returncode == 2


def test_patterns_take_one_line_each():
    """So that grep works."""
    lines = [line for line in run("patterns").output.splitlines() if line.strip()]
    assert len(lines) == 3 + len(all_patterns())


def test_public_operators(tmp_path):
    """What onnx.checker refuses is announced, or not written."""
    text = """g (float[a,8] x) => (float[a,8] y) <int64[1] axes = {-1}, float e = {1e-5}> {
        q = Mul(x, x) m = ReduceMean<keepdims=1>(q, axes) v = Add(m, e) s = Sqrt(v) y = Div(x, s) }"""
    path, out = tmp_path / "rms.onnx", tmp_path / "out.onnx"
    private = "SimplifiedLayerNormalization"
    onnx.save(parse('<ir_version: 8, opset_import: ["" : 18]>' + text), path)
    args = ("optimize", path, out, "-p", "default+onnxruntime")
    printed = run(*args).stdout
    assert f"{private}: onnxruntime alone knows it" in printed and "--public-operators" in printed
    assert json.loads(run(*args, "--json").stdout)["private_operators"] == [private]
    assert "onnxruntime alone" not in run(*args, "--public-operators").stdout
    onnx.checker.check_model(onnx.load(out))


def test_provenance(model, tmp_path):
    """What a rewrite wrote says so, in the file."""
    text = "g (float[n, 4] x, float[4, 3] w, float[3] b) => (float[n, 3] y) "
    text = '<ir_version: 10, opset_import: ["" : 18]>' + text
    model.write_bytes(parse(text + "{ p = MatMul(x, w) y = Add(p, b) }").SerializeToString())
    written = {"xoptim.rewrites": "MatMulAdd", "xoptim.sources": "p, y"}
    for options, expected in ([], {}), (["--provenance"], written):
        run("optimize", model, tmp_path / "out.onnx", *options)
        (node,) = onnx.load(tmp_path / "out.onnx").graph.node
        assert {p.key: p.value for p in node.metadata_props} == expected
