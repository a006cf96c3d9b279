"""The extensions of the documentation: drawings, inventories, reasons of refusal, first table."""

from __future__ import annotations

import importlib
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import xoptim

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "_doc"


@pytest.fixture(autouse=True)
def _extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (DOC, DOC / "extensions", DOC / "benchmarks"):
        monkeypatch.syspath_prepend(str(folder))


def extension(name: str, needs: str = "sphinx") -> Any:
    pytest.importorskip(needs, reason="the documentation is built with it")
    return importlib.import_module(name)


def looped() -> onnx.ModelProto:
    return onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[batch, 4] x, bool c) => (float[batch, 4] y) <float one = {1}> {
            a = Add (x, one)
            y = If (c) <
                then_branch = t () => (float[batch, 4] u) { u = Relu (a) },
                else_branch = e () => (float[batch, 4] v) { v = Exp (a) }
            >
        }
    """)


def test_a_drawing_fits_and_has_its_bodies() -> None:
    drawings = extension("drawings", "igraph")
    html = drawings.draw(looped())
    assert html.count("<svg") == 3 and html.count("min-width") == 3
    for text in ("float[batch, 4]", "Relu", "Exp", "then_branch"):
        assert text in html
    edges = re.findall(r"</path><text[^>]*>([^<]*)<", html)
    assert edges and not re.findall(r"</path><text", drawings.draw(looped(), shapes=False))
    assert "background:#fff" in drawings.standalone(looped())


def test_the_picture_of_the_readme_is_the_one_of_the_index() -> None:
    drawings = extension("drawings", "igraph")
    page = (DOC / "index.rst").read_text(encoding="utf-8")
    text = re.search(r"before-after::\n.*?\n\n(.*?)\n\n +\.\. grid", page, re.S)
    assert text
    model = onnx.parser.parse_model(text.group(1))
    after = xoptim.optimize(model, patterns="default+onnxruntime").model
    assert [node.op_type for node in after.graph.node] == ["Gelu"]
    expected = drawings.picture(model, after)
    assert (DOC / "_static" / "before_after.svg").read_text(encoding="utf-8") == expected


def test_the_table_of_the_first_page_is_the_one_of_the_readme() -> None:
    table = extension("collect").peers_table()
    assert (DOC / "benchmarks" / "data" / "peers.txt").read_text(encoding="utf-8") == table
    assert table in (ROOT / "README.rst").read_text(encoding="utf-8")
    assert len(re.findall(r"^xoptim|^OnnxSlim|^onnx", table, re.M)) >= 6


def test_inventories() -> None:
    inventories = extension("inventories")
    content = inventories.inventory("numpy", inventories.PROJECTS["numpy"][1])
    head, body = content.split(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2\n")
    line = "numpy.ndarray py:class 1 reference/generated/numpy.ndarray.html#numpy.ndarray -"
    assert line in zlib.decompress(body).decode().splitlines()
    _, body = inventories.inventory("onnx", inventories.PROJECTS["onnx"][1]).split(b"zlib.\n")
    home = f"{onnx.ModelProto.__module__}.ModelProto"
    assert f"{home} py:class 1 api/classes.html#onnx.ModelProto -" in zlib.decompress(body).decode()


def test_reasons_of_refusal() -> None:
    reasons_of = extension("refusals").reasons_of
    (pattern,) = xoptim.get_pattern_list("TransposeTranspose")
    assert "the permutations are not known" in reasons_of(pattern)
    everything = xoptim.get_pattern_list("default+onnxruntime")
    assert sum(map(bool, map(reasons_of, everything))) > 0.8 * len(everything)


def profiled(name: str, op_type: str, duration: int, shapes: list[Any]) -> dict[str, Any]:
    *inputs, output = [{"float": shape} for shape in shapes]
    args = {"op_name": op_type, "input_type_shape": inputs, "output_type_shape": [output]}
    return {"name": f"{name}_kernel_time", "dur": duration, "args": args}


def test_the_roofline_knows_the_bounds_of_nodes() -> None:
    roofline = extension("roofline", "numpy")
    machine = roofline.Machine(1e6, {1 << 12: 1e6, 1 << 20: 1e5})
    assert machine.seconds_to_move(1000) == 1e-3
    assert machine.seconds_to_move(1 << 22) == (1 << 22) / 1e5
    model = roofline.named(
        onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[10, 10] x, bool c, int64[1] i) => (float[10, 10] z) {
            y = MatMul (x, x)
            z = If (c) <
                then_branch = t () => (float[10, 10] u) { u = Relu (y) },
                else_branch = e () => (float[100] v) { v = Reshape (y, i) }
            >
        }""")
    )
    assert [node.name for node in roofline._nodes(model.graph)] == [
        "n0_MatMul",
        "n1_If",
        "n1_If_0_Relu",
        "n1_If_0_Reshape",
    ]
    matrix = [10, 10]
    events = [
        profiled("n0_MatMul", "MatMul", 3000, [matrix] * 3),
        profiled("n1_If", "If", 5000, [matrix] * 2),
        profiled("n1_If_0_Relu", "Relu", 900, [matrix] * 2),
        profiled("n1_If_0_Reshape", "Reshape", 10, [matrix, [1], [100]]),
        profiled("unknown", "Gather", 900, [[1000, 10], [1], [1, 10]]),
    ]
    events += [{**event, "dur": event["dur"] - 500} for event in events if event["dur"] > 500]
    events.append(profiled("n1_If_0_Reshape", "Reshape", 20, [matrix, [1], [100]]))
    shares = roofline.shares_of(events, model.graph, 2, machine)
    assert list(shares) == ["MatMul", "Relu", "Reshape", "Gather"], "an If takes what its body does"
    assert (shares["MatMul"].count, shares["MatMul"].ms) == (1, 2.5)
    assert shares["MatMul"].products == pytest.approx(2.0)
    assert shares["MatMul"].over == pytest.approx(0.5)
    assert shares["Relu"].traffic == pytest.approx(0.8) and not shares["Relu"].products
    assert (shares["Reshape"].ms, shares["Reshape"].traffic) == (0.01, 0)
    assert shares["Gather"].traffic == pytest.approx(0.08), "it does not read the whole table"


