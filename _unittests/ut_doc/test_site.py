"""The extensions of the documentation: drawings, inventories, reasons of refusal, first table."""

from __future__ import annotations

import csv
import importlib
import json
import re
import shutil
import zlib
from collections.abc import Iterator
from inspect import isclass, isfunction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import xoptim
from xoptim.catalogue.database_query import RewriteDatabaseQuery

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
    alone = drawings.standalone(looped(), "before")
    assert "background:#fff" in alone and ">before</text>" in alone


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
    (pattern,) = xoptim.get_pattern_list("NotNot")
    assert "the graph does not contain Not(Not(x))" in reasons_of(pattern), "of an equation"
    (pattern,) = xoptim.get_pattern_list("AddMul")
    assert "the kernel may not broadcast these shapes" in reasons_of(pattern), "of a helper"
    (pattern,) = xoptim.get_pattern_list("TransposeReshapeMatMul")
    assert "no Reshape for this node only" in reasons_of(pattern), "of a variable"
    everything = xoptim.get_pattern_list(RewriteDatabaseQuery(None))
    assert [member.name for member in everything if not reasons_of(member)] == []


def test_the_gain_of_the_patterns_is_known() -> None:
    """Each has a ratio, or the reason why there is none; the catalogue shows them."""
    with (DOC / "benchmarks" / "data" / "gains.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert all(bool(row["ratio"]) != bool(row["why"]) for row in rows)
    names = {member.name for member in xoptim.get_pattern_list(RewriteDatabaseQuery(None))}
    drawn = {row["pattern"] for row in rows if not row["model"]}
    assert len(names & drawn) > 0.9 * len(names)
    table = extension("pattern_table")
    gain = {"model": "", "ratio": "0.503", "why": ""}
    known = [
        gain,
        gain | {"model": "a/b", "ratio": "0.9"},
        gain | {"ratio": "", "why": "no kernel"},
    ]
    text = "Latency: 0.50 for the model drawn above, 0.90 in a/b, not measured, no kernel."
    assert table._gain(known) == text
    assert table._gain([]) == "Latency: not measured."


def test_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = extension("gains", "onnxruntime")
    before = looped()
    after = xoptim.optimize(before).model
    unknown = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18, "intermediate" : 1]>'
        "agraph (float[4] x) => (float[4] y) { y = intermediate.Local (x) }"
    )
    pairs = {"One": (before, after), "Two": (before, unknown)}
    monkeypatch.setattr(gains, "collect_examples", lambda: pairs)
    one, two = gains.measured_examples()
    assert one["ratio"] > 0 and one["low"] <= one["ratio"] <= one["high"] and not one["why"]
    assert two["ratio"] == "" and two["why"] == "another pattern replaces the operator it writes"
    assert [row["pattern"] for row in gains.measured_examples(["Two"])] == ["Two"]


def test_versions() -> None:
    """Those of the change log, and the one that is not released yet."""
    versions_of = extension("versions").versions_of
    changes = "Change Logs\n===========\n\n0.2.0 (2027-01-01)\n++++++++++++++++++\n\n"
    changes += "0.1.0 (2026-11-26)\n++++++++++++++++++\n"
    base = "https://site/"
    assert versions_of(changes, base, "0.2.0") == [("0.2.0", base), ("0.1.0", f"{base}0.1.0/")]
    assert versions_of(changes, base, "0.3.0")[0] == ("0.3.0", base)
    log = (ROOT / "CHANGELOGS.rst").read_text(encoding="utf-8")
    assert versions_of(log, base, "0.1.0") == [("0.1.0", base)]


def test_a_page_without_a_plot_has_lines_as_thumbnail(tmp_path: Path) -> None:
    scripts = extension("scripts", "matplotlib")
    folder = tmp_path / "scripts"
    folder.mkdir()
    text = '"""\nTitle\n=====\n"""\n\nimport xoptim\n\nx = 1\nxoptim.optimize("a.onnx")\nprint("a line that is too long")\n'
    (folder / "plot_a.py").write_text(text, encoding="utf-8")
    (folder / "plot_b.py").write_text(text + "drawn = {}\n", encoding="utf-8")
    text_first = text.replace('\n"""\n', '\n"""\n\n# %%\n# A section.\n', 1)
    (folder / "plot_c.py").write_text(text_first, encoding="utf-8")
    scripts.add_thumbnails(tmp_path, folder)
    parser = importlib.import_module("sphinx_gallery.py_source_parser")
    for name in ("plot_a.py", "plot_c.py"):
        blocks = parser.split_code_and_text_blocks(str(folder / name))[1]
        shown = [parser.remove_config_comments(block.content).strip() for block in blocks]
        assert all(shown) and shown[-1].startswith("import xoptim"), "no block is empty"
    assert scripts.telling_lines(text) == [
        'xoptim.optimize("a.onnx")',
        'print("a line that is too…',
    ]
    assert (tmp_path / scripts.THUMBNAILS / "plot_a.png").exists()
    app = SimpleNamespace(srcdir=tmp_path)
    text = [f"Error in {tmp_path / scripts.COPIES}/start/plot_a.py, line 2"]
    scripts.hide_folders(app, "auto_tutorials/start/plot_a", text)
    assert text == ["Error in start/plot_a.py, line 2"]
    signature = f"(path=Path('{tmp_path.parent}/data.csv'))"
    shown = scripts.hide_root(app, "function", "f", None, None, signature, "int")
    assert shown == ("(path=Path('data.csv'))", "int")
    assert scripts.hide_root(app, "data", "x", None, None, None, None) is None
    named = [path.stem for path in folder.iterdir() if "thumbnail_path" in path.read_text("utf-8")]
    assert sorted(named) == ["plot_a", "plot_c"]


