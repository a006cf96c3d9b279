"""Content of shape-like tensors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator
from ut_xbuilder.shapes.shape_cases import differences, infer, is_fresh, propagate, value_of

from xbuilder.dims import evaluate, normalize
from xbuilder.facts.facts import MAX_TRACKED, ResultFacts
from xbuilder.shapes import values as V

I32, I64, BOOL = 6, 7, 9


def vector(*values: Any, elem_type: int = I64) -> ResultFacts:
    """A vector whose content is followed."""
    return ResultFacts(elem_type, (len(values),), None, tuple(values))


def scalar(value: Any, elem_type: int = I64) -> ResultFacts:
    """A scalar whose content is followed."""
    return ResultFacts(elem_type, (), None, value)


@pytest.mark.parametrize(
    ("op_type", "a", "b", "expected"),
    [
        ("Add", ("a", 2), ("b", 3), ("a+b", 5)),
        ("Sub", ("a", 2), ("a", 3), (0, -1)),
        ("Mul", ("a", 2), ("b", -3), ("a*b", -6)),
        ("Div", (7, -7, 7, -7), (2, 2, -2, -2), (3, -3, -3, 3)),
        ("Div", ("a", "2*a"), (2, 2), ("a//2", "a")),
        ("Div", ("a-1",), (2,), ("max(0,a-1)//2",)),
        ("Div", ("a-3",), (2,), None),
        ("Div", ("a",), (-2,), None),
        ("Div", ("a-1",), (1,), ("a-1",)),
        ("Div", (1,), (0,), None),
        ("Mod", (7, -7, 7, -7), (3, 3, -3, -3), (1, 2, -2, -1)),
        ("Mod", ("2*a",), (2,), (0,)),
        ("Mod", (1,), (0,), None),
        ("Pow", ("a", 3), (2, 2), ("a**2", 9)),
        ("Min", ("a", 2), ("a+1", 3), ("a", 2)),
        ("Max", ("a", 2), ("a+1", 3), ("a+1", 3)),
        ("Sum", ("a", 2), (1, 1), ("a+1", 3)),
        ("Add", ("a",), (1, 2), ("a+1", "a+2")),
        ("Add", (1, 2), (1, 2, 3), None),
        ("Add", (2**62,), (2**62,), None),
    ],
)
def test_arithmetic(op_type: str, a: tuple, b: tuple, expected: Any) -> None:
    """Integer arithmetic as ONNX defines it."""
    found = value_of(op_type, [vector(*a), vector(*b)])
    if op_type == "Pow" and expected is not None:
        sizes = {"a": 5}
        assert [evaluate(v, sizes) for v in found] == [25, 9]
    else:
        assert found == expected


def test_division_truncates() -> None:
    """The result is right at every size."""
    for a, b in itertools.product(("a", "a-1", "2*a+1", "a-2", "a-3"), (-3, -1, 1, 2, 3, 4)):
        quotient = V.div(a, b)
        for size in range(8):
            if quotient is not None:
                real = np.trunc(evaluate(a, {"a": size}) / b)
                assert evaluate(quotient, {"a": size}) == real, (a, b, size)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("a*b", "b", "a"),
        ("6*a*b+2*b", "2*b", "3*a+1"),
        ("a-a*b", "a", "1-b"),
        ("b", "b", 1),
        ("a*b+1", "b", "(a*b+1)//b"),
        ("a-1", "b", None),
    ],
)
def test_quotient_of_symbols(a: str, b: str, expected: int | str | None) -> None:
    """onnxruntime stops on a division by 0: an exact quotient is one for the other sizes."""
    quotient = V.div(a, b)
    assert quotient == (expected if expected is None else normalize(expected))
    exact = expected is not None and "//" not in str(expected)
    assert (V.modulo(a, b) == 0) == exact
    for x, y in itertools.product(range(1, 6), repeat=2):
        sizes = {"a": x, "b": y}
        if quotient is not None:
            assert evaluate(quotient, sizes) == np.trunc(evaluate(a, sizes) / evaluate(b, sizes))


def test_fmod() -> None:
    """The sign of fmod is the one of the dividend."""
    given = {"attributes": {"fmod": 1}}
    inputs = [vector(7, -7, 7, -7), vector(3, 3, -3, -3)]
    assert value_of("Mod", inputs, **given) == (1, -1, 1, -1)
    assert value_of("Mod", [vector("a-1"), vector(3)], **given) is None


@pytest.mark.parametrize(
    ("op_type", "a", "expected"),
    [
        ("Neg", ("a", 2), ("-a", -2)),
        ("Abs", ("a", -2), ("a", 2)),
        ("Abs", ("-a",), ("a",)),
        ("Sign", ("a+1", -2, 0), (1, -1, 0)),
        ("Sign", ("a",), None),
        ("Relu", ("a", -2), ("a", 0)),
        ("Floor", ("a", -2), ("a", -2)),
        ("Identity", ("a", -2), ("a", -2)),
    ],
)
def test_unary(op_type: str, a: tuple, expected: Any) -> None:
    """Unary operators."""
    found = value_of(op_type, [vector(*a)])
    if op_type == "Abs" and "-a" in a:
        assert [evaluate(v, {"a": 3}) for v in found] == [3]
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("op_type", "a", "b", "expected"),
    [
        ("Equal", ("a", 2, "a"), ("a", 3, "a+1"), (1, 0, 0)),
        ("Equal", ("a",), ("b",), None),
        ("Equal", ("a", 3, "b"), (-1, -1, -1), (0, 0, 0)),
        ("Greater", ("a+1", 2), ("a", 2), (1, 0)),
        ("Greater", ("a",), (0,), None),
        ("GreaterOrEqual", ("a", 2), (0, 3), (1, 0)),
        ("Less", ("a", 2), ("a+1", 2), (1, 0)),
        ("Less", ("a",), (0,), (0,)),
        ("LessOrEqual", ("a", 2), ("a", 1), (1, 0)),
    ],
)
def test_comparisons(op_type: str, a: tuple, b: tuple, expected: Any) -> None:
    """Comparisons are answered when they are proven."""
    facts = infer(op_type, [vector(*a), vector(*b)])[0]
    assert facts.type == BOOL
    assert facts.value == expected


def test_comparisons_agree_with_sizes() -> None:
    """A proven comparison is true at every size."""
    exprs = ["a", "a+1", "a-1", "2*a", "b", 0, 1, -1, "a+b"]
    count = 0
    for op_type, a, b in itertools.product(V.COMPARISONS, exprs, exprs):
        proof = V.COMPARISONS[op_type](a, b, None)
        if proof is None:
            continue
        count += 1
        for i, j in itertools.product(range(4), repeat=2):
            x, y = evaluate(a, {"a": i, "b": j}), evaluate(b, {"a": i, "b": j})
            truth = {
                "Equal": x == y,
                "Greater": x > y,
                "GreaterOrEqual": x >= y,
                "Less": x < y,
                "LessOrEqual": x <= y,
            }[op_type]
            assert int(truth) == proof, (op_type, a, b, i, j)
    assert count > 100


@pytest.mark.parametrize(
    ("op_type", "expected"), [("And", (1, 0, 0)), ("Or", (1, 1, 0)), ("Xor", (0, 1, 0))]
)
def test_logic(op_type: str, expected: tuple) -> None:
    """Logic on booleans."""
    a, b = vector(1, 1, 0, elem_type=BOOL), vector(1, 0, 0, elem_type=BOOL)
    assert value_of(op_type, [a, b]) == expected
    assert value_of("Not", [a]) == (0, 0, 1)


@pytest.mark.parametrize(
    ("condition", "a", "b", "expected"),
    [
        (vector(1, 0, elem_type=BOOL), vector("a", "b"), vector(1, 2), ("a", 2)),
        (vector(1, 0, elem_type=BOOL), scalar("a"), vector(1, 2), ("a", 2)),
        (ResultFacts(BOOL, (2,)), vector("a", "b"), vector("a", "b"), ("a", "b")),
        (ResultFacts(BOOL, (2,)), vector("a", "b"), vector("a", "c"), None),
        (ResultFacts(BOOL, (2,)), scalar("a"), scalar("a"), None),
        (ResultFacts(BOOL), vector("a"), vector("a"), None),
        (ResultFacts(BOOL, ("n",)), vector("a"), vector("a"), None),
    ],
)
def test_where(condition: ResultFacts, a: ResultFacts, b: ResultFacts, expected: Any) -> None:
    """Branches are picked by a known condition, or equal."""
    assert value_of("Where", [condition, a, b]) == expected


@pytest.mark.parametrize(
    ("to", "facts", "expected"),
    [
        (I32, vector("a", 2), ("a", 2)),
        (I32, vector(2**40), None),
        (BOOL, vector("a+1", 0, -3), (1, 0, 1)),
        (BOOL, vector("a"), None),
        (I64, vector(1, 0, elem_type=BOOL), (1, 0)),
        (I64, vector(True, False, elem_type=BOOL), (1, 0)),
        (1, vector("a", 2), None),
        (3, vector(300), None),
    ],
)
def test_cast(to: int, facts: ResultFacts, expected: Any) -> None:
    """The content survives exact casts between followed types."""
    assert value_of("Cast", [facts], attributes={"to": to}) == expected
    assert value_of("CastLike", [facts, ResultFacts(to)]) == expected


@pytest.mark.parametrize(
    ("op_type", "keepdims", "expected"),
    [
        ("ReduceProd", 1, ("2*a*b",)),
        ("ReduceProd", 0, "2*a*b"),
        ("ReduceSum", 0, "a+b+2"),
        ("ReduceMean", 0, None),
    ],
)
def test_reductions(op_type: str, keepdims: int, expected: Any) -> None:
    """Reductions of a whole vector."""
    given = {"attributes": {"keepdims": keepdims}}
    assert value_of(op_type, [vector("a", 2, "b")], **given) == expected


def test_reduction_extrema() -> None:
    """Maximum and minimum."""
    given = {"attributes": {"keepdims": 0}}
    assert value_of("ReduceMax", [vector("a", "a+1", 0)], **given) == "a+1"
    assert value_of("ReduceMin", [vector("a", "a+1", 0)], **given) == 0


def test_clip_cumsum_range() -> None:
    """Other operators that follow contents."""
    assert value_of("Clip", [vector("a", -4), scalar(0), scalar(100)])[1] == 0
    assert value_of("CumSum", [vector("a", 2, "b"), scalar(0)]) == ("a", "a+2", "a+b+2")
    exclusive = {"attributes": {"exclusive": 1, "reverse": 1}}
    assert value_of("CumSum", [vector("a", 2, "b"), scalar(0)], **exclusive) == ("b+2", "b", 0)
    assert value_of("Range", [scalar(1), scalar(7), scalar(2)]) == (1, 3, 5)
    assert value_of("Range", [scalar("a"), scalar("a+3"), scalar(1)]) == ("a", "a+1", "a+2")


def test_limits() -> None:
    """Long vectors and long expressions are given up."""
    assert V.checked((1,) * MAX_TRACKED, I64) is not None
    assert V.checked((1,) * (MAX_TRACKED + 1), I64) is None
    assert V.checked("a" * (V.MAX_LENGTH + 1), I64) is None
    assert V.checked((1,), 1) is None
    assert V.checked((2**31,), I32) is None


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        (3, (1,), (3,)),
        ((3,), (), 3),
        ((3, 4), (), None),
        ((3, 4), (2,), (3, 4)),
        ((3, 4), (2, 1), None),
        ((3, 4), ("a",), None),
        ((3, 4), None, None),
        (None, (), None),
    ],
)
def test_shaped(value: Any, shape: Any, expected: Any) -> None:
    """A content under another shape."""
    assert V.shaped(value, shape) == expected


HEADER = '<ir_version: 8, opset_import: ["" : 18]>\n'

#: graphs that compute shapes as exporters write them, nothing is fresh at the end
GRAPHS = {
    "flatten_heads": """
