"""``xoptim optimize --profile``: prints and writes a profile of the time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .statistics import statistics_text

if TYPE_CHECKING:
    from ...reports.tables import Output
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


def print_profile(profile: Profile, out: Output) -> None:
    """Prints the most expensive lines of a profile."""
    from ...reports.plain_output import PlainOutput
    from ...toolkit.profiles import profile_tree

    out = out.console() if isinstance(out, PlainOutput) else out
    out.print()
    out.print(profile_tree(profile.root, LEAST), markup=False, soft_wrap=True)