def test_pages_to_open(tmp_path: Path) -> None:
    screenshots = extension("screenshots", "PIL")
    sources = [*DOC.rglob("*.rst"), *DOC.rglob("plot_*.py"), *DOC.rglob("README.txt")]
    known = {p.relative_to(DOC).with_suffix("").as_posix() for p in sources}
    known = {re.sub(r"^(tutorials|gallery|benchmarks)", r"auto_\1", name) for name in known}
    known = {name.replace("README", "index") for name in known}
    assert [name for name in screenshots.PAGES if name not in known] == []
    for name in ("index", "a/b", "_modules/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.html").write_text("", encoding="utf-8")
    assert screenshots.pages_of(tmp_path, True) == ["a/b", "index"]
    assert screenshots.pages_of(tmp_path, False) == ["index"]


def test_an_example_of_each_public_name() -> None:
    """A docstring, a page, or a test."""
    examples = extension("examples_of")
    from xbuilder.dims import broadcast_shapes
    from xoptim.trust.verification import verify_models

    page = examples.page_of("verify_models", verify_models)
    assert page is not None and "verify_models" in (DOC / f"{page.file}.rst").read_text("utf-8")
    test = examples.example_of("broadcast_shapes", broadcast_shapes)
    assert test is not None and test.file.startswith("_unittests/ut_xbuilder/")
    assert "broadcast_shapes(" in test.code
    assert examples.has_code(broadcast_shapes) == (">>>" in broadcast_shapes.__doc__)
    (line,) = filter(None, examples.example_lines("verify_models", verify_models))
    assert line == f"Example in :doc:`/{page.file}`."
    assert examples.example_lines("NoSuchName", object()) == []
    scripts = [f"/doc/auto_scripts/plot_{i}.py" for i in range(9)]
    few = " ".join(f"auto_scripts/plot_{i}.py" for i in range(examples.MOST))
    assert examples.thumbnails("a.b", scripts, Path("/doc"))[1] == f".. minigallery:: {few}"
    assert examples.thumbnails("a.b", scripts[:2], Path("/doc"))[1] == ".. minigallery:: a.b"


def names_of_the_api() -> Iterator[tuple[str, Any]]:
    """The functions and classes that the pages of the API list, torch_interpreter apart."""
    for path in (DOC / "api").glob("*.rst"):
        directive = r"^\.\. auto(module|class|function):: (\S+)\n((?: +:.*\n)*)"
        for kind, name, text in re.findall(
            directive, path.read_text(encoding="utf-8") + "\n", re.M
        ):
            options = dict(re.findall(r":([\w-]+): *(.*)", text))
            if name.startswith("torch_interpreter"):
                continue
            if kind != "module":
                module, _, last = name.rpartition(".")
                yield last, getattr(importlib.import_module(module), last)
                continue
            content = vars(importlib.import_module(name))
            listed = options.get("members") or options.get("exclude-members") or ""
            known = listed.split(", ") if listed else []
            assert set(known) <= set(content), name
            for last, value in content.items():
                here = last in known if options.get("members") else last not in known
                here = here and f"{getattr(value, '__module__', '')}.".startswith(f"{name}.")
                if here and not last.startswith("_") and (isfunction(value) or isclass(value)):
                    yield last, value


def test_the_names_of_the_api_have_examples() -> None:
    """One is written in its docstring, or the name is taken off the page."""
    examples = extension("examples_of")
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in DOC.rglob("plot_*.py"))
    names = list(names_of_the_api())
    found = [
        name
        for name, value in names
        if not examples.has_code(value) and not examples.example_lines(name, value)
        if not re.search(rf"\b{name}\b", scripts)
    ]
    assert len(names) > 250 and found == []


