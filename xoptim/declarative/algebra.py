"""Parses a rule written as an equation: `"Max(x, 0) -> Relu(x)"`.

The text is python: :mod:`ast` parses it, names in capitals are operators, others are variables.

============================================  ==================================================
`Not(x)`, `com.microsoft.Gelu(x)`             an operator, of another domain
`x + y`, `x - y`, `x * y`, `x / y`, `x ** 2`  Add, Sub, Mul, Div, Pow; `-x` is Neg, `x @ y` MatMul,
                                              `x > y` Greater, `x >= y`, `x < y`, `x <= y`
`0`, `-1.5`, `True`, `sqrt(2 / pi)`           a constant filled with this number which leaves the
                                              shape of the other operands as it is
`LeakyRelu(x, alpha=0.1)`                     an attribute with this value
`Softmax(x, axis=a)`                          the value of an attribute gets a name
`Conv(x, *others, **attributes)`              every other input, every other attribute; `*_`, `**_`
                                              when no name is needed
`Clip(x, None, high)`, `Clip(x, [low])`       an input that must be missing, that may be missing
`d = x - y; Div(d, ReduceMean(d))`            a name for a result
`a, b = TopK(x, k); (a, b)`                   several results, `_a` if nothing reads it
`x ** 2 | x * x`                              one or the other
`product(0.5, x, Erf(x))`                     Mul, and Div by constants, in any order and grouping;
                                              `x ** 3` stands for Pow or repeated factors
============================================  ==================================================

Both orders of the operands of a commutative operator are the same. The same text stands for the
same node. A variable that the right-hand side uses as an attribute is a scalar constant.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

from xbuilder.errors import OptionError

from .small_graph import (
    Bound,
    Number,
    Operand,
    Operation,
    Power,
    Product,
    ResultTerm,
    SmallGraph,
    Variable,
)

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.Div: "Div",
    ast.Pow: "Pow",
    ast.MatMult: "MatMul",
    ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual",
    ast.Lt: "Less",
    ast.LtE: "LessOrEqual",
}
_NUMBERS: dict[str, float] = {"pi": math.pi, "inf": math.inf}
_FUNCTIONS: dict[str, Callable[[float], float]] = {"sqrt": math.sqrt, "exp": math.exp}
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}
#: largest number of graphs one text may stand for
_MAX_ALTERNATIVES = 64


class Equation(NamedTuple):
    """A parsed rule.

    :param text: the text
    :param lefts: the graphs to match, one for each choice
    :param right: statements of the right-hand side, the last one is an expression; none when the
        rule only has a left-hand side
    """

    text: str
    lefts: tuple[SmallGraph, ...]
    right: tuple[ast.stmt, ...]


def parse_equation(text: str, root: str = "", scalars: Iterable[str] = ()) -> Equation:
    """Parses a rule.

    :param text: both sides with an arrow between them, or the left one alone
    :param root: name of the result whose node the search starts from, the first result that is
        replaced by default
    :param scalars: variables that are scalar constants, with those the right-hand side uses as
        attributes
    :return: the graphs to match, and the parsed right-hand side
    :raises OptionError: the text is not a rule

    ::

        parse_equation("Not(Not(x)) -> x").lefts[0].results[0].source.op_type  # "Not"
    """
    left, arrow, right = text.partition("->")
    statements = _statements(text, right) if arrow else []
    attributes = set(scalars) | {
        n.id
        for keyword in ast.walk(ast.Module(statements, []))
        if isinstance(keyword, ast.keyword) and keyword.arg
        for n in ast.walk(keyword.value)
        if isinstance(n, ast.Name)
    }
    body = _statements(text, left)
    return Equation(text, tuple(_graphs(text, body, attributes, root)), tuple(statements))


def left_statements(text: str) -> list[ast.stmt]:
    """Statements of the left-hand side of an equation.

    :raises OptionError: it is not python
    """
    return _statements(text, text.partition("->")[0])


def _statements(text: str, side: str) -> list[ast.stmt]:
    lines = "\n".join(line.strip() for line in side.strip().splitlines())
    try:
        body = ast.parse(lines).body
    except SyntaxError as e:
        raise OptionError(f"Rule {text!r} is not valid: {e.msg} in {side.strip()!r}.") from e
    if not body or not isinstance(body[-1], ast.Expr):
        raise OptionError(f"Rule {text!r}: {side.strip()!r} must end with an expression.")
    return body


def _graphs(text: str, body: list[ast.stmt], scalars: set[str], root: str) -> Iterator[SmallGraph]:
    """One graph for each combination of the sides of every `|`."""
    pending: list[list[int]] = [[]]
    used: set[str] = set()
    texts: dict[ast.expr, str] = {}
    for _ in range(_MAX_ALTERNATIVES):
        if not pending:
            break
        reader = _LeftReader(text, scalars, pending.pop(), texts)
        yield reader.graph(body, root)
        used |= reader.used
        for i in range(len(reader.forced), len(reader.taken)):
            pending.append([*reader.taken[:i], 1])
    if pending:
        raise OptionError(f"Rule {text!r} stands for more than {_MAX_ALTERNATIVES} graphs.")
    unused = {t.id for s in body for t in targets_of(s) if not t.id.startswith("_")} - used
    if unused:
        raise OptionError(f"Rule {text!r} does not use {sorted(unused)}.")


def targets_of(statement: ast.stmt) -> list[ast.Name]:
    """The names that a statement defines."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    return [n for n in names if isinstance(n, ast.Name)]


