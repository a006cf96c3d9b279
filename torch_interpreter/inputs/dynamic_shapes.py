"""Names of dynamic dimensions: those the user gives to torch.export, and those in its result.

torch forgets the names of the user (a Dim("batch") becomes a symbol s77) and does not accept
strings. A :class:`DimensionNamer` keeps them and prints torch's expressions in the syntax of
:mod:`xbuilder.dims`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

import torch
from torch._guards import detect_fake_mode

Dim = torch.export.Dim
_HINTS = (Dim.AUTO, Dim.DYNAMIC, Dim.STATIC)


def make_undefined_dimension(index: int = 0) -> Any:
    """A dynamic dimension whose name does not matter.

    :param index: its number, two numbers are two dimensions
    :return: ``Dim("DYN<index>")``, for ``dynamic_shapes``; an integer that torch knows nothing of,
        in the function that gives the shapes of a custom operator (``register_fake``)

    ::

        dynamic_shapes = {"x": {0: make_undefined_dimension(0)}}

        @torch.library.register_fake("mylib::positive")
        def positive(x):
            return x.new_empty((make_undefined_dimension(), x.shape[1]))
    """
    if detect_fake_mode() is None:
        return Dim(f"DYN{index}")
    # torch does not know how many elements are not null
    return torch.nonzero(torch.ones(index + 1)).shape[0]


def spec_items(spec: Any, rank: int) -> list[tuple[int, Any]]:
    """The axes of a tensor and their specification; an int argument has a specification without
    axis."""
    if isinstance(spec, Mapping):
        return [(k, v) for k, v in spec.items() if isinstance(k, int) and k < rank]
    if isinstance(spec, list | tuple):
        return list(enumerate(spec[:rank]))
    return []


def user_name(spec: Any) -> str | None:
    """The name a user gave to a dimension, None for a hint or an integer."""
    if isinstance(spec, str):
        return spec
    if spec is None or isinstance(spec, int) or any(spec is h for h in _HINTS):
        return None
    if hasattr(spec, "root"):
        return user_name(spec.root)
    return getattr(spec, "__name__", None)


def is_dynamic(dim: Any) -> bool:
    """Whether a specification asks for a dynamic dimension."""
    return dim is not None and not isinstance(dim, int) and dim is not Dim.STATIC


def _is_constant(dim: Any) -> bool:
    return isinstance(dim, int) or bool(dim.node.expr.is_number)


def dynamic_dimensions(
    placeholders: Sequence[tuple[str, Any]], specs: Sequence[Any]
) -> dict[tuple[int, int], str]:
    """The dimensions that the user asked to be dynamic, and those that torch made constant
    (Dim.AUTO).

    :param placeholders: name and fake value of every input
    :param specs: specification of every input
    :return: input and axis -> ``"x.shape[0] == 4"`` for a constant, an empty text otherwise
    """
    found = {}
    for i, ((name, value), spec) in enumerate(zip(placeholders, specs, strict=False)):
        for axis, dim in spec_items(spec, value.ndim) if isinstance(value, torch.Tensor) else ():
            if is_dynamic(dim):
                size = value.shape[axis]
                found[i, axis] = f"{name}.shape[{axis}] == {size}" if _is_constant(size) else ""
    return found


def needs_size_oblivious(specs: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether a dynamic dimension is 0 or 1 in the arguments. torch would specialise it."""
    for spec, value in zip(specs, values, strict=False):
        if not isinstance(value, torch.Tensor):
            continue
        for axis, dim in spec_items(spec, value.ndim):
            if is_dynamic(dim) and value.shape[axis] in (0, 1):
                return True
    return False


def dynamic_sizes(graph: torch.fx.Graph) -> Iterator[torch.SymInt]:
    """The dynamic dimensions of the results of a graph."""
    for node in graph.nodes:
        fake = node.meta.get("val")
        if isinstance(fake, torch.Tensor):
            shape: Sequence[Any] = fake.shape
            yield from (d for d in shape if isinstance(d, torch.SymInt))


def removed_dimensions(node: torch.fx.Node) -> dict[int, bool]:
    """The dynamic dimensions that a squeeze looks at, and whether torch removed them.

    The rank of the result is the one of the arguments of the export.

    :param node: a node of a graph
    """
    arguments: Sequence[Any] = node.args
    target, source = str(node.target), arguments[0] if arguments else None
    if target == "torch_interpreter.squeeze.default":
        return dict.fromkeys(arguments[1], True)
    if not target.startswith("aten.squeeze") or not isinstance(source, torch.fx.Node):
        return {}
    before, after = source.meta.get("val"), node.meta.get("val")
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return {}
    shape: Sequence[Any] = before.shape
    listed = arguments[1] if len(arguments) > 1 else list(range(len(shape)))
    axes = {a % len(shape) for a in ([listed] if isinstance(listed, int) else listed) if shape}
    dynamic = [a for a in sorted(axes) if not _is_constant(shape[a])]
    ones = sum(_is_constant(shape[a]) and shape[a] == 1 for a in axes)
    kept = after.ndim == len(shape) - ones
    return {a: not kept and shape[a].node.hint == 1 for a in dynamic}