def test_source_links() -> None:
    """A name documented from a package has the anchor that the page of its file links to."""
    links = extension("source_links")
    nodes, addnodes = importlib.import_module("docutils.nodes"), links.addnodes
    page = nodes.document(None, None)
    for name in ("api.Known", "api.Moved"):
        signature = addnodes.desc_signature("", "", ids=[name])
        last = name.rpartition(".")[2]
        target = {"reftarget": "_modules/pack/module", "refid": last, "refdoc": "page"}
        signature += links.viewcode_anchor("", **target)
        page += signature
    used = {"Known": "page", "Moved": "page"}
    modules = {"pack.module": ("code", {}, used, "pack.module"), "pack.no_source": False}
    app = SimpleNamespace(env=SimpleNamespace(_viewcode_modules=modules))
    page[0]["ids"].append("pack.module.Known")
    links.add_anchors(app, page)
    assert page[0]["ids"] == ["api.Known", "pack.module.Known"]
    assert page[1]["ids"] == ["api.Moved", "pack.module.Moved"]
    assert links.forget_modules_without_source(app) == []
    assert list(modules) == ["pack.module"]


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    """Files and anchors of the site, escaped or not; other sites are not asked for."""
    links = extension("links")
    pages = {
        "index.html": '<a href="sub/">x</a><a href="sub/page.html#a.b%28c%29">x</a><img src="no.png">',
        "sub/index.html": '<a href="#">x</a><a href="#here">x</a><a href="../index.html#gone">x</a>',
        "sub/page.html": '<p id="a.b(c)"><a href="https://site/no.html">x</a><a href="no.html">x</a>',
    }
    (tmp_path / "sub").mkdir()
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    broken = [
        ("index.html", "no.png"),
        ("sub/index.html", "#here"),
        ("sub/index.html", "../index.html#gone"),
        ("sub/page.html", "no.html"),
    ]
    assert list(links.broken_links(tmp_path)) == broken


def test_versions_are_published(tmp_path: Path) -> None:
    """Each in its folder; the latest one is at the root as well, whatever the order."""
    publish = extension("publish")
    built, site, address = tmp_path / "html", tmp_path / "site", "https://site/"
    site.mkdir()
    (site / "CNAME").write_text("a domain", encoding="utf-8")

    def release(version: str, page: str) -> list[str]:
        shutil.rmtree(built, ignore_errors=True)
        (built / ".doctrees").mkdir(parents=True)
        for name in ("index", page):
            (built / f"{name}.html").write_text(version, encoding="utf-8")
        return publish.publish(built, site, version, address)

    assert release("0.9.0", "old") == ["0.9.0"]
    assert release("0.10.0", "new") == ["0.10.0", "0.9.0"]
    assert release("0.9.1", "mended") == ["0.10.0", "0.9.1", "0.9.0"], "an older version is mended"
    pages = {p.relative_to(site).as_posix(): p.read_text("utf-8") for p in site.rglob("*.html")}
    assert pages == {
        "index.html": "0.10.0",
        "new.html": "0.10.0",
        "0.10.0/index.html": "0.10.0",
        "0.10.0/new.html": "0.10.0",
        "0.9.1/index.html": "0.9.1",
        "0.9.1/mended.html": "0.9.1",
        "0.9.0/index.html": "0.9.0",
        "0.9.0/old.html": "0.9.0",
    }
    rows = json.loads((site / "versions.json").read_text("utf-8"))
    assert rows[:2] == [
        {"version": "0.10.0", "url": address},
        {"version": "0.9.1", "url": f"{address}0.9.1/"},
    ]
    assert (site / "CNAME").exists() and not list(site.rglob(".doctrees"))
    with pytest.raises(ValueError, match="three numbers, such as"):
        publish.publish(built, site, "../..", address)
    shutil.rmtree(built)
    with pytest.raises(ValueError, match="has no index.html: build the documentation first"):
        publish.publish(built, site, "0.9.0", address)


def test_the_version_that_is_published(tmp_path: Path) -> None:
    """The one of pyproject.toml, at the address the build was made for."""
    publish = extension("publish")
    built = tmp_path / "html"
    built.mkdir()
    (built / "index.html").write_text("", encoding="utf-8")
    listed = [{"version": "1.0.0", "url": "https://site/"}]
    (built / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (tmp_path / "site").mkdir()
    done = publish.main(built, tmp_path / "site")
    (row,) = json.loads((tmp_path / "site" / "versions.json").read_text("utf-8"))
    assert row["url"] == "https://site/" and f'version = "{row["version"]}"' in (
        ROOT / "pyproject.toml"
    ).read_text("utf-8")
    assert done.startswith(f"version {row['version']} is in ") and "at the root" in done


def test_peers_are_measured_in_one_command(tmp_path: Path) -> None:
    """The benchmark is asked for one thread and for every tool of the table."""
    collect = extension("collect")
    (tmp_path / "compare.py").write_text(
        "import os, pathlib, sys\n"
        "folder = pathlib.Path(os.environ['XBENCH_RESULTS'])\n"
        "text = os.environ['XBENCH_ORT_THREADS'] + ' ' + os.environ['XBENCH_CACHE']\n"
        "(folder / 'site-compare.csv').write_text(text + ' ' + ' '.join(sys.argv))\n",
        encoding="utf-8",
    )
    written = collect.measured_peers(tmp_path, tmp_path / "cache" / "corpus", tmp_path)
    said = written.read_text(encoding="utf-8")
    assert said.startswith(f"1 {tmp_path / 'cache'} ")
    assert f"--optimizers {','.join(collect.TOOLS)}" in said


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
