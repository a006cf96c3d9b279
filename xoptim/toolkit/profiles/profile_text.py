"""Renders a profile as indented text."""

from __future__ import annotations

import io

from rich.console import Console
from rich.tree import Tree

from .profile_node import ProfileNode

#: wide enough for any line, nothing is cut
_WIDTH = 240


def describe(node: ProfileNode) -> str:
    """The text of one line: its name, its time, its counts."""
    words = [f"{node.name}: {node.time * 1e3:.2f} ms"]
    if node.children and node.own_time * 1e3 >= 0.005:
        words.append(f"{node.own_time * 1e3:.2f} ms of its own")
    if node.calls > 1:
        words.append(f"{node.calls} calls")
    if node.nodes_start is not None and node.nodes_end is not None:
        words.append(f"{node.nodes_start} -> {node.nodes_end} nodes, {node.most_nodes} at most")
    for name, unit in (
        ("visited", "visited"),
        ("applications", "applied"),
        ("refused", "refused"),
        ("created", "created"),
        ("removed", "removed"),
    ):
        count = node.total(name)
        if count:
            words.append(f"{count} {unit}")
    for name in ("sorting", "validation", "callbacks"):
        seconds = node.total(name)
        if seconds * 1e3 >= 0.005:
            words.append(f"{name} {seconds * 1e3:.2f} ms")
    vain = node.total("vain_time")
    if node.total("vain_calls") or vain:
        words.append(f"in vain {vain * 1e3:.2f} ms")
    return ", ".join(words)


def profile_tree(root: ProfileNode, least: float = 0.0) -> Tree:
    """A profile as a tree rich prints, the longest lines first.

    :param root: the outermost line
    :param least: leaves out the lines below this share of the whole time
    """
    tree = Tree(describe(root), highlight=False)
    _grow(tree, root, least * root.time)
    return tree


def _grow(tree: Tree, node: ProfileNode, seconds: float) -> None:
    for child in node.sorted_children():
        if child.time >= seconds:
            _grow(tree.add(describe(child)), child, seconds)


def profile_text(root: ProfileNode, least: float = 0.0) -> str:
    """The tree of :func:`profile_tree` as a text."""
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, markup=False, force_jupyter=False)
    console.print(profile_tree(root, least), soft_wrap=True)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
