"""Models refused by every rewrite of a product followed by its activation."""

from __future__ import annotations

from collections.abc import Callable


def activation_refusals(
    pattern: str, model: Callable[..., str], product: str, result: str, other: str
) -> dict[str, tuple[str, str]]:
    """Models the pattern refuses, with the reason.

    :param pattern: name of the pattern
    :param model: makes a model of its nodes, of a type, with more outputs
    :param product: the node before the activation
    :param result: declares the result of the product as an output
    :param other: an activation the kernel does not have
    """
    not_alone = "an activation is not the only use"
    relu = f"{product} Y = Relu(c)"
    return {
        "output": (model(relu, outputs=f", {result}"), not_alone),
        "two uses": (model(f"{product} r = Relu(c) Y = Add(r, c)"), not_alone),
        "double": (model(relu, "double"), f"no {pattern} for this type"),
        "another activation": (model(f"{product} Y = {other}(c)"), not_alone),
    }
