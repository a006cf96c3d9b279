"""Shape functions never raise, whatever is missing or wrong in what they read."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from onnx import defs
from ut_xbuilder.shapes.shape_cases import make_context, run

from xbuilder.facts.facts import ResultFacts
from xbuilder.shapes import get_shape_function, registered_operators
from xbuilder.shapes.registry import is_trusted

DIMS: list[Any] = [0, 1, 2, 3, 4, 8, "a", "b", "a+b", "2*a", "b+1"]
#: contents may be negative
ITEMS: list[Any] = [*DIMS, -1, "a-1"]
ARRAYS = [
    np.array(1, np.int64),
    np.array([0], np.int64),
    np.array([-1, 2], np.int64),
    np.array([1, 1, 2, 2], np.int64),
    np.array([], np.int64),
    np.array([1.0, 2.0], np.float32),
    np.array(0.5, np.float32),
    np.array([[1, 2]], np.int64),
    np.array([True, False]),
]
INTS = [-9, -2, -1, 0, 1, 2, 3]


def any_facts(rng: random.Random) -> Any:
    """Facts of an input, more or less complete, possibly absurd for the operator."""
    kind = rng.randrange(8)
    elem_type = rng.choice([0, 1, 7, 9, 10, 2])
    if kind == 0:
        return None
    if kind == 1:
        return ResultFacts(elem_type)
    if kind == 2:
        return ResultFacts(elem_type, None, rng.randrange(6))
    if kind == 3:
        return rng.choice(ARRAYS)
    if kind == 4:
        value = tuple(rng.choice(ITEMS) for _ in range(rng.randrange(5)))
        return ResultFacts(7, (len(value),), None, value)
    if kind == 5:
        return ResultFacts(7, (), None, rng.choice(ITEMS))
    if kind == 6 and rng.random() < 0.3:
        inner = ResultFacts(1, ("a", 3))
        return ResultFacts(sequence=inner) if rng.random() < 0.5 else ResultFacts(optional=inner)
    return ResultFacts(elem_type, tuple(rng.choice(DIMS) for _ in range(rng.randrange(6))))


#: attributes of contrib operators, whose schemas onnx does not have
CONTRIB_INT = [
    "K",
    "N",
    "axis",
    "bits",
    "channels_last",
    "gather_axis",
    "group",
    "hidden_size",
    "keepdims",
    "kv_num_heads",
    "num_heads",
    "q_num_heads",
    "size",
    "transA",
    "transB",
]
CONTRIB_INTS = ["axes", "kernel_shape", "output_padding", "qkv_hidden_sizes", "strides"]


def contrib_attributes(rng: random.Random) -> dict[str, Any]:
    """Attributes contrib operators may have, or not."""
    result: dict[str, Any] = {n: rng.choice(INTS) for n in CONTRIB_INT if rng.random() < 0.4}
    for name in CONTRIB_INTS:
        if rng.random() < 0.4:
            result[name] = [rng.choice(INTS) for _ in range(rng.randrange(4))]
    return result


def any_attributes(rng: random.Random, domain: str, op_type: str, version: int) -> dict[str, Any]:
    """Attributes of the declared kinds, possibly out of range; all of those onnx requires."""
    try:
        schema = defs.get_schema(op_type, version, domain)
    except defs.SchemaError:
        return contrib_attributes(rng)
    result: dict[str, Any] = {}
    for name, attribute in schema.attributes.items():
        if not attribute.required and rng.random() < 0.5:
            continue
        kind = attribute.type.name
        if kind == "INT":
            result[name] = rng.choice(INTS)
        elif kind == "INTS":
            result[name] = [rng.choice(INTS) for _ in range(rng.randrange(5))]
        elif kind == "FLOAT":
            result[name] = 0.5
        elif kind == "FLOATS":
            result[name] = [1.0, 2.0]
        elif kind == "STRING":
            text = attribute.default_value.s.decode() if attribute.default_value.s else "x"
            result[name] = "ij,jk->ik" if name == "equation" else text
        elif kind == "STRINGS":
            result[name] = ["x", "y"]
        elif kind == "TENSOR":
            result[name] = rng.choice(ARRAYS)
    return result


@pytest.mark.parametrize("opset", [1, 7, 9, 10, 11, 13, 17, 18, 21, 28])
def test_never_raises(opset: int) -> None:
    """Random contexts for every operator; seeds are fixed."""
    wrong = []
    count = 0
    for domain, op_type, since in registered_operators():
        version = opset if domain == "" else since
        function = get_shape_function(domain, op_type, version)
        # other tests, and the documentation, register functions too
        if function is None or not is_trusted(function):
            continue
        # one seed by operator, whatever else is registered
        rng = random.Random(f"{domain}:{op_type}:{opset}")
        for _ in range(12):
            inputs = [any_facts(rng) for _ in range(rng.randrange(10))]
            attributes = any_attributes(rng, domain, op_type, version)
            ctx = make_context(
                op_type, inputs, attributes, version, domain, n_outputs=rng.randrange(1, 5)
            )
            count += 1
            try:
                check_answer(run_any(ctx))
            except Exception as e:
                wrong.append(f"{domain}:{op_type} {inputs} {attributes}: {type(e).__name__}: {e}")
    assert not wrong, f"{len(wrong)} failures\n" + "\n".join(wrong[:40])
    assert count > 3000


def run_any(ctx: Any) -> list[ResultFacts]:
    """Runs the function; a wrong number of outputs is not an error here."""
    return run(ctx)


def check_answer(answer: list[ResultFacts]) -> None:
    """Facts are made of plain python values."""
    for facts in answer:
        assert isinstance(facts, ResultFacts)
        assert type(facts.type) is int or int(facts.type) == facts.type
        if facts.shape is not None:
            assert isinstance(facts.shape, tuple)
            assert all(type(d) in (int, str) for d in facts.shape), facts
            assert not any(type(d) is int and d < 0 for d in facts.shape), facts
        items = facts.value if isinstance(facts.value, tuple) else (facts.value,)
        assert facts.value is None or all(type(v) in (int, str) for v in items), facts
