"""Every operator converters write runs on a CPU, with casts where a kernel is missing."""

from __future__ import annotations

import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
from ut_torch_interpreter.export_checks import Fct1, check_export, op_types

from torch_interpreter import ExportOptions, to_onnx
from torch_interpreter.conversion.kernels import WIDER, computed_in, runs_on_cpu

OPSET = 18
_REQUIRED = {"to": 1, "equation": "a,b->ab", "axis": 0}


def _runs(op_type: str, itype: int) -> bool:
    """True if onnxruntime has a kernel: the inputs of the first type parameter have a type."""
    schema = onnx.defs.get_schema(op_type, OPSET)
    n_inputs = 2 if op_type in ("Max", "Min", "Concat", "Einsum", "Pad") else schema.min_input
    names = [f"x{i}" for i in range(n_inputs)]
    first = schema.inputs[1 if op_type == "Where" else 0].type_str
    inputs = []
    for i, name in enumerate(names):
        parameter = schema.inputs[min(i, len(schema.inputs) - 1)]
        same = parameter.type_str == first or (op_type == "Pow" and i == 1)
        others = {"tensor(float)": 1, "tensor(int64)": 7, "tensor(bool)": 9}
        known = next((t for n, t in others.items() if n in parameter.types), 7)
        elem = itype if same else 7 if "tensor(int64)" in parameter.types else known
        inputs.append(helper.make_tensor_value_info(name, elem, None))
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(schema.min_output)]
    required = {a: v for a, v in _REQUIRED.items() if a in schema.attributes}
    attributes = {a: v for a, v in required.items() if schema.attributes[a].required}
    node = helper.make_node(op_type, names, [o.name for o in outputs], **attributes)
    graph = helper.make_graph([node], "g", inputs, outputs)
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return False
    return True


OPERATORS = [
    "ArgMax",
    "ArgMin",
    "Cast",
    "Clip",
    "Concat",
    "CumSum",
    "Einsum",
    "EyeLike",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "GreaterOrEqual",
    "Identity",
    "IsInf",
    "IsNaN",
    "LayerNormalization",
    "LeakyRelu",
    "MatMul",
    "Max",
    "Min",
    "NonZero",
    "PRelu",
    "Pad",
    "Pow",
    "ReduceL1",
    "ReduceL2",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "Shape",
    "Sign",
    "Slice",
    "Split",
    "Squeeze",
    "TopK",
    "Transpose",
    "Trilu",
    "Unique",
    "Unsqueeze",
    "Where",
]
#: functions that a session runs with bfloat16, but for all the operators they may be made of
CAST_ANYWAY = {("Clip", TensorProto.BFLOAT16)}


@pytest.mark.parametrize("op_type", OPERATORS)
def test_kernels(op_type):
    """The answer is the one of a session."""
    schema = onnx.defs.get_schema(op_type, OPSET)
    index = 1 if op_type == "Where" else 0
    for itype in WIDER:
        name = f"tensor({TensorProto.DataType.Name(itype).lower()})"
        if name in schema.inputs[index].types and (op_type, itype) not in CAST_ANYWAY:
            assert _runs(op_type, itype) == runs_on_cpu(op_type, OPSET, index, itype), name


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_kernels_that_reduce(op_type):
    """A session takes bfloat16, and fails when it runs if there is a reduction."""
    assert _runs(op_type, TensorProto.BFLOAT16)
    assert not runs_on_cpu(op_type, OPSET, 0, TensorProto.BFLOAT16)


def test_types_an_operator_is_computed_in():
    bf16, f16 = TensorProto.BFLOAT16, TensorProto.FLOAT16
    assert computed_in("MatMul", 18, 1, bf16) == TensorProto.FLOAT
    assert computed_in("MatMul", 18, 0, f16) == f16
    assert computed_in("Reshape", 18, 0, bf16) == bf16
    assert computed_in("Where", 18, 0, TensorProto.BOOL) == TensorProto.BOOL
    assert computed_in("Where", 18, 1, TensorProto.BOOL) == TensorProto.INT32
    assert computed_in("IsInf", 18, 0, f16) == TensorProto.FLOAT
    assert computed_in("ReduceMax", 18, 0, TensorProto.BOOL) == TensorProto.INT32
    assert computed_in("Unique", 18, 0, TensorProto.INT32) == TensorProto.INT64
    assert computed_in("NonZero", 18, 0, TensorProto.INT8) == TensorProto.INT32
    assert computed_in("Concat", 18, 3, bf16) == bf16
    assert computed_in("LayerNormalization", 18, 2, bf16) == bf16
    assert computed_in("ScatterND", 18, 2, bf16) == TensorProto.FLOAT
    assert computed_in("NotAnOperator", 18, 0, bf16) == bf16