agraph (float[a, b, 8] x) => (float[?, ?, ?] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64 two = {2}, int64[1] last = {-1}>
{
    s = Shape(x)
    d0 = Gather(s, zero)
    d1 = Gather(s, one)
    c = Gather(s, two)
    m = Mul(d0, d1)
    c1 = Unsqueeze(c, zero)
    target = Concat<axis=0>(m, c1)
    r = Reshape(x, target)
    back = Concat<axis=0>(d0, last, c1)
    y = Reshape(r, back)
}""",
    "expand_mask": """
agraph (float[a, 1, b] x, float[c] z) => (float[?, ?, ?] y)
<int64[3] wanted = {-1, 4, -1}, int64 minus = {-1}>
{
    s = Shape(x)
    e = Equal(wanted, minus)
    w = Where(e, s, wanted)
    y = Expand(x, w)
}""",
    "half": """
agraph (float[a, b, 8] x) => (float[?, ?, ?] y)
<int64[1] two = {2}, int64[1] one = {1}, int64[1] zero = {0}, int64[1] big = {9223372036854775807}>
{
    s = Shape(x)
    d = Slice(s, two, big, zero)
    h = Div(d, two)
    left = Slice(x, zero, h, two)
    right = Slice(x, h, big, two)
    n = Neg(right)
    y = Concat<axis=-1>(n, left)
}""",
    "range_positions": """
agraph (int64[a, b] ids, float[a, p] past) => (int64[?, ?] y)
<int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}>
{
    s = Shape(ids)
    n = Gather(s, one)
    t = Shape(past)
    p = Gather(t, one)
    total = Add(n, p)
    r = Range(p, total, one)
    u = Unsqueeze(r, axis)
    y = Expand(u, s)
}""",
    "repeat_kv": """
