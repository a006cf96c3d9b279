"""Inputs are drawn until every branch ran."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import onnx.parser
import pytest

from xbuilder.errors import OptionError
from xoptim.trust.inputs import draws
from xoptim.trust.inputs.draws import demanded_sizes, draw_inputs, sizes_of
from xoptim.trust.sessions.runtime import Opener, VerificationError

HEAD = '<ir_version: 8, opset_import: ["" : 18]> '
#: the branch of 16 kHz, as voice detectors have
RATE = (
    HEAD
    + """
g (float[n] x, int64 sr) => (float[n] y) <int64 c = {16000}> {
    is = Equal(sr, c)
    y = If (is) <then_branch = t () => (float[n] u) { u = Relu(x) },
                 else_branch = e () => (float[n] v) { v = Neg(x) }>
}
"""
)


def draw(text: str, **options):
    model = onnx.parser.parse_model(text)
    with ExitStack() as files:
        opener = Opener(files)
        return draw_inputs(opener, opener.open(model, "first"), model, **options)


def test_a_branch_that_needs_one_value() -> None:
    draws = draw(RATE)
    assert len(draws.sets) == 2 and draws.never_ran == [] and draws.is_random
    assert draws.sets[1].feeds["sr"] == 16000 and draws.sets[1].expected[0].min() == 0
    again = draw(RATE)
    assert np.array_equal(draws.sets[0].feeds["x"], again.sets[0].feeds["x"])
    assert not np.array_equal(draws.sets[0].feeds["x"], draw(RATE, seed=1).sets[0].feeds["x"])


@pytest.mark.parametrize(
    "inputs,condition",
    [
        ("float[n] x, bool k", "is = Not(k)"),
        ("float[n] x, float k", "is = Greater(k, big)"),
        ("float[n] x, int32 k", "d = Cast<to: int = 1>(k) is = Less(d, big)"),
        ("float[n] x", "s = Size(x) z = Shape(x) w = Squeeze(z) i = Constant<value_int: int = 0>() "
                       "d = Gather(z, i) e = Constant<value_int: int = 37>() is = Equal(d, e)"),
    ],
)  # fmt: skip
def test_other_conditions(inputs, condition) -> None:
    text = f"""{HEAD} g ({inputs}) => (float[n] y) <float big = {{1000}}> {{
        {condition}
        y = If (is) <then_branch = t () => (float[n] u) {{ u = Relu(x) }},
                     else_branch = e () => (float[n] v) {{ v = Neg(x) }}>
    }}"""
    assert draw(text).never_ran == []


@pytest.mark.parametrize(
    "inputs,condition",
    [
        ("bool k, bool l, bool m", "o = Not(m) n = And(k, l) is = And(n, o)"),
        ("int64 k, int64 l", "a = Equal(k, big) b = Less(l, seven) is = And(a, b)"),
        ("int64 k", "m = Mod(k, seven) t = Constant<value_int: int = 3>() is = Equal(m, t)"),
        ("string k", "is = Equal(k, word)"),
        ("bool l, int64 k", "s = Cast<to: int = 8>(k) m = Equal(s, word) is = Or(m, l)"),
        ("float[m] k", "f = ReduceMax<keepdims: int = 0>(k) g = Cast<to: int = 1>(big) "
                       "is = Greater(f, g)"),
        ("int64 k", "v = Gather(table, k) is = Equal(v, seven)"),
        ("int64 k", "is = my.condition(k, big)"),
        ("int64 k", "is = my.twice(k, big)"),
    ],
)  # fmt: skip
def test_conditions_of_several_inputs_and_in_functions(inputs, condition) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 19, "my" : 1]>
    g (float[n] x, {inputs}) => (float[n] y)
    <int64 big = {{12345}}, int64 seven = {{7}}, int64[8] table = {{5, 5, 5, 5, 5, 5, 7, 5}},
    string word = {{"one word"}}> {{
        {condition}
        y = If (is) <then_branch = t () => (float[n] u) {{ u = Relu(x) }},
                     else_branch = e () => (float[n] w) {{ w = Neg(x) }}>
    }}
    <domain: "my", opset_import: ["" : 19]> condition (a, b) => (c) {{ c = Equal(a, b) }}
    <domain: "my", opset_import: ["" : 19, "my" : 1]> twice (a, b) => (c) {{
        two = Constant<value_int: int = 2>()
        d = Mul(a, two)
        e = Constant<value_int: int = 4000>()
        c = my.condition(d, e)
    }}"""
    assert draw(text).never_ran == []


