"""The passes of an optimization, their registry, and the pipeline that runs them."""

from __future__ import annotations

from ..support.rows import complete_rows
from ..support.walking import import_all
from .registry import PassReport, get_pass, pass_names, register_pass, run_pass

import_all(__name__, __path__)

__all__ = ["PassReport", "complete_rows", "get_pass", "pass_names", "register_pass", "run_pass"]
