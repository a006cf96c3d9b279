"""Replacements, and those that break something."""

from __future__ import annotations

import numpy as np
import pytest
from ut_xoptim.toy_patterns import Rename

from xbuilder import GraphBuilder, OptionError
from xbuilder.graph.graph import Graph
from xbuilder.graph.graph_check import check_graph
from xoptim.testing import model_from_text, optimizer_of, run_onnxruntime
from xoptim.toolkit.features import (
    Failure,
    Feature,
    ReplacementError,
    ReplaceValidate,
    attach,
    features_of,
)

TEXT = """agraph (float[a, 4] X, float[a, 4] Z) => (float[a, 4] Y, float[a, 4] W) {
    m = Mul(X, Z) d = Div(m, Z) Y = Relu(d) n = Neg(X) W = Neg(n) }"""
SPLIT = """agraph (float[a, 4] X) => (float[a, b] Y) {
    s, t = Split<axis = 1, num_outputs = 2>(X) u = Neg(s) Y = Add(u, t) }"""


def attached_to(
    text: str, *features: Feature, checks: tuple = (), verbose: int = 0
) -> tuple[GraphBuilder, ReplaceValidate]:
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    replacer = ReplaceValidate(checks, verbose)
    for feature in (replacer, *features):
        attach(builder.graph, feature)
    return builder, replacer


def types(builder: GraphBuilder) -> list[str]:
    return [node.op_type for node in builder.nodes]


def test_a_result_is_replaced_by_another_one() -> None:
    builder, replacer = attached_to(TEXT)
    before = builder.to_onnx(optimize=False)
    replacer.replace_validate("d", "X", reason="x * z / z")
    assert types(builder) == ["Relu", "Neg", "Neg"], "the Mul is gone with the Div"
    check_graph(builder.graph)
    assert replacer.failures == []
    x, z = np.ones((2, 4), np.float32), np.full((2, 4), 2, np.float32)
    expected, found = (
        run_onnxruntime(model, {"X": x, "Z": z})
        for model in (before, builder.to_onnx(optimize=False))
    )
    assert [a.tolist() for a in expected] == [a.tolist() for a in found]


def test_several_results_at_once() -> None:
    builder, replacer = attached_to(TEXT)
    op = replacer.op
    replacer.replace_all_validate({"d": "X", "W": op.Identity("X"), "n": op.Abs("X")})
    assert types(builder) == ["Identity", "Relu"], "nothing reads the new n"
    check_graph(builder.graph)


def has_no_abs(graph: Graph) -> str:
    return "no Abs here" if graph.store.bucket("", "Abs") else ""


REFUSALS = {
    "a check": ({"n": ("Abs", "X")}, "n cannot be replaced: ReplaceValidate refuses it: no Abs"),
    "another feature": ({"n": ("Exp", "X")}, "NoExp refuses it: Exp costs too much"),
    "a shape": ({"d": ("Shape", "X")}, "changes the type or the shape of a result"),
    "a cycle": ({"m": ("Sin", "d")}, "makes a cycle"),
    "an unknown name": ({"d": "nothing"}, "reads 'nothing', which does not exist"),
    "all or none": ({"d": "X", "n": ("Abs", "X")}, "d, n cannot be replaced: .*no Abs here"),
}


class NoExp(Feature):
    """Refuses an operator."""

    def validate(self, graph: Graph) -> str:
        return "Exp costs too much" if graph.store.bucket("", "Exp") else ""


@pytest.mark.parametrize("case", REFUSALS)
def test_what_breaks_a_check_is_reverted(case: str) -> None:
    builder, replacer = attached_to(TEXT, NoExp(), checks=(has_no_abs,))
    asked, message = REFUSALS[case]
    before = builder.to_onnx(optimize=False).SerializeToString()
    facts = dict(builder.facts)
    new = {
        k: v if isinstance(v, str) else getattr(replacer.op, v[0])(v[1]) for k, v in asked.items()
    }
    with pytest.raises(ReplacementError, match=message):
        replacer.replace_all_validate(new, reason=case)
    assert builder.to_onnx(optimize=False).SerializeToString() == before
    assert dict(builder.facts) == facts
    (failure,) = replacer.failures
    assert isinstance(failure, Failure)
    assert failure.replaced == tuple(asked) and failure.reason == case
    assert failure.refusal in message or failure.refusal
    check_graph(builder.graph)


def test_a_node_whose_other_result_is_needed() -> None:
    """It stays for the other one."""
    builder, replacer = attached_to(SPLIT)
    replacer.replace_validate("s", "t")
    check_graph(builder.graph)
    assert types(builder) == ["Split", "Neg", "Add"]
    assert [list(n.input) for n in builder.nodes][1:] == [["t"], ["u", "t"]]
    with pytest.raises(ReplacementError, match="every result is replaced by itself"):
        replacer.replace_validate("u", "u")


def test_only_results_are_replaced() -> None:
    builder, replacer = attached_to(TEXT)
    with pytest.raises(OptionError, match="No node gives 'X', only results"):
        replacer.replace_validate("X", "Z")
    assert len(types(builder)) == 5


def test_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    _, replacer = attached_to(TEXT, checks=(has_no_abs,), verbose=1)
    with pytest.raises(ReplacementError):
        replacer.replace_validate("n", replacer.op.Abs("X"), reason="|x|")
    assert "|x| reverted: ReplaceValidate refuses it: no Abs here" in capsys.readouterr().out


def test_its_checks_hold_for_a_run() -> None:
    replacer = ReplaceValidate((has_no_abs,))
    g = optimizer_of(TEXT, [Rename("Neg", "Abs")], features=[replacer])
    with pytest.warns(UserWarning, match="ReplaceValidate refuses it: no Abs here"):
        g.optimize()
    assert [r.op_type for r in g.store.nodes].count("Neg") == 2
    assert features_of(g.graph) == []
