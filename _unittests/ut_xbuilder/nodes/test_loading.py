"""The nodes onnxruntime loads: the table of kernels and sessions agree on every operator."""

from __future__ import annotations

from collections import Counter

import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto
from ut_xbuilder.nodes.one_node_models import (
    STANDARD,
    OneNode,
    ask_session,
    contrib_models,
    schema_models,
    standard_models,
)

from xbuilder.nodes.loading import loads, loads_written, types_without_kernel
from xbuilder.operators.opsets import newest_opset
from xbuilder.runtimes.installed import installed_version
from xbuilder.runtimes.kernel_table import shipped_kernels

TABLE = shipped_kernels("CPU")
FLOAT, HALF, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
#: operators no session is compared for: bodies and tensors that the schema does not give, values
#: that the operator refuses
NOT_COMPARED = {
    "If",
    "LabelEncoder",
    "LinearClassifier",
    "Loop",
    "OneHotEncoder",
    "SVMClassifier",
    "Scan",
    "SequenceMap",
    "TfIdfVectorizer",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "ZipMap",
}


def difference(one: OneNode) -> str | None:
    """The difference between the table and a session, None if the session refuses the node for
    another reason than its kernel."""
    answer = ask_session(one)
    # the table is not asked about elements of sequences
    if answer.loads is None or (0 in one.elem_types and "MLDataType" in answer.message):
        return None
    try:
        results = one.output_types()
    except onnx.shape_inference.InferenceError:
        results = []
    asked = one.elem_types, results
    runs = TABLE.runs(one.op_type, one.domain, one.opset, *asked)
    if loads(TABLE, one.node(), one.opset, *asked) != answer.loads:
        return f"a session {'loads' if answer.loads else 'refuses'} {one}: {answer.message}"
    # a session does not say that it computes float16 with the kernel of float
    whole = answer.loads and not answer.expanded and one.op_type != "Constant"
    if runs != whole and (HALF not in one.elem_types or not whole):
        return f"a session {'has a kernel for' if whole else 'expands'} {one}"
    return ""


needs_same_runtime = pytest.mark.skipif(
    TABLE.runtime != f"onnxruntime {installed_version()}",
    reason="another version of onnxruntime is installed than the one of the file",
)


@needs_same_runtime
@pytest.mark.slow
def test_every_operator_definition_and_type() -> None:
    """15,000 sessions in half a minute."""
    compared: Counter[str] = Counter()
    refused = 0
    wrong = []
    for one in standard_models(newest_opset()):
        found = difference(one)
        compared[one.op_type] += found is not None
        refused += found is None
        if found:
            wrong.append(found)
    assert wrong == []
    names = {s.name for s in onnx.defs.get_all_schemas() if s.domain in STANDARD}
    assert {name for name in names if not compared[name]} == NOT_COMPARED
    assert compared.total() > 15000 and refused < compared.total() / 7


@needs_same_runtime
@pytest.mark.slow
def test_every_operator_of_onnxruntime() -> None:
    """1,300 sessions. It expands two of them in double, which is not known here: it is no."""
    compared: Counter[str] = Counter()
    wrong = set()
    for one in contrib_models():
        try:
            answer = ask_session(one)
        except AttributeError:  # the value of an attribute is a tensor
            continue
        if answer.loads is not None:
            compared[one.op_type] += 1
            if loads(TABLE, one.node(), 1, one.elem_types) != answer.loads:
                wrong.add((one.op_type, *one.types))
    double = "tensor(double)"
    assert wrong == {("FastGelu", double), ("FastGelu", double, double), ("QuickGelu", double)}
    assert len(compared) > 110 and compared.total() > 1200


@needs_same_runtime
@pytest.mark.parametrize("op_type", ["HardSwish", "Relu", "RoiAlign", "Swish"])
def test_newest_opsets(op_type: str) -> None:
    """A sample of the comparison with all sessions."""
    for opset in range(22, newest_opset() + 1):
        if onnx.defs.has(op_type, opset):
            found = [
                difference(one)
                for one in schema_models(onnx.defs.get_schema(op_type, opset), [opset])
            ]
            assert {f for f in found if f} == set() and "" in found, opset


