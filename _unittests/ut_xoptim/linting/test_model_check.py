"""Tests of the findings about a model: each code on a model that has it and on one that has not."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.parser
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array

from xbuilder import GraphBuilder
from xbuilder.errors import InvalidModelError, OptionError
from xoptim.linting.findings import CODES
from xoptim.linting.mending import mending_options
from xoptim.linting.model_check import CheckReport, check_model
from xoptim.testing import run_onnxruntime


def parse(text: str, opset: int = 18) -> onnx.ModelProto:
    head = f'<ir_version: 10, opset_import: ["" : {opset}, "my" : 1]>\n'
    return onnx.parser.parse_model(head + text)


def model_with(code: str) -> onnx.ModelProto:
    """The model of :data:`WRONG` that has a finding."""
    model = parse(*WRONG[code][:2])
    if code == "X010":
        model.opset_import.add(domain="ai.onnx.ml", version=9)
    return model


def codes(report: CheckReport) -> list[str]:
    return [f.code for f in report.findings]


CLEAN = "g (float[a,4] x) => (float[a,4] y) { y = Relu(x) }"
#: code -> a model that has it, its opset, a part of the message
WRONG = {
    "X000": ("g (float[a,4] x) => (float[a,4] y) { y = Relu<alpha = 1.0>(x) }", 18, "alpha"),
    "X001": ("g (float[a,4] x) => (float[a,4] y) { y = Relu<alpha = 1.0>(x) }", 18, "alpha"),
    "X002": ("g (double[a,4,5] x) => (double[a,4,5] y) { y = LRN<size = 3>(x) }", 18, "double"),
    "X003": ("g (float[a,4] x) => (float[a,4] y) { y = my.Unheard(x) }", 18, "'my'"),
    "X004": (
        "g (float[4,4] x, int64[2] s) => (float[b,c] y) { y = CenterCropPad(x, s) }",
        18,
        "definition",
    ),
    "X005": ("g (float16[a,4,5] x) => (float16[a,4,5] y) { y = LRN<size = 3>(x) }", 18, "float"),
    "X006": ("g (float[a,4] x) => (float[a,4] y) { y = Swish(x) }", 25, "opset 25"),
    "X008": (
        "g (bfloat16[a,b] x) => (bfloat16[a,b] y) { y = LpNormalization(x) }",
        18,
        "input is bfloat16: it wants double, float, float16",
    ),
    "X009": ("g (float[a,4] x) => (int64[a,4] y) { y = Relu(x) }", 18, "float against int64"),
    "X010": ("g (float[a,4] x) => (float[a,4] y) { y = Relu(x) }", 18, "supports version 5"),
    "X101": (
        """g (float[batch,4] x) => (float[2,2] y)
        { s = Constant<value = int64[2] {2, 2}>()  y = Reshape(x, s) }""",
        18,
        "['batch', 4]",
    ),
    "X103": (
        "g (float[a] x) => (float16[a] y) { t = Cast<to = 11>(x)  y = Cast<to = 10>(t) }",
        18,
        "Cast 't'",
    ),
    "X106": ("g (float[a] x) => (float[a] y) { t = Neg(x)  y = Abs(x) }", 18, "nothing reads"),
    "X107": ("g (float[a,4] x) => (float[a,5] y) { y = Relu(x) }", 18, "'y'"),
    "X108": (
        'g (string[a] x) => (string[a] y) { y = StringNormalizer<case_change_action="LOWER">(x) }',
        18,
        "en_US",
    ),
    "X109": (
        """g (float[a] x, int64[b,1] i, float[b] u) => (float[a] y)
        { y = ScatterND<reduction = "add">(x, i, u) }""",
        18,
        "loses updates",
    ),
}


def test_a_clean_model():
    report = check_model(parse(CLEAN))
    assert report.findings == () and report.ok and report.nodes == 1
    assert report.counts() == {"error": 0, "warning": 0, "note": 0}


@pytest.mark.parametrize("code", sorted(WRONG))
def test_each_finding(code):
    expected = WRONG[code][2]
    report = check_model(model_with(code))
    found = [f for f in report.findings if f.code == code]
    assert len(found) == 1, report.findings
    assert expected in found[0].message
    assert report.ok == all(CODES[c].severity != "error" for c in codes(report))


@pytest.mark.parametrize(
    "indices, reduction, found",
    [
        ("{0, 2}", "add", []),
        ("{1, 1}", "add", ["X109"]),
        ("{1, 1}", "none", []),
        ("{-1, 2}", "max", ["X109"]),
        ("{-1, 1}", "max", []),
    ],
)
def test_updates_that_meet(indices: str, reduction: str, found: list[str]) -> None:
    """Constant indices, of which negative ones count from the end."""
    text = f"""g (float[3] x, float[2] u) => (float[3] y) <int64[2,1] i = {indices}>
        {{ y = ScatterND<reduction = "{reduction}">(x, i, u) }}"""
    report = check_model(parse(text))
    assert codes(report) == found
    assert all("ScatterElements" in f.advice for f in report.findings)


@pytest.mark.parametrize(
    "body, expected",
    [
        ("y = Add(x, i)", "A is float and B is int64: it wants one type T"),
        ("y = Where(i, x, x)", "condition is int64: it wants bool"),
        ("y = Concat<axis = 0>(x, z, i)", "input 2 is int64"),
        ("y = Concat<axis = 7>(x, x)", "axis must be in [-rank, rank-1]: it reads [2, 5], [2, 5]"),
        ("y = MatMul(x, z)", "Incompatible dimensions for matrix multiplication"),
        ("y = Add(x, z)", "Incompatible dimensions: it reads [2, 5], [3, 4]"),
        ("y = Transpose<perm = [0, 2]>(x)", "Invalid attribute perm {0, 2}"),
        ("y = Softmax<axis = 4>(x)", "'axis' must be in [-2 , 1]"),
        ("y = MaxPool<kernel_shape = [2, 2, 2]>(x)", "at least 3 dimensions: it reads [2, 5]"),
        ("one = Constant<value_ints = [9]>() y = Unsqueeze(x, one)", "Unexpected axis value: 9"),
        ("y = If (c) <then_branch = t () => (b) { b = MatMul(x, x) }, "
         "else_branch = e () => (b) { b = Abs(x) }>", "Incompatible"),
        ("y = my.product(x, z)", "Incompatible"),
    ],
)  # fmt: skip
def test_what_a_definition_refuses(body: str, expected: str) -> None:
    """A session refuses it too; in bodies and functions as well."""
    function = """<domain: "my", opset_import: ["" : 18]>
        product (a, b) => (p) { p = MatMul(a, b) }"""
    text = f"g (float[2,5] x, float[3,4] z, int64[2,5] i, bool c) => (float y) {{ {body} }}"
    model = parse(f"{text} {function if 'my.' in body else ''}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    (found,) = [
        f for f in check_model(model).findings if f.severity == "error" and f.code != "X001"
    ]
    assert found.code == "X008" and expected in found.message
    with pytest.raises(Exception, match=r"Type Error|InferenceError|\[ONNXRuntimeError\]"):
        run_onnxruntime(model, {})


def test_constants_keep_their_rank():
    """Range takes numbers, no vectors of one element."""
    text = """g (int64[3] x) => (int64[3] y) <int64 a = {0}, int64 b = {3}, int64 c = {1}> {
        r = Range(a, b, c) y = Add(x, r) }"""
    assert codes(check_model(parse(text))) == []


def test_a_definition_that_depends_on_shapes():
    text = """g (float[b,8,l] x, float[8,1,4] w) => (float[b,8,l] y, float[b,8,3] s) {
        y, s = CausalConvWithState(x, w) }"""
    assert codes(check_model(parse(text, 28))) == ["X004"]


def test_an_operator_that_stays_has_a_reason():
    text, opset, _ = WRONG["X002"]
    (finding,) = check_model(parse(text, opset)).findings
    assert "MissingType leaves it: onnxruntime has no kernel for a wider type" in finding.advice


def with_weights(**arrays: np.ndarray) -> onnx.ModelProto:
    """A model whose outputs are its weights."""
    weights = [from_array(array, name) for name, array in arrays.items()]
    nodes = [oh.make_node("Identity", [w.name], [f"out_{w.name}"]) for w in weights]
    outputs = [
        oh.make_tensor_value_info(f"out_{w.name}", w.data_type, list(w.dims)) for w in weights
    ]
    graph = oh.make_graph(nodes, "g", [], outputs, weights)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=10)


def test_weights():
    one = np.linspace(0, 1, 2000, dtype=np.float32)
    big = one * np.float32(70000)
    positions = np.arange(2000)
    report = check_model(with_weights(a=one, b=one.copy(), c=one[:1000], d=big, e=positions))
    assert [(f.code, f.where) for f in report.findings] == [
        ("X102", "tensor 'b'"), ("X104", "tensor 'd'"), ("X105", "tensor 'e'")
    ]  # fmt: skip
    wide = positions + 2**40
    infinite = np.where(one > 0.5, np.float32(np.inf), one)
    assert codes(check_model(with_weights(d=infinite, e=wide))) == []
    halves = one.astype(np.float16)
    assert codes(check_model(with_weights(a=one, b=halves, c=one.reshape(20, 100)))) == []


def test_texts_are_not_numbers():
    graph = oh.make_graph(
        [oh.make_node("Identity", ["s"], ["y"])],
        "g",
        [],
        [oh.make_tensor_value_info("y", TensorProto.STRING, [2000])],
        [oh.make_tensor("s", TensorProto.STRING, [2000], [b"a"] * 2000)],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=10)
    assert codes(check_model(model)) == []


def test_bodies_are_looked_at():
    text = """g (bool c, float[a] x) => (float16[a] y) {
        y = If (c) <
            then_branch = t () => (float16[a] p) { q = Cast<to = 11>(x)  p = Cast<to = 10>(q) },
            else_branch = e () => (float16[a] r) { r = Cast<to = 10>(x) }
        > }"""
    report = check_model(parse(text))
    assert codes(report) == ["X103"] and report.nodes == 4
    assert report.findings[0].where == "Cast 'p'"


def test_what_a_body_captures_is_read():
    text = """g (bool c, float[a] x, float[a] z) => (float[a] y) {
        u = Neg(x)
        y = If (c) <
            then_branch = t () => (float[a] p) { p = Abs(u) },
            else_branch = e () => (float[a] r) { r = Exp(z) }
        > }"""
    assert codes(check_model(parse(text))) == []


def test_functions():
    text = """g (float[a] x) => (float[a] y) { y = my.twice(x) }
    <domain: "my", opset_import: ["" : 18]> twice (u) => (v) { v = Add(u, u) }"""
    assert codes(check_model(parse(text))) == []
    unused = text.replace("my.twice(x)", "Neg(x)")
    report = check_model(parse(unused))
    assert [(f.code, f.where) for f in report.findings] == [("X106", "function 'twice'")]


def test_a_fixed_size_is_not_frozen_when_the_input_is_fixed_too():
    text, opset, _ = WRONG["X101"]
    assert codes(check_model(parse(text.replace("batch", "1"), opset))) == []
    free = text.replace("{2, 2}", "{-1, 2}").replace("float[2,2] y", "float[c,2] y")
    assert codes(check_model(parse(free, opset))) == []


@pytest.mark.filterwarnings("ignore:The model declares something else")
@pytest.mark.parametrize("code", sorted(c for c in CODES if CODES[c].is_mended))
def test_what_is_said_to_be_mended_is_mended(code):
    if code == "X102":
        one = np.linspace(0, 1, 2000, dtype=np.float32)
        model = with_weights(a=one, b=one.copy())
        model.graph.node[0].op_type = model.graph.node[1].op_type = "Neg"
    else:
        model = model_with(code)
    report = check_model(model)
    assert report.fixable == (code,)
    options = mending_options(report.fixable)
    mended = GraphBuilder(model, infer_shapes_options=True, optimization_options=options).to_onnx()
    assert code not in codes(check_model(mended))


def test_wrong_arguments(tmp_path):
    with pytest.raises(OptionError, match="abacus"):
        check_model(parse(CLEAN), processor="abacus")
    path = tmp_path / "m.onnx"
    path.write_bytes(b"nothing")
    with pytest.raises(InvalidModelError, match=r"m\.onnx"):
        check_model(str(path))


def test_every_code_has_a_model():
    others = {"X007", "X102", "X104", "X105"}  # of types, see test_unknown_types, and of weights
    assert WRONG.keys() | others == CODES.keys()


def test_kernels_that_are_not_listed() -> None:
    """Nothing is known of the kernels of ONNX on CUDA: nodes are not errors, and are counted."""
    text = """g (float[a,4] x) => (float[a,4] y) { m = Relu(x) n = my.Unheard(m)
    y = com.microsoft.FastGelu(x) }"""
    head = '<ir_version: 10, opset_import: ["" : 18, "my" : 1, "com.microsoft" : 1]>\n'
    model = onnx.parser.parse_model(head + text)
    report = check_model(model, "CUDA")
    assert codes(report) == ["X003", "X106"] and any("1 node on CUDA" in s for s in report.skipped)
    assert not check_model(model).skipped
    wrong = onnx.parser.parse_model(head + text.replace("float[a", "int64[a"))
    assert "X002" in codes(check_model(wrong, "CUDA"))


@pytest.mark.parametrize("op_type, opset", [("Cast", 23), ("CastLike", 23), ("EyeLike", 22)])
def test_the_type_of_the_result_counts(op_type: str, opset: int) -> None:
    """The inputs do not tell that no kernel writes float4 or small integers, and the Cast that a
    CastLike stands for has no kernel either. EyeLike in int32 has one."""
    to = "uint8" if op_type == "EyeLike" else "float4e2m1"
    code = TensorProto.DataType.Value(to.upper())
    attribute = {"Cast": f"<to = {code}>", "EyeLike": f"<dtype = {code}>"}.get(op_type, "")
    second = f", {to}[n,m] like" if op_type == "CastLike" else ""
    inputs = "x, like" if second else "x"
    text = f"g (float[n,m] x{second}) => ({to}[n,m] y) {{ y = {op_type}{attribute}({inputs}) }}"
    (finding,) = check_model(parse(text, opset)).findings
    assert finding.code == ("X006" if op_type == "EyeLike" else "X002") and to in finding.message


@pytest.mark.parametrize(
    "text, opset, advice",
    [
        (
            "g (double[a,4,5] x) => (double[a,4,5] y) { y = LRN<size = 3>(x) }",
            18,
            "no opset has one for these types, opset 13 has one for T: float",
        ),
        (
            """g (double[n,3,h,w] x, double[r,4] b, int64[r] i) => (double[r,3,2,2] y) {
            y = RoiAlign<mode = "max", output_height = 2, output_width = 2>(x, b, i) }""",
            22,
            "opset 16 has one for these types",
        ),
        (
            "g (optional(float[n]) x) => (bool y) { y = OptionalHasElement(x) }",
            28,
            "opset 18 has one for these types",
        ),
        (
            "g (uint8[n] x) => (uint8[h,w,3] y) { y = ImageDecoder(x) }",
            20,
            "no opset has one",
        ),
    ],
)
def test_the_advice_looks_at_types(text: str, opset: int, advice: str) -> None:
    """Another opset helps if its kernel takes the types of the node."""
    (finding,) = (f for f in check_model(parse(text, opset)).findings if f.code == "X002")
    assert finding.advice.split("; ")[0] == advice


@pytest.mark.parametrize(
    "attributes, locale",
    [
        ('case_change_action = "UPPER", locale = "fr_FR"', "fr_FR"),
        ('case_change_action = "UPPER", locale = "C"', ""),
        ('stopwords = ["a"]', "en_US.UTF-8"),
        ('stopwords = ["a"], is_case_sensitive = 1', ""),
        ("is_case_sensitive = 0", ""),
    ],
)
def test_locales(attributes: str, locale: str) -> None:
    """As onnxruntime constructs them: to change the case, or to ignore it."""
    text = f"g (string[a] x) => (string[b] y) {{ y = StringNormalizer<{attributes}>(x) }}"
    messages = [f.message for f in check_model(parse(text)).findings if f.code == "X108"]
    assert len(messages) == bool(locale) and all(locale in message for message in messages)


def test_another_opset_does_not_help_refused_attributes() -> None:
    text = """g (double[b,s,3] x, double[1,16,3] w, double[1,16,4] r) => (double[b,1,4] h) {
        y, h = LSTM<hidden_size = 4, layout = 1>(x, w, r) }"""
    (finding,) = (f for f in check_model(parse(text, 22)).findings if f.code == "X002")
    assert "refuses layout=1" in finding.message and not finding.advice.startswith(("opset", ";"))
