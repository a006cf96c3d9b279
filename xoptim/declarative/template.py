"""Compiles the right-hand side of a rule into a function that describes the new operators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

from xbuilder.errors import OptionError

from ..authoring.context import RewriteContext
from ..authoring.right_side import Replacement
from .algebra import OPERATORS, called_operator, number_of

#: makes the replacement from the bound names, one value for each result
Template: TypeAlias = Callable[[RewriteContext, Mapping[str, Any]], Sequence[Replacement]]


class TemplateWriter:
    """Writes the function of the right-hand side.

    :param text: the rule, for messages
    :param statements: the right-hand side, the last statement is an expression
    :param n_results: how many results the left-hand side has
    :param like: a variable of the left-hand side, whose type numbers take when no other operand
        gives it

    Attribute `names` lists the names that must be bound.
    """

    def __init__(self, text: str, statements: Sequence[ast.stmt], n_results: int, like: str):
        self._text = text
        self._n_results = n_results
        self._like = like
        self._local: set[str] = set()
        self.names: dict[str, None] = {}
        self.source = self._written(statements)

    @cached_property
    def template(self) -> Template:
        """The function, compiled when it is first needed."""
        namespace: dict[str, Any] = {"given": _given}
        exec(compile(self.source, f"<right of {self._text}>", "exec"), namespace)
        right: Template = namespace["right"]
        return right

    def _written(self, statements: Sequence[ast.stmt]) -> str:
        lines = ["def right(g, b):", "    op = g.op"]
        *definitions, last = statements
        for statement in definitions:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name):
                self._fail(ast.unparse(statement), "is not 'name = expression'")
            name = target.id
            lines.append(f"    l_{name} = {self._operand(statement.value, '')}")
            self._local.add(name)
        assert isinstance(last, ast.Expr)
        value = last.value
        if isinstance(value, ast.Tuple):
            results = [self._operand(e, "") for e in value.elts]
            if len(results) != self._n_results:
                self._fail(ast.unparse(value), f"has not {self._n_results} results")
            lines.append(f"    return ({''.join(f'{r}, ' for r in results)})")
        elif self._n_results == 1:
            lines.append(f"    return ({self._operand(value, '')},)")
        else:
            lines.append(f"    return tuple({self._operand(value, '', self._n_results)})")
        return "\n".join(lines)

    def _fail(self, what: str, reason: str) -> NoReturn:
        raise OptionError(f"Rule {self._text!r} is not valid: {what!r} {reason}.")

    def _bound(self, name: str) -> str:
        if name in self._local:
            return f"l_{name}"
        self.names[name] = None
        return f"b[{name!r}]"

    def _operand(self, node: ast.expr, like: str, outputs: int = 1) -> str:
        value = number_of(node)
        if value is not None:
            return f"g.scalar({value!r}, {like or self._bound(self._like)})"
        if isinstance(node, ast.Constant) and node.value is None:
            return "None"
        if isinstance(node, ast.Name):
            return self._bound(node.id)
        if isinstance(node, ast.List) and len(node.elts) == 1:
            return self._operand(node.elts[0], like)
        if isinstance(node, ast.Starred):
            return f"*{self._operand(node.value, like)}"
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return self._call("", OPERATORS[type(node.op)], [node.left, node.right], [], outputs)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            operands = [node.left, node.comparators[0]]
            return self._call("", OPERATORS[type(node.ops[0])], operands, [], outputs)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._call("", "Neg", [node.operand], [], outputs)
        if isinstance(node, ast.Call) and called_operator(node)[1]:
            return self._call(*called_operator(node), node.args, node.keywords, outputs)
        self._fail(ast.unparse(node), "cannot be written")

    def _call(
        self,
        domain: str,
        op_type: str,
        operands: Sequence[ast.expr],
        keywords: Sequence[ast.keyword],
        outputs: int,
    ) -> str:
        beside = [n.id for n in operands if isinstance(n, ast.Name) and number_of(n) is None]
        beside = [n for n in beside if n not in self._local]
        like = self._bound(beside[0]) if beside else ""
        arguments = [self._operand(o, like) for o in operands]
        if any(isinstance(o, ast.List) for o in operands):
            arguments = [f"*given({', '.join(arguments)})"]
        arguments += [self._keyword(k) for k in keywords]
        if domain:
            arguments.append(f"domain={domain!r}")
        if outputs != 1:
            arguments.append(f"outputs={outputs}")
        return f"op.{op_type}({', '.join(arguments)})"

    def _keyword(self, keyword: ast.keyword) -> str:
        value = number_of(keyword.value)
        if value is not None:
            text = repr(value)
        elif isinstance(keyword.value, ast.Name):
            text = self._bound(keyword.value.id)
        else:
            text = ast.unparse(keyword.value)
        return f"**{text}" if keyword.arg is None else f"{keyword.arg}={text}"


def _given(*operands: Any) -> tuple[Any, ...]:
    """Operands without the missing ones at the end."""
    count = len(operands)
    while count and isinstance(operands[count - 1], str) and not operands[count - 1]:
        count -= 1
    return operands[:count]
