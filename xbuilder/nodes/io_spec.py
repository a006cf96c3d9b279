"""IOSpec, the declaration of an input or an output of a graph."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ValueInfoProto


@dataclass(slots=True)
class IOSpec:
    """An input or an output: the proto of the file it comes from, else the declared type and
    shape."""

    name: str
    proto: ValueInfoProto | None = None
    doc_string: str = ""
