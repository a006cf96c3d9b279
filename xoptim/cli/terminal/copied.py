"""An output whose text is copied to a file."""

from __future__ import annotations

import re
from typing import IO, Any

#: colours and moves of the cursor
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Copied:
    """A stream of text that writes to another one, and to a file without colours.

    :param out: the stream
    :param file: the file
    """

    def __init__(self, out: IO[str], file: IO[str]):
        self._out = out
        self._file = file

    def write(self, text: str) -> int:
        """Writes a text to both."""
        self._file.write(_CONTROLS.sub("", text))
        return self._out.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)
