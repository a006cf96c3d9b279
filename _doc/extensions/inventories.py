"""Links to Python, numpy, onnx and torch, without the network: a few names and their pages.

The objects that signatures name most are listed here; each list becomes the inventory that
``sphinx.ext.intersphinx`` reads.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_CLASS, _FUNCTION = "py:class", "py:function"
_ABSTRACT = ("Callable", "Collection", "Iterable", "Iterator", "Mapping", "Sequence")
_PROTOS = ("Attribute", "Function", "Graph", "Model", "Node", "Tensor", "Type", "ValueInfo")

#: project -> address, then kind -> page -> names; `$` stands for the name
PROJECTS: dict[str, tuple[str, dict[str, dict[str, str]]]] = {
    "python": (
        "https://docs.python.org/3/",
        {
            _CLASS: {
                "library/stdtypes.html#$": "str bytes dict list tuple set frozenset",
                "library/functions.html#$": "int float bool object type",
                "library/collections.abc.html#$": " ".join(
                    f"collections.abc.{name}"
                    for name in [
                        "Callable",
                        "Collection",
                        "Iterable",
                        "Iterator",
                        "Mapping",
                        "Sequence",
                    ]
                ),
                "library/os.html#$": "os.PathLike",
                "library/pathlib.html#$": "pathlib.Path",
                "library/typing.html#$": "typing.Any",
                "library/collections.html#$": "collections.Counter",
            }
        },
    ),
    "numpy": (
        "https://numpy.org/doc/stable/",
        {_CLASS: {"reference/generated/$.html#$": "numpy.ndarray numpy.dtype numpy.generic"}},
    ),
    "onnx": (
        "https://onnx.ai/onnx/",
        {
            _CLASS: {
                "api/classes.html#$": " ".join(
                    f"onnx.{name}Proto"
                    for name in [
                        "Attribute",
                        "Function",
                        "Graph",
                        "Model",
                        "Node",
                        "Tensor",
                        "Type",
                        "ValueInfo",
                    ]
                )
            }
        },
    ),
    "torch": (
        "https://docs.pytorch.org/docs/stable/",
        {
            _CLASS: {
                "generated/torch.nn.Module.html#$": "torch.nn.Module",
                "tensors.html#$": "torch.Tensor",
                "export/api_reference.html#$": "torch.export.ExportedProgram torch.export.Dim",
                "fx.html#$": "torch.fx.GraphModule torch.fx.Node torch.fx.Graph",
            },
            _FUNCTION: {
                "generated/torch.compile.html#$": "torch.compile",
                "export/api_reference.html#$": "torch.export.export",
            },
        },
    ),
}


def inventory(project: str, content: dict[str, dict[str, str]]) -> bytes:
    """The inventory of a project, as Sphinx writes them.

    :param project: its name
    :param content: kind -> page -> names
    :return: the content of the file
    """
    lines = [
        f"{name} {kind} 1 {page} -\n"
        for kind, pages in content.items()
        for page, names in pages.items()
        for name in names.split()
    ]
    pages = [line.replace("html#$", f"html#{line.split()[0]}") for line in lines]
    pages = [line.replace("/$.html", f"/{line.split()[0]}.html") for line in pages]
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    return head.encode() + zlib.compress("".join(pages).encode())


def write_inventories(app: Sphinx, config: Any) -> None:
    """Writes the inventories beside the doctrees, and gives them to intersphinx.

    :param app: the application
    :param config: its configuration
    """
    folder = Path(app.doctreedir) / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    for project, (address, content) in PROJECTS.items():
        path = folder / f"{project}.inv"
        path.write_bytes(inventory(project, content))
        config.intersphinx_mapping[project] = (address, (str(path),))


def setup(app: Sphinx) -> dict[str, Any]:
    """Fills `intersphinx_mapping` before intersphinx reads it."""
    app.connect("config-inited", write_inventories, priority=10)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
