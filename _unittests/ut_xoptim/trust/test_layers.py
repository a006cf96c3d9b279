"""The first result that is not the same in two models."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx.parser
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.files.model_container import ModelContainer
from xoptim.toolkit.features.provenance import Provenance
from xoptim.trust.layers import compare_layers
from xoptim.trust.verification import VerificationError

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) {
    a = Sigmoid(x)
    b = Neg(a)
    c = Floor(b)
    d = Add(c, a)
    y = Neg(d)
}
"""


def parse(text=MODEL, **replaced) -> onnx.ModelProto:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return onnx.parser.parse_model(text)


def test_same_models():
    report = compare_layers(parse(), parse())
    assert report.ok and report.first is None
    assert [row.output for row in report.rows] == ["a", "b", "c", "d", "y"]
    assert (report.results, report.sizes, report.seed) == ((5, 5), {"n": 2}, 0)


def test_first_difference():
    other = parse(Floor="Ceil")
    for i, node in enumerate(other.graph.node):
        node.name = f"n{i}"
    report = compare_layers(parse(), other, sizes={"n": 3})
    first = report.first
    assert (first.output, first.before, first.after) == ("c", "Floor", "Ceil")
    assert first.nodes == ("", "n2") and first.shape == (3, 4) and first.max_abs == 1
    assert "relative difference" in first.reason and report.rows[-1] is first
    everything = compare_layers(parse(), other, stop=False)
    assert [row.ok for row in everything.rows] == [True, True, False, False, False]
    assert everything.to_rows()[2]["nodes"] == ["", "n2"] and everything.max_rel >= 1


def test_the_tolerance():
    one, two = (parse(Floor="Mul", **{"(b)": "(b, w)"}) for _ in range(2))
    for model, value in ((one, 3.0), (two, 3.001)):
        model.graph.initializer.append(onh.from_array(np.array([value], np.float32), "w"))
    assert compare_layers(one, two).first.output == "c"
    assert compare_layers(one, two, rtol=0.01).ok


def test_results_with_other_names_are_left_out():
    other = parse(**{"(b)": "(z)", "b =": "z ="})
    report = compare_layers(parse(), other)
    assert report.ok and [row.output for row in report.rows] == ["a", "c", "d", "y"]


def test_another_order():
    text = MODEL.replace("b = Neg(a)\n", "").replace(
        "x)\n", "x)\n    e = Exp(a)\n    b = Neg(a)\n", 1
    )
    assert compare_layers(parse(), parse(text)).ok
    assert compare_layers(parse(text), parse()).ok


def test_a_result_that_became_a_constant():
    one = parse("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[n, 4] x) => (float[n, 4] y) {
            w = Constant<value_floats: floats = [1.0, 2.0, 3.0, 4.0]>()
            v = Neg(w)
            y = Add(x, v)
        }
    """)
    two = GraphBuilder(one).to_onnx()
    assert [i.name for i in two.graph.initializer] == ["v"]
    report = compare_layers(one, two)
    assert [(row.output, row.after) for row in report.rows] == [("v", "initializer"), ("y", "Add")]
    assert report.ok
    two.graph.initializer[0].CopyFrom(onh.from_array(np.zeros(4, np.float32), "v"))
    assert compare_layers(one, two).first.output == "v"


def test_what_wrote_the_node():
    reference = parse("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[n, 4, 5] x) => (float[4, 5, n] y) {
            a = Transpose<perm: ints = [1, 0, 2]>(x)
            b = Transpose<perm: ints = [0, 2, 1]>(a)
            y = Neg(b)
        }
    """)
    provenance = Provenance()
    options = OptimizationOptions(patterns="TransposeTranspose", features=[provenance])
    optimized = GraphBuilder(reference, optimization_options=options).to_onnx()
    provenance.annotate(optimized)
    assert compare_layers(reference, optimized).ok
    optimized.graph.node[0].attribute[0].ints[:] = [2, 1, 0]
    first = compare_layers(reference, optimized, sizes={"n": 3}).first
    assert (first.output, first.rewrites, first.sources) == ("b", "TransposeTranspose", "a, b")
    assert first.reason == "shape (4, 5, 3) became (5, 4, 3)"


def chain(count: int, size: int, external=None) -> onnx.ModelProto:
    """Products and sums, each of them with its weight."""
    rng = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for i in range(count):
        w = rng.standard_normal((size, size)).astype(np.float32) / size**0.5
        weights.append(onh.from_array(w, f"w{i}"))
        nodes.append(oh.make_node("MatMul", [last, f"w{i}"], [f"r{i}"]))
        last = f"r{i}"
    graph = oh.make_graph(
        nodes,
        "chain",
        [oh.make_tensor_value_info("x", 1, ["n", size])],
        [oh.make_tensor_value_info(last, 1, ["n", size])],
        weights,
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9)


def test_results_are_freed():
    size, rows = 16, 8
    report = compare_layers(chain(30, size), chain(30, size), sizes={"n": rows})
    assert report.ok and len(report.rows) == 30
    # the input, and two results in a row of each model
    assert report.peak_bytes <= 6 * size * rows * 4


