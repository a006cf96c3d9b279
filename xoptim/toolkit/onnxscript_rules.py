"""Runs rules of onnxscript's rewriter, `RewriteRule` and `RewriteRuleSet`, as patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from onnx import NodeProto

from xbuilder.errors import OptionError

from ..authoring.context import RewriteContext
from ..authoring.deduction import Refusal
from ..authoring.rewrite import Rewrite
from ..authoring.right_side import NewNode, Replacement
from .ir_mirror import IrMirror


class OnnxScriptRule(Rewrite):
    """A rule of onnxscript that runs among the other patterns.

    The rule matches on a copy of the graph. The engine writes its replacement, and protects types,
    shapes, outputs and results used elsewhere as it does for any pattern.

    :param rule: a `RewriteRule`
    :param verbose: verbosity
    :raises OptionError: it is something else, or it makes functions (`as_function=True`)
    """

    def __init__(self, rule: Any, verbose: int = 0):
        super().__init__(verbose)
        if not hasattr(rule, "try_rewrite") or not hasattr(rule, "_target_pattern"):
            raise OptionError(f"{rule!r} is not a RewriteRule of onnxscript.")
        if rule.as_function:
            raise OptionError(f"Rule {rule} makes functions (as_function=True), patterns do not.")
        self.rule = rule
        self.name = str(rule.name or _function_name(rule))
        vars(self)["roots"] = _roots(rule)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnnxScriptRule) and self.rule is other.rule

    def __hash__(self) -> int:
        return id(self.rule)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, Replacement] | Refusal:
        """The replacement of a node, computed by the rule on a copy of the graph."""
        mirror = IrMirror.of(g)
        found = mirror.node(g.record(node))
        if found is None:
            return g.no("the node has no result")
        why = _Why()
        with _visiting(self.rule):
            for tracer in (why, None):
                # with a tracer, the rule reports why it refuses and changes nothing
                delta = self.rule.try_rewrite(mirror.model, found.graph, found, tracer=tracer)
                if delta is None:
                    return g.no(why.reason)
        for matched in delta.match.nodes:
            g.look_at(*(g.producer_or_none(o.name) for o in matched.outputs if o.name))
        reader = _Reader()
        pairs = zip(delta.match.outputs, delta.new_outputs, strict=True)
        return {old.name: reader.replacement(new) for old, new in pairs}


@contextmanager
def _visiting(rule: Any) -> Iterator[None]:
    """Calls the visitors a rule has before and after a graph, so that it forgets what it recorded
    on another copy of the graph."""
    if rule.graph_pre_visitor:
        rule.graph_pre_visitor()
    try:
        yield
    finally:
        if rule.graph_post_visitor:
            rule.graph_post_visitor()


class _Why:
    """A tracer of onnxscript that keeps the last reason."""

    def __init__(self) -> None:
        self.reason = "the rule does not match"

    def log(self, rule: Any, container: Any, node: Any, match: Any, status: Any) -> None:
        """Called by the rule when it is done with a node."""
        self.reason = getattr(match, "reason", "") or self.reason


class _Reader:
    """Converts the nodes a rule made into new operators."""

    def __init__(self) -> None:
        self._nodes: dict[int, NewNode] = {}

    def replacement(self, value: Any) -> Any:
        """The replacement of a value: a name, a new operator, an array, None if it is missing."""
        if value is None:
            return None
        node = value.producer()
        if node is not None and node.graph is None:
            new = self._node(node)
            return new[value.index()] if new.outputs > 1 else new
        if node is None and value.graph is None and value.const_value is not None:
            return value.const_value.numpy()
        return value.name

    def _node(self, node: Any) -> NewNode:
        from onnx_ir.serde import serialize_attribute

        found = self._nodes.get(id(node))
        if found is None:
            inputs = [self.replacement(i) for i in node.inputs]
            attributes = {a.name: serialize_attribute(a) for a in node.attributes.values()}
            domain = "" if node.domain == "ai.onnx" else node.domain
            found = NewNode(node.op_type, inputs, attributes, domain, len(node.outputs))
            self._nodes[id(node)] = found
        return found


def _function_name(rule: Any) -> str:
    """Name of the function that writes the replacement of a rule, of its class for a method."""
    function = rule._replacement_pattern._function
    owner = getattr(function, "__self__", None)
    return type(owner).__name__ if owner is not None else str(function.__name__)


def _roots(rule: Any) -> tuple[str, ...]:
    """Operator types a rule starts from."""
    identifier = rule._target_pattern.output_nodes[0].op_identifier()
    if identifier is None:
        return ("*",)
    domain, op_type, _ = identifier
    return (f"{domain}::{op_type}" if domain not in ("", "ai.onnx") else op_type,)


def patterns_from_rules(rules: Any) -> list[OnnxScriptRule]:
    """Patterns equivalent to rules of onnxscript.

    :param rules: a `RewriteRule`, a `RewriteRuleSet`, or several of them
    :return: one pattern for each rule, in the same order
    :raises OptionError: something is not a rule

    ::

        from onnxscript.rewriter.rules.common import _no_op

        patterns = ["default", *patterns_from_rules(_no_op.rules)]
    """
    if hasattr(rules, "try_rewrite"):
        return [OnnxScriptRule(rules)]
    if isinstance(rules, str) or not isinstance(rules, Iterable):
        raise OptionError(f"{rules!r} is not a rule of onnxscript, nor a set of rules.")
    return [pattern for rule in rules for pattern in patterns_from_rules(rule)]
