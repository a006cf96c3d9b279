"""How rewrites are named, tagged, ordered and selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbuilder.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from .registry import register_pattern
    from .rewrite_function import rewrite

__all__ = ["register_pattern", "rewrite"]

HOMES = {
    ".registry": ("register_pattern",),
    ".rewrite_function": ("rewrite",),
}
__getattr__ = lazy_names(__name__, HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
