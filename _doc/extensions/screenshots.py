"""Opens the pages of the built documentation in chromium, on a wide screen and on a phone.

::

    make screenshots                                                # ten pages
    python _doc/extensions/screenshots.py _doc/_build/html --all    # every page, on sheets

The pictures are written beside the pages, in ``_doc/_build/screenshots``. A page that is wider than
the screen, or whose scripts fail, is printed, and so is a word that the search does not find. The
command then exits with 1.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

#: widths of the screens, in pixels
WIDTHS = (1280, 390)
#: height of the part of a page that is shown
HEIGHT = 2400
PAGES = (
    "index",
    "getting_started",
    "auto_tutorials/index",
    "auto_tutorials/start/plot_01_quickstart",
    "auto_gallery/index",
    "auto_benchmarks/plot_1_optimizers",
    "rewrites/pattern_catalogue",
    "command/command_line",
    "api/xoptim",
    "help/how_it_compares",
)
#: milliseconds that a page may take on a loaded machine, the catalogue is large
TIMEOUT = 120_000
#: words that users search, and the page they are looking for
SEARCHED = {
    "quickstart": "auto_tutorials/start/plot_01_quickstart.html",
    "FAQ": "help/faq.html",
    "fp16": "auto_tutorials/start/plot_06_float16_quantized.html",
    "DynamicCache": "auto_tutorials/torch/plot_02_llm_cache.html",
    "notebook": "auto_gallery/",
}


def pages_of(folder: Path, everything: bool) -> list[str]:
    """The pages to open: ten of them, or all but the sources of the modules.

    :param folder: the built documentation
    :param everything: all the pages
    """
    if not everything:
        return [name for name in PAGES if (folder / f"{name}.html").exists()]
    names = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.html"))
    return sorted(n for n in names if not n.startswith(("_modules", "_static")))


@contextmanager
def opened(width: int) -> Iterator[Any]:
    """A page of a browser.

    :param width: of the screen
    """
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if program is None:
        sys.exit("chromium is not installed: apt-get install chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="light")
        page.set_default_timeout(TIMEOUT)
        yield page
        browser.close()


def pictures(folder: Path, names: Sequence[str], width: int, faults: list[str]) -> Iterator[Any]:
    """The pictures of pages, and what is wrong with them.

    :param folder: the built documentation
    :param names: pages
    :param width: of the screen
    :param faults: receives what is wrong
    """
    with opened(width) as page:
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        for name in names:
            page.goto((folder / f"{name}.html").resolve().as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth") - width
            if wide > 0:
                faults.append(f"{name}: {wide} pixels wider than {width}")
            faults += [f"{name}: {error}" for error in errors]
            errors.clear()
            height = page.evaluate("document.documentElement.scrollHeight")
            shown = {"x": 0, "y": 0, "width": width, "height": min(height, HEIGHT)}
            yield Image.open(io.BytesIO(page.screenshot(clip=shown, full_page=True)))


def search(folder: Path, faults: list[str]) -> None:
    """Searches the words of users.

    :param folder: the built documentation
    :param faults: receives the words that do not find their page
    """
    with opened(WIDTHS[0]) as page:
        for word, target in SEARCHED.items():
            page.goto(f"{(folder / 'search.html').resolve().as_uri()}?q={word}")
            found = page.locator(f"#search-results li > a[href*='{target}']")
            try:
                found.first.wait_for()
            except Exception as error:  # a timeout: the page is not among the results
                faults.append(f"search: {word} does not find {target}, {type(error).__name__}")


def sheet(images: Sequence[Image.Image], path: Path, columns: int, scale: float) -> None:
    """Puts pictures side by side in one file.

    :param images: the pictures
    :param path: the file
    :param columns: number of pictures
    :param scale: of the pictures
    """
    small = [image.resize([round(side * scale) for side in image.size]) for image in images]
    width = max(image.width for image in small)
    result = Image.new("RGB", (width * columns, max(image.height for image in small)), "gray")
    for i, image in enumerate(small):
        result.paste(image, (i * width, 0))
    save(result, path)


def save(image: Image.Image, path: Path) -> None:
    """Writes a picture with 128 colors."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def main(folder: Path, everything: bool) -> int:
    """Writes the pictures.

    :param folder: the built documentation
    :param everything: all the pages, on sheets
    :return: 1 if a page does not fit
    """
    names, faults = pages_of(folder, everything), []
    target = folder.parent / "screenshots"
    for width in WIDTHS:
        columns, scale = (5, 0.4) if width > 1000 else (8, 0.6)
        row: list[Image.Image] = []
        for i, image in enumerate(pictures(folder, names, width, faults), 1):
            if not everything:
                save(image, target / f"{names[i - 1].replace('/', '_')}_{width}.png")
                continue
            row.append(image)
            if len(row) == columns or i == len(names):
                sheet(row, target / f"sheet_{width}_{i - len(row):03}.png", columns, scale)
                row.clear()
    search(folder, faults)
    print("\n".join([*faults, f"{len(names)} pages, pictures in {target}"]))
    return min(len(faults), 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Opens the documentation in chromium.")
    parser.add_argument("folder", type=Path, help="the built documentation")
    parser.add_argument("--all", action="store_true", help="every page, several on a sheet")
    args = parser.parse_args()
    sys.exit(main(args.folder, args.all))
