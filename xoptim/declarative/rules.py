"""Rewrites declared as equations.

::

    @rule("default", "Max(x, 0) -> Relu(x)", min_opset=6)
    def max_relu(g, x):
        '''Max(X, 0) -> Relu(X), for the types Relu knows.'''
        g.require(has_kernel("Relu", g.type_of(x), g.main_opset), "Relu does not know this type")

Equations are parsed once (see :mod:`xoptim.declarative.algebra` for their syntax): when the rule
is declared, or, if it belongs to a set, when a graph has the operators they need. The matcher is
compiled when a node may be their root. The function checks conditions, and may return the values
that the equation does not give. The engine deduces which nodes are removed, as for any rewrite.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from xbuilder.errors import OptionError
from xbuilder.runtimes.kernel_table import key_of

from ..authoring.operator_names import check_call, check_operators, is_tested
from ..catalogue.database_query import as_words
from ..catalogue.registry import register_pattern
from .algebra import parse_equation
from .compiled import CompiledGraph, roots_and_filters
from .outlines import outline_of
from .rule_patterns import Condition, RulePattern, RuleSide
from .small_graph import SmallGraph, Variable, operands_of
from .template import TemplateWriter


def rule(
    *texts: str,
    root: str = "",
    prepares: str | Iterable[str] = (),
    before: str | Iterable[str] = (),
    behind: str | Iterable[str] = (),
    aliases: str | Iterable[str] = (),
    min_opset: int = 1,
    priority: int | str = "usual",
    precision: str = "exact",
    tolerance: float = 0.0,
    sole_use: bool = True,
    name: str = "",
) -> Callable[[Condition], type[RulePattern]]:
    """Decorator: equations, with conditions, become a pattern.

    The function takes `g` (:class:`RewriteContext`) and any name of the equations: a variable is
    the name of a result, an attribute is its value, a variable annotated `float` (or
    `float | None`) is the value of a scalar constant; one that a side does not have is None. It
    refuses (`g.require`), and may return a dictionary with the values the right-hand side lacks.
    When a text has no arrow, the function returns the right-hand side itself, as
    :meth:`Rewrite.rewrite` does.

    :param texts: sets it belongs to, and equations, tried in their order; without any set, the
        pattern is not registered
    :param root: name of the result whose node the search starts from, the first one that is
        replaced by default
    :param prepares: see :func:`.rewrite`
    :param before: likewise
    :param behind: likewise
    :param aliases: likewise
    :param min_opset: likewise
    :param priority: likewise
    :param precision: likewise
    :param tolerance: likewise
    :param sole_use: refuses the match when an inner result is used elsewhere, otherwise the nodes
        it needs are kept
    :param name: name of the pattern when it differs from the name of the function
    :raises OptionError: an equation is not valid, or the function asks for a name no equation has

    ::

        @rule("default", "Not(Not(x)) -> x")
        def not_not(g): ...
    """
    tags, equations = _sorted_out(texts)
    options: dict[str, Any] = {"min_opset": min_opset, "priority": priority, "precision": precision}
    options.update(before=as_words(before), behind=as_words(behind), aliases=as_words(aliases))
    options.update(prepares=as_words(prepares), tolerance=tolerance)

    def decorate(function: Condition) -> type[RulePattern]:
        short = name or "".join(p.title() for p in function.__name__.split("_"))
        doc = function.__doc__
        return make_rule(short, equations, tags, options, sole_use, root, function, doc=doc)

    return decorate


def _sorted_out(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separates sets from equations: a set is one word."""
    tags = [t for t in texts if t.replace("-", "_").isidentifier()]
    return tags, [t for t in texts if t not in tags]


