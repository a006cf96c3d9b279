"""Higher order operators: the nodes of an fx graph that own other graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from .interpreter import Interpreter

Handler = Callable[["Interpreter", "torch.fx.Node", list[Any], dict[str, Any]], Any]


def _wrap(position: int) -> Handler:
    """A region run in another mode (no_grad, autocast): its nodes come in the main graph."""

    def handle(
        interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        return interpreter.inline(args[position], args[position + 1 :])

    return handle


# torch's metadata of a region run with autocast already has the types it produces
HIGHER_ORDER: dict[str, Handler] = {
    "higher_order.wrap_with_set_grad_enabled": _wrap(1),
    "higher_order.wrap_with_autocast": _wrap(4),
}