BFLOAT16 = {
    "matmul": lambda x: x @ x.T,
    "linear": lambda x: torch.nn.functional.linear(x, x, x[:, 0]),
    "arithmetic": lambda x: (x + 1, x - x, x * 2, x / 3, -x, x.abs(), x // 2),
    "comparisons": lambda x: (x > 0, x == x, torch.maximum(x, -x), x.clamp(-1, 1)),
    "reductions": lambda x: (x.sum(0), x.mean(), x.amax(1), x.argmax(1), x.softmax(-1)),
    "functions": lambda x: (x.exp(), x.relu(), x.tanh(), x.sigmoid(), torch.erf(x)),
    "choice": lambda x: torch.where(x > 0, x, torch.zeros_like(x)),
    "moves": lambda x: (x.T.reshape(-1), x[1:], torch.cat([x, x]), x.expand(2, 4, 4)),
    "sorted": lambda x: x[0].sort(),
    "normalized": lambda x: torch.nn.functional.layer_norm(x, (4,), x[0], x[1]),
    "picked": lambda x: (x.sign(), x.gather(0, torch.tensor([[0, 1, 2, 3]]))),
    "scattered": lambda x: x.index_put((torch.tensor([1, 1]),), x[:2], accumulate=True),
    "eye": lambda x: x + torch.eye(4, dtype=x.dtype),
}


@pytest.mark.parametrize("fct", BFLOAT16.values(), ids=list(BFLOAT16))
def test_bfloat16(fct):
    """onnxruntime neither takes nor gives bfloat16 arrays in python."""

    def around(x):
        found = fct(x.to(torch.bfloat16))
        return torch.utils._pytree.tree_map(
            lambda v: v.float() if v.dtype == torch.bfloat16 else v, found
        )

    torch.manual_seed(0)
    check_export(around, (torch.randn(4, 4),), atol=2e-2)


INTEGERS = {
    "unique": lambda x: x.unique(),
    "nonzero": lambda x: x.nonzero(),
    "tril": lambda x: x.tril(),
    "where": lambda x: torch.where(x > 0, x, x + 1),
    "extremum": lambda x: (torch.maximum(x, x + 1), x.relu(), x.argmax()),
    "padded": lambda x: torch.nn.functional.pad(x, (1, 1)),
    "eye": lambda x: torch.eye(3, dtype=x.dtype) + x.sum().to(x.dtype),
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
@pytest.mark.parametrize("fct", INTEGERS.values(), ids=list(INTEGERS))
def test_integers(fct, dtype):
    check_export(fct, (torch.tensor([[1, 0, 3], [3, 2, 0]]).to(dtype),))


def test_unique_and_nonzero_of_other_types():
    check_export(lambda x: x.unique(), (torch.tensor([True, False]),))
    check_export(lambda x: x.nonzero(), (torch.tensor([0.5, 0, -0.0, float("nan")]).double(),))


@pytest.mark.parametrize("nested", [False, True])
def test_no_cast_for_another_provider(nested):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            return torch.where(x > 0, x @ x.T, self.layer(x))

    model, x = Model().bfloat16(), torch.ones(4, 4, dtype=torch.bfloat16)

    def types(**options):
        onx = to_onnx(model, (x,), export_modules_as_functions=nested, **options)
        nodes = [n for f in (onx.graph, *onx.functions) for n in f.node]
        return {n.op_type for n in nodes}

    assert "Cast" in types()
    assert "Cast" not in types(export_options=ExportOptions(cpu_kernels=False))
    assert "Cast" not in types(export_options=ExportOptions(strict=True, cpu_kernels=False))


def test_what_the_schema_refuses_is_cast_for_any_provider():
    onx = to_onnx(
        Fct1(lambda x: x.amax(0)),
        (torch.ones(3, 2, dtype=torch.bool),),
        export_options=ExportOptions(cpu_kernels=False),
    )
    onnx.checker.check_model(onx, full_check=True)
    assert op_types(onx) == ["Cast", "ReduceMax", "Cast"]


def test_constants_are_cast_when_they_are_made():
    onx = to_onnx(Fct1(lambda x: x + 1), (torch.ones(3).to(torch.bfloat16),))
    assert op_types(onx) == ["Cast", "Add", "Cast"]
    assert onx.graph.initializer[0].data_type == TensorProto.FLOAT