def test_a_model_that_only_runs_with_one_value() -> None:
    """At its real size, the branch of the other rate fails."""
    fails = "e () => (float[n] v) { i = Constant<value_ints = [99]>() v = Gather(x, i) }"
    text = RATE.replace("e () => (float[n] v) { v = Neg(x) }", fails)
    draws = draw(text, sizes={"n": 5})
    assert [one.feeds["sr"] for one in draws.sets] == [16000]
    assert [body.name for body in draws.never_ran] == ["else_branch of y"]
    with pytest.raises(VerificationError, match="does not run the first model"):
        draw(text, sizes={"n": 5}, given=[{"sr": np.array(8000)}])


OPTIONAL = (
    HEAD
    + """
g (optional(float[n]) x) => (float[m] y) {
    has = OptionalHasElement(x)
    y = If (has) <then_branch = t () => (float[m] u) { u = OptionalGetElement(x) },
                  else_branch = e () => (float[m] v) { c = Constant<value_floats = [1.0]>() v = Neg(c) }>
}
"""
)


def test_optionals_hold_a_value_then_nothing() -> None:
    draws = draw(OPTIONAL, sizes={"n": 3})
    full, empty = (one.feeds["x"] for one in draws.sets)
    assert full.shape == (3,) and empty is None and draws.never_ran == []
    draws = draw(OPTIONAL, given=[{"x": None}])
    assert [body.name for body in draws.never_ran] == ["then_branch of y"]


def test_loops_with_and_without_steps() -> None:
    text = (
        HEAD
        + """
    g (float[n] x, int64 k) => (float[n] y) <bool keep = {1}, int64 least = {6}> {
        m = Sub(k, least)
        y = Loop (m, keep, x) <body = b (int64 i, bool go, float[n] s) => (bool again, float[n] r) {
            again = Identity (go)
            r = Exp (s)
        }>
    }"""
    )
    draws = draw(text)
    assert draws.never_ran == []
    assert any(s.feeds["k"] > 6 for s in draws.sets)


def test_what_cannot_be_reached_is_told() -> None:
    text = RATE.replace("Equal(sr, c)", "Equal(h, c)").replace(
        "is =", "q = Mul(sr, sr) r = Mul(q, q) h = Add(r, sr) is ="
    )
    draws = draw(text)
    assert [b.name for b in draws.never_ran] == ["then_branch of y"]


def test_given_inputs_are_kept() -> None:
    draws = draw(RATE, given=[{"sr": np.array(16000)}])
    assert [b.name for b in draws.never_ran] == ["else_branch of y"] and len(draws.sets) == 1
    assert [b.name for b in draws.ran] == ["then_branch of y"]
    both = [{"sr": np.array(16000)}, {"sr": np.array(8000), "x": np.ones(3, np.float32)}]
    draws = draw(RATE, given=both)
    assert draws.never_ran == [] and [s.feeds["sr"] for s in draws.sets] == [16000, 8000]
    assert draws.sets[1].feeds["x"].tolist() == [1, 1, 1]
    complete = [{"sr": np.array(1), "x": np.ones(3, np.float32)}]
    draws = draw(RATE, given=complete)
    assert not draws.is_random and len(draws.sets) == 1 and len(draws.never_ran) == 1
    with pytest.raises(VerificationError, match="does not run the first model"):
        draw(RATE, given=[{"sr": np.array(1.5), "x": np.ones(3, np.float32)}])


def test_given_inputs_settle_sizes() -> None:
    model = onnx.parser.parse_model(
        HEAD + "g (float[n, 4] x, float[n, m] z) => (float[n, 4] y) { y = Neg(x) }"
    )
    assert sizes_of(model, {"x": np.ones((3, 4))}) == {"n": 3}
    with pytest.raises(OptionError, match=r"input 'x' has shape \[3, 5\], the model expects"):
        sizes_of(model, {"x": np.ones((3, 5))})
    with pytest.raises(OptionError, match=r"'z' has shape \[2, 1\], the model expects \[3, 'm'\]"):
        sizes_of(model, {"x": np.ones((3, 4)), "z": np.ones((2, 1))})


