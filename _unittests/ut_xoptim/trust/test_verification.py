"""The comparison of two models: what it accepts, what it refuses, what it says."""

from __future__ import annotations

import math

import numpy as np
import onnx.numpy_helper
import onnx.parser
import onnx.printer
import pytest
from onnx import helper

from xbuilder.errors import OptionError
from xoptim.trust.verification import VerificationError, compare_outputs, verify_models


def model_of(body: str, inputs: str = "float[N, 4] x", outputs: str = "float[N, 4] y"):
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => ({outputs}) {{ {body} }}'
    )


def test_equal_models():
    report = verify_models(model_of("y = Neg(x)"), model_of("y = Neg(x)"), sizes={"N": 6})
    assert report.ok and report.max_abs == 0
    assert report.sizes == {"N": 6}
    assert report.rows[0].shape == (6, 4)
    assert report.to_rows()[0]["output"] == "y"
    report.raise_if_different()


def test_rounding_is_accepted_and_measured():
    a = model_of("s = Sigmoid(x)\n y = Mul(x, s)")
    b = model_of("n = Neg(x)\n e = Exp(n)\n o = Constant<value_float: float=1.0>()\n"
                 "d = Add(o, e)\n y = Div(x, d)")  # fmt: skip
    report = verify_models(a, b)
    assert report.ok
    assert 0 < report.max_abs < 1e-5


ROUNDING = "other roundings of the first model alone change "


