"""Reads and writes models in the format given by the extension of the file, as onnx does."""

from __future__ import annotations

import os
import re

import onnx.parser
from google.protobuf import json_format, text_format
from google.protobuf.message import EncodeError
from onnx import ModelProto

from ..errors import InvalidModelError, OptionError

#: extension -> format, any other one is binary
EXTENSIONS = {
    ".onnxtxt": "onnxtxt",
    ".onnxtext": "onnxtxt",
    ".json": "json",
    ".onnxjson": "json",
    ".textproto": "textproto",
    ".prototxt": "textproto",
    ".pbtxt": "textproto",
    ".txtpb": "textproto",
}
_TITLES = {
    "onnxtxt": "ONNX text format",
    "json": "JSON",
    "textproto": "the text format of protobuf",
}
_MAX_TEXT_NESTING = 100  # the parser of onnx is recursive, and crashes without a limit
# strings, comments and arrows are recognised as the brackets inside them count for nothing
_TEXT_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"|#[^\n]*|=>|[{<(}>)]', re.DOTALL)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file: `binary`, `json`, `textproto` or `onnxtxt`.

    ::

        format_of("model.onnx")  # "binary"
        format_of("model.onnxjson")  # "json"
    """
    return EXTENSIONS.get(_extension(path), "binary")


def _extension(path: str | os.PathLike[str]) -> str:
    return os.path.splitext(os.fspath(path))[1].lower()


def check_writable_format(path: str | os.PathLike[str]) -> None:
    """Refuses a file whose format cannot hold every model, or is not one of ONNX.

    :param path: file to write
    :raises OptionError: for the ONNX text format: many names and the bits of some weights cannot
        be read back; for the format of onnxruntime (``.ort``)
    """
    if _extension(path) == ".ort":
        raise OptionError(
            f"{os.fspath(path)!r}: .ort is a format of onnxruntime, no ONNX model is written in "
            "it. Write a .onnx file, 'python -m onnxruntime.tools.convert_onnx_models_to_ort' "
            "makes a .ort file of it."
        )
    if format_of(path) == "onnxtxt":
        raise OptionError(
            f"{os.fspath(path)!r}: the ONNX text format does not keep every name and every weight, "
            "models are only read from it. Write a .onnx, .json or .textproto file; "
            "'xoptim print --syntax onnx' shows a model as text."
        )


def serialize(model: ModelProto, path: str | os.PathLike[str] = "") -> bytes:
    """Serializes a model in the format given by the extension of its file.

    :param model: the model, its external data is left where it is
    :param path: the name of the file, binary by default
    :return: the content of the file
    :raises OptionError: see :func:`check_writable_format`
    :raises InvalidModelError: if the model does not fit in a proto
    """
    check_writable_format(path)
    chosen = format_of(path)
    try:
        if chosen == "json":
            text: str = json_format.MessageToJson(model, preserving_proto_field_name=True)
            return text.encode("utf-8")
        if chosen == "textproto":
            text = text_format.MessageToString(model)
            return text.encode("utf-8")
        content: bytes = model.SerializeToString()
        return content
    except (EncodeError, ValueError) as e:
        raise InvalidModelError(
            f"The model cannot be written as one proto: {e}. Use external data, with a lower "
            "size_threshold."
        ) from e


def parse_text(content: bytes, path: str) -> ModelProto:
    """Parses a model from the content of a text file.

    :param content: the content of the file
    :param path: its path, whose extension gives the format
    :return: a model, which may not be valid
    :raises InvalidModelError: if the content is not in this format
    """
    chosen = format_of(path)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as e:
        raise InvalidModelError(
            f"{path!r} is expected to be text, as its name says: {e}. "
            "Rename it with .onnx if it is an ONNX file."
        ) from e
    model = ModelProto()
    try:
        if chosen == "json":
            json_format.Parse(text, model, max_recursion_depth=_MAX_TEXT_NESTING)
            return model
        if chosen == "textproto":
            text_format.Parse(text, model)
            return model
        _check_nesting(text, path)
        return onnx.parser.parse_model(text)
    except InvalidModelError:
        raise
    except RecursionError as e:
        raise InvalidModelError(f"{path!r} has too many nested messages.") from e
    except (
        json_format.ParseError,
        text_format.ParseError,
        onnx.parser.ParseError,
        ValueError,
        TypeError,
        RuntimeError,
    ) as e:
        message = str(e).removeprefix("b'").replace("\\n", " ").replace("\n", " ").strip()
        raise InvalidModelError(
            f"{path!r} is not a model in {_TITLES[chosen]}: {message[:500]}"
        ) from e


def _check_nesting(text: str, path: str) -> None:
    depth = deepest = 0
    for token in _TEXT_TOKENS.findall(text):
        if token in "{<(":
            depth += 1
        elif token in "}>)":
            depth -= 1
        deepest = max(deepest, depth)
    if deepest > _MAX_TEXT_NESTING:
        raise InvalidModelError(
            f"{path!r} has {deepest} nested brackets, at most {_MAX_TEXT_NESTING} are accepted."
        )
