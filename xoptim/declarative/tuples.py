"""Equations as nested tuples, `("Div", ("Mul", "x", "y"), "y"), "x"`, written by programs."""

from __future__ import annotations

from typing import Any, TypeAlias

from xbuilder.errors import OptionError

from .rule_patterns import RulePattern
from .rules import equation

#: a variable, a number, a missing input, or (operator, operands..., attributes)
Tree: TypeAlias = "str | int | float | tuple[Any, ...] | None"


def text_of(tree: Tree) -> str:
    """One side of an equation as text, see :mod:`xoptim.declarative.algebra`.

    :param tree: a variable, a number, None for an input that must be missing, or a tuple: the
        operator (`"Mul"`, `"com.microsoft::Gelu"`), its operands, a dictionary of its attributes
        if it has some
    :raises OptionError: it is something else

    ::

        text_of(("Div", ("Mul", "x", "y"), "y"))  # "Div(Mul(x, y), y)"
        text_of(("Softmax", "x", {"axis": -1}))  # "Softmax(x, axis=-1)"
    """
    if isinstance(tree, str) and tree.isidentifier():
        return tree
    if tree is None or isinstance(tree, (int, float)):
        return repr(tree)
    operator = tree[0] if isinstance(tree, tuple) and tree else None
    if not isinstance(tree, tuple) or not isinstance(operator, str):
        raise OptionError(
            f"{tree!r} is not one side of an equation: expected the name of a variable, a number, "
            "None, or a tuple with an operator and its operands."
        )
    operands = list(tree[1:])
    attributes = operands.pop() if operands and isinstance(operands[-1], dict) else {}
    arguments = [text_of(o) for o in operands]
    arguments += [f"{name}={value!r}" for name, value in attributes.items()]
    return f"{operator.replace('::', '.')}({', '.join(arguments)})"


def equation_from_tuples(
    name: str, left: Tree, right: Tree, *tags: str, **options: Any
) -> type[RulePattern]:
    """Declares a rule without conditions whose sides are tuples.

    :param name: name of the pattern
    :param left: the left-hand side
    :param right: the right-hand side
    :param tags: sets it belongs to
    :param options: those of :func:`xoptim.declarative.rules.equation`

    ::

        equation_from_tuples("DivMul", ("Div", ("Mul", "x", "y"), "y"), "x")
    """
    return equation(name, *tags, f"{text_of(left)} -> {text_of(right)}", **options)
