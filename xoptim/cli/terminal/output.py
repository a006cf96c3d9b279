"""Helpers shared by the subcommands: common options, errors, and printing."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from xbuilder.errors import OptionError, XoptimError

from .copied import Copied
from .paths import OutputFile, target_of
from .progress import QUIET
from .settings import SETTINGS, Settings

if TYPE_CHECKING:
    from ...reports.tables import Output

Command = TypeVar("Command", bound=Callable[..., Any])

#: width of a list when the output is not a terminal, so that a row takes one line
WIDE = 1000
_JSON = "xoptim.json"
_TRACEBACK = "xoptim.traceback"
_VERBOSE = "xoptim.verbose"
_LOG = "xoptim.log"
#: argument of a function -> option of the command line that sets it
_OPTIONS = {
    "allowed_roots": "--data-root",
    "inline=False": "--keep-functions",
    "refer_to_source": "--refer-to-source",
    "size_threshold": "--external-threshold",
    "target_opset": "--target-opset",
}
_ARGUMENT = re.compile(rf"(?<!\w)'[^']*'|\b({'|'.join(_OPTIONS)})\b(=False)?")


class WrongOption(click.ClickException):
    """An option whose value is refused: the command exits with 2, as for the errors of click."""

    exit_code = 2


class ErrorGroup(click.Group):
    """A group of commands that turns any exception into one message and an exit code.

    A bad option exits with 2, any other failure with 1. The traceback is shown on demand.
    With ``--json``, the message is printed as json on the standard output.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the subcommand; a file name instead of it is a model to optimize."""
        word = args[0]
        if self.get_command(ctx, word) is None and (Path(word).suffix or os.path.exists(word)):
            args = ["optimize", *args]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the subcommand.

        :raises click.ClickException: for every failure
        """
        out = sys.stdout  # an interruption may leave it redirected
        words = _arguments(ctx)
        if "--json" in words:  # known even if the options cannot be parsed
            ctx.meta[_JSON] = True
        try:
            with _plain_warnings():
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt as e:
            self._tell(ctx, "interrupted", e, out)
            raise
        except click.ClickException as e:
            placed = _with_place(ctx, e)
            self._tell(ctx, placed.format_message(), e, out)
            raise placed from e.__cause__
        except Exception as e:
            _print_traceback(ctx, e)
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            message = with_options(message_of(e), command)
            if not isinstance(e, OptionError):
                message += _unknown_types(words)
            self._tell(ctx, message, e, out)
            if _LOG in ctx.meta:
                ctx.meta[_LOG].write(f"Error: {message}\n")
            failure = WrongOption if isinstance(e, OptionError) else click.ClickException
            raise failure(message) from e

    @staticmethod
    def _tell(ctx: click.Context, message: str, error: BaseException, out: IO[str]) -> None:
        # a full output is the error to report, and cannot receive the message
        with contextlib.suppress(OSError):
            if ctx.meta.get(_JSON):
                row = {"ok": False, "error": message, "kind": type(error).__name__}
                print_json(row, out)


def _print_traceback(ctx: click.Context, error: Exception) -> None:
    import traceback

    if ctx.meta.get(_TRACEBACK):
        traceback.print_exception(error)
    elif _LOG in ctx.meta:
        traceback.print_exception(error, file=ctx.meta[_LOG])


def _with_place(ctx: click.Context, error: click.ClickException) -> click.ClickException:
    """The error, with the key of the file that holds the wrong value."""
    if not isinstance(error, click.BadParameter):
        return error
    place = ctx.meta.get(SETTINGS, Settings()).key_of(error.ctx, error.param)
    if not place:
        return error
    message = f"{error.message} ({place})"
    return click.BadParameter(message, error.ctx, error.param, error.param_hint)


def _arguments(ctx: click.Context) -> list[str]:
    """The arguments after the name of the command, up to `--`, not parsed yet."""
    words = [*getattr(ctx, "_protected_args", ()), *ctx.args]
    return words[: words.index("--")] if "--" in words else words


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Shows a warning as one line, without the place in the code, which is for developers."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"Warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def message_of(error: Exception) -> str:
    """One clear message for an exception, expected or not.

    :param error: any exception
    :return: its message; an unexpected one is announced as such, with its type
    """
    if isinstance(error, (XoptimError, OSError)):
        return str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    text = (str(error).strip() or "no message").splitlines()[0]
    return f"unexpected {type(error).__name__}: {text} (--traceback shows where)"


def _unknown_types(words: Iterable[str]) -> str:
    """The element types onnx does not know in the models among some arguments, which explain most
    failures."""
    from google.protobuf.message import DecodeError
    from onnx import load_model

    from ...linting.unknown_types import unknown_type_message

    lines = []
    for path in filter(os.path.isfile, dict.fromkeys(words)):
        with contextlib.suppress(DecodeError, OSError, ValueError):
            found = unknown_type_message(load_model(path, load_external_data=False))
            if found:
                lines.append(f"\n{path}: {found}.")
    return "".join(lines)


