"""Models with custom operators, which a library gives to onnxruntime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import run

import xoptim
from xoptim.trust.verification import VerificationError

#: NegPos separates the negative numbers from the others
MODEL = """<ir_version: 8, opset_import: ["" : 18, "ai.onnx.contrib" : 1]>
g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z) {
    t = Transpose<perm=[1, 0]>(x)
    u = Transpose<perm=[1, 0]>(t)
    p, q = ai.onnx.contrib.NegPos(u)
    y = Neg(p)
    z = Sqrt(q)
}"""


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """A model, and another one with other results."""
    found = [tmp_path / "one.onnx", tmp_path / "two.onnx"]
    for path, text in zip(found, (MODEL, MODEL.replace("Sqrt(q)", "Abs(q)")), strict=True):
        onnx.save(onnx.parser.parse_model(text), path)
    return found


@pytest.fixture
def library() -> str:
    """The library of onnxruntime-extensions."""
    package = pytest.importorskip(
        "onnxruntime_extensions", reason="it has no wheel for this version of Python"
    )
    path: str = package.get_library_path()
    return path


def test_the_option_is_named(paths: list[Path]) -> None:
    one, two = paths
    for command in (["verify", one, two], ["compare", one, two], ["measure", one]):
        assert "--custom-ops" in run(*command, code=1).stderr, command


def test_not_a_library(paths: list[Path]) -> None:
    """The option of the command line is wrong, with the file and the reason."""
    error = run("verify", *paths, "--custom-ops", paths[0], code=2).stderr
    assert "one.onnx' is not a library of custom operators" in error


def test_two_files(paths: list[Path], library: str) -> None:
    one, two = paths
    options = ["--custom-ops", library]
    assert "same results" in run("verify", one, one, *options).output
    found = run("verify", one, two, *options, code=1).output
    assert "results differ" in found and f"--custom-ops {library}" in found
    assert "result 'z'" in run("compare", one, two, *options, code=1).output
    found = run("measure", one, two, *options, "--blocks", "2", "--json").output
    assert len(json.loads(found)) == 2


def test_optimize(paths: list[Path], library: str, tmp_path: Path) -> None:
    one, output = paths[0], tmp_path / "out.onnx"
    options = ["--custom-ops", library]
    run("optimize", one, output, "--verify", code=1)
    found = run("optimize", one, output, "--verify", "--validate", *options).output
    assert "same results" in found and "1 right" in found
    kinds = [node.op_type for node in onnx.load(output).graph.node]
    assert sorted(kinds) == ["Neg", "NegPos", "Sqrt"]
    error = run("optimize", one, output, *options, code=2).stderr
    assert "--custom-ops has no effect without" in error


def test_bisect(paths: list[Path], library: str) -> None:
    options = ["--custom-ops", library]
    assert "every rewrite is right" in run("bisect", paths[0], *options).output
    assert "does not change its results" in run("bisect", paths[0], "--runtime", *options).output


def test_batch(paths: list[Path], library: str, tmp_path: Path) -> None:
    """Its processes load the library too."""
    command = ["batch", paths[0], "--output-dir", tmp_path / "out", "--verify", "--json"]
    found = json.loads(run(*command, "--custom-ops", library).output)
    assert [row["state"] for row in found["models"]] == ["optimized"]
    assert "--custom-ops" in run(*command, "--force", code=1).output


def test_tune(paths: list[Path], library: str) -> None:
    """So do those of several models."""
    command = ["tune", *paths, "-p", "TransposeTranspose", "--blocks", "1", "--json"]
    found = json.loads(run(*command, "--custom-ops", library).output)
    measured = {(row["pattern"], row["model"], row["ratio"] > 0) for row in found["measures"]}
    assert measured == {("TransposeTranspose", f"{name}.onnx", True) for name in ("one", "two")}


def test_python(paths: list[Path], library: str) -> None:
    with xoptim.custom_operators(library):
        done = xoptim.optimize(paths[0], verify=True)
        assert xoptim.verify(paths[0], done.model, inputs={"x": np.ones((3, 4), np.float32)}).ok
    with pytest.raises(VerificationError, match="custom_operators"):
        xoptim.verify(paths[0], done.model)


def test_check(paths: list[Path], library: str, tmp_path: Path) -> None:
    """Only the operators that the library does not define are unknown."""
    found = run("check", paths[0], code=1).output
    assert "X003" in found and "--custom-ops" in found
    options = ["--custom-ops", library]
    assert "X003" not in run("check", paths[0], *options).output
    other = tmp_path / "other.onnx"
    onnx.save(onnx.parser.parse_model(MODEL.replace("NegPos", "NoSuchOperator")), other)
    assert "X003" in run("check", other, *options, code=1).output
