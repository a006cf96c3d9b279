"""The page, as text and in a browser."""

from __future__ import annotations

import shutil
import sys
import time

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx.parser
import pytest

import xoptim
from xoptim.toolkit.profiles import Profile

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
EVIL = "a<img src=x onerror=alert(1)>\"&'</script><b>"
SIZES = {"wide": (1280, 900), "phone": (390, 844)}
MODEL = """<ir_version: 10, opset_import: ["" : 18]>
a_model_with_a_long_name (float[batch, 4] x, bool c) => (float[batch, 4] y)
<float[4, 4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, float[4] b = {1,2,3,4}> {
    t = Transpose<perm = [1, 0]>(x)
    u = Transpose<perm = [1, 0]>(t)
    m = MatMul(u, w)
    a = Add(m, b)
    y = If(c) <then_branch = one () => (o) { s = Sigmoid(a) o = Mul(a, s) },
               else_branch = two () => (p) { n = Neg(a) p = Exp(n) }>
}"""


def evil_model():
    """A model whose names are markup."""
    nodes = [
        oh.make_node("Transpose", ["x"], [EVIL], perm=[1, 0], name=EVIL),
        oh.make_node("Transpose", [EVIL], ["t"], perm=[1, 0]),
        oh.make_node("MatMul", ["t", f"w{EVIL}"], ["m"]),
        oh.make_node("Add", ["m", f"b{EVIL}"], [f"y{EVIL}"]),
    ]
    rows = np.ones((300, 4), np.float32)
    weights = [onh.from_array(rows.T.copy(), f"w{EVIL}"), onh.from_array(rows[:, 0], f"b{EVIL}")]
    value = oh.make_tensor_value_info
    inputs = [value("x", 1, ["n", 4])]
    graph = oh.make_graph(nodes, EVIL, inputs, [value(f"y{EVIL}", 1, ["n", 300])], weights)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def done():
    model = onnx.parser.parse_model(MODEL)
    return xoptim.optimize(model, verify=True, validate=True, profile=Profile())


@pytest.fixture(scope="module")
def path(done, tmp_path_factory):
    pytest.importorskip("igraph", reason="the graphs are drawn")
    path = tmp_path_factory.mktemp("page") / "report.html"
    done.report(path)
    return path


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium is installed, apt-get install chromium")
    sync = pytest.importorskip("playwright.sync_api", reason="it drives the browser")
    with sync.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Opens a page of a size, and fails if one of its scripts does, or if it asks for a file."""
    failures, pages = [], []

    def open_page(path, size="wide", scheme="light"):
        width, height = SIZES[size]
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        pages.append(page)
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("dialog", lambda dialog: failures.append(f"dialog {dialog.message}"))
        page.on("console", lambda m: failures.append(m.text) if m.type == "error" else None)
        page.on("request", lambda r: failures.append(r.url) if r.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_selector("#stage svg")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert failures == []


def test_text(done):
    text = done.html()
    for words in ("TransposeTranspose", "MatMulAdd", "same results", "then_branch of y", "-33.3%"):
        assert words in text
    assert (
        "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text
    )


def test_without_igraph(done, monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    text = done.html()
    assert "pip install &#39;xoptim[report]&#39;" in text and "TransposeTranspose" in text
    assert "<svg" in text, "the profile"
    assert 'id="stage"' not in text


def test_nothing_was_asked():
    text = xoptim.optimize(onnx.parser.parse_model(MODEL), patterns=None).html()
    for words in ("No rewrite was applied", "Nothing was checked", "--measure", "--profile"):
        assert words in text


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_overflows(opened, path, size, scheme):
    page = opened(path, size, scheme)
    for row in page.query_selector_all("details"):
        row.evaluate("e => e.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]
    out = page.evaluate(
        """() => [...document.querySelectorAll("main *, header *, nav")]
        .filter((e) => !e.closest(".scroll, #stage, svg, aside"))
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
        .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert out == []
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.browser
def test_elements(opened, path):
    page = opened(path)
    assert page.inner_text("h1") == "a_model_with_a_long_name"
    assert [h.inner_text() for h in page.query_selector_all("h2")] == [
        "Before and after", "Graph", "Rewrites", "Not rewritten", "Checks", "Time",
    ]  # fmt: skip
    cards = dict(c.inner_text().split("\n", 1) for c in page.query_selector_all(".card"))
    assert cards["nodes"].split() == ["9", "→", "6", "-33.3%"]
    assert {"nodes", "types of operators", "weights", "operations"} <= set(cards)
    assert page.locator("#time .flame svg rect").count() > 5
    assert "then_branch of y" in page.inner_text("#checks")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"


def titles(page):
    return page.locator("#stage g.v text.t").all_text_contents()


