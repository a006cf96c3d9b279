"""A progress bar over the nodes of a graph."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from typing import Any


def progress_bar(verbose: int) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """A function wrapping an iterable in a progress bar of rich or tqdm, if one is installed.

    :param verbose: 0 gives no bar
    """
    if not verbose:
        return iter
    if importlib.util.find_spec("rich"):
        from rich.progress import track

        return lambda items: track(items, description="torch to onnx", transient=True)
    if importlib.util.find_spec("tqdm"):
        from tqdm import tqdm

        return lambda items: tqdm(items, desc="torch to onnx")
    return iter
