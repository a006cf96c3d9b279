"""Writes the pictures of the page `report`: the page of ``make demo`` in chromium.

::

    python _doc/extensions/report_pictures.py
"""

from __future__ import annotations

import io
import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

DOC = Path(__file__).resolve().parents[1]


def picture(page: Any, path: Path) -> None:
    """Saves what the window shows, with 128 colors."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size} bytes")


def main(report: Path, folder: Path) -> None:
    """Opens a report and saves two pictures: a node and its origin, the rewrites on a phone."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if program is None:
        sys.exit("chromium is not installed: apt-get install chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 820}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.wait_for_selector("#stage svg")
        page.locator("#graph").evaluate("e => e.scrollIntoView()")
        page.fill("#search", "gemm")
        page.press("#search", "Enter")
        picture(page, folder / "report_graph.png")
        page = browser.new_page(viewport={"width": 390, "height": 820}, color_scheme="dark")
        page.goto(report.resolve().as_uri())
        page.wait_for_selector("#stage svg")
        picture(page, folder / "report_phone.png")
        browser.close()


if __name__ == "__main__":
    demo = runpy.run_path(str(DOC / "examples" / "plot_demo_mlp.py"))
    with tempfile.TemporaryDirectory() as name:
        written = Path(name) / "mlp.html"
        demo["write_page"](demo["convert"](), written)
        main(written, DOC / "_static")