agraph (float[a, 2, b, 4] x) => (float[?, ?, ?, ?] y)
<int64[1] two = {2}, int64[1] n = {3}, int64[1] heads = {6}, int64[4] where = {0, 1, 3, 4}>
{
    u = Unsqueeze(x, two)
    s = Shape(u)
    d0, d1, d2, d3, d4 = Split<axis=0, num_outputs=5>(s)
    target = Concat<axis=0>(d0, d1, n, d3, d4)
    e = Expand(u, target)
    final = Concat<axis=0>(d0, heads, d3, d4)
    y = Reshape(e, final)
}""",
    "size": """
agraph (float[a, b] x) => (float[?] y)
{
    n = Size(x)
    s = Shape(x)
    p = ReduceProd<keepdims=1>(s)
    f = Cast<to=6>(p)
    g = Cast<to=7>(f)
    y = Reshape(x, g)
}""",
    "constant_of_shape": """
agraph (float[a, b] x) => (float[?, ?] y)
<int64[1] one = {1}>
{
    s = Shape<start=1>(x)
    t = Add(s, one)
    u = Concat<axis=0>(t, s)
    y = ConstantOfShape(u)
}""",
    "pad_tile": """
agraph (float[a, b] x) => (float[?, ?] y)
<int64[1] zero = {0}, int64[1] one = {1}>
{
    s = Shape(x)
    d = Gather(s, one)
    pads = Concat<axis=0>(zero, zero, one, d)
    p = Pad(x, pads)
    reps = Concat<axis=0>(d, one)
    y = Tile(p, reps)
}""",
}

SIZES = [{"a": 2, "b": 3, "c": 4, "p": 5}, {"a": 3, "b": 6, "c": 2, "p": 0}]


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_shape_subgraphs(name: str) -> None:
    """Every result of a subgraph computing shapes is known, and right at two sizes."""
    model = onnx.parser.parse_model(HEADER + GRAPHS[name])
    inputs = {}
    for value_info in model.graph.input:
        tensor = value_info.type.tensor_type
        dims = tuple(d.dim_param or d.dim_value for d in tensor.shape.dim)
        inputs[value_info.name] = ResultFacts(tensor.elem_type, dims)
    facts = propagate(model, inputs)
    for result, known in facts.items():
        assert known.shape is not None, f"{result} is unknown"
        assert not any(is_fresh(d) for d in known.shape), f"{result}: {known}"
    names = [output for node in model.graph.node for output in node.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    reference = ReferenceEvaluator(model)
    for sizes in SIZES:
        feeds = {
            key: np.ones(
                tuple(evaluate(d, sizes) for d in f.shape),
                np.float32 if f.type == 1 else np.int64,
            )
            for key, f in inputs.items()
        }
        for key, real in zip(names, reference.run(None, feeds), strict=True):
            assert not differences(facts[key], real, dict(sizes), strict=True), key
