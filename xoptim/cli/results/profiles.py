"""``xoptim optimize --profile``: prints and writes a profile of the time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .statistics import statistics_text

if TYPE_CHECKING:
    from rich.console import Console

    from ...toolkit.profiles import Profile


#: `--profile` does not print the lines below this share of the time
LEAST = 0.01


def profile_file_text(profile: Profile | None, path: Path | None) -> str:
    """Renders a profile in the format of the extension of a file.

    :param profile: the profile
    :param path: the file, None gives an empty text
    """
    if profile is None or path is None:
        return ""
    from ...reports.profile_plot import profile_html, profile_svg

    if path.suffix == ".svg":
        return profile_svg(profile.root)
    if path.suffix == ".html":
        return profile_html(profile.root, path.stem)
    if path.suffix == ".txt":
        return profile.to_text()
    return statistics_text(profile.rows(), path)


def print_profile(profile: Profile, out: Console) -> None:
    """Prints the most expensive lines of a profile."""
    from ...toolkit.profiles import profile_tree

    out.print()
    out.print(profile_tree(profile.root, LEAST), markup=False, soft_wrap=True)