def test_the_roofline_knows_the_weights_that_a_kernel_packs() -> None:
    """A profile does not have the shape of a weight whose kernel keeps another layout."""
    roofline = extension("roofline", "numpy")
    node = onnx.helper.make_node("Attention", ["x", "w", "b"], ["y"], domain="com.microsoft")
    weights = {"w": (4, (6, 18)), "b": (4, (18,))}
    args = profiled("a", "Attention", 1, [[1, 2, 6], [18], [1, 2, 6]])["args"]
    seconds = roofline.bounds(node, args, roofline.Machine(1e6, {1 << 20: 1e9}), weights)
    assert seconds == (pytest.approx(2 * (2 * 6 * 18 + 2 * 2 * 12) / 1e6), 0.0)


def test_the_roofline_of_a_model(tmp_path: Path) -> None:
    roofline = extension("roofline", "numpy")
    onnx.save(
        onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[64, 64] x) => (float[64, 64] y) <float one = {1}> {
            a = Mul (x, one)
            p = MatMul (a, x)
            y = Softmax (p)
        }"""),
        tmp_path / "model.onnx",
    )
    np.savez(tmp_path / "in0.npz", x=np.ones((64, 64), np.float32))
    machine = roofline.Machine(1e9, {1 << 20: 1e9})
    found = roofline.measure("group/small", tmp_path / "model.onnx", machine, 0.002)
    assert found.row["model"] == "group/small" and found.row["nodes"] == 2
    assert {row["operator"] for row in roofline.operators(found)} == {"MatMul", "Softmax"}
    assert found.shares["MatMul"].products == pytest.approx(2 * 64**3 / 1e6)
    assert found.shares["Softmax"].traffic == pytest.approx(2 * 4 * 64**2 / 1e6)
    assert (
        0
        < found.row["ours_ms"]
        == pytest.approx(found.row["original_ms"] * found.row["ratio"], abs=0.01)
    )
    assert roofline._copy_speed(1 << 16, 0.001) > 0 and roofline._product_speed(8, 0.001) > 0
