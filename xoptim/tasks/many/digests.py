"""Digests of files and options, to know what was already done."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np


def digest_of_files(paths: Iterable[Path]) -> str:
    """The digest of the content of files.

    :param paths: the files, in order
    """
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def digest_of_values(value: Any) -> str:
    """The digest of plain values: numbers, texts, arrays, containers and dataclasses of them.

    :return: the digest, empty if a part of the value is anything else
    """
    try:
        text = _written(value)
    except TypeError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def _written(value: Any) -> str:
    """A text that only equal values have.

    :raises TypeError: the value is not plain
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, PurePath):
        return f"path {str(value)!r}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array {value.dtype} {value.shape} {content}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_written(k)}: {_written(v)}' for k, v in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_written, value))}]"
    if is_dataclass(value):
        parts = (f"{f.name}={_written(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({', '.join(parts)})"
    raise TypeError(f"{type(value)} is not plain")
