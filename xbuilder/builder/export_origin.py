"""Records what a graph was exported from: a torch module, its arguments, its dynamic shapes."""

from __future__ import annotations

from typing import Any, NamedTuple


class ExportOrigin(NamedTuple):
    """Everything an exporter passed to the builder. It is only shown in messages.

    :param args: example of arguments
    :param kwargs: example of named arguments
    :param dynamic_shapes: dimensions of the inputs that may change
    :param output_dynamic_shapes: names of the dimensions of the outputs
    :param signature: signature of what was exported
    :param graph_module: fx graph it was exported from
    :param exe_path: how it was exported
    """

    args: Any = None
    kwargs: Any = None
    dynamic_shapes: Any = None
    output_dynamic_shapes: Any = None
    signature: Any = None
    graph_module: Any = None
    exe_path: str = ""
