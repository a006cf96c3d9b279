"""DataFolder, the folder the external data of a model is read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class DataFolder:
    """The folder external data is read from; all graphs of a model share it.

    :param base_dir: folder of the model, None if it is unknown: nothing is read
    :param allowed_roots: folders external data may be read from, beside *base_dir*
    :param path: the file the model comes from, None if it does not come from a file
    """

    base_dir: str | Path | None = None
    allowed_roots: tuple[str | Path, ...] = ()
    path: str | None = None
