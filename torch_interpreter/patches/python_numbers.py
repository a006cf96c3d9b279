"""Keeps numbers that Python computes from sizes symbolic, while a model is exported.

``int(n * 0.3)``, ``float(n)``, ``math.sqrt(n)`` or ``len(x)`` must return a number of Python, so
torch gives them the size of the arguments, which freezes that size. Here, they return an expression
of torch. The functions of ``math`` are replaced for everybody, the names ``int``, ``float`` and
``len`` only in the modules that call them with such a number: the export starts again once the name
is replaced. So is ``range``, whose elements are expressions: a loop makes their number a constant,
``torch.tensor(list(range(n)))`` does not.
So are the shapes of tensors when one is asked for its number of elements, ``x.shape.numel()``.
``isinstance`` and ``type`` are replaced in the packages of the model: a size is an ``int`` for
them, as when the model runs.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any, ClassVar, TypeVar

import torch
from torch._export import non_strict_utils
from torch.fx.experimental import sym_node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ..common import symbolic_ranges
from ..common.symbolic_ranges import SymbolicList, SymbolicRange
from ..common.types import SYMBOLS, is_symbolic
from .attributes import patched
from .math_functions import (
    PLAIN,
    plain_number,
    symbolic_extremum,
    symbolic_function,
    without_caches,
)
from .number_classes import CLASS_NAMES, classes_as_types, stand_in

_T = TypeVar("_T")
_UNTYPED: Any = torch
_CONFIG: Any = torch._functorch.config
#: what reads an operand of an expression
_OPERANDS: tuple[tuple[Any, str], ...] = (
    (sym_node, "to_node"),
    (non_strict_utils, "_tensor_min_max"),
)
#: classes whose numbers torch knows
_OF_TORCH = PLAIN.union(SYMBOLS, (sym_node.SymNode,))
_CONVERTED = (*SYMBOLS, torch.Tensor)
#: methods through which Python asks for one of its numbers
_ASKED = ("__int__", "__index__", "__float__")
_MISSING = object()
#: largest number of rounds of a loop on sizes
_ROUNDS = 64
#: files whose own numbers are constants when they ask for one
_OWN = (__file__, symbolic_ranges.__file__)
#: packages whose globals stay as they are
_NEVER = frozenset(
    {"torch", "torch_interpreter", "numpy", "sympy", "mpmath", *sys.stdlib_module_names}
)
#: what has a module
_DEFINED = (type, FunctionType)


class _Again(BaseException):
    """The export starts again with other functions in the globals of a module, even if the model
    catches it.

    :param names: these globals, None to replace the shapes of tensors
    """

    raised: ClassVar[list[_Again]] = []

    def __init__(self, names: dict[str, Any] | None) -> None:
        super().__init__()
        self.names = names
        self.raised.append(self)


class _Shape(tuple[Any, ...]):
    """A shape whose number of elements is an expression."""

    def __getitem__(self, key: Any) -> Any:
        """A dimension, or the shape of some of them."""
        found = super().__getitem__(key)
        return _Shape(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        """The shape with other dimensions after these ones."""
        return _Shape((*self, *other))

    def numel(self) -> Any:
        """The product of the dimensions."""
        return math.prod(self)


def _shape(x: torch.Tensor) -> Any:
    shape = _SHAPE.__get__(x)
    return _Shape(shape) if any(map(is_symbolic, shape)) else shape


def _size(x: torch.Tensor, dim: int | None = None) -> Any:
    return _shape(x) if dim is None else _SHAPE.__get__(x)[dim]


_SHAPE: Any = torch.Tensor.shape


def _number(value: Any) -> Any:
    """The number of a tensor without content, 0 or 1 for a condition, any other value as it is."""
    if isinstance(value, torch.SymBool):
        return _UNTYPED.sym_ite(value, 1, 0)
    return value.item() if isinstance(value, torch.Tensor) else value


def _integer(value: Any) -> Any:
    number = _number(value)
    return _UNTYPED.sym_int(number) if is_symbolic(number) else int(number)


def _real(value: Any) -> Any:
    number = _number(value)
    return _UNTYPED.sym_float(number) if is_symbolic(number) else float(number)


def _length(value: Any) -> Any:
    if isinstance(value, SymbolicRange):
        return value.length
    return value.shape[0] if isinstance(value, torch.Tensor) and value.ndim else len(value)


def _counted(*args: Any) -> Any:
    """The numbers of a range. Only their count is a constant: ``range(0, n, 128)`` has one for any
    ``n`` up to 128."""
    bounds = [_number(a) for a in args]
    start, stop, step = bounds if len(bounds) == 3 else (*([0] * (2 - len(bounds))), *bounds, 1)
    rises, falls = statically_known_true(step > 0), statically_known_true(step < 0)
    if not any(map(is_symbolic, bounds)) or not (rises or falls):
        return range(*bounds)
    first, last, by = (start, stop, step) if rises else (-start, -stop, -step)
    known = (n for n in range(_ROUNDS) if statically_known_true(last <= first + n * by))
    count = next(known, None)
    if count is None or (count > 0 and not _reaches(last, first + (count - 1) * by)):
        return SymbolicRange(start, step, _UNTYPED.sym_max((last - first + by - 1) // by, 0))
    return [start + i * step for i in range(count)]


def _reaches(stop: Any, last: Any) -> bool:
    return bool(statically_known_true(stop > last))


def _logarithm(x: Any, base: Any = math.e) -> Any:
    natural = _NATURAL(x)
    return natural if base is math.e else natural / math.log(base)


def _power_of_e(x: Any) -> Any:
    return math.e**x


def _integer_root(x: Any) -> Any:
    return _UNTYPED.sym_int(_UNTYPED._sym_sqrt(x))


def _absolute(x: Any) -> Any:
    return abs(_UNTYPED.sym_float(x))


_NATURAL = symbolic_function("log")
_NAMED = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")
#: functions of ``math`` -> what computes them from an expression of torch
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, f"_sym_{name}") for name in _NAMED},
    "log": _logarithm,
    "log10": symbolic_function("log10"),
    "exp": _power_of_e,
    "isqrt": _integer_root,
    "fabs": _absolute,
}


def _of_symbols(name: str) -> Callable[..., Any]:
    """A function of ``math`` that accepts an expression of torch as its first argument."""
    original, symbolic = getattr(math, name), _FUNCTIONS[name]

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (symbolic if args and is_symbolic(args[0]) else original)(*args, **kwargs)

    return call


#: what is called by its name -> what replaces it
_REPLACED: dict[Any, Any] = {
    builtins.int: stand_in(int, _CONVERTED, _integer),
    builtins.float: stand_in(float, _CONVERTED, _real),
    builtins.range: stand_in(range, (int, *_CONVERTED), _counted),
    builtins.list: stand_in(list, (SymbolicRange,), SymbolicList.of),
    builtins.len: _length,
    **{getattr(math, name): _of_symbols(name) for name in _FUNCTIONS},
}


def _replacements(names: dict[str, Any], code_names: tuple[str, ...]) -> dict[str, Any]:
    """The names of a function to replace in the globals it reads."""
    found = {}
    for name in code_names:
        value = names.get(name, vars(builtins).get(name))
        with contextlib.suppress(TypeError):  # no hash
            if value in _REPLACED and _REPLACED[value] is not value:
                found[name] = _REPLACED[value]
    return found


def _is_model(frame: FrameType) -> bool:
    """Whether a frame runs the code of a model, not the one of torch that looks at sizes."""
    module = str(frame.f_globals.get("__name__"))
    is_library = f"{module}.".startswith("torch.") or frame.f_code.co_filename in _OWN
    return not is_library or module.startswith("torch.nn.")


def _watched(original: Callable[..., Any], only_failures: bool) -> Callable[..., Any]:
    """A method that gives a number to Python, unless its caller can keep the expression."""

    @functools.wraps(original)
    def call(self: Any) -> Any:
        if only_failures and not _has_number(self):
            try:
                return original(self)
            except Exception:
                _start_again(sys._getframe(1))
                raise
        _start_again(sys._getframe(1))
        return original(self)

    return call


def _has_number(tensor: Any) -> bool:
    """Whether a tensor without data has a number that is not a constant."""
    is_size = isinstance(getattr(tensor, "item_memo", None), torch.SymInt)
    return is_size or _CONFIG.fake_tensor_propagate_real_tensors


def _start_again(caller: FrameType) -> None:
    """Starts the export again if the caller has a name to replace."""
    names = caller.f_globals
    if not _is_model(caller):
        return
    if _replacements(names, caller.f_code.co_names):
        raise _Again(names)
    if "numel" in caller.f_code.co_names and torch.Tensor.shape is _SHAPE:
        raise _Again(None)


def _of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as the method that numpy calls on a number it does not know."""
    return lambda a: function(a)