def with_options(message: str, command: click.Command | None) -> str:
    """Replaces the names of arguments in a message by the options that set them.

    :param message: the message of an error, quoted text is kept
    :param command: the subcommand that failed
    :return: the message for the command line
    """
    known = {name for p in command.params for name in p.opts} if command is not None else set()

    def option(found: re.Match[str]) -> str:
        if not found[1]:
            return found[0]
        name = _OPTIONS[found[1]]
        text = f"no {name}" if found[2] else name
        return text if name in known else f"{text} of xoptim optimize"

    return _ARGUMENT.sub(option, message)


def _print_json(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    ctx.meta[_JSON] = ctx.meta.get(_JSON) or value
    return value


def _be_verbose(ctx: click.Context, _: click.Parameter, value: int) -> None:
    ctx.meta[_VERBOSE] = value
    ctx.meta[_TRACEBACK] = ctx.meta.get(_TRACEBACK) or value >= 2


def verbosity() -> int:
    """Number of ``-v`` that the command was given."""
    return int(click.get_current_context().meta[_VERBOSE])


def several_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """One decorator for several options, shown in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _open(path: str | os.PathLike[str]) -> IO[str]:
    """A file a context closes, that texts are added to."""
    return open(path, "a", encoding="utf-8")


def _be_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[QUIET] = True
        if not ctx.meta.get(_JSON):
            kept = ctx.meta.get(_LOG) or ctx.with_resource(_open(os.devnull))
            ctx.with_resource(contextlib.redirect_stdout(kept))


def _keep_log(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        root = ctx.find_root()  # its end sees the errors
        log = root.meta[_LOG] = root.with_resource(_open(path))
        log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {shlex.join(['xoptim', *sys.argv[1:]])}\n")
        root.with_resource(contextlib.redirect_stdout(Copied(sys.stdout, log)))
        root.with_resource(contextlib.redirect_stderr(Copied(sys.stderr, log)))


#: adds ``--json`` to a command, as `as_json`, and ``-v``, ``-q``, ``--log``, ``--traceback``
common_options = several_options(
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        callback=_print_json,
        is_eager=True,
        help="Prints json instead of tables.",
    ),
    click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=_be_verbose,
        is_eager=True,
        help="Tells more: -v one line per iteration, -vv every match and the tracebacks.",
    ),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_be_quiet,
        help="Prints errors and warnings only.",
    ),
    click.option(
        "--log",
        type=OutputFile(),
        expose_value=False,
        is_eager=True,
        callback=_keep_log,
        help="Adds what is printed to a file, and the traceback of an error.",
    ),
    click.option(
        "--traceback",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=lambda ctx, _, value: ctx.meta.update({_TRACEBACK: True}) if value else None,
        help="Shows the traceback of an error.",
    ),
)


def console(width: int | None = None) -> Output:
    """Where a command prints: the standard output, as wide as the terminal even through a pipe.

    :param width: number of columns when it is not a terminal, None for those of the terminal the
        command was typed in, 120 without one
    """
    # a command that prints json or one line does without
    from ...reports.plain_output import PlainOutput
    from ...reports.tables import NO_TERMINAL

    if not sys.stdout.isatty():
        return PlainOutput(width or _columns() or NO_TERMINAL)
    from rich.console import Console

    out = Console(highlight=False, emoji=False)
    return out if out.is_terminal else PlainOutput(width or out.width)


def _columns() -> int:
    """Columns of the terminal behind a standard stream, 0 if there is none. The output may go to a
    pager."""
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            found = os.get_terminal_size(stream.fileno())
            if found.columns:
                return shutil.get_terminal_size(found).columns  # or what the user says
    return 0


def print_json(value: Any, out: IO[str] | None = None) -> None:
    """Prints a value as json. NaN and infinities, which json does not have, become strings.

    :param value: any value; a part json does not know is printed as text
    :param out: destination, the standard output by default
    """
    click.echo(json.dumps(_jsonable(value), indent=2, allow_nan=False), file=out)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def print_list(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    one_line: bool = True,
) -> None:
    """Prints a table of texts on the standard output, wide enough for its rows to be searched.

    :param title: line above the table
    :param columns: names of the columns
    :param rows: values, one sequence by row
    :param one_line: a row takes one line on a terminal too, its last column is cut
    """
    from ...reports.tables import print_table

    print_table(console(width=WIDE), title, columns, rows, len(columns), one_line)


@contextlib.contextmanager
def prints_on_stderr(condition: bool) -> Iterator[None]:
    """Redirects the standard output to the standard error, which leaves it to json."""
    if not condition:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def staged_text(path: Path | None, text: str) -> Iterator[None]:
    """Writes a text to a temporary file, moved to its destination if the block ends well.

    :param path: destination, nothing is done if None
    :param text: the content
    """
    if path is None:
        yield
        return
    from xbuilder.files.model_files import FileTransaction, write_all

    target = target_of(path)
    content = text.encode("utf-8")
    with FileTransaction(target.parent, target.name, len(content)) as files:
        write_all(files.create(target.name), content)
        yield
