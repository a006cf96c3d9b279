"""Tools that write an optimized model: ours, or any command; the kind of difference they make."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError, XoptimError
from xbuilder.tensors.closeness import ATOL, RTOL

from .reduction import Shows
from .sessions.session_process import how_it_ended
from .verification import VerificationError, verify_models

#: reads the model of a file, writes another one into a second file
Tool = Callable[[Path, Path], None]
#: what a command has to contain
_PLACES = ("{input}", "{output}")
#: the type of the error at the beginning of the last line of a program in Python
_ERROR = re.compile(r"([\w.]*(?:Error|Exception|Fail))\b")


class ToolError(XoptimError):
    """A tool fails on a model, or writes nothing.

    :param message: the command, how it ended, its last line
    :param kind: how it ended, the same words for two models that show the same failure

    Example::

        >>> import sys
        >>> python = command_of(f'"{sys.executable}" -c "raise SystemExit(3)" {{input}} {{output}}')
        >>> try:
        ...     python(Path("model.onnx"), Path("missing.onnx"))
        ... except ToolError as e:
        ...     print("exits with 3" in str(e))
        True
    """

    def __init__(self, message: str, kind: str):
        super().__init__(message)
        self.kind = kind


def our_optimizer(patterns: Any) -> Tool:
    """Our optimizer.

    :param patterns: a selection of patterns
    """

    def optimize(model: Path, output: Path) -> None:
        options = OptimizationOptions(patterns=patterns)
        builder = GraphBuilder(str(model), infer_shapes_options=True, optimization_options=options)
        builder.to_onnx(large_model=True).save(output)

    return optimize


def command_of(text: str, timeout: float = 600) -> Tool:
    """A command that takes a model and gives one.

    :param text: the command with its two files: `onnxslim {input} {output}`; it is not given to
        a shell
    :param timeout: seconds after which it is stopped
    :raises OptionError: one of the files is missing

    ::

        command_of("onnxsim {input} {output}")(Path("model.onnx"), Path("simple.onnx"))
    """
    missing = [place for place in _PLACES if place not in text]
    if missing:
        raise OptionError(
            f"The command {text!r} does not say where {' and '.join(missing)} goes: "
            "expected something like 'onnxslim {input} {output}'."
        )

    def run(model: Path, output: Path) -> None:
        files = {"{input}": str(model), "{output}": str(output)}
        words = shlex.split(text)
        for place, file in files.items():
            words = [word.replace(place, file) for word in words]
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except FileNotFoundError as e:
            raise OptionError(f"The command {words[0]!r} is not found.") from e
        except OSError as e:
            raise OptionError(f"The command {words[0]!r} does not start: {e}.") from e
        except subprocess.TimeoutExpired as e:
            late = f"does not end within {timeout:g} seconds"
            raise ToolError(f"{words[0]!r} {late}", f"it {late}") from e
        if done.returncode or not output.exists():
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            ended = _ended(done.returncode)
            error = _ERROR.match(lines[-1])
            kind = f"it {ended}" + (f" ({error[1]})" if error else "")
            raise ToolError(f"{words[0]!r} {ended}: {lines[-1]}", kind)

    return run


def _ended(code: int) -> str:
    """The way a command that fails ended, in words."""
    if code < 0:
        return f"dies of {how_it_ended(code)}"
    return f"exits with {code}" if code else "writes no file"


def difference_of(
    tool: Tool, rtol: float = RTOL, atol: float = ATOL, isolated: bool = True
) -> Shows:
    """The kind of difference between a model and what a tool makes of it.

    :param tool: the tool
    :param rtol: relative tolerance
    :param atol: absolute tolerance
    :param isolated: onnxruntime runs in other processes
    :return: a function of a model and its inputs that gives `"results differ"`,
        `"the optimized model does not run"`, `"the tool fails: InvalidModelError"`, or nothing.
        A model that does not run itself shows nothing

    ::

        small = reduce_model("model.onnx", feeds, difference_of(our_optimizer("default")))
    """

    def shows(model: ModelProto, inputs: Mapping[str, Any]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "model.onnx", Path(folder) / "optimized.onnx"
            onnx.save(model, source)
            options: dict[str, Any] = {"inputs": inputs, "rtol": rtol, "atol": atol}
            options["isolated"] = isolated
            try:
                verify_models(source, source, **options)
            except VerificationError:
                return ""
            try:
                tool(source, target)
            except OptionError:
                raise
            except Exception as e:
                kind = e.kind if isinstance(e, ToolError) else type(e).__name__
                return f"the tool fails: {kind}"
            try:
                report = verify_models(source, target, **options)
            except VerificationError:
                return "the optimized model does not run"
            return "" if report.ok else "results differ"

    return shows
