"""The bodies that run on some inputs."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import onnx.parser
import pytest

from xoptim.trust.inputs.coverage import Body, Coverage, Unverified, mark_bodies, unverified
from xoptim.trust.sessions.runtime import Opener

#: a branch in a branch, a loop, functions, one of which is only called in a branch
MODEL = """
<ir_version: 8, opset_import: ["" : 18, "mine" : 1]>
g (float[n] x, int64 k, bool c, bool d) => (float[n] y) {
    a = mine.always (x)
    i = If (c) <
        then_branch = t () => (float[n] u) {
            u = If (d) <
                then_branch = tt () => (float[n] uu) { uu = mine.sometimes (a) },
                else_branch = te () => (float[n] uv) { uv = Neg (a) }
            >
        },
        else_branch = e () => (float[n] v) { v = Identity (a) }
    >
    keep = Constant <value: tensor = bool {1}> ()
    y = Loop (k, keep, i) <
        body = b (int64 step, bool go, float[n] s) => (bool again, float[n] r) {
            again = Identity (go)
            r = Exp (s)
        }
    >
}
<domain: "mine", opset_import: ["" : 18]> always (x) => (y) { y = Neg (x) }
<domain: "mine", opset_import: ["" : 18]> sometimes (x) => (y) { y = Abs (x) }
"""
NAMES = {
    0: "then_branch of i", 1: "then_branch of u", 2: "else_branch of u", 3: "else_branch of i",
    4: "body of y", 5: "function mine.always", 6: "function mine.sometimes",
}  # fmt: skip


def feeds(c: bool, d: bool, k: int) -> dict:
    return {
        "x": np.ones(3, np.float32), "k": np.array(k), "c": np.array(c), "d": np.array(d)
    }  # fmt: skip


@pytest.fixture
def coverage():
    with ExitStack() as files:
        yield Coverage(Opener(files), onnx.parser.parse_model(MODEL))


def test_bodies_are_marked() -> None:
    model = onnx.parser.parse_model(MODEL)
    before = model.SerializeToString()
    _, bodies = mark_bodies(model)
    assert {b.number: b.name for b in bodies} == NAMES
    assert [b.parent for b in bodies] == [-1, 0, 0, -1, -1, -1, -1]
    assert bodies[0].results == {"u", "uu", "uv"} and bodies[0].nodes == 3
    assert model.SerializeToString() == before


@pytest.mark.parametrize("isolated", [False, True])
def test_what_runs_is_told_for_each_set(coverage, isolated) -> None:
    coverage._opener.isolated = isolated
    found = coverage.measure([feeds(True, True, 0), feeds(True, False, 2), feeds(False, True, 1)])
    assert found == [{0, 1, 5, 6}, {0, 2, 4, 5}, {3, 4, 5}]
    assert coverage.is_complete and coverage.never_ran() == []


def test_the_outermost_bodies_are_told(coverage) -> None:
    coverage.measure([feeds(False, True, 0)])
    told = [b.name for b in coverage.never_ran()]
    assert told == ["then_branch of i", "body of y", "function mine.sometimes"]


def test_inputs_that_are_refused_run_nothing(coverage) -> None:
    assert coverage.measure([{}]) == [set()] and not coverage.ran
    assert coverage.measure([]) == []


def test_a_branch_that_cannot_run_is_not_missed() -> None:
    text = MODEL.replace(
        "i = If (c)", "always = Constant <value: tensor = bool {1}> () i = If (always)"
    )
    with ExitStack() as files:
        coverage = Coverage(Opener(files), onnx.parser.parse_model(text))
        coverage.measure([feeds(False, True, 1), feeds(False, False, 1)])
        assert 3 not in coverage.ran and coverage.never_ran() == []


def test_what_is_not_verified_is_told() -> None:
    body = Body(0, "then_branch of If_0", -1, False, frozenset("ab"), 2)
    assert str(unverified([body])[0]) == "then_branch of If_0 never ran: nothing in it is verified"
    found = unverified([body], [{"a", "c"}, {"c"}, {"b"}])
    assert found == [Unverified("then_branch of If_0", 2)]
    assert str(found[0]) == "then_branch of If_0 never ran: 2 rewrites in it are not verified"
    inner = Body(0, "function a.b", -1, True, frozenset("ab"), 2)
    assert unverified([inner], [{"c"}]) == [Unverified("function a.b", None)]
    assert str(Unverified("b", 1)) == "b never ran: 1 rewrite in it is not verified"
    assert str(Unverified("b", 1, 1)).endswith(
        "not verified by a run, it is right in its own window"
    )
    assert str(Unverified("b", 3, 3)).endswith("by a run, each is right in its own window")
    assert str(Unverified("b", 3, 2)).endswith("by a run, 2 of them are right in their own window")
    assert str(Unverified("b", 0)) == "b never ran: no rewrite is in it"