def equation(
    name: str, *texts: str, doc: str = "", sole_use: bool = True, **options: Any
) -> type[RulePattern]:
    """Declares a rule that has no condition.

    :param name: name of the pattern
    :param texts: sets it belongs to, and equations, see :func:`rule`
    :param doc: documentation, the equations by default
    :param sole_use: see :func:`rule`
    :param options: `min_opset`, `priority`, `precision`, `before`, `behind`

    ::

        equation("NegNeg", "default", "Neg(Neg(x)) -> x")
    """
    tags, equations = _sorted_out(texts)
    return make_rule(name, equations, tags, options, sole_use, doc=doc or "\n".join(equations))


def make_rule(
    name: str,
    equations: Sequence[str],
    tags: Iterable[str],
    options: dict[str, Any],
    sole_use: bool = True,
    root: str = "",
    condition: Condition | None = None,
    doc: str | None = None,
) -> type[RulePattern]:
    """Makes the class of a rule and registers it if it belongs to a set.

    :param name: name of the pattern
    :param equations: the equations
    :param tags: sets it belongs to
    :param options: `min_opset`, `priority`, `precision`, `before`, `behind`
    :param sole_use: see :func:`rule`
    :param root: see :func:`rule`
    :param condition: checks conditions
    :param doc: documentation of the class
    :raises OptionError: there is no equation, or one is wrong
    """
    if not equations:
        raise OptionError(f"Rule {name!r} has no equation: 'left -> right' is expected.")
    if not is_tested(getattr(condition, "__module__", __name__)):
        check_right_sides(name, equations, condition)
    tags = list(tags)
    members: dict[str, Any] = {
        "__doc__": doc,
        "__module__": getattr(condition, "__module__", __name__),
        "equations": tuple(equations),
        "sole_use": sole_use,
        **options,
    }
    if condition is not None:
        members["condition"] = staticmethod(condition)
        members["line"] = condition.__code__.co_firstlineno

    def read() -> None:
        for attribute, value in _read(name, equations, sole_use, root, condition).items():
            setattr(cls, attribute, value)

    def outline() -> None:
        outlines = [outline_of(text, root) for text in equations]
        for o in outlines if not is_tested(cls.__module__) else ():
            check_operators(
                f"Rule {name!r}", [*o.roots, *(key_of(n, d) for d, n in o.needs)], _FORM
            )
        cls.needs = tuple(o.needs for o in outlines)
        cls.roots = tuple(dict.fromkeys(r for o in outlines for r in o.roots))

    members.update((attribute, LazyClassAttribute(attribute, outline)) for attribute in _OUTLINED)
    members.update((attribute, LazyClassAttribute(attribute, read)) for attribute in _READ)
    cls: type[RulePattern] = type(f"{name}Pattern", (RulePattern,), members)
    if tags:
        return register_pattern(*tags, **options)(cls)
    read()
    return cls


def check_right_sides(name: str, equations: Sequence[str], condition: Condition | None) -> None:
    """Checks that something writes the replacement: the equation, or the function.

    :param name: name of the pattern
    :param equations: the equations
    :param condition: the function
    :raises OptionError: nothing does
    """
    alone = [text for text in equations if "->" not in text]
    if alone and (condition is None or not _returns_something(condition)):
        raise OptionError(
            f"Rule {name!r} has no right-hand side: 'left -> right' is expected in {alone[0]!r}, "
            "or a function that returns the replacement."
        )


def _returns_something(function: Condition) -> bool:
    """Whether a function may return something else than None."""
    rows = list(dis.get_instructions(function))
    return any(
        after.opname == "RETURN_VALUE" and (before.opname, before.argval) != ("LOAD_CONST", None)
        for before, after in pairwise(rows)
    ) or any(row.opname == "RETURN_CONST" and row.argval is not None for row in rows)


#: the way an equation writes an operator of another domain
_FORM = "domain.Operator(x)"
#: attributes read from the outline, and attributes read once the equations are compiled
_OUTLINED = ("needs", "roots")
_READ = ("sides", "after", "reads", "arguments")