@pytest.mark.parametrize("isolated", [False, True])
def test_a_refusal_tells_the_rounding_of_the_first_model(isolated):
    """onnxruntime puts the Mul in the convolution: its results are not exactly the same."""
    rng = np.random.default_rng(0)

    def conv(scale: float) -> onnx.ModelProto:
        model = model_of("c = Conv(x, w) y = Mul(c, k)", "float[1, 16, N, N] x",
                         "float[1, 16, A, B] y")  # fmt: skip
        weight = rng.standard_normal((16, 16, 3, 3)).astype(np.float32)
        factor = rng.standard_normal((16, 1, 1)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
        model.graph.initializer.append(onnx.numpy_helper.from_array(factor * scale, "k"))
        return model

    a = conv(1.0)
    rng = np.random.default_rng(0)
    b = conv(np.float32(1.01))
    report = verify_models(a, b, sizes={"N": 8}, isolated=isolated)
    assert not report.ok and ROUNDING in report.reason
    assert "is over 0.0001 (absolute" in report.reason
    assert 0 < float(report.reason.split(ROUNDING)[1]) < 1e-4 < report.max_rel
    assert len(report.rows[0].where) == 4


def test_the_rounding_of_the_first_model_is_a_floor():
    """Sums of numbers that cancel out: neither order is right, doubles tell how wrong both are."""
    first = "a = Add(x, k) b = Add(a, x) y = Sub(b, k)"
    second = "a = Add(x, x) b = Add(a, k) y = Sub(b, k)"
    constant = "k = Constant<value_float: float=10000.>() "
    report = verify_models(model_of(constant + first), model_of(constant + second))
    assert report.ok and report.max_rel > 1e-5 and "rounding, " in report.rows[0].reason
    third = "a = Add(x, x) h = Constant<value_float: float=1.01>() b = Mul(a, h) y = Identity(b)"
    assert not verify_models(model_of(constant + first), model_of(third)).ok


def test_a_refusal_says_nothing_of_a_model_that_rounds_nothing():
    half = "h = Constant<value_float: float=0.999>() y = Mul(x, h)"
    report = verify_models(model_of("y = Identity(x)"), model_of(half))
    assert not report.ok and ROUNDING not in report.reason


@pytest.mark.parametrize(
    "body,reason",
    [
        ("y = Abs(x)", "relative difference"),
        ("z = Log(x)\n y = Neg(z)", "NaN or infinite"),
        ("y = Cast<to: int = 11>(x)", "type float32 became float64"),
        ("y = Transpose<perm: ints = [1, 0]>(x)", "shape"),
    ],
)
def test_differences_are_refused(body, reason):
    after = model_of(body, outputs="double[N, 4] y" if "Cast" in body else "float[A, B] y")
    report = verify_models(model_of("y = Neg(x)"), after)
    assert not report.ok
    assert reason in report.rows[0].reason
    with pytest.raises(VerificationError, match="differ on 1 of 1 output.*'y'"):
        report.raise_if_different()


def test_a_small_difference_is_over_a_smaller_tolerance():
    a = model_of("y = Neg(x)")
    b = model_of("c = Constant<value_float: float=-1.00001>()\n y = Mul(x, c)")
    assert verify_models(a, b, rtol=1e-4).ok
    assert not verify_models(a, b, rtol=1e-6).ok


def test_given_inputs_are_used():
    a, b = model_of("y = Relu(x)"), model_of("y = Identity(x)")
    positive = {"x": np.ones((2, 4), np.float32)}
    assert verify_models(a, b, inputs=positive).ok
    assert verify_models(a, b, inputs=positive).seed is None
    assert not verify_models(a, b, inputs={"x": -positive["x"]}).ok


def test_paths_and_bytes(tmp_path):
    model = model_of("y = Neg(x)")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert verify_models(path, model.SerializeToString()).ok
    assert verify_models(str(path), model).ok
    text = tmp_path / "m.onnxtxt"
    text.write_text(onnx.printer.to_text(model), encoding="utf-8")
    assert verify_models(text, model).ok


def test_sizes_are_looked_for():
    body = "c = Constant<value_ints: ints=[-1, 16]>()\n y = Reshape(x, c)"
    model = model_of(body, inputs="float[N] x", outputs="float[A, 16] y")
    report = verify_models(model, model)
    assert report.sizes["N"] % 16 == 0
    with pytest.raises(VerificationError, match=r"does not run the first model.*\['N'\]"):
        verify_models(model, model, sizes={"N": 3})


def test_indices_are_kept_in_range():
    body = "w = Constant<value: tensor = float[2, 3] {1., 2., 3., 4., 5., 6.}>()\n y = Gather(w, x)"
    model = model_of(body, inputs="int64[50] x", outputs="float[50, 3] y")
    assert verify_models(model, model).ok


def test_random_operators_are_compared_by_shape():
    body = "r = RandomNormalLike(x)\n y = Add(x, r)"
    report = verify_models(model_of(body), model_of(body))
    assert report.ok and report.rows[0].reason == "random, shape only"
    wrong = model_of(body + "\n z = Transpose(y)", outputs="float[4, N] z")
    with pytest.raises(VerificationError, match="outputs of the models"):
        verify_models(model_of(body), wrong)


def test_names_of_inputs_must_agree():
    other = model_of("y = Neg(z)", inputs="float[N, 4] z")
    sides = r"\['x'\] only in the first one, \['z'\] only in the second one$"
    with pytest.raises(VerificationError, match=f"inputs of the models are not the same: {sides}"):
        verify_models(model_of("y = Neg(x)"), other)
    other = model_of("y = Neg(x)", inputs="float[N, 4] x, float s")
    with pytest.raises(VerificationError, match=r"not the same: \['s'\] only in the second one$"):
        verify_models(model_of("y = Neg(x)"), other)


def test_a_model_that_does_not_load_is_named():
    wrong = model_of("y = unknown.Op(x)")
    wrong.opset_import.add(domain="unknown", version=1)
    with pytest.raises(VerificationError, match="does not load the second model"):
        verify_models(model_of("y = Neg(x)"), wrong)
    with pytest.raises(VerificationError, match="does not load the first model.* does not either"):
        verify_models(wrong, model_of("y = Neg(x)"))


@pytest.mark.parametrize(("body", "ok"), [("y = Relu(q)", True), ("y = Neg(q)", False)])
def test_the_reference_evaluator_runs_what_onnxruntime_does_not_load(body, ok):
    rows = "q = DequantizeLinear(i, s)"
    text = f"""<ir_version: 13, opset_import: ["" : 28]> g (int8[N] i) => (float[N] y)
        <float s = {{0.5}}> {{ {rows} y = Relu(q) }}"""
    before = onnx.parser.parse_model(text)
    old = text.replace("Relu(q)", body.removeprefix("y = ")).replace('"" : 28', '"" : 23')
    report = verify_models(before, onnx.parser.parse_model(old), sizes={"N": 5})
    assert report.ok is ok
    assert "implementation for DequantizeLinear(28)" in report.not_loaded
    with pytest.raises(VerificationError, match="does not load the second model"):
        verify_models(onnx.parser.parse_model(old), before)


@pytest.mark.parametrize(("body", "ok"), [("Neg", True), ("Exp", False)])
@pytest.mark.parametrize("drawn", ["RandomNormal<seed = 1.0, shape = [2]>", "f.twice"])
def test_each_runtime_draws_its_own_numbers(body, ok, drawn):
    """The seed is the same, the generator is not; an output without random numbers is compared."""
    text = f"""<ir_version: 13, opset_import: ["" : 28, "f" : 1]>
        g (int8[N] i) => (float[N] y, float[2] z) <float s = {{0.5}}> {{
            q = DequantizeLinear(i, s) y = Neg(q) r = {drawn}() z = Abs(r)
        }}
        <domain: "f", opset_import: ["" : 21]> once () => (c) {{
            c = RandomNormal<shape = [2]>()
        }}
        <domain: "f", opset_import: ["" : 21, "f" : 1]> twice () => (c) {{
            a = f.once() c = Add(a, a)
        }}"""
    before = onnx.parser.parse_model(text)
    after = onnx.parser.parse_model(text.replace('"" : 28', '"" : 21').replace("Neg", body))
    report = verify_models(before, after, sizes={"N": 5})
    assert report.not_loaded and [row.ok for row in report.rows] == [ok, True]
    assert report.rows[1].reason


@pytest.mark.parametrize(("body", "ok"), [("Neg", True), ("Abs", False)])
def test_both_models_run_in_one_runtime(body, ok):
    """The reference evaluator gives a scan of scalars two dimensions, onnxruntime gives it one."""
    text = """<ir_version: 13, opset_import: ["" : 28]> g (int8[N] i) => (float[N] q, float[M] y)
        <float s = {0.5}, int64 n = {3}, bool yes = {1}, float one = {1}> {
            q = DequantizeLinear(i, s)
            y = Loop(n, yes) <body = b (int64 k, bool c) => (bool d, float z) {
                d = Identity(c) z = Neg(one)
            }>
        }"""
    before = onnx.parser.parse_model(text)
    after = text.replace('"" : 28', '"" : 23').replace("Neg", body)
    report = verify_models(before, onnx.parser.parse_model(after))
    assert report.not_loaded and report.rows[0].ok and report.rows[1].ok is ok
    assert report.rows[1].reason.startswith("in onnxruntime, shape (3, 1) became (3,)") is ok


def test_branches_the_reference_evaluator_runs_are_not_counted():
    """It tells nothing of what ran."""
    text = """<ir_version: 13, opset_import: ["" : 28]> g (int8[N] i, bool c) => (float[N] y)
        <float s = {0.5}> { y = If(c) <
            then_branch = t () => (float[N] a) { a = DequantizeLinear(i, s) },
            else_branch = e () => (float[N] b) { q = DequantizeLinear(i, s) b = Neg(q) }
        > }"""
    before = onnx.parser.parse_model(text)
    report = verify_models(before, onnx.parser.parse_model(text.replace('"" : 28', '"" : 23')))
    assert report.ok and report.not_loaded
    assert [body.name for body in report.never_ran] == ["then_branch of y", "else_branch of y"]


def test_unknown_dimension():
    with pytest.raises(OptionError, match="no dimension 'M'"):
        verify_models(model_of("y = Neg(x)"), model_of("y = Neg(x)"), sizes={"M": 3})


def test_compare_other_types():
    ints = np.array([1, 2, 3])
    row = compare_outputs("y", ints, np.array([1, 2, 5]))
    assert not row.ok and row.max_abs == 2 and "1 of 3" in row.reason
    assert compare_outputs("y", ints, ints.copy()).ok
    assert not compare_outputs("y", np.array([True]), np.array([False])).ok
    words = np.array(["a", "b"], dtype=object)
    assert compare_outputs("y", words, words.copy()).ok
    assert not compare_outputs("y", words, words[::-1]).ok


def test_compare_sequences_and_optionals():
    a = [np.ones(2), np.zeros(2)]
    assert compare_outputs("y", a, [x.copy() for x in a]).ok
    assert not compare_outputs("y", a, a[:1]).ok
    row = compare_outputs("y", a, [a[0], a[0]])
    assert not row.ok and row.where == (1, 0) and row.reason.startswith("element 1: ")
    assert row.to_row()["where"] == [1, 0]
    assert compare_outputs("y", None, None).ok
    assert math.isinf(compare_outputs("y", None, np.ones(1)).max_abs)


def test_compare_maps():
    """Numbers are compared as numbers, whatever the order of the keys; the keys are exact."""
    a = [{0: 0.25, 2: 0.5}]
    assert compare_outputs("y", a, [{2: 0.5, 0: 0.25}]).ok
    near = compare_outputs("y", a, [{0: 0.25, 2: 0.5000001}])
    assert near.ok and near.max_abs == pytest.approx(1e-7, rel=0.5)
    far = compare_outputs("y", a, [{0: 0.25, 2: 0.75}])
    assert not far.ok and far.where == (0, 1, 1)
    assert not compare_outputs("y", a, [{0: 0.25, 3: 0.5}]).ok
    assert not compare_outputs("y", a, [{0: 0.25}]).ok
    words = [{"long": 1.0, "b": 2.0}]
    assert compare_outputs("y", words, [dict(words[0])]).ok
    assert not compare_outputs("y", words, [{"b": 1.0, "long": 2.0}]).ok


def test_container_of_a_large_model(tmp_path):
    from xbuilder.files.model_container import ModelContainer

    model = model_of("y = Add(x, w)", inputs="float[4] x", outputs="float[4] y")
    weights = np.arange(4, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    assert verify_models(path, ModelContainer(model, {"w": weights})).ok
    assert not verify_models(path, ModelContainer(model, {"w": weights + 1})).ok


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("kind,number", [("bfloat16", 16), ("float8e4m3fn", 17), ("int4", 22)])
def test_types_that_numpy_lacks(kind: str, number: int, isolated: bool) -> None:
    """They are inputs and outputs; the values that come back are compared."""

    def model(body: str) -> onnx.ModelProto:
        return onnx.parser.parse_model(
            f'<ir_version: 10, opset_import: ["" : 21]> g ({kind}[n] x, float[n] z) => '
            f"({kind}[n] y, float[n] t) {{ f = Cast<to = 1>(x) {body} }}"
        )

    same = model(f"y = Cast<to = {number}>(f) t = Add(f, z)")
    other = model(f"g = Neg(f) y = Cast<to = {number}>(g) t = Add(f, z)")
    report = verify_models(same, same, sizes={"n": 50}, isolated=isolated)
    assert report.ok and report.rows[0].dtype == helper.tensor_dtype_to_np_dtype(number).name
    report = verify_models(same, other, sizes={"n": 50}, isolated=isolated)
    assert [row.ok for row in report.rows] == [False, True]
    value = np.array([1, -2], helper.tensor_dtype_to_np_dtype(number))
    given = {"x": value, "z": np.ones(2, np.float32)}
    assert verify_models(same, same, given, isolated=isolated).ok


@pytest.mark.parametrize(("factor", "ok"), [(1 + 2.0**-7, True), (1 + 2.0**-4, False)])
def test_neither_model_loads(factor: float, ok: bool) -> None:
    """onnxruntime has no kernel for these products: the reference evaluator runs both, within units
    in the last place."""

    def scaled(value: float) -> onnx.ModelProto:
        return onnx.parser.parse_model(
            '<ir_version: 9, opset_import: ["" : 18]> '
            "g (bfloat16[n, 4] x, bfloat16[4, 4] w) => (bfloat16[n, 4] y) "
            f"{{ c = Constant<value_float = {value}>() b = Cast<to = 16>(c) "
            "a = MatMul(x, w) y = Mul(a, b) }"
        )

    report = verify_models(scaled(1.0), scaled(factor))
    assert report.ok is ok and report.not_loaded.count("implementation for MatMul") == 2
