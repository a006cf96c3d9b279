"""A profile as an indented text."""

from __future__ import annotations

from xoptim.toolkit.profiles import ProfileNode, profile_text, profile_tree
from xoptim.toolkit.profiles.profile_text import describe


def tree() -> ProfileNode:
    root = ProfileNode("run", "optimize", time=0.010, calls=1)
    root.saw(8)
    root.saw(5)
    patterns = root.child("pass", "patterns")
    patterns.time, patterns.calls, patterns.sorting, patterns.callbacks = 0.008, 2, 0.0001, 0.0002
    a = patterns.child("rewriter", "A")
    a.time, a.applications, a.visited, a.created, a.removed = 0.005, 2, 7, 3, 6
    a.validation, a.refused = 0.001, 1
    b = patterns.child("rewriter", "B[x]")
    b.time, b.calls, b.vain_calls, b.vain_time = 0.001, 4, 4, 0.001
    return root


def test_text() -> None:
    assert profile_text(tree()).splitlines() == [
        "optimize: 10.00 ms, 2.00 ms of its own, 8 -> 5 nodes, 8 at most, 7 visited, 2 applied, "
        "1 refused, 3 created, 6 removed, sorting 0.10 ms, validation 1.00 ms, callbacks 0.20 ms, "
        "in vain 1.00 ms",
        "└── patterns: 8.00 ms, 2.00 ms of its own, 2 calls, 7 visited, 2 applied, 1 refused, "
        "3 created, 6 removed, sorting 0.10 ms, validation 1.00 ms, callbacks 0.20 ms, "
        "in vain 1.00 ms",
        "    ├── A: 5.00 ms, 7 visited, 2 applied, 1 refused, 3 created, 6 removed, "
        "validation 1.00 ms",
        "    └── B[x]: 1.00 ms, 4 calls, in vain 1.00 ms",
    ]


def test_short_lines_are_left_out() -> None:
    assert "B[x]" not in profile_text(tree(), 0.2)
    assert "A: 5.00 ms" in profile_text(tree(), 0.2)
    assert len(profile_tree(tree(), 0.9).children) == 0


def test_a_line_without_anything() -> None:
    assert describe(ProfileNode("pass", "p")) == "p: 0.00 ms"