class LazyClassAttribute:
    """A class attribute computed when it is first read.

    :param name: its name
    :param read: function that sets it, with others
    """

    def __init__(self, name: str, read: Callable[[], None]):
        self._name = name
        self._read = read

    def __get__(self, instance: object, owner: type) -> Any:
        self._read()
        return getattr(owner if instance is None else instance, self._name)


def check_sides(title: str, sides: Iterable[RuleSide]) -> None:
    """Checks that onnx has the operators that a rule looks for, with their inputs and attributes.

    :param title: the rule, for the message
    :param sides: its equations
    :raises OptionError: an operator does not exist, or takes something else
    """
    for side in sides:
        check_operators(title, [key_of(n, d) for d, n in side.left.keys], _FORM)
        for call in side.left.graph.operations():
            if not call.domain:
                check_call(title, call.op_type, len(call.operands), call.attributes or ())


def _read(
    name: str, equations: Sequence[str], sole_use: bool, root: str, condition: Condition | None
) -> dict[str, Any]:
    """The attributes of a rule that depend on its equations, see :func:`make_rule`."""
    values = _values_asked_by(condition)
    sides = tuple(s for t in equations for s in compile_equation(t, sole_use, root, values))
    title = f"Rule {name!r}"
    if not is_tested(getattr(condition, "__module__", __name__)):
        check_sides(title, sides)
    if root and not any(s.left.graph.start for s in sides):
        raise OptionError(f"{title}: its root {root!r} is the name of no result.")
    _, after, reads = roots_and_filters([s.left for s in sides])
    return {
        "sides": sides,
        "after": after,
        "reads": reads,
        "arguments": () if condition is None else _arguments(name, condition, sides),
    }


def compile_equation(
    text: str, sole_use: bool = True, root: str = "", scalars: Iterable[str] = ()
) -> list[RuleSide]:
    """The graphs to match for an equation, with their replacements.

    :param text: the equation
    :param sole_use: see :func:`rule`
    :param root: see :func:`rule`
    :param scalars: see :func:`parse_equation`
    """
    parsed = parse_equation(text, root, scalars)
    written: dict[tuple[int, str], TemplateWriter] = {}
    sides = []
    for graph in parsed.lefts:
        left = CompiledGraph(graph, sole_use)
        if not parsed.right:
            sides.append(RuleSide(text, left, None))
            continue
        like = next((v.name for v in variables_of(graph) if not v.scalar), "")
        key = len(graph.results), like
        if key not in written:
            written[key] = TemplateWriter(text, parsed.right, *key)
        right = written[key]
        whole = left.whole if left.inner_names().isdisjoint(right.names) else 0
        sides.append(RuleSide(text, left, right, whole))
    return sides


def variables_of(graph: SmallGraph) -> list[Variable]:
    """Variables of a graph, without repetition."""
    found = [o for s in graph.sources() for o in operands_of(s) if isinstance(o, Variable)]
    return list(dict.fromkeys(found))


def _values_asked_by(condition: Condition | None) -> list[str]:
    """Names of the arguments annotated as numbers, which receive values of scalar constants."""
    parameters = {} if condition is None else inspect.signature(condition).parameters
    texts = {n: inspect.formatannotation(p.annotation) for n, p in parameters.items()}
    return [n for n, t in texts.items() if t.strip("'").removesuffix(" | None") in ("float", "int")]


def _arguments(name: str, condition: Condition, sides: Sequence[RuleSide]) -> tuple[str, ...]:
    """Names of the arguments of the function after `g`."""
    parameters = list(inspect.signature(condition).parameters)
    if not parameters:
        raise OptionError(
            f"Rule {name!r}: its function has no parameter, the first one receives the graph: "
            f"write def {getattr(condition, '__name__', name)}(g)."
        )
    arguments = parameters[1:]
    known = {n for s in sides for n in s.left.graph.names()}
    unknown = [a for a in arguments if a not in known]
    if unknown:
        raise OptionError(
            f"Rule {name!r}: its function asks for {unknown}, which no equation has: "
            f"{sorted(known)}."
        )
    return tuple(arguments)