@pytest.mark.parametrize(
    ("op_type", "kind", "opset", "expected"),
    [
        ("Relu", FLOAT, 28, True),
        ("Relu", HALF, 28, True),
        ("Swish", FLOAT, 24, True),
        ("Swish", FLOAT, 25, False),
        ("Gelu", HALF, 20, True),
        ("Gelu", DOUBLE, 20, False),
        ("RoiAlign", FLOAT, 16, True),
        ("RoiAlign", FLOAT, 22, False),
        ("Unknown", FLOAT, 18, False),
    ],
)
def test_loads(op_type: str, kind: int, opset: int, expected: bool) -> None:
    node = oh.make_node(op_type, ["x"], ["y"])
    assert loads(TABLE, node, opset, [kind]) is expected


def test_float16_needs_a_processor_that_casts() -> None:
    """Only sessions on CPU cast."""
    node = oh.make_node("Sigmoid", ["x"], ["y"])
    table = type(TABLE)({**TABLE.data, "provider": "CUDAExecutionProvider"})
    assert loads(TABLE, node, 18, [HALF]) and not loads(table, node, 18, [HALF])


def test_types_of_outputs() -> None:
    """The types of the inputs do not say which kernel of Cast is needed."""
    node = oh.make_node("Cast", ["x"], ["y"], to=TensorProto.COMPLEX64)
    assert loads(TABLE, node, 25, [FLOAT])
    assert not loads(TABLE, node, 25, [FLOAT], [TensorProto.COMPLEX64])


def test_function_that_refuses_the_types() -> None:
    """The function of RMSNormalization multiplies both operands."""
    node = oh.make_node("RMSNormalization", ["x", "scale"], ["y"])
    assert loads(TABLE, node, 23, [FLOAT, FLOAT])
    assert not loads(TABLE, node, 23, [FLOAT, DOUBLE])


@pytest.mark.parametrize(
    ("op_type", "opset", "expected"),
    [
        ("Swish", 24, ["double", "float", "float16"]),
        ("Swish", 25, []),
        ("Attention", 25, ["double", "float", "float16"]),
        ("Tanh", 18, ["float16"]),
        ("RandomNormal", 18, []),
        ("Unknown", 18, []),
    ],
)
def test_types_without_kernel(op_type: str, opset: int, expected: list[str]) -> None:
    assert types_without_kernel(TABLE, op_type, opset)[1] == expected


SHAPES = {"known": (("b", 3, "l"), (3, 1, 4)), "unknown": (None, None), "none": ()}


@pytest.mark.parametrize("name", SHAPES)
def test_function_that_depends_on_shapes(name: str) -> None:
    node = oh.make_node("CausalConvWithState", ["x", "w"], ["y", "state"])
    assert loads(TABLE, node, 28, [FLOAT, FLOAT], shapes=SHAPES[name]) is (name == "known")


@pytest.mark.parametrize(
    ("op_type", "kind", "expected"),
    [
        ("Swish", FLOAT, True),
        ("HardSwish", DOUBLE, True),
        ("Gelu", DOUBLE, False),
        ("RoiAlign", FLOAT, False),
    ],
)
def test_loads_written(op_type: str, kind: int, expected: bool) -> None:
    node = oh.make_node(op_type, ["x"], ["y"])
    assert not loads(TABLE, node, 28, [kind])
    assert loads_written(TABLE, node, 28, [kind]) is expected


@pytest.mark.parametrize(
    "to, expected", [(TensorProto.INT32, True), (TensorProto.FLOAT4E2M1, False)]
)
def test_the_written_function_gives_a_type(to: int, expected: bool) -> None:
    """The inputs of the Cast that a CastLike stands for do not tell its result."""
    node = oh.make_node("CastLike", ["x", "like"], ["y"])
    assert loads_written(TABLE, node, 23, [FLOAT, to], [to]) is expected


@pytest.mark.parametrize("kinds", [[0], [0, 0], [0, FLOAT]])
def test_a_function_of_sequences(kinds: list[int]) -> None:
    """The function of SequenceMap takes its elements out of the inputs that are no tensor."""
    body = oh.make_graph(
        [oh.make_node("Identity", ["a"], ["b"])],
        "body",
        [oh.make_tensor_value_info(f"a{i}", FLOAT, None) for i in range(len(kinds))],
        [oh.make_tensor_value_info("b", FLOAT, None)],
    )
    body.node[0].input[0] = body.input[0].name
    node = oh.make_node("SequenceMap", [f"x{i}" for i in range(len(kinds))], ["y"], body=body)
    assert loads(TABLE, node, 18, kinds)
