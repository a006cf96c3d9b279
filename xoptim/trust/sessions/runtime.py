"""Sessions of onnxruntime for the checks: opened from any form of a model, in this process or in
another one, with errors that say which model fails."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import EncodeError

from xbuilder.errors import XoptimError, short_message
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import load_model
from xbuilder.files.model_formats import format_of
from xbuilder.files.writing.temporary_files import temporary_folder
from xbuilder.runtimes.custom_operators import custom_libraries, loading_message

from .session_child import ArraySession, open_session
from .session_process import SessionProcess, end_child

#: a model, its serialized form, the path of its file, the container of a large model
Model = onnx.ModelProto | ModelContainer | bytes | str | Path


class VerificationError(XoptimError):
    """The models cannot be compared, or their results differ.

    Example::

        >>> import xoptim
        >>> from xoptim.testing import model_from_text
        >>> model = model_from_text("agraph (float[2] x) => (float[2] y) { y = Abs(x) }")
        >>> try:
        ...     xoptim.verify(model, model, inputs={"z": [1, 2]})
        ... except VerificationError as e:
        ...     print(str(e).split(":")[0])
        onnxruntime does not run the first model
    """


class StillRunningError(VerificationError):
    """A model was stopped, because a loop of it may never end."""


def structure_of(model: Model) -> onnx.ModelProto:
    """The graph of a model in any form, its weights may be in other files."""
    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, ModelContainer):
        return model.proto
    if isinstance(model, bytes):
        return onnx.load_from_string(model)
    return load_model(model, check_data=False).proto


def container_of(model: Model, allowed_roots: Sequence[Any] = ()) -> ModelContainer:
    """A model in any form with the place of its weights.

    :param model: the model
    :param allowed_roots: folders the weights may be in, beside the one of the model
    """
    if isinstance(model, ModelContainer):
        return model
    if isinstance(model, bytes):
        model = onnx.load_from_string(model)
    if isinstance(model, onnx.ModelProto):
        return ModelContainer(model)
    return ModelContainer.load(model, allowed_roots)


@dataclass
class Session:
    """A session of onnxruntime, in this process or in another one, or one that has its methods.

    :param session: runs the model
    :param names: inputs, inputs with a default value, outputs
    :param which: the model in messages: `first`, `second`
    :param runtime: what runs it, in messages
    """

    session: Any
    names: tuple[list[str], list[str], list[str]]
    which: str
    runtime: str = "onnxruntime"

    def run(
        self, feeds: Mapping[str, Any], names: Sequence[str] | None = None, seconds: float = 0.0
    ) -> list[Any]:
        """Runs the model.

        :param feeds: inputs by name
        :param names: outputs to return, None for all of them
        :param seconds: onnxruntime is stopped after this time, 0 for never
        :raises StillRunningError: it was stopped
        :raises VerificationError: onnxruntime refuses the inputs
        """
        limit = [seconds] if seconds and self.runtime == "onnxruntime" else []
        try:
            results: list[Any] = self.session.run(names, dict(feeds), *limit)
            return results
        except Exception as e:
            if limit and "terminate flag" in str(e):
                raise StillRunningError(
                    f"a loop of the {self.which} model still runs after {seconds:g} s, it may "
                    "never end"
                ) from e
            raise VerificationError(
                f"{self.runtime} does not run the {self.which} model: {short_message(e)}"
            ) from e

    def end_profiling(self) -> str:
        """Ends the profile and returns the path of its file.

        :raises VerificationError: the process of the session died
        """
        try:
            return str(self.session.end_profiling())
        except XoptimError as e:
            raise VerificationError(str(e)) from e

    def close(self) -> None:
        """Frees the memory of the model."""
        if isinstance(self.session, SessionProcess):
            self.session.close()
        self.session = None


@dataclass
class Opener:
    """Opens sessions; their processes and temporary files live until *files* is closed.

    :param files: what is closed at the end
    :param providers: execution providers, CPU if empty
    :param isolated: onnxruntime runs in other processes, as many as there are open sessions
    """

    files: ExitStack
    providers: Sequence[str] | None = None
    isolated: bool = False

    def __post_init__(self) -> None:
        #: processes without a model
        self.idle: list[subprocess.Popen[bytes]] = []
        self.files.callback(self._end)

    def _end(self) -> None:
        """Ends the processes that no session needs any longer."""
        while self.idle:
            end_child(self.idle.pop())

    def open(self, model: Model, which: str, optimized: bool = False, profile: str = "") -> Session:
        """Opens a session.

        :param model: the model
        :param which: its name in messages
        :param optimized: onnxruntime optimizes it, as it does by default
        :param profile: beginning of the path of a profile, empty for none
        :raises VerificationError: onnxruntime does not load the model
        """
        source = self.source(model, which)
        providers = list(self.providers or ())
        try:
            if self.isolated:
                process = SessionProcess(source, providers, optimized, profile, self.idle)
                self.files.callback(process.close)
                names = process.inputs, process.defaults, process.outputs
                return Session(process, names, which)
            libraries = custom_libraries()
            opened = open_session(source, providers, optimized, profile, libraries=libraries)
            session = ArraySession(opened)
            return Session(session, session.names, which)
        except Exception as e:
            raise VerificationError(
                f"onnxruntime does not load the {which} model: {loading_message(e)}"
            ) from e

    def source(self, model: Model, which: str) -> bytes | str:
        """The model as onnxruntime reads it: bytes, or a path.

        :param model: the model
        :param which: its name in messages
        :raises VerificationError: it is too large for bytes
        """
        if isinstance(model, str | Path) and format_of(model) != "binary":
            model = ModelContainer.load(model)  # onnxruntime reads no text format
        if isinstance(model, ModelContainer):
            folder = self.files.enter_context(temporary_folder(tempfile.gettempdir(), "xoptim"))
            return model.save(Path(folder) / "model.onnx")[-1]
        if not isinstance(model, onnx.ModelProto):
            return model if isinstance(model, bytes) else str(model)
        try:
            content: bytes = model.SerializeToString()
            return content
        except (EncodeError, ValueError) as e:
            raise VerificationError(
                f"the {which} model is too large to be verified in memory, give its path: {e}"
            ) from e
