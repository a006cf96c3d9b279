"""Compiles the graph of an equation into a python function that matches it.

The function is flat: one test per line, from the root up to the variables, on the records of the
store. A commutative operator, or a product, is a loop over the orders of its operands. A test that
fails continues with the next order, and there is no other backtracking. Every name is a local
variable of the function, so nothing is copied and nothing is undone. For `Add(Mul(x, y), 1)`::

    def make(g, say):
        store = g.store
        get, readers = store.producers.get, store.consumers.get
        many = store.is_used_more_than_once
        ...
        def search(n0):
            i0 = n0.inputs
            if len(i0) != 2 and (i0 := resized(i0, 2)) is None: return
            for o0, o1 in ((i0[0], i0[1]), (i0[1], i0[0])):
                n1 = get(o0)
                if n1 is None or n1.op_type != 'Mul' or n1.domain: continue
                ...
                yield [n0, n1], {'x': v_x, 'y': v_y}, 0
        return search

Without a loop there is one attempt: the function returns the match, it is not a generator.
Graphs with a common prefix are matched by one function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations
from typing import Any, TypeAlias

from xbuilder.nodes.record import NodeRecord

from ..authoring.queries import GraphQueries
from . import matcher_checks as checks
from .attributes import AttributePattern
from .function_writer import FunctionText
from .small_graph import (
    Number,
    Operand,
    Operation,
    Power,
    Product,
    ResultTerm,
    SmallGraph,
    Tensor,
    Variable,
    operands_of,
)

#: a match: the nodes, the values bound to the names of the rule, the position of the graph among
#: those that share the function
Found: TypeAlias = tuple[list[NodeRecord], dict[str, Any], int]
#: finds the matches whose root is a record
Search: TypeAlias = Callable[[NodeRecord], Iterable[Found]]
#: makes a search for a graph; `say(step, nodes, text, *arguments)` receives the reasons of failure
MatcherFactory: TypeAlias = Callable[[GraphQueries, Callable[..., None]], Search]

_COUNTS = {0: "no other factor", 1: "one factor", 2: "two factors", 3: "three factors"}
_HELPERS = {k: getattr(checks, k) for k in checks.__all__} | {"permutations": permutations}


class MatcherWriter(FunctionText):
    """Writes the matching function, for one opset.

    :param graph: the graph to match
    :param opset: main opset, which gives the default values of attributes
    :param sole_use: refuses early an inner result used elsewhere
    :param loud: the function reports why nothing is found
    :param place: position of the graph among those that share the function
    :param namespace: names shared by the functions compiled together
    """

    def __init__(
        self,
        graph: SmallGraph,
        opset: int,
        sole_use: bool,
        loud: bool,
        place: int,
        namespace: dict[str, Any],
    ):
        super().__init__(namespace, loud)
        namespace.update(_HELPERS)
        self._place = place
        self._graph = graph
        self._opset = opset
        self._sole_use = sole_use
        self._values: dict[int, str] = {}
        self._records: dict[int, str] = {}
        self._trees: list[str] = []
        self._bound: dict[str, str] = {}

        self._write()

    def _write(self) -> None:
        self._define("search", ("n0",))
        root = self._graph.root
        if isinstance(root, Operation):
            self._operation(root, "n0")
        else:
            self._product(root, "n0", "")
        connected = self._nodes_beside_the_root()
        if connected:
            self._attributes()
            self._results()
            nodes = [self._records[id(s)] for s in self._graph.sources()]
            if len(self._graph.results) > 1:
                text = "a result is needed to compute an input"
                self._refuse_if(f"not is_convex(store, ({', '.join(nodes)},))", text)
            records = ", ".join([*nodes, *(f"*{t}" for t in self._trees)])
            bound = ", ".join(f"{name!r}: {value}" for name, value in self._bound.items())
            self._found(f"[{records}], {{{bound}}}, {self._place}")

    def _nodes(self) -> list[str]:
        return [*self._records.values(), *(f"*{tree}" for tree in self._trees)]

    # -- operations

    def _operation(self, operation: Operation, record: str) -> None:
        """Matches an operation with a record whose type is the right one."""
        self._records[id(operation)] = record
        name, count = repr(operation.op_type), len(operation.operands)
        if operation.exact_outputs:
            n = len(operation.outputs)
            self._refuse_if(
                f"len({record}.outputs) > {n} and any({record}.outputs[{n}:])",
                "{} has {} outputs, {} expected",
                *(name, f"len({record}.outputs)", str(n)),
            )
        inputs = self._assign(f"i{record[1:]}", f"{record}.inputs")
        if operation.rest:
            test = f"len({inputs}) < {count} and ({inputs} := resized({inputs}, {count})) is None"
        else:
            test = f"len({inputs}) != {count} and ({inputs} := resized({inputs}, {count})) is None"
        self._refuse_if(
            test,
            "{} has {} inputs, {} expected",
            *(name, f"len({record}.inputs)", str(count)),
        )
        if operation.rest and operation.rest != "_":
            self._bound[operation.rest] = self._assign(self._new("w"), f"{inputs}[{count}:]")
        names = [f"{inputs}[{i}]" for i in range(count)]
        if operation.commutes and not operation.same_operands:
            loop = [self._new("o") for _ in range(count)]
            orders = f"(({names[0]}, {names[1]}), ({names[1]}, {names[0]}))"
            self._loop(loop, orders if count == 2 else f"permutations({inputs})")
            names = loop
        self._operands(operation, list(operation.operands), names)

    def _operands(
        self, reader: Operation | Product, operands: list[Operand], names: list[str]
    ) -> None:
        """Emits the tests of the operands, the cheapest first, the producers last."""
        pairs = list(zip(operands, names, strict=True))
        before = set(self._values)
        searched: list[tuple[ResultTerm, str]] = []
        sole_uses: list[str] = []
        for operand, name in pairs:
            if operand is None:
                self._refuse_if(name, "{!r} cannot be ''", name)
            elif isinstance(operand, Variable) and id(operand) in before:
                self._same(operand, name)
        for operand, name in pairs:
            if isinstance(operand, ResultTerm):
                record = self._result(reader, operand, name)
                if record:
                    searched.append((operand, record))
                    sole_uses += [name] if self._goes_alone(operand) else []
        for name in sole_uses:
            self._refuse_if(f"many({name})", "an inner result is used elsewhere")
        for operand, name in pairs:
            others = [n for o, n in pairs if n != name and o is not None]
            self._constant_operand(reader, operand, name, others)
        for operand, name in pairs:
            if not isinstance(operand, Variable) or id(operand) in before:
                continue
            if id(operand) in self._values:
                self._same(operand, name)
            else:
                others = [n for o, n in pairs if n != name and o is not None]
                self._variable(operand, name, others)
        for result, record in searched:
            if isinstance(result.source, Operation):
                self._operation(result.source, record)
            elif isinstance(reader, Operation):
                self._product(result.source, record, f" in the argument of {reader.op_type}")
            else:
                self._product(result.source, record, "")

    def _same(self, variable: Variable, name: str) -> None:
        known = self._values[id(variable)]
        self._refuse_if(
            f"{name} != {known}",
            "{!r} cannot be {!r}, which is {!r}",
            *(name, repr(variable.name), known),
        )

    def _result(self, reader: Operation | Product, result: ResultTerm, name: str) -> str:
        """Emits the search of the producer of an operand; returns its variable if it is new."""
        source = result.source
        if id(source) in self._records:
            known = self._output(self._records[id(source)], result.index)
            self._refuse_if(
                f"{name} != {known}",
                "{!r} cannot be {!r}, which is {!r}",
                *(name, repr(result.label), known),
            )
            return ""
        record = self._assign(self._new("n"), f"get({name})")
        consumer = repr(reader.op_type if isinstance(reader, Operation) else "Mul")
        expected = source.op_type if isinstance(source, Operation) else "Mul"
        self._refuse_if(
            f"{record} is None or {_is_not(record, source)}",
            "no {} before {}, {} was found",
            *(repr(expected), consumer, f"producer_text({record}, {name})"),
            less=f" - ({record} is None) / 2",
        )
        self._records[id(source)] = record
        self._is_another(source, record)
        self._refuse_if(
            f"{self._output(record, result.index)} != {name}",
            "{!r} is another output of {} than expected",
            *(name, repr(expected)),
        )
        return record

    def _is_another(self, source: Operation | Product, record: str) -> None:
        """Emits the test that two nodes of the rule are two nodes of the graph."""
        if isinstance(source, Product):
            return
        for other in self._graph.operations():
            known = self._records.get(id(other))
            if known is not None and other is not source and other.key == source.key:
                self._refuse_if(
                    f"{record} is {known}", "{} stands twice for one node", repr(source.op_type)
                )

    def _goes_alone(self, result: ResultTerm) -> bool:
        """Whether a result must have one use only."""
        replaced = any(
            r.source is result.source and r.index == result.index for r in self._graph.results
        )
        return self._sole_use and not replaced and self._graph.uses(result) == 1

    @staticmethod
    def _output(record: str, index: int) -> str:
        return f"{record}.outputs[0]" if index == 0 else f"output_at({record}, {index})"

    # -- constants and variables

    def _constant_operand(
        self, reader: Operation | Product, operand: Operand, name: str, others: list[str]
    ) -> None:
        broadcasts = isinstance(reader, Operation) and reader.broadcasts
        beside = f"({''.join(f'{o}, ' for o in others)})" if broadcasts else "()"
        if isinstance(operand, Number):
            number = self._constant(checks.number_check(operand.value))
            self._refuse_if(
                f"{_varies(name)} or not {number}.accepts(g, {name}, {beside})",
                "{}",
                f"{number}.refusal(g, {name}, {beside})",
            )
        elif isinstance(operand, Tensor):
            value = self._constant(operand.value)
            self._refuse_if(
                f"{_varies(name)} or not is_tensor(g, {name}, {value}, {beside})",
                "{!r} cannot be {!r}, the constant {}",
                *(name, repr(operand.name), f"array_text({value})"),
            )

    def _variable(self, variable: Variable, name: str, others: list[str]) -> None:
        local = self._assign(self._new("v"), name)
        self._values[id(variable)] = local
        if not variable.optional:
            self._refuse_if(f"not {local}", "{!r} cannot be {!r}", local, repr(variable.name))
        if variable.type:
            self._refuse_if(
                f"facts[{local}].type != {variable.type}",
                "{!r} cannot be {!r}, its type is not {}",
                *(local, repr(variable.name), str(variable.type)),
            )
        self._bound[variable.name] = local
        if variable.scalar:
            beside = f"({''.join(f'{o}, ' for o in others)})"
            value = self._assign(self._new("s"), f"constant_number(g, {local}, {beside})")
            self._bound[variable.name] = value
            self._refuse_if(
                f"{value} is None",
                "{}",
                f"scalar_refusal(g, {local}, {beside}, {variable.name!r})",
            )

    # -- products

    def _product(self, product: Product, record: str, where: str) -> None:
        """Emits the tests of the factors of a tree of Mul and Div; *where* ends the reasons."""
        self._records[id(product)] = record
        tree = self._assign(f"p{record[1:]}", f"read_product(g, {record})")
        self._trees.append(f"tree_records(g, {tree})")
        factors = self._assign(f"f{record[1:]}", f"{tree}.names")
        rest = [f for f in product.factors if isinstance(f, (ResultTerm, Variable))]
        scalars = [f for f in rest if isinstance(f, Variable) and f.scalar]
        rest = [f for f in rest if f not in scalars]
        powers = [f for f in product.factors if isinstance(f, Power)]
        few = f"the product does not have {_COUNTS.get(len(rest), len(rest))}{where}"
        if not powers:
            self._refuse_if(f"len({factors}) != {len(rest)}", few)
        self._scalar_factor(product, scalars, tree, where)
        for power in powers:
            base = self._values[id(power.base)]
            taken = self._assign(
                self._new("e"), f"without_power(g, {factors}, {base}, {power.degree})"
            )
            self._refuse_if(
                f"{taken} is None",
                f"the factors do not give the power {power.degree} of {{!r}}{where}",
                base,
            )
            factors = self._assign(f"{taken}_f", f"{taken}[0]")
            self._trees.append(f"{taken}[1]")
        if powers:
            self._refuse_if(f"len({factors}) != {len(rest)}", few)
        self._refuse_if(f"not keeps_shape_of_factor(g, {tree})", "a constant may change the shape")
        names = [f"{factors}[{i}]" for i in range(len(rest))]
        if len(rest) > 1:
            names = [self._new("o") for _ in rest]
            self._loop(names, f"permutations({factors})")
        self._operands(product, list(rest), names)

    def _scalar_factor(
        self, product: Product, scalars: list[Variable], tree: str, where: str
    ) -> None:
        numbers = [f.value for f in product.factors if isinstance(f, Number)]
        if numbers:
            number = self._constant(checks.number_check(numbers[0]))
            missing = f"the factor {numbers[0]:.8g} is missing{where}"
            self._refuse_if(f"not {number}.multiplies({tree})", missing)
        elif scalars:
            local = self._assign(self._new("s"), f"constant_factor({tree})")
            self._bound[scalars[0].name] = local
            self._refuse_if(f"{local} is None", "{}", f"factor_refusal({tree})")
        else:
            another = f"there is another factor{where}"
            self._refuse_if(f"{tree}.scalars or {tree}.divisors", another)

    # -- the rest

    def _nodes_beside_the_root(self) -> bool:
        """Emits the searches of the operations that do not feed the root, from shared results."""
        while True:
            left = [s for s in self._graph.sources() if id(s) not in self._records]
            if not left:
                return True
            anchors = [(s, o) for s in left for o in operands_of(s) if self._known(o)]
            if not anchors:
                text = "a part of the pattern is not connected to its first result"
                self._refuse_if("True", text)
                self._emit("yield")
                return False
            self._reader(*min(anchors, key=lambda a: isinstance(a[1], Variable)))

    def _reader(self, source: Operation | Product, operand: Operand) -> None:
        """Searches an operation among the readers of one of its operands."""
        anchor = self._known(operand)
        is_sole_use = isinstance(operand, ResultTerm) and self._goes_alone(operand)
        direct = isinstance(source, Operation)
        rows = f"readers({anchor}, ())" if direct else f"products_above(store, {anchor})"
        rows = self._assign(self._new("r"), rows)
        name = source.op_type if isinstance(source, Operation) else "Mul"
        self._refuse_if(f"not {rows}", "nothing reads {!r}, {} was expected", anchor, repr(name))
        record = self._new("n")
        self._loop([record], f"readers_in_order({rows})" if direct and not is_sole_use else rows)
        self._refuse_if(
            _is_not(record, source),
            "{} was expected, {} was found",
            *(repr(name), f"producer_text({record}, '')"),
        )
        if is_sole_use:
            self._refuse_if(f"many({anchor})", "an inner result is used elsewhere")
        self._is_another(source, record)
        if isinstance(source, Operation):
            self._operation(source, record)
        else:
            self._product(source, record, "")

    def _known(self, operand: Operand) -> str:
        if isinstance(operand, Variable):
            return self._values.get(id(operand), "")
        if isinstance(operand, ResultTerm) and id(operand.source) in self._records:
            return self._output(self._records[id(operand.source)], operand.index)
        return ""

    def _attributes(self) -> None:
        for operation in self._graph.operations():
            if operation.attributes is None:
                continue
            pattern = AttributePattern(operation, self._opset)
            if pattern.always:
                continue
            record, check = self._records[id(operation)], self._constant(pattern)
            values = self._assign(f"a{record[1:]}", f"{check}.read(g, {record})")
            self._refuse_if(f"{values} is None", "{}", f"{check}.refusal(g, {record})")
            for i, name in enumerate(pattern.names):
                if name in self._bound:
                    self._refuse_if(
                        f"{values}[{i}] != {self._bound[name]}",
                        f"{name} is {{}} and {{}}",
                        *(self._bound[name], f"{values}[{i}]"),
                    )
                else:
                    self._bound[name] = f"{values}[{i}]"

    def _results(self) -> None:
        """Binds the results: `<0>` is the name of the first replaced one."""
        for i, result in enumerate(self._graph.results):
            output = self._output(self._records[id(result.source)], result.index)
            if isinstance(result.source, Operation) and len(result.source.outputs) > 1:
                self._refuse_if(f"not {output}", "an optional result is missing")
            self._bound[f"<{i}>"] = output
        for operation in self._graph.operations():
            for i, name in enumerate(operation.outputs):
                if name:
                    self._bound[name] = self._output(self._records[id(operation)], i)


def _varies(name: str) -> str:
    """The text of a quick test that a result is not a constant, true for most of those."""
    known = f"{name} in stored or {name} in computed or facts[{name}].value is not None"
    return f"not (is_inside or {known})"


def _is_not(record: str, source: Operation | Product) -> str:
    """The text of a test that a record has not the type of an operation."""
    if isinstance(source, Product):
        return f"{record}.domain or {record}.op_type not in ('Mul', 'Div')"
    domain = f"{record}.domain"
    other = f"{domain} != {source.domain!r}" if source.domain else domain
    return f"{record}.op_type != {source.op_type!r} or {other}"


__all__ = ["Found", "MatcherFactory", "MatcherWriter", "Search"]
