"""Runs the command with ``python -m xoptim``."""

from __future__ import annotations

from .cli.main import start

if __name__ == "__main__":
    start()
