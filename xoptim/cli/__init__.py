"""The command ``xoptim``, one file for each subcommand."""

from __future__ import annotations

from .main import main, start

__all__ = ["main", "start"]
