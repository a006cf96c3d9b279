"""The rule that only the store changes a node of a graph, as a detector over syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from architecture_rules import FUNCTIONS, Violation, called_name

NODE_FIELDS = frozenset({"input", "output", "attribute"})
LIST_METHODS = frozenset(
    {"append", "extend", "insert", "pop", "remove", "clear", "add", "reverse", "sort"}
)
PROTO_METHODS = frozenset(
    {"CopyFrom", "MergeFrom", "MergeFromString", "ClearField", "Clear", "ParseFromString"}
)
MUTATING_METHODS = LIST_METHODS | PROTO_METHODS
#: objects with `.input` and `.output` lists that are not nodes
NOT_NODES = re.compile(r"(^|_)(graph|graph_proto|function|func|fct|model|onx|body|self)$", re.I)
NODE_NAME = re.compile(r"(^|_)(node|nodes|nd)(_|\d|$)")
#: functions that return a new node, which is in no graph yet
FRESH_CALLS = frozenset(
    {
        "NodeProto",
        "bind_attributes",
        "copy_node",
        "copy_with_captures",
        "copy_with_edges",
        "make_node",
        "make_node_check_opset",
    }
)


def last_identifier(node: ast.AST) -> str:
    """The last identifier of an expression: ``a.b[0].c`` gives ``c``."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return called_name(node)
    return node.id if isinstance(node, ast.Name) else ""


def inside_function(function: ast.AST) -> Iterator[ast.AST]:
    """Walks through a function without entering the functions it defines."""
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, FUNCTIONS):
            stack.extend(ast.iter_child_nodes(node))


class NodeMutations:
    """Finds the statements of one function that change a node of the graph.

    A node made by the function itself (``make_node``, ``NodeProto()``) is not in the graph yet:
    it may be completed. A name bound to a field of a node, or by a loop over it, is that field.
    """

    def __init__(self, function: ast.AST):
        self.nodes = list(inside_function(function))
        self.aliases: set[str] = set()
        bindings = list(self._bindings())
        bound: dict[str, list[bool]] = {}
        for name, value, loop in bindings:
            made = not loop and isinstance(value, ast.Call) and called_name(value) in FRESH_CALLS
            bound.setdefault(name, []).append(made)
        self.fresh = {name for name, made in bound.items() if all(made)}
        for name, value, _ in bindings:
            self._bind(name, value)

    def _bindings(self) -> Iterator[tuple[str, ast.AST, bool]]:
        """Enumerates ``(name, value, whether the name iterates over the values)``."""
        for node in self.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                if isinstance(node.targets[0], ast.Name):
                    yield node.targets[0].id, node.value, False
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                yield node.target.id, node.iter, True

    def _bind(self, name: str, value: ast.AST) -> None:
        while isinstance(value, ast.Subscript):
            value = value.value
        if isinstance(value, ast.Attribute) and value.attr in NODE_FIELDS and self._is_node(value):
            self.aliases.add(name)

    def _is_node(self, field: ast.Attribute) -> bool:
        """Whether ``field.value`` (the owner of `.input`...) is a node that is in a graph."""
        owner = last_identifier(field.value)
        return not NOT_NODES.search(owner) and not self._is_fresh(field.value)

    def _is_fresh(self, node: ast.AST) -> bool:
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.fresh

    def _reaches_field(self, node: ast.AST) -> bool:
        """Whether an expression is a field of a node, or something below: ``n.attribute[0].i``."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node, ast.Attribute) and node.attr in NODE_FIELDS:
                return self._is_node(node)
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.aliases

    def _changes_target(self, target: ast.AST) -> bool:
        if isinstance(target, (ast.Tuple, ast.List)):
            return any(self._changes_target(t) for t in target.elts)
        if isinstance(target, ast.Subscript):
            return self._reaches_field(target.value)
        if not isinstance(target, ast.Attribute):
            return False
        if target.attr == "op_type":
            return last_identifier(target.value) != "self" and not self._is_fresh(target.value)
        if target.attr in {"name", "domain", "doc_string"}:
            owner = last_identifier(target.value)
            if NODE_NAME.search(owner) and not self._is_fresh(target.value):
                return True
        return self._reaches_field(target.value)

    def _changes_call(self, node: ast.Call) -> bool:
        function = node.func
        if isinstance(function, ast.Name) and function.id in {"setattr", "delattr"} and node.args:
            owner = last_identifier(node.args[0])
            return bool(NODE_NAME.search(owner)) and not self._is_fresh(node.args[0])
        if not isinstance(function, ast.Attribute):
            return False
        if function.attr in MUTATING_METHODS and self._reaches_field(function.value):
            return True
        owner = last_identifier(function.value)
        node_like = NODE_NAME.search(owner) and not self._is_fresh(function.value)
        return function.attr in PROTO_METHODS and bool(node_like)

    def violations(self) -> Iterator[Violation]:
        """Enumerates the statements that change a node, in no order."""
        for node in self.nodes:
            targets: list[ast.AST] = []
            if isinstance(node, (ast.Assign, ast.Delete)):
                targets = list(node.targets)
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
                targets = [node.target]
            changed = any(self._changes_target(t) for t in targets) or (
                isinstance(node, ast.Call) and self._changes_call(node)
            )
            if changed:
                yield node.lineno, f"changes a node: {ast.unparse(node)}"


def check_node_mutation(tree: ast.Module) -> list[Violation]:
    """No node of the graph is changed in place: replacing it is the store's business."""
    scopes = [tree, *(n for n in ast.walk(tree) if isinstance(n, FUNCTIONS))]
    return sorted(v for scope in scopes for v in NodeMutations(scope).violations())
