"""The lines of the user in the traces that torch records for the nodes of a graph."""

from __future__ import annotations

import os
import re
from functools import lru_cache

import torch

#: frames of torch, of the functions of ours that it calls, of the code it generates
_FOLDERS = os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(__file__))
_NOT_USERS = (*(folder + os.sep for folder in _FOLDERS), "<eval_with_key>")
#: lines of code kept for each node, the last ones
_MOST_LINES = 3
_FRAME = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)\s*(?P<text>.*)')


@lru_cache(maxsize=256)
def user_lines(trace: str) -> str:
    """The last lines of a traceback that are not in torch, in the same form.

    :param trace: a traceback as torch records it
    """
    frames: list[list[str]] = []
    for line in trace.splitlines():
        if line.strip().startswith('File "'):
            frames.append([])
        if frames and line.strip():
            frames[-1].append(line.rstrip())
    users = [f for f in frames if not f[0].strip()[len('File "') :].startswith(_NOT_USERS)]
    return "\n".join(line for frame in users[-_MOST_LINES:] for line in frame).strip()


def last_place(trace: str) -> str:
    """The last line of a traceback that is not in torch, empty if there is none.

    :param trace: a traceback as torch records it

    >>> last_place('File "model.py", line 12, in forward\\n    y = x.squeeze()')
    'model.py:12, in forward: y = x.squeeze()'
    """
    frames = list(_FRAME.finditer(user_lines(trace)))
    if not frames:
        return ""
    file, line, function, text = frames[-1].groups()
    return f"{file}:{line}, in {function}: {text}".rstrip(": ")
