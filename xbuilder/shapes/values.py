"""Propagates the content of small integer tensors, such as shapes, element by element.

A value is a scalar for rank 0, a tuple for rank 1. Its elements are integers or expressions;
unlike dimensions, they may be negative. Booleans are 0 and 1. Unknown is None, for the whole.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dims import (
    Constraints,
    Dim,
    Shape,
    add,
    dim_max,
    dim_min,
    exact_div,
    floordiv,
    mod,
    mul,
    neg,
    prove_equal,
    prove_ge,
    sub,
)
from ..facts.facts import MAX_TRACKED, Value
from .common import BOOL, INT32, INT64

#: types whose content is tracked
TRACKED = frozenset({INT64, INT32, BOOL})

#: longer expressions are dropped, they would only slow everything down
MAX_LENGTH = 400

_BOUNDS: dict[int, tuple[int, int]] = {
    INT64: (-(2**63), 2**63 - 1),
    INT32: (-(2**31), 2**31 - 1),
    BOOL: (0, 1),
}

Binary = Callable[[Dim, Dim], Dim | None]


def checked(value: Value, elem_type: int) -> Value:
    """Drops values that are too long, too complex, or that overflow their type."""
    bounds = _BOUNDS.get(elem_type)
    if value is None or bounds is None:
        return None
    items = value if isinstance(value, tuple) else (value,)
    if len(items) > MAX_TRACKED:
        return None
    for item in items:
        if isinstance(item, str):
            if len(item) > MAX_LENGTH or elem_type == BOOL:
                return None
        elif not bounds[0] <= item <= bounds[1]:
            return None
    return value


def map_value(function: Callable[[Dim], Dim | None], value: Value) -> Value:
    """Applies a function on every element, unknown if one result is."""
    if not isinstance(value, tuple):
        return None if value is None else function(value)
    result = []
    for item in value:
        new = function(item)
        if new is None:
            return None
        result.append(new)
    return tuple(result)


def map_values(function: Callable[..., Dim | None], *values: Value) -> Value:
    """Applies a function element by element with broadcasting.

    >>> map_values(lambda a, b: a if b else None, 3, (1, 1))
    (3, 3)
    """
    if any(value is None for value in values):
        return None
    if not any(isinstance(value, tuple) for value in values):
        return function(*values)
    lengths = {len(value) for value in values if isinstance(value, tuple)}
    if len(lengths) > 1:
        lengths.discard(1)
    if len(lengths) != 1:
        return None
    size = lengths.pop()
    result = []
    for i in range(size):
        items = [
            (value[i if len(value) == size else 0] if isinstance(value, tuple) else value)
            for value in values
        ]
        new = function(*items)
        if new is None:
            return None
        result.append(new)
    return tuple(result)


def shaped(value: Value, shape: Shape | None) -> Value:
    """Same elements under another shape, None if the rank is above 1 or is unknown."""
    if value is None or shape is None or len(shape) > 1:
        return None
    items = value if isinstance(value, tuple) else (value,)
    if shape:
        return items if shape[0] == len(items) else None
    return items[0] if len(items) == 1 else None


def div(a: Dim, b: Dim, constraints: Constraints | None = None) -> Dim | None:
    """Integer division of ONNX, which truncates. The quotient is known only when both signs are
    known, or when it is exact. A division by 0, which stops onnxruntime, is unknown."""
    if isinstance(b, int) and b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a >= 0) == (b > 0) else -quotient
    exact = exact_div(a, b)
    if exact is not None:
        return exact
    if prove_ge(a, 0, constraints) and prove_ge(b, 0, constraints):
        return floordiv(a, b)
    if isinstance(b, int) and b > 0 and prove_ge(a, 1 - b, constraints):
        # the quotient of a number between -b and 0 is truncated to 0
        return floordiv(dim_max(a, 0), b)
    return None


def modulo(a: Dim, b: Dim) -> Dim | None:
    """Remainder with the sign of the divisor (`fmod=0`), see :func:`div` for 0."""
    if isinstance(b, int) and b == 0:
        return None
    return mod(a, b) if exact_div(a, b) is None else 0


def truncated_modulo(a: Dim, b: Dim) -> Dim | None:
    """Remainder with the sign of the dividend (`fmod=1`)."""
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return abs(a) % abs(b) * (1 if a >= 0 else -1)
    return mod(a, b) if prove_ge(a, 0) and prove_ge(b, 1) else None


def power(a: Dim, b: Dim) -> Dim | None:
    """Integer power, small exponents only."""
    if not isinstance(b, int) or not 0 <= b <= 8:
        return None
    result: Dim = 1
    for _ in range(b):
        result = mul(result, a)
    return result


def absolute(a: Dim) -> Dim:
    """Absolute value."""
    return a if prove_ge(a, 0) else dim_max(a, neg(a))


def sign(a: Dim) -> Dim | None:
    """-1, 0 or 1 when it is known."""
    if isinstance(a, int):
        return (a > 0) - (a < 0)
    if prove_ge(a, 1):
        return 1
    return -1 if prove_ge(-1, a) else None


def _truth(proof: bool | None) -> int | None:
    return None if proof is None else int(proof)


def equal(a: Dim, b: Dim, constraints: Constraints | None = None) -> int | None:
    """1, 0 or None for `a == b`."""
    return _truth(prove_equal(a, b, constraints))


def greater_equal(a: Dim, b: Dim, constraints: Constraints | None = None) -> int | None:
    """1, 0 or None for `a >= b`."""
    proof = prove_ge(a, b, constraints)
    if proof is None and prove_ge(sub(b, 1), a, constraints):
        return 0
    return _truth(proof)


def greater(a: Dim, b: Dim, constraints: Constraints | None = None) -> int | None:
    """1, 0 or None for `a > b`."""
    return greater_equal(sub(a, 1), b, constraints)


def less(a: Dim, b: Dim, constraints: Constraints | None = None) -> int | None:
    """1, 0 or None for `a < b`."""
    return greater(b, a, constraints)


def less_equal(a: Dim, b: Dim, constraints: Constraints | None = None) -> int | None:
    """1, 0 or None for `a <= b`."""
    return greater_equal(b, a, constraints)


def not_zero(a: Dim) -> int | None:
    """Truth of an element cast into a boolean."""
    proof = prove_equal(a, 0)
    return None if proof is None else int(not proof)


def logical_and(a: Dim, b: Dim) -> Dim:
    """Conjunction of two booleans."""
    return int(bool(a) and bool(b))


def logical_or(a: Dim, b: Dim) -> Dim:
    """Disjunction of two booleans."""
    return int(bool(a) or bool(b))


def logical_xor(a: Dim, b: Dim) -> Dim:
    """Exclusive disjunction of two booleans."""
    return int(bool(a) != bool(b))


def select(condition: Dim, a: Dim, b: Dim) -> Dim | None:
    """`a if condition else b`; the condition may be unknown when both sides are the same."""
    if isinstance(condition, int):
        return a if condition else b
    return a if a == b else None


#: integer arithmetic, by operator
ARITHMETIC: dict[str, Binary] = {
    "Add": add,
    "Sub": sub,
    "Mul": mul,
    "Div": div,
    "Pow": power,
    "Min": dim_min,
    "Max": dim_max,
    "Sum": add,
}

#: boolean logic, by operator
LOGIC: dict[str, Binary] = {"And": logical_and, "Or": logical_or, "Xor": logical_xor}

#: comparisons, by operator; they take the constraints too
COMPARISONS: dict[str, Callable[[Dim, Dim, Constraints | None], int | None]] = {
    "Equal": equal,
    "Greater": greater,
    "GreaterOrEqual": greater_equal,
    "Less": less,
    "LessOrEqual": less_equal,
}