def test_indices_take_every_position_and_special_ones() -> None:
    text = (
        HEAD
        + f"""
    g (int64[64] x) => (float[64] y, bool[64] z) <float[50] w = {{{",".join(["0"] * 50)}}}, int64 pad = {{49}}> {{
        y = Gather(w, x)
        z = Equal(x, pad)
    }}"""
    )
    taken = draw(text).sets[0].feeds["x"]
    assert taken.max() > 10 and taken.max() < 50
    text = text.replace("y = Gather(w, x)", "y = Cast<to: int = 1>(x)")
    assert set(draw(text).sets[0].feeds["x"].tolist()) <= {*range(10), 49}
    assert 49 in draw(text).sets[0].feeds["x"]


@pytest.mark.parametrize(
    "body, never",
    [
        ("y = Div(x, k)", 0),
        ("y = Mod(x, k)", 0),
        ("d = Sub(k, three) y = Div(x, d)", 3),
        ("d = Unsqueeze(k, axis) y = Div(x, d)", 0),
    ],
)
@pytest.mark.parametrize("shape", ["[60]", "[]", "[n]"])
def test_divisors_are_not_zero(body: str, never: int, shape: str) -> None:
    """onnxruntime stops at a division of integers by 0."""
    constants = "<int64 three = {3}, int64[1] axis = {0}>"
    output = "[a, b]" if "Uns" in body and shape != "[]" else "[a]"
    text = f"{HEAD} g (int64[1] x, int64{shape} k) => (int64{output} y) {constants} {{ {body} }}"
    taken = draw(text, sizes={"n": 60} if shape == "[n]" else {}).sets[0].feeds["k"]
    assert never not in taken and (taken.size == 1 or {1, 2, 4} <= set(taken.tolist()))


#: the mask of a decoder, as it is exported with a cache
CACHE = (
    HEAD
    + """
g (float[batch, new] x, float[batch, past] k, float[batch, total] mask)
    => (float[batch, total] y) { c = Concat<axis = 1>(k, x) y = Add(c, mask) }
"""
)


@pytest.mark.parametrize("sizes", [{}, {"past": 7}, {"batch": 1, "new": 6}, {"total": 8}])
def test_a_dimension_that_is_a_sum(sizes: dict[str, int]) -> None:
    (only,) = draw(CACHE, sizes=sizes).sets
    assert only.sizes["total"] == only.sizes["past"] + only.sizes["new"]
    assert only.sizes.items() >= sizes.items()


def test_a_model_that_is_not_valid_demands_no_size() -> None:
    """The message of the runtime is the one that the user sees."""
    text = HEAD + "g (float[n] x) => (float[n] y) { y = Add(x, nobody) }"
    assert demanded_sizes(onnx.parser.parse_model(text)) == {}


def test_the_width_of_a_weight_is_the_size() -> None:
    """No size that is tried for any model is 138."""
    text = (
        HEAD + "g (float[n, m] x) => (float[n, 1] y) <float[138, 1] w = {%s}> { y = MatMul(x, w) }"
    )
    draws = draw(text % ", ".join(["1"] * 138))
    assert [one.sizes["m"] for one in draws.sets] == [138] * len(draws.sets) and draws.sets


#: a loop that ends if the step is positive
STEPS = (
    HEAD
    + """
g (int64[1] step, int64[1] start) => (int64[1] y) <bool yes = {1}, int64 steps = {9223372036854775807}, int64[1] most = {1000}> {
    y = Loop(steps, yes, start) <body = b (int64 i, bool c, int64[1] x) => (bool d, int64[1] z) {
        z = Add(x, step) less = Less(z, most) d = Squeeze(less)
    }>
}"""
)


@pytest.mark.parametrize("isolated", [False, True])
def test_a_loop_that_does_not_end_is_stopped(
    monkeypatch: pytest.MonkeyPatch, isolated: bool
) -> None:
    monkeypatch.setattr(draws, "_LONGEST", 0.5)
    monkeypatch.setattr(draws, "_LESS", 0.1)
    model = onnx.parser.parse_model(STEPS)
    reason = "a loop of the first model still runs after 0.5 s, it may never end; give real inputs"
    with ExitStack() as files, pytest.raises(VerificationError, match=reason):
        opener = Opener(files, isolated=isolated)
        session = opener.open(model, "first")
        draw_inputs(opener, session, model, given=[{"step": np.array([0])}])
    draw(STEPS, given=[{"step": np.array([1])}])
