"""Only what the mending mends is promised."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from xbuilder import GraphBuilder
from xoptim.linting.findings import Finding
from xoptim.linting.mending import MendedNodes, confirmed, mending_builder, mending_options
from xoptim.linting.model_check import check_model


def parse(text: str, opset: int = 18) -> onnx.ModelProto:
    head = f'<ir_version: 10, opset_import: ["" : {opset}]>\n'
    return onnx.parser.parse_model(head + text)


#: what a code does not tell -> model, opset, code, processor
LEFT = {
    "a chain that changes numbers": (
        "g (float[a] x) => (float[a] y) { t = Cast<to = 7>(x) y = Cast<to = 1>(t) }",
        18,
        "X103",
        "CPU",
    ),
    "an input of the signature": (
        "g (float[a] x, float[a] z) => (float[a] y) { y = Abs(x) }",
        18,
        "X106",
        "CPU",
    ),
    "a rewrite for another processor": (
        "g (float[a,4] x) => (float[a,4] y) { y = Swish(x) }",
        25,
        "X002",
        "CPU,CUDA",
    ),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_is_not_promised(case: str) -> None:
    text, opset, code, processor = LEFT[case]
    model = parse(text, opset)
    report = check_model(model, processor)
    found = [f for f in report.findings if f.code == code]
    assert found and not any(f.fixable for f in found) and report.fixable == ()
    mended = mending_builder(model, mending_options([code], processor)).to_onnx()
    assert [f.where for f in check_model(mended, processor).findings if f.code == code] == [
        f.where for f in found
    ]


def test_scales_of_unknown_sizes_are_mended() -> None:
    """What is said and what is done agree."""
    text = "g (float[a,b] x, float[c] s, uint8[d] z) => (uint8[a,b] y) {"
    model = parse(text + " y = QuantizeLinear<precision = 1>(x, s, z) }", 28)
    report = check_model(model)
    assert report.fixable == ("X006",)
    mended = mending_builder(model, mending_options(report.fixable)).to_onnx()
    assert check_model(mended).ok


NODE = Finding("X006", "Foo 'y'", "no kernel", "no opset has one")


def test_a_refusal_of_the_engine() -> None:
    """The rewrite matches, and its result is refused."""
    nodes = MendedNodes()
    nodes.refusals["Foo 'y'"].append("Lower leaves it: dimension 0 is not proven equal")
    (found,) = confirmed([NODE], [NODE], nodes)
    assert found.code == "X002" and not found.fixable
    assert found.advice == "no opset has one; Lower leaves it: dimension 0 is not proven equal"
    assert [f.code for f in confirmed([NODE], None, MendedNodes())] == ["X002"]
    assert [f.code for f in confirmed([NODE], [], MendedNodes())] == ["X006"]


def test_new_nodes_without_kernel() -> None:
    """The node they replace is not mended; another one is."""
    other = Finding("X006", "Foo 'z'", "no kernel")
    nodes = MendedNodes({"Bar 't'": frozenset({"Foo 'y'"})})
    left = [Finding("X002", "Bar 't'", "no kernel")]
    assert [f.code for f in confirmed([NODE, other], left, nodes)] == ["X002", "X006"]
    assert [f.code for f in confirmed([NODE, other], left, MendedNodes())] == ["X002", "X002"]


def test_the_observer() -> None:
    """It follows a node through the rewrites."""
    nodes = MendedNodes()
    model = parse("g (float[a,4] x) => (float[a,4] y) { y = Swish(x) }", 25)
    options = mending_options(["X006"], features=[nodes])
    GraphBuilder(model, infer_shapes_options=True, optimization_options=options).to_onnx()
    assert nodes.origins and set(nodes.origins.values()) == {frozenset({"Swish 'y'"})}
    assert nodes.origins_of("Abs 'z'") == {"Abs 'z'"}
