"""Directive ``.. before-after::``, a model written in the text of ONNX beside what becomes of it.

The model is optimized when the page is built: the drawing is always true.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from drawings import draw, standalone
from onnx import ModelProto
from onnx.parser import ParseError, parse_model
from scripts import COPIES
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx_gallery.scrapers import figure_rst

import xoptim
from xbuilder import pretty_onnx
from xbuilder.errors import XoptimError
from xoptim.reports.drawing.svg import drawing_style


def side_by_side(before: ModelProto, after: ModelProto, shapes: bool = True) -> nodes.raw:
    """The two drawings as a node of docutils.

    :param before: a model
    :param after: what it becomes
    :param shapes: writes the shapes of the results
    :return: HTML; other builders leave it out
    """
    drawn = "".join(
        f"<figure><figcaption>{name}</figcaption>{draw(model, shapes)}</figure>"
        for name, model in (("before", before), ("after", after))
    )
    return nodes.raw("", f'<div class="before-after">{drawn}</div>', format="html")


class BeforeAfter(SphinxDirective):
    """The directive. Option `patterns` is a selection, `default+onnxruntime` unless it is given."""

    has_content = True
    option_spec: ClassVar = {"patterns": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Optimizes the model and draws both."""
        self.env.note_reread()
        patterns = self.options.get("patterns", "default+onnxruntime")
        try:
            before = parse_model("\n".join(self.content))
            after = xoptim.optimize(before, patterns=patterns, verify=True).model
        except (ParseError, XoptimError) as e:
            return [self.state.document.reporter.error(str(e), line=self.lineno)]
        texts = [nodes.literal_block(text=pretty_onnx(model)) for model in (before, after)]
        only = nodes.container("", *texts, classes=["only-text"])
        return [side_by_side(before, after), only]


def scrape_drawings(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Draws the models a block of a script puts in a dictionary named `drawn`, title -> model.

    :param block: the block
    :param block_vars: its variables
    :param gallery_conf: the configuration of sphinx-gallery, which calls this
    :return: the images as rst
    """
    models = block_vars["example_globals"].pop("drawn", {})
    paths = []
    folder = f"{Path(gallery_conf['src_dir']) / COPIES}/"  # in the lines of code of the nodes
    for title, model in models.items():
        paths.append(next(block_vars["image_path_iterator"]).replace(".png", ".svg"))
        drawing = standalone(model, title).replace(folder, "")
        Path(paths[-1]).write_text(drawing, encoding="utf-8")
    return figure_rst(paths, gallery_conf["src_dir"])


def write_style(app: Sphinx, config: Any) -> None:
    """Writes the style sheet of the drawings, which follows the theme of the page.

    :param app: the application
    :param config: its configuration
    """
    folder = Path(app.srcdir) / "auto_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "drawings.css").write_text(drawing_style(dark=True), encoding="utf-8")
    config.html_static_path.append(str(folder))


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("before-after", BeforeAfter)
    app.connect("config-inited", write_style)
    app.add_css_file("drawings.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
