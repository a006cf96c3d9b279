"""Shape functions: pure functions that give the facts of the outputs of a node.

One module holds one family of operators, imported when one of them is asked for (:mod:`.families`).
A function reads a :class:`ShapeContext` and returns :class:`~xbuilder.facts.facts.ResultFacts`, one
for each output. Users register theirs::

    from xbuilder.shapes import shape_function, ResultFacts

    @shape_function("MyOp", domain="my.domain")
    def my_op(ctx):
        return ResultFacts(type=ctx.type(0), shape=ctx.shape(0))

Conventions shared by every function:

* an unknown fact is None and raises nothing; a node proven invalid gives None
* dimensions a valid model makes equal are merged, the constraint is recorded
* a dimension that depends on the data is a fresh symbol
* the content of small int64, int32 and boolean vectors is propagated (:mod:`.values`); it may be
  negative, a dimension may not
"""

from __future__ import annotations

from ..facts.facts import MAX_TRACKED, ResultFacts, Value
from .context import UNKNOWN, ShapeContext
from .moving.creation import array_facts
from .registry import (
    ShapeFunction,
    get_shape_function,
    register_shape_function,
    registered_operators,
    shape_function,
    trust_shape_functions,
)

__all__ = [
    "MAX_TRACKED",
    "UNKNOWN",
    "ResultFacts",
    "ShapeContext",
    "ShapeFunction",
    "Value",
    "array_facts",
    "get_shape_function",
    "register_shape_function",
    "registered_operators",
    "shape_function",
    "trust_shape_functions",
]
