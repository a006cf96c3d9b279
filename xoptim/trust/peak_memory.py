"""The memory a model takes under onnxruntime, in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import onnx.helper as oh
from onnx import TensorProto

from xbuilder.runtimes.custom_operators import custom_libraries

from .sessions.session_process import SessionProcess


def peak_memory(source: bytes | str, feeds: Mapping[str, Any]) -> int | None:
    """The largest resident memory of a process that loads a model and runs it once.

    :param source: a serialized model, or the path of its file
    :param feeds: its inputs
    :return: bytes above those of a process that runs an empty model, None where the system does
        not tell
    :raises SessionError: onnxruntime refuses the model or its inputs

    ::

        peak_memory("model.onnx", {"x": x}) / 2**20  # MB
    """
    with tempfile.TemporaryDirectory(prefix="xoptim") as folder:
        if isinstance(source, bytes):  # it would be in the memory of the process
            path = Path(folder) / "model.onnx"
            path.write_bytes(source)
            source = str(path)
        nothing = _peak_of_nothing(custom_libraries())
        peak = _peak(source, feeds)
    return None if peak is None or nothing is None else max(peak - nothing, 0)


@lru_cache(maxsize=1)
def _peak_of_nothing(libraries: tuple[str, ...]) -> int | None:
    """The peak of a process that loads these libraries and runs an empty model, in bytes."""
    return _peak(_empty_model(), {})


def _empty_model() -> bytes:
    """A model that does nothing."""
    one = oh.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    output = oh.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = oh.make_graph([oh.make_node("Identity", ["one"], ["y"])], "g", [], [output], [one])
    opsets = [oh.make_opsetid("", 13)]
    content: bytes = oh.make_model(graph, opset_imports=opsets, ir_version=7).SerializeToString()
    return content


def _peak(source: bytes | str, feeds: Mapping[str, Any]) -> int | None:
    """The peak of a process that runs one model, in bytes."""
    session = SessionProcess(source, optimized=True)
    try:
        session.run([], feeds)
        return session.peak_memory()
    finally:
        session.close()
