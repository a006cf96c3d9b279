"""Rows of statistics about constant folding."""

from __future__ import annotations


def reasons(statistics):
    """Why folds were skipped, and how many."""
    return {
        row["pattern"].split(": ", 1)[1]: row["skipped"]
        for row in statistics
        if row["pattern"].startswith("constant_folding: ")
    }
