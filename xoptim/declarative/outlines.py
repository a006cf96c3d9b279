"""Reads the roots and the required operators of an equation before it is compiled.

Most rules cannot match in most graphs. The syntax tree of the left-hand side gives the root of a
rule and the operators it requires; the rest is compiled for a graph that has them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xbuilder.nodes.record import Key

from .algebra import OPERATORS, called_operator, left_statements, number_of, targets_of

_NOTHING: frozenset[Key] = frozenset()


class Outline(NamedTuple):
    """The roots and the required operators of an equation.

    :param roots: types of the nodes the search starts from, as a pattern spells them
    :param needs: operators required by every graph it stands for
    """

    roots: tuple[str, ...]
    needs: frozenset[Key]


def outline_of(text: str, root: str = "") -> Outline:
    """Reads the outline of an equation.

    :param text: the equation
    :param root: name of the result whose node the search starts from, see :func:`.rules.rule`
    :raises OptionError: the text is not python
    """
    *definitions, last = left_statements(text)
    reader = _OutlineReader(definitions)
    assert isinstance(last, ast.Expr)
    results = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    start = reader.definitions.get(root, results[0])
    needs = [reader.needs(r) for r in results]
    return Outline(tuple(dict.fromkeys(reader.roots(start))), _NOTHING.union(*needs))


class _OutlineReader:
    """Computes the roots and the required operators of expressions.

    :param statements: the assignments before the last expression
    """

    def __init__(self, statements: Sequence[ast.stmt]):
        self.definitions: dict[str, ast.expr] = {}
        self._needs: dict[ast.expr, frozenset[Key]] = {}
        for statement in statements:
            if isinstance(statement, ast.Assign):
                for target in targets_of(statement):
                    self.definitions[target.id] = statement.value

    def roots(self, node: ast.expr) -> Iterable[str]:
        """Types of the operators that may produce an expression."""
        if isinstance(node, ast.Name) and node.id in self.definitions:
            return self.roots(self.definitions[node.id])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return [*self.roots(node.left), *self.roots(node.right)]
        domain, op_type = _operator(node) or ("", "Mul")  # the root of a product is a Mul
        return [f"{domain}::{op_type}" if domain else op_type]

    def needs(self, node: ast.expr) -> frozenset[Key]:
        """Operators an expression requires. Each expression is read once."""
        if node not in self._needs:
            self._needs[node] = self._read(node)
        return self._needs[node]

    def _read(self, node: ast.expr) -> frozenset[Key]:
        if isinstance(node, ast.Name):
            defined = self.definitions.get(node.id)
            return _NOTHING if defined is None else self.needs(defined)
        if number_of(node) is not None:
            return _NOTHING
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.needs(node.left) & self.needs(node.right)
        operator = _operator(node)
        found = [self.needs(operand) for operand in _operands(node)]
        return _NOTHING.union([operator] if operator else [], *found)


def _operator(node: ast.expr) -> Key | None:
    """The operator that produces an expression, None for a product."""
    if isinstance(node, ast.BinOp):
        op_type = OPERATORS.get(type(node.op))
    elif isinstance(node, ast.Compare):
        op_type = OPERATORS.get(type(node.ops[0]))
    elif isinstance(node, ast.UnaryOp):
        op_type = "Neg"
    else:
        domain, op_type = called_operator(node) if isinstance(node, ast.Call) else ("", "")
        return (domain, op_type) if op_type else None
    return ("", op_type) if op_type else None


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if not isinstance(node, ast.Call):
        return []
    operands = [a for a in node.args if not isinstance(a, (ast.Starred, ast.List))]
    # a power among the factors of a product may be written as repeated factors
    is_product = _operator(node) is None
    return [a for a in operands if not (is_product and _is_power(a))]


def _is_power(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
