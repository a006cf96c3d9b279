"""The command ``xoptim``, one file for each subcommand."""

from __future__ import annotations

from .main import main

__all__ = ["main"]
