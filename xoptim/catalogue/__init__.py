"""Names, tags, order and selection of rewrites."""

from __future__ import annotations

from xbuilder.support.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
