"""Configuration of the documentation, built with ``make doc``."""

from __future__ import annotations

import os
import sys
import tomllib
import warnings
from pathlib import Path

DOC = Path(__file__).resolve().parent
ROOT = DOC.parent
sys.path[:0] = [str(ROOT), str(DOC / "extensions")]
# the commands that the scripts start use the packages of this checkout
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.getenv("PYTHONPATH")]))

project = "xoptim"
author = "the xoptim developers"
copyright = "2026, the xoptim developers"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx_sitemap",
    "sphinxext.opengraph",
    "drawing_directive",
    "examples_of",
    "family_table",
    "flow_directive",
    "inventories",
    "links",
    "pattern_table",
    "scripts",
    "source_links",
    "versions",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "changes", "examples", "extensions"]
# the galleries read these folders, Sphinx reads what they write
exclude_patterns += [
    "tutorials",
    "gallery",
    "benchmarks",
    "auto_scripts",
    "auto_*/*.ipynb",
    "auto_*/*.py",
]

html_theme = "furo"
html_title = f"xoptim {release}"
html_baseurl = "https://xoptim.github.io/xoptim/"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["catalogue.js", "versions.js"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_theme_options = {
    "source_repository": "https://github.com/xoptim/xoptim",
    "source_branch": "main",
    "source_directory": "_doc/",
}
html_show_sourcelink = False
sitemap_url_scheme = "{link}"
ogp_site_url = html_baseurl
ogp_site_name = "xoptim"
ogp_social_cards = {"enable": False}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "default"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
python_maximum_signature_line_length = 88
# types are written for readers in docstrings: they are not all targets of links
nitpicky = False

# a line of a file on the forge is an anchor that its scripts make
linkcheck_anchors_ignore = [r"^L\d+"]
linkcheck_retries = 3
linkcheck_timeout = 30

sphinx_gallery_conf = {
    "examples_dirs": [f"auto_scripts/{name}" for name in ("tutorials", "gallery", "benchmarks")],
    "gallery_dirs": ["auto_tutorials", "auto_gallery", "auto_benchmarks"],
    "filename_pattern": r"[\\/]plot_",
    "ignore_pattern": r"^(collect|gains|opsets|roofline|__init__)\.py",
    "subsection_order": [
        f"auto_scripts/tutorials/{name}" for name in ("start", "torch", "rewrites")
    ]
    + ["*"],
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "auto_backreferences",
    "doc_module": ("xoptim", "xbuilder", "torch_interpreter"),
    "reference_url": {"xoptim": None, "xbuilder": None, "torch_interpreter": None},
    "image_scrapers": ("matplotlib", "drawing_directive.scrape_drawings"),
    "abort_on_example_error": True,
    "copyfile_regex": r".*\.csv",
    "download_all_examples": False,
    "show_signature": False,
    "default_thumb_file": str(DOC / "_static" / "logo.svg"),
    "plot_gallery": True,
    "write_computation_times": False,
    "remove_config_comments": True,
}
# a plot is drawn in a file, there is no window to show it in; torch.export warns about its own LSTM
warnings.filterwarnings("ignore", message=".*non-interactive.*")
warnings.filterwarnings("ignore", message=".*_flat_weights.*")
