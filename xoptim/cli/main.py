"""The command: the group that holds the subcommands.

Exit codes: 0 success, 1 failure (unreadable model, verification...), 2 bad usage.
"""

from __future__ import annotations

import atexit
import gc
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from .batch import batch_command
from .bisect import bisect
from .check import check
from .compare import compare
from .config import config
from .diff import diff
from .explain import explain
from .extract import extract
from .info import info
from .kernels import kernels
from .measure import measure
from .new_pattern import new_pattern
from .optimize import optimize
from .patterns import patterns
from .print_model import dot, print_model
from .reduce import reduce
from .terminal.output import ErrorGroup
from .terminal.settings import SETTINGS, find_settings, read_settings
from .tune import tune_command
from .verify import verify


def _version() -> str:
    try:
        return version("xoptim")
    except PackageNotFoundError:
        return "not installed"


@click.group(cls=ErrorGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="xoptim")
@click.option(
    "--config",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file of options, instead of the closest xoptim.toml or pyproject.toml.",
)
@click.option("--no-config", is_flag=True, help="No file of options is read.")
@click.pass_context
def main(ctx: click.Context, path: Path | None, no_config: bool) -> None:
    """Optimizes ONNX models with patterns.

    \b
    xoptim model.onnx optimized.onnx
    xoptim optimize model.onnx optimized.onnx --patterns default+onnxruntime --verify
    xoptim batch models --output-dir optimized --verify
    xoptim verify model.onnx optimized.onnx
    xoptim measure model.onnx optimized.onnx
    xoptim bisect model.onnx --patterns default+onnxruntime
    xoptim reduce model.onnx -o to_report
    xoptim compare model.onnx optimized.onnx
    xoptim diff model.onnx optimized.onnx
    xoptim check model.onnx --fix mended.onnx
    xoptim info model.onnx --dim batch=8
    xoptim extract model.onnx part.onnx --from query,key --to scores
    xoptim patterns onnxruntime
    xoptim new-pattern model.onnx first_result second_result
    xoptim explain model.onnx TransposeTranspose
    xoptim kernels --op Gelu
    xoptim tune model.onnx --patterns onnxruntime
    xoptim print model.onnx
    xoptim dot model.onnx -o model.svg
    xoptim config optimize
    """
    found = None if no_config else path or find_settings(Path.cwd())
    settings = ctx.meta[SETTINGS] = read_settings(found, main)
    ctx.default_map = settings.values


main.add_command(optimize)
main.add_command(batch_command)
main.add_command(verify)
main.add_command(measure)
main.add_command(bisect)
main.add_command(reduce)
main.add_command(compare)
main.add_command(diff)
main.add_command(info)
main.add_command(check)
main.add_command(extract)
main.add_command(patterns)
main.add_command(new_pattern)
main.add_command(kernels)
main.add_command(tune_command)
main.add_command(explain)
main.add_command(print_model)
main.add_command(dot)
main.add_command(config)


def start() -> None:
    """Runs the command in a process of its own.

    Python runs a full garbage collection before it exits, a tenth of the time on a small model.
    Nothing here needs it.
    """
    atexit.register(gc.freeze)
    main(prog_name="xoptim")