class DimensionNamer:
    """Gives names to the symbols of torch and prints its expressions.

    ::

        namer = DimensionNamer()
        namer.name_symbol(fake.shape[0], "batch")
        namer.shape(fake.shape)  # ("batch", 16)
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._opaque: dict[str, str] = {}

    def name_symbol(self, dim: Any, name: str) -> bool:
        """Gives a name to the only symbol of a dimension; the first name is kept."""
        symbol = _only_symbol(dim)
        if symbol is None or symbol in self.names:
            return False
        self.names[symbol] = name
        return True

    def name_inputs(self, placeholders: Sequence[tuple[str, Any]], specs: Sequence[Any]) -> None:
        """Names the symbols of the inputs after the user's names, then after their position:
        ``batch``, ``channel``, then ``D0``, ``D1``, a number being added to a name that is taken.

        :param placeholders: name and fake value of every input
        :param specs: specification of every input, see :func:`.specifications.flat_specifications`
        """
        for (_, value), spec in zip(placeholders, specs, strict=False):
            if isinstance(value, torch.SymInt) and (name := user_name(spec)):
                self.name_symbol(value, name)
            if not isinstance(value, torch.Tensor):
                continue
            for axis, dim in spec_items(spec, value.ndim):
                if name := user_name(dim):
                    self.name_symbol(value.shape[axis], name)
        for input_name, value in placeholders:
            if isinstance(value, torch.SymInt):
                self.name_symbol(value, self._fresh(input_name))
            if isinstance(value, torch.Tensor):
                for axis, dim in enumerate(value.shape):
                    if is_symbol(dim):
                        self.name_symbol(dim, self._positional(axis))

    def _positional(self, axis: int) -> str:
        """The name of a dimension that has none: the first free one for its axis."""
        names = ("batch", "channel")
        prefix = names[axis] if axis < len(names) else "D"
        first = [prefix] if axis < len(names) else []
        used = set(self.names.values())
        numbered = (f"{prefix}{i}" for i in count(0 if prefix == "D" else 1))
        return next(n for n in chain(first, numbered) if n not in used)

    def _fresh(self, name: str) -> str:
        used = set(self.names.values())
        return name if name not in used else self._fresh(name + "_")

    def dim(self, value: Any) -> int | str:
        """Prints one dimension."""
        if not isinstance(value, torch.SymInt):
            return int(value)
        expr = value.node.expr
        return int(expr) if expr.is_number else self.text(expr)

    def shape(self, shape: Sequence[Any]) -> tuple[int | str, ...]:
        """Prints a shape."""
        return tuple(self.dim(d) for d in shape)

    def text(self, expr: Any) -> str:
        """Prints a sympy expression; one without equivalent becomes a stable opaque symbol."""
        if expr.is_Integer:
            return str(expr)
        if expr.is_Symbol:
            return self.names.get(expr.name, str(expr.name))
        printer = _PRINTERS.get(expr.func.__name__)
        printed = None if printer is None else printer(self, expr)
        if printed is None:
            key = str(expr)
            printed = self._opaque.setdefault(key, f"dim_{len(self._opaque)}")
        return printed


def is_symbol(dim: Any) -> bool:
    """Whether a dimension is a single symbol of torch, not an expression or an integer."""
    return isinstance(dim, torch.SymInt) and bool(dim.node.expr.is_Symbol)


def _only_symbol(dim: Any) -> str | None:
    if not isinstance(dim, torch.SymInt):
        return None
    symbols = list(dim.node.expr.free_symbols)
    return symbols[0].name if len(symbols) == 1 else None


def _join(operator: str) -> Callable[[DimensionNamer, Any], str]:
    def show(namer: DimensionNamer, expr: Any) -> str:
        return operator.join(f"({namer.text(a)})" for a in expr.args)

    return show


def _call(name: str) -> Callable[[DimensionNamer, Any], str]:
    def show(namer: DimensionNamer, expr: Any) -> str:
        return f"{name}({', '.join(namer.text(a) for a in expr.args)})"

    return show


def _power(namer: DimensionNamer, expr: Any) -> str | None:
    base, exponent = expr.args
    if not exponent.is_Integer or not 1 < int(exponent) < 10:
        return None
    return "*".join([f"({namer.text(base)})"] * int(exponent))


def _ceil_to_int(namer: DimensionNamer, expr: Any) -> str | None:
    inside = expr.args[0]
    if inside.func.__name__ != "IntTrueDiv":
        return None
    return _call("ceildiv")(namer, inside)


def _floor_to_int(namer: DimensionNamer, expr: Any) -> str | None:
    inside = expr.args[0]
    return _join("//")(namer, inside) if inside.func.__name__ == "IntTrueDiv" else None


def _modular_indexing(namer: DimensionNamer, expr: Any) -> str:
    base, divisor, modulus = (namer.text(a) for a in expr.args)
    return f"(({base})//({divisor}))%({modulus})"


_PRINTERS: dict[str, Callable[[DimensionNamer, Any], str | None]] = {
    "Add": _join("+"),
    "Mul": _join("*"),
    "FloorDiv": _join("//"),
    "CleanDiv": _join("//"),
    "Mod": _join("%"),
    "PythonMod": _join("%"),
    "Max": _call("max"),
    "Min": _call("min"),
    "CeilDiv": _call("ceildiv"),
    "Pow": _power,
    "PowByNatural": _power,
    "CeilToInt": _ceil_to_int,
    "FloorToInt": _floor_to_int,
    "TruncToInt": _floor_to_int,
    "ModularIndexing": _modular_indexing,
}