def _of_any_class(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch that only knows the numbers of Python."""

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        if not _OF_TORCH.issuperset(map(type, args)):
            args = tuple(map(plain_number, args))
        return original(*args, **options)

    return call


def _or_without_and(a: Any, b: Any) -> Any:
    """a ^ b, the operator torch refuses in a graph."""
    return (a | b) - (a & b)


def _only_one(a: Any, b: Any) -> Any:
    """a ^ b for conditions."""
    return (a | b) & _UNTYPED.sym_not(a & b)


def _rounded(a: Any, digits: int | None = None) -> Any:
    """round(a, digits): the nearest multiple of a power of 10, the even one between two."""
    if digits is None or digits >= 0:
        return a
    step = 10**-digits
    quotient = (a + step // 2) // step
    is_between = _UNTYPED.sym_ite(a % step == step // 2, 1, 0)
    return (quotient - is_between * (quotient % 2)) * step


_INTEGERS: dict[str, Callable[..., Any]] = {
    "__xor__": _or_without_and,
    "__rxor__": _or_without_and,
    "__round__": _rounded,
    "__invert__": lambda a: -a - 1,
    "__divmod__": lambda a, b: (a // b, a % b),
    "__rdivmod__": lambda a, b: (b // a, b % a),
    "bit_length": lambda a: _UNTYPED.sym_int(_UNTYPED._sym_log2(_UNTYPED.sym_max(abs(a), 0.5))) + 1,
}
_CONDITIONS = {"__xor__": _only_one, "__rxor__": _only_one}

#: functions of numpy, which call a method of the same name on such a number -> the one of ``math``
_ARRAY_FUNCTIONS = {
    **{name: name for name in ("sqrt", "exp", "log", "log2", "log10", "fabs")},
    **{name: name for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan")},
}
_OF_NUMPY: dict[str, Callable[..., Any]] = {
    **{name: _of_arrays(_FUNCTIONS[known]) for name, known in _ARRAY_FUNCTIONS.items()},
    "rint": lambda a: _UNTYPED.sym_float(round(a)),
}


#: torch calls them for what it does not compare itself
_EXTREMA = {name: symbolic_extremum(name) for name in ("min", "max")}
_SHAPES: dict[str, Any] = {"shape": property(_shape), "size": _size}


@contextlib.contextmanager
def _watching() -> Iterator[None]:
    """Replaces what freezes a size, for everybody, in this context."""
    with contextlib.ExitStack() as stack:
        for owner in _CONVERTED:
            is_tensor = owner is torch.Tensor
            asked = {n: _watched(getattr(owner, n), is_tensor) for n in _ASKED if hasattr(owner, n)}
            stack.enter_context(patched(owner, asked))
        for owner, name in _OPERANDS:
            stack.enter_context(patched(owner, {name: _of_any_class(getattr(owner, name))}))
        stack.enter_context(patched(torch.SymInt, {**_OF_NUMPY, **_INTEGERS}))
        stack.enter_context(patched(torch.SymFloat, _OF_NUMPY))
        stack.enter_context(patched(torch.SymBool, _CONDITIONS))
        changed = {name: _REPLACED[getattr(math, name)] for name in _FUNCTIONS}
        stack.enter_context(patched(math, changed))
        stack.enter_context(patched(builtins, _EXTREMA))
        yield


def keep_python_numbers(export: Callable[[], _T], mod: torch.nn.Module) -> _T:
    """Calls a function that exports a model, in which numbers computed from sizes stay symbolic.

    :param export: called again every time a module needs another ``int``,
        ``float``, ``len`` or ``range``
    :param mod: the model
    :return: what it returns

    >>> import torch
    >>> class Half(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x[: int(x.shape[0] * 0.5)]
    >>> def export():
    ...     shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
    ...     return torch.export.export(Half(), (torch.ones(8),), dynamic_shapes=shapes)
    >>> keep_python_numbers(export, Half()).module()(torch.ones(12)).shape
    torch.Size([6])
    """
    with contextlib.ExitStack() as replaced, _watching():
        for names in _globals_of(mod):
            replaced.enter_context(
                _patched_globals(names, {**CLASS_NAMES, **without_caches(names)})
            )
        for owner in {
            c for m in mod.modules() for c in type(m).__mro__ if _is_replaced(c.__module__)
        }:
            replaced.enter_context(patched(owner, without_caches(vars(owner))))
        given_types = False
        while True:
            _Again.raised.clear()
            try:
                result = export()
                if not _Again.raised:
                    return result
                raise _Again.raised[0]
            except _Again as e:
                if e.names is None:
                    replaced.enter_context(patched(torch.Tensor, _SHAPES))
                    continue
                known = _replacements(e.names, tuple({*e.names, *vars(builtins)}))
                replaced.enter_context(_patched_globals(e.names, known))
            except TypeError as e:
                # dtype=int, in a file where int is another class
                if given_types or "dtype" not in str(e):
                    raise
                given_types = True
                replaced.enter_context(classes_as_types())


def _globals_of(mod: torch.nn.Module) -> list[dict[str, Any]]:
    """The globals of the script, and of the files of the packages of a model: those that define its
    classes, what it holds, and what these files import."""
    classes = [c for m in mod.modules() for c in type(m).__mro__]
    values = [v for m in mod.modules() for v in vars(m).values()]
    defined = {v if isinstance(v, _DEFINED) else type(v) for v in values}.union(classes)
    files = {"__main__", *(v.__module__ for v in defined)}
    named = [n for name in files if _is_replaced(name) for n in _globals_in(name)]
    packages = {n.partition(".")[0] for n in (*files, *named) if _is_replaced(n)}
    known = [m for name, m in sys.modules.items() if name.partition(".")[0] in packages]
    return [vars(m) for m in known if isinstance(m, ModuleType)]


def _is_replaced(name: Any) -> bool:
    """Whether the functions of a module are replaced; what torch.fx generates has no module."""
    return isinstance(name, str) and name.partition(".")[0] not in _NEVER and name in sys.modules


def _globals_in(file: str) -> Iterator[Any]:
    """The modules of the functions and of the classes that a file names, and those it imports."""
    for value in list(vars(sys.modules[file]).values()):
        if isinstance(value, _DEFINED):
            yield value.__module__
        elif isinstance(value, ModuleType):
            yield value.__name__


@contextlib.contextmanager
def _patched_globals(names: dict[str, Any], changes: Mapping[str, Any]) -> Iterator[None]:
    """Sets globals of a module in this context."""
    before = {name: names.get(name, _MISSING) for name in changes}
    names.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _MISSING:
                del names[name]
            else:
                names[name] = value
