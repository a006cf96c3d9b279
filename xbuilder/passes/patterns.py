"""The pass running patterns. The engine lives in `xoptim`: it is reached here, on use, only
here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .registry import Row, register_pass

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder

#: what this package needs of the engine, resolved on use so that imports go one way
_ENGINE = {
    "optimize": ("xoptim.engine.optimizer", "optimize_with_patterns"),
    "names": ("xoptim.api.selection", "pattern_class_names"),
}


def _resolve(key: str) -> Any:
    module, name = _ENGINE[key]
    return getattr(import_module(module), name)


@register_pass("patterns")
def patterns(builder: GraphBuilder) -> list[Row]:
    """Runs the patterns the options select.

    :return: rows of statistics
    """
    if builder.optimization_options.patterns is None:
        return []
    return _resolve("optimize")(builder)


def pattern_names(selection: Any) -> list[str] | None:
    """Class names of the patterns a selection gives, None if there is no selection."""
    return None if selection is None else _resolve("names")(selection)
