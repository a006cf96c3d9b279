"""The observer that checks each rewrite in its window: verdicts, certificates, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import NodeProto

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import rewrite
from xoptim.authoring import RewriteContext
from xoptim.authoring.rewriters import Member
from xoptim.testing import model_from_text, optimizer_of
from xoptim.toolkit.features.provenance import CHECKS, Provenance
from xoptim.trust.windows import checking, validation
from xoptim.trust.windows.certificates import Certificate
from xoptim.trust.windows.differences import Difference
from xoptim.trust.windows.sessions import Sessions
from xoptim.trust.windows.validation import Validation, WrongRewriteError, with_validation
from xoptim.trust.windows.window import Window


def validated(
    text: str, patterns: Any, folder: Path | None = None, opset: int = 18, **options: Any
) -> Validation:
    """Runs patterns, each rewrite is checked."""
    observer = Validation(folder)
    chosen = OptimizationOptions(patterns=patterns, features=[observer], **options)
    model = model_from_text(text, opset)
    GraphBuilder(model, infer_shapes_options=True, optimization_options=chosen).optimize()
    return observer


def sole(text: str, patterns: Any, **options: Any) -> Certificate:
    """The certificate of the only rewrite."""
    (certificate,) = validated(text, patterns, **options).summary.certificates
    return certificate


@rewrite(root="Relu")
def drop_relu(g: RewriteContext, node: NodeProto) -> str:
    """Relu(x) -> x, which needs x >= 0."""
    return node.input[0]


@rewrite(root="Floor")
def ceil(g: RewriteContext, node: NodeProto) -> Any:
    """Floor(x) -> Ceil(x), which is wrong."""
    return g.op.Ceil(node.input[0])


@rewrite(root="Neg")
def shifted(g: RewriteContext, node: NodeProto) -> Any:
    """-x -> 3 - x, which is right if Softmax reads it."""
    g.require(g.after_or_none(node, "Softmax", "Exp"), "no Softmax")
    return g.op.Sub(np.array(3, dtype=np.float32), node.input[0])


DROP, CEIL = drop_relu(), ceil()
shifted.precision = "rounding"
TWO = """g (float[n, 4] x) => (float[n, 4] z) {
    a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a) y = Neg(b) z = Abs(y) }"""


def test_certificate() -> None:
    found = sole(TWO, "TransposeTranspose")
    assert found.verdict == "right" and found.result == "a" and found.nodes[0] == 2
    assert list(found.methods) == ["bits", "integers"]
    assert found.draws == 3  # one by size: moves do not depend on the values
    assert [s["n"] for s in found.sizes] == [2, 1, 0]
    assert found.max_abs == 0 and found.chance == 0
    assert "elements that all differ go to the same places" in found.text()
    assert found.to_dict()["sizes"][1] == {"n": 1}


@rewrite(root="Sum")
def twice(g: RewriteContext, node: NodeProto) -> Any:
    """x + x -> 2 * x."""
    g.require(len(set(node.input)) == 1 and len(node.input) == 2, "not a double")
    return g.op.Mul(node.input[0], np.array(2, dtype=np.float32))


def test_certificate_of_a_polynomial() -> None:
    found = sole("g (float[n, 4] x) => (float[n, 4] z) { y = Sum(x, x) z = Sin(y) }", [twice()])
    assert list(found.methods) == ["bits", "integers"]
    assert found.chance is not None and 0 < found.chance < 1e-9
    assert "a polynomial, wrong with a probability below" in found.text()


@pytest.mark.parametrize(
    ("type_", "is_numbered"), [("float", True), ("double", True), ("float16", False)]
)
def test_elements_are_numbered(type_: str, is_numbered: bool) -> None:
    """The types of floats with few integers get a proof at random ones."""
    found = sole(TWO.replace("float", type_), "TransposeTranspose")
    assert found.verdict == "right" and found.chance is not None
    assert (found.chance == 0) is is_numbered


def test_a_rewrite_may_rely_on_what_gives_its_inputs() -> None:
    """With free inputs it is wrong; with the node before, it is right."""
    found = sole("g (float[n] x) => (float[n] z) { y = Abs(x) r = Relu(y) z = Exp(r) }", [DROP])
    assert found.verdict == "right" and found.around == 1
    with pytest.raises(WrongRewriteError, match="DropRelu is wrong"):
        validated("g (float[n] x) => (float[n] z) { y = Sin(x) r = Relu(y) z = Exp(r) }", [DROP])


def test_a_rewrite_may_rely_on_what_reads_its_result() -> None:
    graph = "g (float[n, 4] x) => (float[n, 4] z) {{ y = Neg(x) s = {}(y) z = Sqrt(s) }}"
    found = sole(graph.format("Softmax<axis = 1>"), [shifted()])
    assert found.verdict == "right" and found.around == 1
    with pytest.raises(WrongRewriteError, match="Shifted is wrong"):
        validated(graph.format("Exp"), [shifted()])


def test_equal_windows_are_checked_once() -> None:
    layers = " ".join(
        f"a{i} = Transpose<perm = [1, 0]>(x{i}) b{i} = Transpose<perm = [1, 0]>(a{i}) "
        f"x{i + 1} = Sin(b{i})"
        for i in range(6)
    )
    graph = f"g (float[n, 4] x0) => (float[n, 4] x6) {{ {layers} }}"
    certificates = validated(graph, "TransposeTranspose").summary.certificates
    assert [c.repeated for c in certificates] == [False] + [True] * 5
    assert {c.verdict for c in certificates} == {"right"}


def test_content_of_a_constant_counts() -> None:
    """Two windows with other constants are two windows."""
    graph = """g (float[n] x) => (float[n] z) <float one = {1}, float half = {1.5}> {
    a = Mul(x, one) b = Sin(a) c = Mul(b, half) z = Cos(c) }"""

    @rewrite(root="Mul")
    def mul_one(g: RewriteContext, node: NodeProto) -> str:
        return node.input[0]

    with pytest.raises(WrongRewriteError, match="'c'"):
        validated(graph, [mul_one()])


def test_random_nodes_are_not_checked() -> None:
    graph = """g (float[n] x) => (float[n] z) {
    r = RandomNormalLike(x) z = Floor(r) }"""

    @rewrite(root="RandomNormalLike")
    def other(g: RewriteContext, node: NodeProto) -> Any:
        return g.op.RandomUniformLike(node.input[0])

    found = sole(graph, [other()])
    assert found.verdict == "not checked" and found.reason == "its nodes are random"


def test_operators_nobody_runs_are_not_checked() -> None:
    graph = """<ir_version: 8, opset_import: ["": 18, "mine": 1]>
    g (float[n] x) => (float[n] z) { y = mine.F(x) z = Floor(y) }"""

    @rewrite(root="mine::F")
    def other(g: RewriteContext, node: NodeProto) -> Any:
        return g.op.Sin(node.input[0])

    found = sole(graph, [other()], checks=False)
    assert found.verdict == "not checked" and "do not load" in found.reason


def test_the_reference_evaluator_runs_a_side_without_kernel() -> None:
    """onnxruntime runs the other one; their last bits may differ."""
    graph = """<ir_version: 13, opset_import: ["" : 28]>
    g (int8[n] x, float s) => (float[n] z) { z = DequantizeLinear(x, s) }"""

    def written(factor: float) -> Any:
        @rewrite(root="DequantizeLinear")
        def other(g: RewriteContext, node: NodeProto) -> Any:
            half = g.op.Mul(node.input[1], np.array(factor, dtype=np.float32))
            return g.op.Mul(g.op.Cast(node.input[0], to=onnx.TensorProto.FLOAT), half)

        return other()

    found = sole(graph, [written(1.0)], public_operators=False)
    assert found.verdict == "right" and found.methods
    with pytest.raises(WrongRewriteError, match="became"):
        sole(graph, [written(0.5)])


def test_the_reference_evaluator_gives_the_type_of_the_definition() -> None:
    """It computes Det of a bfloat16 in double, and gives a double."""
    text = "g (bfloat16[n, 2, 2] x) => (bfloat16[n] y) { y = Det(x) }"
    validation = validated(text, "MissingType", opset=22)
    assert validation.summary.counts() == {"right": 1}


@pytest.mark.parametrize(
    "text",
    [
        "g (bfloat16[n, 2, 5, 4] x, bfloat16[n, 7, 6, 2] p) => (bfloat16[n, 2, 7, 6] y) "
        '{ y = GridSample<mode = "nearest">(x, p) }',
        "g (int8[n, 3] a, bfloat16 s, int8 z, int8[3, 2] b, bfloat16 t, int8 w, bfloat16 u, int8 v) "
        "=> (int8[n, 2] y) { y = QLinearMatMul(a, s, z, b, t, w, u, v) }",
        "g (bfloat16[n, 1, 5, 5] x) => (bfloat16[n, 1, 4, 4] y, int64[n, 1, 4, 4] i) "
        "{ y, i = MaxPool<kernel_shape = [2, 2]>(x) }",
    ],
)
def test_what_is_closer_to_doubles_is_not_wrong(text: str) -> None:
    """The reference rounds places and scales to bfloat16, or gives other places."""
    counts = validated(text, "MissingType", opset=22).summary.counts()
    assert sum(counts.values()) == 1 and "wrong" not in counts


def test_error_and_files(tmp_path: Path) -> None:
    """The models and the inputs that are saved show the difference."""
    graph = "g (float[n, 3] x) => (float[n, 3] z) { y = Sin(x) f = Floor(y) z = Exp(f) }"
    with pytest.raises(WrongRewriteError) as caught:
        validated(graph, [CEIL], tmp_path)
    text = str(caught.value)
    assert "result 'f'" in text and "Floor" in text and "relative difference" in text
    assert "declares itself exact" in text and str(tmp_path) in text
    (folder,) = tmp_path.iterdir()
    feeds = dict(np.load(folder / "inputs.npz"))
    before, after = (
        onnxruntime.InferenceSession(folder / f"{n}.onnx").run(None, feeds)[0]
        for n in ("before", "after")
    )
    assert not np.array_equal(before, after)
    assert [n.op_type for n in onnx.load(folder / "before.onnx").graph.node][-1] == "Floor"


def test_statistics_and_metadata() -> None:
    validation, provenance = Validation(), Provenance()
    options = OptimizationOptions(
        patterns=["ReshapeReshape", "TransposeTranspose"], features=[validation, provenance]
    )
    text = """g (float[2, 3, 4] x) => (float[4, 3, 2] z) {
    a = Transpose<perm = [1, 0, 2]>(x) z = Transpose<perm = [2, 0, 1]>(a) }"""
    builder = GraphBuilder(
        model_from_text(text), infer_shapes_options=True, optimization_options=options
    )
    model, rows = builder.to_onnx(return_optimize_report=True)
    (row,) = (r for r in rows if r["pattern"] == "apply_TransposeTranspose")
    assert row["verdict"] == "right" and "bits" in row["checked_by"] and row["max_abs"] == 0
    provenance.annotate(model)
    (metadata,) = ({p.key: p.value for p in n.metadata_props} for n in model.graph.node)
    assert metadata[CHECKS].startswith("TransposeTranspose: right (bits")


def test_verifies_adds_it_once() -> None:
    options = OptimizationOptions(patterns="default", verifies=True)
    assert [type(f) for f in options.features] == [Validation]
    mine = Validation()
    assert list(OptimizationOptions(verifies=True, features=[mine]).features) == [mine]
    assert with_validation([mine]) == [mine]
    engine = optimizer_of(TWO, [CEIL], verifies=True)
    assert [type(f) for f in engine.users] == [Validation]


def test_verifies_checks_bodies() -> None:
    """The optimizers of the bodies have it too."""
    text = """g (bool c, float[n] x) => (float[n] z) {
    z = If(c) <then_branch = a () => (float[n] p) { p = Floor(x) },
               else_branch = b () => (float[n] q) { q = Neg(x) }> }"""
    engine = optimizer_of(text, [CEIL], verifies=True, recursive=True)
    with pytest.raises(WrongRewriteError, match="'p'"):
        engine.optimize()


def test_biases_of_groups() -> None:
    """The reference evaluator of onnx adds the bias of the first group to the others: a ConvTranspose
    with groups and a bias is not compared there."""
    certificate = sole(
        """g (float[a, 2, b, c] x) => (float[a, 2, b, c] y) <
        float[2, 1, 1, 1] w = {0.3, -0.4}, float[2] s = {0.5, 0.7}, float[2] t = {1, 2},
        float[2] m = {1, 0.9}, float[2] v = {0.6, 0.9}> {
            d = ConvTranspose<group = 2>(x, w) y = BatchNormalization(d, s, t, m, v) }""",
        "ConvAffine",
    )
    assert certificate.verdict == "right", certificate.reason


def negations(*shapes: str, factors: tuple[float, ...]) -> list[Certificate]:
    """The certificates of -(x * c) -> x * -c, once by shape and factor."""

    @rewrite(root="Neg", name="Opposite", precision="rounding")
    def opposite(g: RewriteContext, node: NodeProto) -> Any:
        mul = g.before(node, "Mul")
        return g.op.Mul(mul.input[0], -g.constant_of(mul.input[1]))

    pairs = list(enumerate(zip(shapes, factors, strict=True)))
    inputs = ", ".join(f"float[{shape}] x{i}" for i, (shape, _) in pairs)
    outputs = ", ".join(f"float[{shape}] y{i}" for i, (shape, _) in pairs)
    weights = ", ".join(f"float c{i} = {{{factor}}}" for i, (_, factor) in pairs)
    nodes = " ".join(f"t{i} = Mul(x{i}, c{i}) y{i} = Neg(t{i})" for i, _ in pairs)
    text = f"g ({inputs}) => ({outputs}) <{weights}> {{ {nodes} }}"
    return validated(text, [opposite()]).summary.certificates


def test_alike_windows_are_run_once() -> None:
    """Other sizes and other symbols; a size of 1 and the value of a number alone count."""
    first, *others = negations("n, 8", "m, 6", "k, 5", factors=(2.5, 2.5, 2.5))
    assert "alike" not in first.methods and first.draws > 1
    assert [c.draws for c in others] == [1, 1]
    assert all("alike" in c.methods and c.verdict == "right" for c in others)
    for shapes, factors in (
        (("n, 8", "n, 1"), (2.5, 2.5)),
        (("n, 8", "n, n"), (2.5, 2.5)),
        (("n, 8", "n, 8"), (2.5, -2.5)),
        (("n, 8", "n, 8"), (2.5, 3.5)),
    ):
        assert not any("alike" in c.methods for c in negations(*shapes, factors=factors))


def test_an_alike_window_that_is_wrong() -> None:
    """The weights and the sizes of each window are run: one wrong weight is found."""

    @rewrite(root="Mul", name="Half")
    def half(g: RewriteContext, node: NodeProto) -> Any:
        g.constant_of(node.input[1])
        return g.op.Div(node.input[0], np.array(0.5, dtype=np.float32))

    text = """g (float[n, 8] x, float[n, 6] z) => (float[n, 8] y, float[n, 6] t)
        <float c = {2}, float d = {4}> { y = Mul(x, c) t = Mul(z, d) }"""
    with pytest.raises(WrongRewriteError, match="Half is wrong: result 't'"):
        validated(text, [half()])


def test_the_reference_evaluator_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference of the runtime that more nodes do not explain is judged again with it."""
    asked: list[bool] = []

    def check(
        window: Window, member: Member, large: bool, brief: bool, hasty: bool, shown: Any
    ) -> checking.Outcome:
        asked.append(hasty)
        if hasty:
            found = Difference("z", 1.0, 1.0, reason="a kernel")
            return checking.Outcome("differs", sizes=[{"n": 2}], found=found)
        return checking.Outcome("right", {"reference": None}, draws=1, noise="a kernel")

    monkeypatch.setattr(validation, "check_window", check)
    found = sole("g (float[n] x) => (float[n] z) { z = Floor(x) }", [CEIL])
    assert found.verdict == "right" and found.methods == ["reference"] and not found.repeated
    assert asked[-1] is False and set(asked[:-1]) == {True}


