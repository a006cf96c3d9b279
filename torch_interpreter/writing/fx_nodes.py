"""Facts about fx nodes: their fake value, their line in the user's code, whether they are live."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from ..common.types import is_symbolic
from .complex_names import is_complex
from .symbols import SYM_KINDS


def source_line(node: torch.fx.Node) -> str:
    """The last line of the user's code that created a node, as torch recorded it."""
    lines = [s.strip() for s in (node.meta.get("stack_trace") or "").splitlines() if s.strip()]
    frames = [i for i, line in enumerate(lines) if line.startswith("File ")]
    return "\n    ".join(lines[frames[-1] :]) if frames else "(torch did not record the line)"


def live_nodes(graph: torch.fx.Graph, outputs: Iterable[Any] | None = None) -> set[torch.fx.Node]:
    """The nodes that some outputs need, all the outputs of the graph by default."""
    live: set[torch.fx.Node] = set()
    if outputs is None:
        stack = [n for n in graph.nodes if n.op == "output"]
    else:
        stack = [n for n in outputs if isinstance(n, torch.fx.Node)]
    while stack:
        node = stack.pop()
        if node not in live:
            live.add(node)
            stack.extend(n for n in node.all_input_nodes if n not in live)
    return live


def fake_value(node: torch.fx.Node) -> Any:
    """The fake tensor, symbolic number or python value of a node in torch."""
    return node.meta["val"] if "val" in node.meta else node.meta.get("example_value")


def has_complex(node: torch.fx.Node) -> bool:
    """Whether a node reads or returns a complex tensor."""
    fakes = [fake_value(n) for n in (node, *node.all_input_nodes)]
    return any(is_complex(v) for f in fakes for v in (f if isinstance(f, list | tuple) else [f]))


def python_value(value: Any) -> Any:
    """The value of a symbolic number if torch knows it, None otherwise."""
    if isinstance(value, bool | int | float):
        return value
    if is_symbolic(value):
        expr = value.node.expr
        return SYM_KINDS[type(value)](expr) if expr.is_number else None
    return None


def never_negative(operand: Any) -> bool:
    """Whether torch knows that a number, or the result of a node, is not negative."""
    value = operand.meta.get("val") if isinstance(operand, torch.fx.Node) else operand
    if isinstance(value, int):
        return value >= 0
    if not isinstance(value, torch.SymInt) or value.node.shape_env is None:
        return False
    return bool(value.node.shape_env.bound_sympy(value.node.expr).lower >= 0)


def node_argument(node: torch.fx.Node | None, position: int) -> Any:
    """A positional argument of a node, None if it is not given."""
    return node.args[position] if node is not None and len(node.args) > position else None


def _may_write(target: Any) -> bool:
    """Whether a target is not an operator of torch, or changes its inputs."""
    return not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable


def only_makes_empty(node: torch.fx.Node | None, dims: Iterable[Any]) -> bool:
    """Whether all that depends on a node is empty as soon as one of some dimensions is 0.

    The mean of an image that multiplies the image is not seen when the image is empty.

    :param node: the node, None if it is not known
    :param dims: the dimensions, symbolic sizes of torch or integers that are not 0
    """
    wanted = {d.node.expr for d in dims if isinstance(d, torch.SymInt)}
    stack, seen = [] if node is None else [node], {node}
    while stack:
        for user in (u for u in stack.pop().users if u not in seen):
            value, target = fake_value(user), user.target
            if target is torch.ops.aten.sym_size.int:  # sizes are the same
                continue
            if target is not operator.getitem and _may_write(target):
                return False
            seen.add(user)
            if isinstance(value, list | tuple):  # each of its parts is a user
                stack.append(user)
                continue
            if not isinstance(value, torch.Tensor) or free_unbacked_symbols(value):
                return False
            shape: Any = value.shape
            sizes = [d.node.expr for d in shape if isinstance(d, torch.SymInt)]
            if not wanted <= {f for s in sizes for f in (s.args if s.is_Mul else (s,))}:
                stack.append(user)
    return node is not None
