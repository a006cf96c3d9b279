"""Lines of a profile."""

from __future__ import annotations

from xoptim.toolkit.profiles import ProfileNode


def tree() -> ProfileNode:
    root = ProfileNode("run", "optimize", time=10.0, created=1)
    short, long = root.child("pass", "short"), root.child("pass", "long")
    short.time, long.time, long.created = 2.0, 5.0, 3
    long.child("rewriter", "A").created = 4
    return root


def test_what_is_inside_is_included() -> None:
    root = tree()
    assert root.total("created") == 8 and root.created == 1
    assert [c.name for c in root.sorted_children()] == ["long", "short"]
    assert root.own_time == 3.0
    assert root.child("pass", "long").total("created") == 7, "the same line is given again"


def test_own_time_is_never_negative() -> None:
    root = ProfileNode("run", "optimize", time=1.0)
    root.child("pass", "p").time = 2.0
    assert root.own_time == 0.0


def test_nodes() -> None:
    root = tree()
    for n in (5, 9, 7):
        root.child("pass", "long").saw(n)
    line = root.child("pass", "long")
    assert (line.nodes_start, line.nodes_end, line.nodes_max) == (5, 7, 9)
    assert root.most_nodes == 9 and root.nodes_start is None


def test_walk() -> None:
    paths = ["/".join(node.name for node in path) for path in tree().walk()]
    assert paths == ["optimize", "optimize/long", "optimize/long/A", "optimize/short"]
