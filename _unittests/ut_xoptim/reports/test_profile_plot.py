"""The icicle of a profile."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from xoptim.reports.profile_plot import boxes, profile_html, profile_svg
from xoptim.toolkit.profiles import ProfileNode

SVG = "{http://www.w3.org/2000/svg}"


def tree() -> ProfileNode:
    root = ProfileNode("run", "optimize", time=10.0)
    long, short = root.child("pass", "patterns"), root.child("pass", "order")
    long.time, short.time = 6.0, 2.0
    useful, vain = long.child("rewriter", "A<b>"), long.child("rewriter", "Vain")
    useful.time, useful.applications, vain.time = 4.0, 1, 2.0
    root.child("pass", "nothing").time = 1e-9
    return root


def test_boxes() -> None:
    found = {node.name: (left, wide, row) for node, left, wide, row in boxes(tree(), 100.0)}
    assert found == {
        "optimize": (0.0, 100.0, 0),
        "patterns": (0.0, 60.0, 1),
        "order": (60.0, 20.0, 1),
        "A<b>": (0.0, 40.0, 2),
        "Vain": (40.0, 20.0, 2),
    }, "what is too thin is left out"


def test_what_is_inside_never_gets_out() -> None:
    """A clock may say that the parts are longer than the whole."""
    root = ProfileNode("run", "optimize", time=1.0)
    for name in "ab":
        root.child("pass", name).time = 1.0
    rows = {node.name: (left, wide) for node, left, wide, _ in boxes(root, 100.0)}
    assert rows["b"] == (50.0, 50.0)


def test_a_profile_without_time() -> None:
    root = ProfileNode("run", "optimize")
    root.child("pass", "p")
    assert [node.name for node, *_ in boxes(root, 100.0)] == ["optimize"]


def test_svg() -> None:
    drawing = ET.fromstring(profile_svg(tree()))
    assert drawing.get("height") == "66"
    groups = drawing.findall(f"{SVG}g")
    assert len(groups) == 5
    titles = [g.findtext(f"{SVG}title") for g in groups]
    assert titles[0] == "run optimize: 10000.00 ms, 2000.00 ms of its own, 1 applied"
    assert any(t and t.startswith("rewriter A<b>") for t in titles), "names are escaped"
    colours = {g.findtext(f"{SVG}text"): g.find(f"{SVG}rect").get("fill") for g in groups}
    assert colours["Vain"] != colours["A<b>"], "what never applied is seen"


@pytest.mark.parametrize("title", ["profile", "a & b"])
def test_page(title: str) -> None:
    page = profile_html(tree(), title)
    assert page.startswith("<!DOCTYPE html>") and "<svg" in page
    assert f"<title>{title.replace('&', '&amp;')}</title>" in page
    assert "├── order: 2000.00 ms" in page or "└── order: 2000.00 ms" in page
