"""The command: the group that holds the subcommands.

Exit codes: 0 success, 1 failure (unreadable model, verification...), 2 bad usage.
"""

from __future__ import annotations

import atexit
import gc
import importlib
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import click

from .terminal.output import ErrorGroup
from .terminal.settings import SETTINGS, find_settings, read_settings

#: subcommand -> its module, and its help in a line
COMMANDS = {
    "batch": ("batch", "Optimizes many models, on this machine or on a cluster."),
    "bisect": ("bisect", "Looks for the first rewrite that changes the results."),
    "check": ("check", "Looks for what will not run, and for what surprises."),
    "compare": ("compare", "Names the first result that differs between two models."),
    "config": ("config", "Shows the options of xoptim.toml or pyproject.toml."),
    "diff": ("diff", "Lists what differs between two models."),
    "dot": ("print_model", "Draws a model in the language of graphviz."),
    "explain": ("explain", "Explains why a pattern does not match."),
    "extract": ("extract", "Writes a part of a model."),
    "info": ("info", "Summarizes a model: operators, weights, operations, memory."),
    "kernels": ("kernels", "Lists the kernels of onnxruntime."),
    "measure": ("measure", "Measures the time and memory of models."),
    "new-pattern": ("new_pattern", "Writes a pattern that matches some nodes of a model."),
    "optimize": ("optimize", "Optimizes a model."),
    "patterns": ("patterns", "Lists the patterns."),
    "print": ("print_model", "Prints a model as text."),
    "reduce": ("reduce", "Cuts the smallest model that shows a wrong rewrite."),
    "tune": ("tune", "Measures the time each pattern saves."),
    "verify": ("verify", "Compares the outputs of two models."),
}


class Subcommands(MutableMapping[str, click.Command]):
    """The subcommands by name, each imported when it is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module = importlib.import_module(f".{COMMANDS[name][0]}", __package__)
            found = [c for c in vars(module).values() if isinstance(c, click.Command)]
            self._loaded[name] = next(c for c in found if c.name == name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*COMMANDS, *self._loaded)))

    def __len__(self) -> int:
        return len(list(iter(self)))


class MainGroup(ErrorGroup):
    """The group of the subcommands, whose help imports none of them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("xoptim")
        except PackageNotFoundError:
            found = "not installed"
        click.echo(f"xoptim, version {found}")
        ctx.exit()


@click.group(
    cls=MainGroup,
    commands=Subcommands(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
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


def start() -> None:
    """Runs the command in a process of its own.

    Python runs a full garbage collection before it exits, a tenth of the time on a small model.
    Nothing here needs it. The modules a process imports are hundreds of thousands of objects that
    stay: collections are rarer.
    """
    gc.set_threshold(100_000, 10, 10)
    atexit.register(gc.freeze)
    main(prog_name="xoptim")
