"""If whose branches compute nothing."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

PATTERN = "ConstantBranches"


def branch(name: str, kind: str, body: str, given: str = "") -> str:
    """A graph without inputs."""
    return f"{name} () => ({kind} {name}_r) {given} {{ {body} }}"


def model(
    first: str, second: str, kind: str = "bool", condition: str = "bool c", more: str = ""
) -> str:
    """A result chosen by an If, then copied."""
    return f"""g ({condition}{more}) => ({kind} y) <{kind} yes = {{1}}, {kind} no = {{0}}> {{
        y = If(c) <then_branch = {branch("t", kind, first)}, else_branch = {branch("e", kind, second)}>
    }}"""


def done(body: str, kind: str = "bool") -> str:
    return f"g (bool c) => ({kind} y) <{kind} yes = {{1}}, {kind} no = {{0}}> {{ {body} }}"


YES, NO = "t_r = Identity(yes)", "e_r = Identity(no)"
TWO = "{}_r = Constant<value = float[2] {{{}, 1}}>()"
MODELS = {
    PATTERN: {
        "true, false": (model(YES, NO), done("y = Identity(c)")),
        "false, true": (
            model("t_r = Identity(no)", "e_r = Identity(yes)"),
            done("y = Not(c)"),
        ),
        "both true": (model(YES, "e_r = Identity(yes)"), done("y = Identity(yes)")),
        "numbers": (model(YES, NO, "int64"), done("y = Where(c, yes, no)", "int64")),
        "vectors, Constant": (
            model(TWO.format("t", 2), TWO.format("e", 3), "float[2]").replace(
                "<float[2] yes = {1}, float[2] no = {0}>", ""
            ),
            "g (bool c) => (float[2] y) <float[2] u = {2, 1}, float[2] v = {3, 1}>"
            "{ y = Where(c, u, v) }",
        ),
        "a copy of a copy": (
            model("a = Identity(yes) t_r = Identity(a)", NO),
            done("y = Identity(c)"),
        ),
        "initializers of the branches": (
            model("t_r = Identity(k)", NO, "int64").replace(
                "(int64 t_r)", "(int64 t_r) <int64 k = {7}>"
            ),
            "g (bool c) => (int64 y) <int64 k = {7}, int64 no = {0}> { y = Where(c, k, no) }",
        ),
        "two results": (
            """g (bool c) => (bool y, int64 z) <bool yes = {1}, bool no = {0}, int64 k = {4}, int64 l = {5}> {
            y, z = If(c) <then_branch = t () => (bool a, int64 b) { a = Identity(no) b = Identity(k) },
                else_branch = e () => (bool a, int64 b) { a = Identity(yes) b = Identity(l) }> }""",
            """g (bool c) => (bool y, int64 z) <int64 k = {4}, int64 l = {5}> {
            y = Not(c) z = Where(c, k, l) }""",
        ),
    }
}  # fmt: skip

test_rewrites = rewrite_tests(MODELS)


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("case", ["false, true", "numbers", "vectors, Constant"])
def test_values(case: str, value: bool) -> None:
    check_pattern(*MODELS[PATTERN][case], PATTERN, feeds=[{"c": np.array(value)}])


REFUSED = {
    PATTERN: {
        "a node": (model("t_r = Not(yes)", NO), "something else than constants"),
        "an input": (model("t_r = Identity(x)", NO, more=", bool x"), "something else than constants"),
        "a condition of one element": (
            model(YES, NO, condition="bool[1] c"), "the condition is not a scalar",
        ),
        "shapes": (
            model(YES, "e_r = Constant<value = int64[1] {5}>()", "int64").replace(
                "(int64 e_r)", "(int64[1] e_r)").replace("(int64 y)", "(int64[n] y)"),
            "the same type and the same shape",
        ),
        "many elements": (
            model("t_r = Identity(yes)", "e_r = Identity(no)", "float[65]").replace(
                "{1}", "{" + ", ".join(["1"] * 65) + "}").replace("{0}", "{" + ", ".join(["0"] * 65) + "}"),
            "too many elements",
        ),
        "float16": (model(YES, NO, "float16"), "do not choose between these types"),
        "a vector of booleans": (
            model(YES, NO, "bool[1]"), "do not choose between these types",
        ),
        "another Constant": (
            model("t_r = Constant<value_int = 3>()", NO, "int64"), "something else than constants",
        ),
    }
}  # fmt: skip
test_refuses = refusal_tests(REFUSED)
