"""The rows of the engine as a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any


def statistics_text(rows: list[dict[str, Any]], path: Path | None) -> str:
    """Renders the rows of the engine in the format of the extension of a file.

    :param rows: rows, they do not all have the same keys
    :param path: `.csv` or `.json`, None gives an empty text
    :return: the content of the file
    """
    if path is None:
        return ""
    if path.suffix == ".json":
        return json.dumps(rows, indent=1, default=str) + "\n"
    buffer = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