def number_of(node: ast.expr) -> float | None:
    """Value of an expression made of numbers only, None otherwise."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (int, float)) else None
    if isinstance(node, ast.Name):
        return _NUMBERS.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number_of(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        function = _FUNCTIONS.get(node.func.id)
        value = number_of(node.args[0]) if function and len(node.args) == 1 else None
        return None if value is None or function is None else function(value)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        a, b = number_of(node.left), number_of(node.right)
        return None if a is None or b is None else _ARITHMETIC[type(node.op)](a, b)
    return None


def called_operator(node: ast.Call) -> tuple[str, str]:
    """Domain and type of the operator that a call names, an empty type if it is not an operator."""
    function = node.func
    names: list[str] = []
    while isinstance(function, ast.Attribute):
        names.insert(0, function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        names.insert(0, function.id)
    *domain, op_type = names or [""]
    return ".".join(domain), op_type if op_type[:1].isupper() else ""


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


class _LeftReader:
    """Reads the left-hand side, once for each choice between alternatives."""

    def __init__(self, text: str, scalars: set[str], forced: list[int], texts: dict[ast.expr, str]):
        self._text = text
        self._texts = texts
        self._scalars = scalars
        self.forced = forced
        self.taken: list[int] = []
        self.used: set[str] = set()
        self._definitions: dict[str, tuple[ast.expr, int, tuple[str, ...]]] = {}
        self._known: dict[str, Operand] = {}
        self._operations: dict[str, Operation] = {}

    def graph(self, body: list[ast.stmt], root: str) -> SmallGraph:
        """The graph for the alternatives this reader chooses."""
        *definitions, last = body
        for statement in definitions:
            names = tuple(t.id for t in targets_of(statement))
            if not names or not isinstance(statement, ast.Assign):
                self._fail(f"{ast.unparse(statement)!r} is not 'name = expression'")
            for i, name in enumerate(names):
                self._definitions[name] = (statement.value, i, names)
        assert isinstance(last, ast.Expr)
        value = last.value
        results = value.elts if isinstance(value, ast.Tuple) else [value]
        found = [self.operand(r) for r in results]
        wrong = [r for r, f in zip(results, found, strict=True) if not isinstance(f, ResultTerm)]
        if wrong:
            self._fail(f"{ast.unparse(wrong[0])!r} is not the result of an operator")
        graph = SmallGraph([f for f in found if isinstance(f, ResultTerm)])
        if root:
            graph.start = next((o for o in graph.operations() if root in o.outputs), None)
        return graph

    def _fail(self, reason: str) -> NoReturn:
        raise OptionError(f"Rule {self._text!r} is not valid: {reason}.")

    def _text_of(self, node: ast.expr) -> str:
        """The key of an expression, equal for equal expressions, computed once for each."""
        found = self._texts.get(node)
        if found is None:
            found = self._texts[node] = self._written(node)
        return found

    def _written(self, node: ast.expr) -> str:
        """The key of a usual expression from its operands; :func:`ast.dump` would read them all
        again."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.BinOp):
            a, b = self._text_of(node.left), self._text_of(node.right)
            return f"({a} {type(node.op).__name__} {b})"
        if isinstance(node, ast.Call) and not node.keywords:
            return f"{self._text_of(node.func)}({', '.join(map(self._text_of, node.args))})"
        return ast.dump(node)

    def operand(self, node: ast.expr) -> Operand:
        """The operand that an expression denotes; the same text gives the same object."""
        key = self._text_of(node)
        if key not in self._known:
            self._known[key] = self._operand(node)
        return self._known[key]

    def _operand(self, node: ast.expr) -> Operand:
        value = number_of(node)
        if value is not None:
            return Number(value)
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if (
            isinstance(node, ast.List)
            and len(node.elts) == 1
            and isinstance(node.elts[0], ast.Name)
        ):
            return Variable(node.elts[0].id, optional=True)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.operand(node.right if self._chooses() else node.left)
        return self._result(node, 0, ("",))

    def _chooses(self) -> int:
        i = len(self.taken)
        self.taken.append(self.forced[i] if i < len(self.forced) else 0)
        return self.taken[-1]

    def _name(self, name: str) -> Operand:
        if name not in self._definitions:
            return Variable(name, scalar=name in self._scalars)
        self.used.add(name)
        expression, index, names = self._definitions[name]
        return self._result(expression, index, names)

    def _result(self, node: ast.expr, index: int, names: tuple[str, ...]) -> Operand:
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            key = f"| {self._text_of(node)}"
            if key not in self._known:
                self._known[key] = Number(self._chooses())
            chosen = self._known[key]
            node = node.right if isinstance(chosen, Number) and chosen.value else node.left
        if isinstance(node, ast.Call) and _is_named(node.func, "product"):
            return self._product(node)
        key = self._text_of(node)
        if key not in self._operations:
            self._operations[key] = self._operation(node)
        operation = self._operations[key]
        if any(names):
            operation.outputs = names
        return ResultTerm(operation, index)

    def _operation(self, node: ast.expr) -> Operation:
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            operands = [node.left, node.right]
            return Operation(OPERATORS[type(node.op)], [self.operand(o) for o in operands])
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
            operands = [node.left, node.comparators[0]]
            return Operation(OPERATORS[type(node.ops[0])], [self.operand(o) for o in operands])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return Operation("Neg", [self.operand(node.operand)])
        if isinstance(node, ast.Call) and called_operator(node)[1]:
            return self._call(node)
        self._fail(f"{ast.unparse(node)!r} is neither an operator, a variable nor a number")

    def _call(self, node: ast.Call) -> Operation:
        domain, op_type = called_operator(node)
        operation = Operation(op_type, domain=domain)
        arguments = list(node.args)
        last = arguments[-1] if arguments else None
        if isinstance(last, ast.Starred):
            arguments.pop()
            operation.rest = ast.unparse(last.value)
        operation.operands = [self.operand(a) for a in arguments]
        operation.attributes = {}
        for keyword in node.keywords:
            if keyword.arg is not None:
                operation.attributes[keyword.arg] = self._attribute(keyword.value)
            else:
                name = ast.unparse(keyword.value)
                operation.any_attributes = "" if name == "_" else name
        return operation

    def _attribute(self, node: ast.expr) -> Any:
        value = number_of(node)
        if value is not None:
            return value
        if isinstance(node, ast.Name):
            return Bound(node.id)
        try:
            return ast.literal_eval(node)
        except ValueError:
            self._fail(f"{ast.unparse(node)!r} is neither a value nor a name for an attribute")

    def _product(self, node: ast.Call) -> Operand:
        factors: list[Operand] = []
        for argument in node.args:
            raised = isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Pow)
            if raised and number_of(argument) is None:
                assert isinstance(argument, ast.BinOp)
                base, degree = self.operand(argument.left), number_of(argument.right)
                if not isinstance(base, Variable) or not isinstance(degree, int):
                    self._fail(f"{ast.unparse(argument)!r} is not a power of a variable")
                factors.append(Power(base, degree))
            else:
                factors.append(self.operand(argument))
        if sum(isinstance(f, Number) for f in factors) > 1:
            self._fail(f"{ast.unparse(node)!r} has several numbers, one is expected")
        return ResultTerm(Product(factors))
