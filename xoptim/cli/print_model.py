"""``xoptim print`` and ``xoptim dot``: a model as text or as a drawing."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xbuilder.errors import XoptimError, short_message

from .terminal.output import common_options, print_json
from .terminal.paths import InputModel, OutputFile, check_different, target_of

if TYPE_CHECKING:
    from onnx import ModelProto

_TEXTS = (".dot", ".gv", ".txt")
_IMAGES = {".png": "png", ".pdf": "pdf"}


def read_structure(path: Path) -> ModelProto:
    """Loads the structure of a model; external weights may be missing.

    :param path: file
    :return: the model
    :raises InvalidModelError: if the file is not a model
    """
    from xbuilder.files.model_files import load_model

    return load_model(path, check_data=False).proto


@click.command("print")
@click.argument("model", type=InputModel())
@click.option("-o", "--output", type=OutputFile(), help="Writes the text into a file.")
@click.option(
    "--syntax",
    type=click.Choice(["pretty", "onnx"]),
    default="pretty",
    show_default=True,
    help="pretty is for reading, onnx is the syntax onnx.parser reads.",
)
@click.option(
    "--shapes/--no-shapes",
    default=True,
    show_default=True,
    help="Infers the types and shapes of results, and writes them after the nodes.",
)
@common_options
def print_model(model: Path, output: Path | None, syntax: str, shapes: bool, as_json: bool) -> None:
    """Prints MODEL as text, with --json a summary of it."""
    from xbuilder.files.model_files import write_file

    check_different([output], model)
    proto = read_structure(model)
    results = inferred_results(proto, model.parent) if shapes and syntax == "pretty" else {}
    if as_json:
        text = None
        print_json({**model_summary(proto), "results": results})
    else:
        text = model_text(proto, syntax, results)
        if output is None:
            click.echo(text)
    if output is not None:
        text = text or model_text(proto, syntax, results)
        write_file(target_of(output), f"{text}\n".encode())


def inferred_results(model: ModelProto, folder: Path) -> dict[str, str]:
    """Types and shapes of the results of nodes, none if the model is not valid.

    :param model: any model
    :param folder: the folder of its weights
    :return: name -> text, those of bodies included
    """
    from xbuilder import GraphBuilder
    from xbuilder.nested.bodies import iter_bodies
    from xbuilder.protos.pretty import pretty_facts

    try:
        graph = GraphBuilder(model, infer_shapes_options=True, base_dir=folder).graph
    except XoptimError:  # it is printed all the same
        return {}
    return {
        name: pretty_facts(one, name)
        for one in (graph, *iter_bodies(graph))
        for record in one.store.nodes
        for name in record.outputs
        if name
    }


def model_text(
    model: ModelProto, syntax: str = "pretty", results: Mapping[str, str] | None = None
) -> str:
    """Renders a model as text.

    :param model: any model
    :param syntax: `pretty` (to be read) or `onnx` (the syntax of `onnx.parser`)
    :param results: types and shapes of results, written after the nodes
    :return: the text
    :raises XoptimError: if onnx refuses to print the model
    """
    if syntax == "onnx":
        import onnx.printer

        try:
            return onnx.printer.to_text(model)
        except Exception as e:  # onnx checks the weights, with errors of its own
            reason = short_message(e)
            raise XoptimError(
                f"onnx does not print the model: {reason}; --syntax pretty prints any model"
            ) from e
    from xbuilder import pretty_onnx

    return pretty_onnx(model, results=results)


def model_summary(model: ModelProto) -> dict[str, Any]:
    """Summarizes a model: opsets, inputs, outputs, operators, weights.

    :return: a dictionary that json accepts
    """
    from ..reports.model_summary import count_ops, weight_bytes

    graph = model.graph
    ops = count_ops(model)
    return {
        "ir_version": model.ir_version,
        "opsets": {o.domain or "ai.onnx": o.version for o in model.opset_import},
        "inputs": [i.name for i in graph.input],
        "outputs": [o.name for o in graph.output],
        "nodes": sum(ops.values()),
        "op_types": dict(ops.most_common()),
        "functions": [f"{f.domain}.{f.name}" for f in model.functions],
        "initializers": len(graph.initializer),
        "weight_bytes": weight_bytes(model),
    }


@click.command()
@click.argument("model", type=InputModel())
@click.option(
    "-o",
    "--output",
    type=OutputFile([*_TEXTS, ".svg", *_IMAGES]),
    help="File to write: .dot, .svg, .png, .pdf (the last two need graphviz); printed if missing.",
)
@common_options
def dot(model: Path, output: Path | None, as_json: bool) -> None:
    """Draws MODEL, with the shapes of its results: in SVG, or in the language of graphviz."""
    from xbuilder.files.model_files import write_file

    from ..reports.drawing.drawing import draw_model
    from ..reports.drawing.shapes import model_shapes
    from ..reports.drawing.svg import drawings_svg
    from ..reports.model_dot import model_dot

    check_different([output], model)
    proto = read_structure(model)
    shapes = model_shapes(proto)
    if output is not None and output.suffix.lower() == ".svg":
        write_file(target_of(output), drawings_svg(draw_model(proto, shapes)).encode())
        _tell(output, as_json)
        return
    text = model_dot(proto, shapes)
    if output is None:
        if as_json:
            print_json({"ok": True, "dot": text})
        else:
            click.echo(text)
        return
    if output.suffix.lower() in _IMAGES:
        draw(text, target_of(output))
    else:
        write_file(target_of(output), text.encode())
    _tell(output, as_json)


def _tell(output: Path, as_json: bool) -> None:
    """Names the file that was written."""
    if as_json:
        print_json({"ok": True, "output": str(output)})
    else:
        click.echo(f"wrote {output}")


def draw(text: str, output: Path) -> None:
    """Draws a graph written in the language dot, with graphviz.

    :param text: the graph
    :param output: image to write, the extension gives the format
    :raises XoptimError: if graphviz is not installed or refuses the graph
    """
    import subprocess
    import tempfile

    program = shutil.which("dot")
    if program is None:
        raise XoptimError(
            f"{output.name} has to be drawn by graphviz and its program 'dot' is not installed: "
            "install it or write a .dot or a .svg file"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".draw") as folder:
        image = Path(folder) / f"image{output.suffix}"
        run = subprocess.run(
            [program, f"-T{_IMAGES[output.suffix.lower()]}", "-o", str(image)],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode or not image.exists():
            raise XoptimError(f"graphviz does not draw the model: {run.stderr.strip()[:300]}")
        image.replace(output)