def test_weights_are_read_when_a_node_needs_them(tmp_path, monkeypatch):
    for name in ("one", "two"):
        ModelContainer(chain(6, 32)).save(tmp_path / f"{name}.onnx", size_threshold=0)
    read, alive = [], []
    array = ModelContainer.array

    def spy(self, tensor):
        read.append(tensor.name)
        alive.append(tensor.name)
        return array(self, tensor)

    monkeypatch.setattr(ModelContainer, "array", spy)
    report = compare_layers(tmp_path / "one.onnx", tmp_path / "two.onnx")
    assert report.ok
    assert read == [f"w{i}" for i in range(6) for _ in range(2)]


BODIES = """
<ir_version: 8, opset_import: ["" : 18, "local": 1]>
g (float[4] x, bool c) => (float[4] y) {
    two = Constant<value_float: float = 2.0>()
    s = SequenceConstruct(x, two)
    at = Constant<value_int: int = 0>()
    e = SequenceAt(s, at)
    r = If(c) <then_branch = t () => (float[4] u) { u = Mul(e, two) },
               else_branch = f () => (float[4] v) { v = Add(e, two) }>
    y = local.twice(r)
}
<domain: "local", opset_import: ["" : 18]>
twice (a) => (b) { b = Add(a, a) }
"""


def test_sequences_bodies_functions():
    report = compare_layers(parse(BODIES), parse(BODIES))
    assert report.ok and {row.output: row.dtype for row in report.rows}["s"] == "sequence"
    assert report.rows[-1].before == "local.twice"
    x = np.arange(4, dtype=np.float32)
    inputs = {"x": x, "c": np.array(True)}
    other = parse(BODIES, Mul="Div")
    report = compare_layers(parse(BODIES), other, inputs=inputs)
    assert report.first.output == "r" and report.seed is None
    assert compare_layers(parse(BODIES), other, inputs={"x": x, "c": np.array(False)}).ok


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float8e4m3fn", "int8", "bool", "string"])
def test_types(kind):
    itype = onnx.TensorProto.DataType.Value(kind.upper())
    text = f"""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[n] x) => (float[n] y) {{
            a = Cast<to: int = {itype}>(x)
            b = Identity(a)
            y = Cast<to: int = 1>(b)
        }}
    """
    inputs = {"x": np.array([1, 2, 3], dtype=np.float32)}
    report = compare_layers(parse(text), parse(text), inputs)
    assert report.ok and len(report.rows) == 3
    other = text.replace("Cast<to: int = " + str(itype) + ">(x)", f"Cast<to: int = {itype}>(z)")
    other = other.replace("a = ", "z = Add(x, x)\n a = ")
    first = compare_layers(parse(text), parse(other), inputs).first
    assert first is None if kind == "bool" else first.output == "a"


def test_random_numbers():
    text = MODEL.replace("Sigmoid(x)", "RandomNormalLike(x)")
    report = compare_layers(parse(text), parse(text))
    assert report.ok and report.rows[0].reason == "random, shape only"


def test_errors():
    with pytest.raises(VerificationError, match="no result of the same name"):
        renamed = parse()
        for node in renamed.graph.node:
            node.output[0] = f"_{node.output[0]}"
        compare_layers(parse(), renamed)
    with pytest.raises(
        VerificationError, match=r"\['x'\] and \['x', 'z'\]: \['z'\] of the second model"
    ):
        compare_layers(parse(), parse(**{"(float[n, 4] x)": "(float[n, 4] x, float z)"}))
    with pytest.raises(
        VerificationError, match=r"in the first model, node '' \(Nothing, result 'c'"
    ):
        compare_layers(parse(Floor="Nothing"), parse())
    with pytest.raises(VerificationError, match="in the second model, node '' .Nothing"):
        compare_layers(parse(), parse(Floor="Nothing"))
    with pytest.raises(VerificationError, match=r"needs \['b'\], which no node before it makes"):
        compare_layers(parse(**{"b = Neg(a)": "o = Neg(a)"}), parse())


def test_other_sizes_are_tried():
    text = MODEL.replace("Sigmoid(x)", "Add(x, k)")
    model = parse(text)
    model.graph.initializer.append(onh.from_array(np.zeros((4, 4), np.float32), "k"))
    assert compare_layers(model, model).sizes["n"] in (1, 4)
    with pytest.raises(VerificationError, match="in the first model"):
        compare_layers(model, model, sizes={"n": 3})


def test_a_size_that_the_second_model_fixes():
    """Both run on it, unless other inputs are given."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[n, 3] x) => (float[n, 3] y) { y = Neg(x) }"""
    first = onnx.parser.parse_model(text)
    second = onnx.parser.parse_model(text.replace("[n, 3]", "[5, 3]"))
    report = compare_layers(first, second)
    assert report.ok and report.sizes["n"] == 5 and report.rows[0].shape == (5, 3)
    x = np.ones((2, 3), np.float32)
    assert compare_layers(first, first, inputs={"x": x}).rows[0].shape == (2, 3)