@pytest.mark.browser
def test_folding(opened, path):
    page = opened(path)
    assert sorted(titles(page)) == ["Gemm", "If", "c", "x", "y"]
    page.click("#stage text.b:has-text('then_branch')")
    assert sorted(titles(page)) == ["Mul", "Sigmoid", "a", "o"]
    steps = page.inner_text("#path")
    assert steps.startswith("a_model_with_a_long_name") and steps.endswith("then_branch of y")
    page.select_option("#graphs", label="else_branch of y")
    assert "Exp" in titles(page)
    page.click("#path button")
    assert "Gemm" in titles(page)
    page.click("button[data-side=before]")
    assert titles(page).count("Transpose") == 2
    assert page.get_attribute("button[data-side=before]", "aria-pressed") == "true"


@pytest.mark.browser
def test_search(opened, path):
    page = opened(path)
    page.fill("#search", "sigmoid")
    assert page.inner_text("#found") == "1 node"
    page.press("#search", "Enter")
    assert "Sigmoid" in titles(page), "the body it is in is shown"
    assert page.inner_text("#details b") == "Sigmoid" and page.inner_text("#found") == "1 of 1"
    page.fill("#search", "nothing of that name")
    assert page.inner_text("#found") == "0 nodes"
    page.fill("#search", "mul")
    assert page.inner_text("#found") == "1 node", "the operator, not all that contain it"


@pytest.mark.browser
def test_origin_of_a_node(opened, path):
    page = opened(path)
    page.click("#stage g.v.new text.t:has-text('Gemm')")
    assert "written by" in page.inner_text("#details") and "MatMulAdd" in page.inner_text(
        "#details"
    )
    page.click("#details button >> text=MatMul:")
    assert page.get_attribute("button[data-side=before]", "aria-pressed") == "true"
    assert page.text_content("#stage g.chosen text.t") == "MatMul"
    assert "gone" in page.get_attribute("#stage g.chosen", "class")


@pytest.mark.browser
def test_zoom(opened, path):
    page = opened(path)
    width = "document.querySelector('#stage svg').getBoundingClientRect().width"
    first = page.evaluate(width)
    page.click("#in")
    assert page.evaluate(width) == pytest.approx(first * 1.3, rel=0.01)
    page.click("#whole")
    assert page.evaluate("document.querySelector('#stage').scrollHeight") <= page.evaluate(
        "document.querySelector('#stage').clientHeight + 1"
    )


@pytest.mark.browser
def test_rewrites(opened, path):
    page = opened(path)
    row = page.locator("#rewrites details", has_text="MatMulAdd")
    assert not row.locator("figure").first.is_visible()
    row.locator("summary").click()
    assert row.locator("figure").first.is_visible()
    assert row.locator("figure text.t").all_text_contents().count("Gemm") == 1
    assert "Gemm(A, B, C)" in row.inner_text()


@pytest.mark.browser
@pytest.mark.parametrize("size", SIZES)
def test_markup_in_names(opened, tmp_path, size):
    path = tmp_path / "evil.html"
    xoptim.optimize(evil_model(), verify=True, validate=True).report(path)
    page = opened(path, size)
    assert page.inner_text("h1").strip() and page.locator("img").count() == 0
    assert EVIL in page.inner_text("#checks") and EVIL in page.inner_text("#path")
    page.click("button[data-side=before]")
    page.fill("#search", "onerror")
    assert page.inner_text("#found") != "0 nodes"
    page.press("#search", "Enter")
    assert "<img src=x" in page.inner_text("#details")
    assert page.locator("img, main b > b, main script b").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]


@pytest.mark.browser
@pytest.mark.slow
def test_a_large_model_opens_in_two_seconds(opened, browser, tmp_path):
    """The time of the processor, since other processes may run."""
    nodes = []
    for i in range(1250):
        nodes += [
            oh.make_node("Sigmoid", [f"x{i}"], [f"s{i}"]),
            oh.make_node("Mul", [f"x{i}", f"s{i}"], [f"m{i}"]),
            oh.make_node("Softmax", [f"m{i}"], [f"t{i}"]),
            oh.make_node("Add", [f"t{i}", f"x{i}"], [f"x{i + 1}"]),
        ]
    value = oh.make_tensor_value_info
    graph = oh.make_graph(nodes, "g", [value("x0", 1, ["n", 4])], [value("x1250", 1, ["n", 4])])
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)
    path = tmp_path / "large.html"
    xoptim.optimize(model, patterns=None).report(path)
    assert path.stat().st_size < 6_000_000
    page = opened(path)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    rows = session.send("Performance.getMetrics")["metrics"]
    seconds = {row["name"]: row["value"] for row in rows}
    assert seconds["ThreadTime"] < 2
    begin = time.process_time()
    page.click("#whole")
    page.fill("#search", "softmax")
    assert page.inner_text("#found") == "1250 nodes" and time.process_time() - begin < 2