@rewrite(root="Size")
def size_of_something(g: RewriteContext, node: NodeProto) -> Any:
    """Size(x) -> Max(Size(x), 4), which is the same for the length of most shapes."""
    return g.op.Max(g.op.Size(node.input[0]), np.array(4, dtype=np.int64))


def test_sizes_of_an_input_without_a_shape() -> None:
    """Only tensors of two dimensions show the difference, where a comparison reads it."""
    text = """g (bool c, float[n, m] x) => (bool z) <int64 two = {2}> {
        u = If(c) <then_branch = a () => (float[n, m] p) { p = Neg(x) },
                   else_branch = b () => (float[1, n, m] q) { axes = Constant<value_ints = [0]>()
                                                     q = Unsqueeze(x, axes) }>
        s = Shape(u) r = Size(s) z = Equal(r, two) }"""
    with pytest.raises(WrongRewriteError, match="SizeOfSomething is wrong"):
        validated(text, [size_of_something])


def test_the_channels_of_an_input_without_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights tell how many."""
    weights = ", ".join(str(i % 7 - 3) for i in range(80))
    text = f"""g (float[] x) => (float t) <float[2, 40, 1] w = {{{weights}}}> {{
        n = Neg(x) y = Conv(n, w) z = Relu(y) t = ReduceSum<keepdims = 0>(z) }}"""
    runs: list[int] = []
    run = Sessions.run
    monkeypatch.setattr(
        Sessions, "run", lambda self, n, inputs: (runs.append(n), run(self, n, inputs))[1]
    )
    found = sole(text, "FusedConv")
    assert found.verdict == "right" and found.around == 0
    assert 40 in found.sizes[0].values() and len(runs) < 100


@rewrite(root="Div", precision="rounding")
def large_deviation(g: RewriteContext, node: NodeProto) -> Any:
    """x / d -> x / Max(d, 1), which is the same for the deviation of usual values."""
    return g.op.Div(node.input[0], g.op.Max(node.input[1], np.array(1, dtype=np.float32)))


@pytest.mark.parametrize("shape", ["n, 256", "3, 256"])
def test_values_near_zero(shape: str) -> None:
    """The deviation of the values drawn first is above one."""
    text = f"""g (float[{shape}] x) => (float[{shape}] z) <float eps = {{1e-5}}> {{
        t = Tanh(x) u = Add(t, x) v = Transpose<perm = [1, 0]>(u) w = Transpose<perm = [1, 0]>(v)
        m = ReduceMean(w) s = Sub(w, m) q = Mul(s, s) r = ReduceMean(q)
        e = Add(r, eps) d = Sqrt(e) z = Div(s, d) }}"""
    with pytest.raises(WrongRewriteError, match="LargeDeviation is wrong"):
        validated(text, [large_deviation])


def test_roots_of_negative_numbers_hide_differences() -> None:
    """A free result is a sum of squares in the graph: with other values, all roots are NaN."""
    text = """g (float[n, 64] x) => (float[n, 64] z) {
        p = Mul(x, x) a = CumSum(p, one) s = Sqrt(a) t = ReduceSum<keepdims = 1>(s, axes)
        f = Floor(t) z = Add(f, x) }"""
    declared = "<int64 one = {1}, int64[1] axes = {1}>"
    with pytest.raises(WrongRewriteError, match="Ceil is wrong"):
        validated(text.replace("z) {", f"z) {declared} {{"), [CEIL])
