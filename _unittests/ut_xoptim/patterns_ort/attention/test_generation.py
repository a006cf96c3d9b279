"""Loops of generation."""

from __future__ import annotations

from xoptim.testing import model_from_text, optimize_with, refusal_tests


def model(kind: str, body: str) -> str:
    return f"""g ({kind}[b, s] ids, int32[1] longest) => (int32[b, t] y) {{ {body} }}"""


SEARCH = "com.microsoft.GreedySearch<eos_token_id = 1, pad_token_id = 0>"
#: what the documentation draws: name -> (before, after)
MODELS = {
    "GreedySearch": (
        model("int64", f"y = {SEARCH}(ids, longest)"),
        model("int64", f"i = Cast<to = 6>(ids) y = {SEARCH}(i, longest)"),
    )
}


def test_integers() -> None:
    """The operator runs graphs which this test does not give: only the nodes are compared."""
    before, expected = map(model_from_text, MODELS["GreedySearch"])
    found, *_ = optimize_with(before, "GreedySearch")
    nodes = [
        [(n.op_type, len(n.input), [a.name for a in n.attribute]) for n in m.graph.node]
        for m in (found, expected)
    ]
    assert nodes[0] == nodes[1]
    cast, search = found.graph.node
    assert list(cast.input) == ["ids"] and cast.attribute[0].i == 6
    assert list(search.input) == [cast.output[0], "longest"]


REFUSED = {"int32": (model("int32", f"y = {SEARCH}(ids, longest)"), "no input is made of int64")}

test_refuses = refusal_tests({"GreedySearch": REFUSED})
