"""Where the nodes of an optimized model come from."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.testing import model_from_text
from xoptim.toolkit.features import Origin, Provenance

LAYERS = """agraph (float[n, 4] x, float[4, 3] w, float[3] b) => (float[n, 3] y) {
    product = MatMul(x, w) sum = Add(product, b) y = Relu(sum) }"""


def optimized(text: str, patterns: str, **options: Any) -> tuple[Provenance, onnx.ModelProto]:
    provenance = Provenance()
    how = OptimizationOptions(patterns=patterns, features=[provenance])
    builder = GraphBuilder(model_from_text(text), optimization_options=how)
    return provenance, builder.to_onnx(**options)


def test_rewrites_follow_each_other() -> None:
    provenance, model = optimized(LAYERS, "MatMulAdd,FusedGemm")
    assert provenance.rows(model) == [
        {
            "result": "y",
            "operator": "FusedGemm",
            "rewrites": ["MatMulAdd", "FusedGemm"],
            "sources": ["product", "sum", "y"],
        }
    ]


def test_what_no_rewrite_wrote() -> None:
    provenance, model = optimized(LAYERS, "MatMulAdd")
    gemm, relu = model.graph.node
    assert provenance.origin_of(gemm) == Origin(("MatMulAdd",), ("product", "sum"))
    assert provenance.origin_of(relu) is None


def test_metadata() -> None:
    provenance, model = optimized(LAYERS, "MatMulAdd")
    model.graph.node[0].metadata_props.add(key="mine", value="stays")
    for _ in range(2):
        assert provenance.annotate(model) == 1
        told = {p.key: p.value for p in model.graph.node[0].metadata_props}
        assert told == {
            "mine": "stays",
            "xoptim.rewrites": "MatMulAdd",
            "xoptim.sources": "product, sum",
        }
        assert len(model.graph.node[0].metadata_props) == 3
    assert not model.graph.node[1].metadata_props


def test_a_node_that_stays_is_not_written() -> None:
    """The first Transpose has another reader."""
    text = """g (float[a, b] x) => (float[a, b] y, float[b, a] t) {
        t = Transpose<perm = [1, 0]>(x) u = Transpose<perm = [1, 0]>(t) y = Relu(u) }"""
    provenance, model = optimized(text, "TransposeTranspose")
    assert [n.op_type for n in model.graph.node] == ["Transpose", "Relu"]
    assert provenance.rows(model) == []


@pytest.mark.parametrize("inline", [True, False])
def test_bodies_and_functions(inline: bool) -> None:
    twice = "Transpose<perm = [1, 2, 0]>"
    text = f"""<ir_version: 10, opset_import: ["" : 18, "mine" : 1]>
    g (bool c, float[n, 4, m] x) => (float[m, n, 4] y) {{
        r = mine.Twice(x)
        y = If(c) <then_branch = one () => (float[m, n, 4] u) {{
                a = {twice}(x) u = {twice}(a) }},
            else_branch = two () => (float[m, n, 4] v) {{ v = Neg(r) }}> }}
    <domain: "mine", opset_import: ["" : 18]>
    Twice (p) => (t) {{ o = {twice}(p) t = {twice}(o) }}"""
    provenance = Provenance()
    how = OptimizationOptions(patterns="TransposeTranspose", features=[provenance])
    builder = GraphBuilder(onnx.parser.parse_model(text), optimization_options=how)
    found = [r["sources"] for r in provenance.rows(builder.to_onnx(inline=inline))]
    assert len(found) == 2 and ["a", "u"] in found
    assert (["o", "t"] in found) is not inline


def test_a_new_name() -> None:
    builder = GraphBuilder(model_from_text(LAYERS))
    provenance = Provenance()
    provenance.origins["sum"] = Origin(("Some",), ("product",))
    builder.attach_feature(provenance)
    builder.store.rename_result("sum", "other")
    assert provenance.origins == {"other": Origin(("Some",), ("product",))}
