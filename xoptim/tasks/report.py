"""Tables of what an optimization changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..reports.tables import Output

#: the rewrite that turns a Constant node into an initializer
_MOVED = "ConstantToInitializer"
#: number of rows of the table of operators, since a model may have thousands of local functions
_MOST_TYPES = 40
#: the cleaning after the rewrites
_CLEANED = "clean_after_patterns"


def print_changes(info: Mapping[str, Any], out: Output) -> None:
    """Prints what an optimization changed: nodes, weights, operators, rewrites.

    :param info: the result of :meth:`xoptim.tasks.result.OptimizedModel.to_dict`
    :param out: destination
    """
    from ..reports.tables import counted, human_bytes, print_line, print_table

    _print_nodes(info, out)
    print_line(
        out,
        f"weights: {human_bytes(info['weight_bytes_before'])} -> "
        f"{human_bytes(info['weight_bytes_after'])}",
    )
    if info["opset_before"] != info["opset_after"]:
        print_line(out, f"opset:   {info['opset_before']} -> {info['opset_after']}")
    print_line(out, f"time:    {info['seconds']:.2f} s")
    changed = [r for r in info["op_types"] if r["delta"] and r["op_type"] != "Constant"]
    if changed:
        rows = [(r["op_type"], r["before"], r["after"], f"{r['delta']:+d}") for r in changed]
        print_table(out, "operators", ["type", "before", "after", "change"], rows[:_MOST_TYPES])
        if len(rows) > _MOST_TYPES:
            print_line(out, f"and {counted(len(rows) - _MOST_TYPES, 'other type')}")
    applied = rewrites(info["applied"])
    if applied:
        print_table(out, "rewrites", ["rewrite", "applied", "removed", "added", "ms"], applied)
    if info["is_folding_limited"]:
        print_line(
            out,
            "\nsome nodes compute constants at run time, because the file would grow if they were "
            "folded: --constant-size BYTES allows it",
        )
    if info["private_operators"]:
        names = ", ".join(info["private_operators"])
        print_line(
            out,
            f"\nonnx.checker refuses this model, onnxruntime runs it: opset {info['opset_after']} "
            f"has no {names}; --public-operators writes none",
        )


def _print_nodes(info: Mapping[str, Any], out: Output) -> None:
    """Prints the number of nodes except Constant."""
    from ..reports.tables import counted, print_line

    n, m = info["nodes_before"], info["nodes_after"]
    change = f"{(m - n) / n:+.1%}" if n else "empty graph"
    print_line(out, f"nodes:   {n} -> {m} ({change})")
    moved = sum(r["instances"] for r in info["applied"] if r["pattern"] == _MOVED)
    if moved:
        became = "became an initializer" if moved == 1 else "became initializers"
        nodes = counted(moved, "Constant node")
        print_line(out, f"         {nodes} {became}, Constant nodes are not counted as nodes")


def rewrites(applied: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The rows of the table of rewrites, in the words of a user.

    The rewrite of Constant nodes into initializers is left out, and so are the nodes it temporarily
    leaves.

    :param applied: the result of :func:`xoptim.reports.model_summary.pattern_totals`
    :return: rows: name, applications, nodes removed, nodes added, milliseconds
    """
    passing = sum(r["added"] for r in applied if r["pattern"] == _MOVED)
    rows = []
    for r in applied:
        name, removed, applications = r["pattern"], r["removed"], r["instances"]
        if name == _CLEANED:
            name, removed, applications = "unused nodes", removed - passing, ""
        if name != _MOVED and (removed > 0 or r["added"]):
            ms = f"{r['time_in'] * 1e3:.1f}"
            rows.append((name.replace("_", " "), applications, removed, r["added"], ms))
    return sorted(rows, key=lambda row: -row[2])
