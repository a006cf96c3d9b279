"""to_onnx: names, options, what it returns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import onnx
import pytest
import torch
from ut_torch_interpreter.export_checks import (
    Fct1,
    Fct2,
    assert_same,
    check_export,
    op_types,
    run_ort,
)

from torch_interpreter import (
    ConversionError,
    Dispatcher,
    ExportError,
    FunctionNotFoundError,
    ValidationError,
    to_onnx,
)
from torch_interpreter.to_onnx import default_opset
from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError

X = torch.randn(3, 10)
OPTIONS = OptimizationOptions(patterns=None)


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.layers(x)


class Several(torch.nn.Module):
    """Nested inputs, constants, nested outputs, buffers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(10))
        self.register_buffer("hidden", torch.full((10,), 2.0), persistent=False)
        self.plain = torch.full((10,), 3.0)

    def forward(self, x, pair, flag=True, mask=None, *, named=None):
        a, b = pair
        y = x + a * self.shift + self.hidden * self.plain
        if flag:
            y = y + b["c"]
        if mask is not None:
            y = y * mask
        if named is not None:
            y = y - named
        return {"y": y, "rest": (y.sum(), None, [x, y.shape[0]])}


def test_acceptance_example():
    model = MLP()
    onx = to_onnx(model, (X,), input_names=["x"], options=OPTIONS)
    assert op_types(onx) == ["MatMul", "Add", "Relu", "MatMul", "Add"]
    assert {i.name for i in onx.graph.initializer} == {n for n, _ in model.named_parameters()}
    assert [i.name for i in onx.graph.input] == ["x"]
    assert [o.name for o in onx.graph.output] == ["output_0"]
    assert onx.opset_import[0].version == default_opset() == 18
    assert_same(model(X), run_ort(onx, [X]), 1e-5)


def test_names_of_dimensions():
    onx = check_export(MLP(), (X,), {"x": {0: "batch"}}, [(X[:1],)])
    shapes = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*onx.graph.input, *onx.graph.output)
    ]
    assert shapes == [["batch", 10], ["batch", 1]]


def test_nested_inputs_and_outputs():
    model = Several()
    pair = (torch.randn(10), {"c": torch.randn(3, 10)})
    args, kwargs = (X, pair), {"named": torch.randn(10)}
    onx = to_onnx(model, args, kwargs, options=OPTIONS)
    assert [i.name for i in onx.graph.input] == ["x", "pair_0", "pair_1_c", "named"]
    expected = model(*args, **kwargs)
    got = run_ort(onx, torch.utils._pytree.tree_leaves((args, kwargs)))
    assert_same(expected, got, 1e-5)
    assert {"shift", "hidden", "plain"} <= {
        i.name for i in to_onnx(model, args, kwargs, optimize=False).graph.initializer
    }


def test_constants_among_the_inputs():
    model = Several()
    pair = (torch.randn(10), {"c": torch.randn(3, 10)})
    onx = to_onnx(model, (X, pair, False, None), options=OPTIONS)
    # pair_1_c is not used when flag is False, it stays an input
    assert [i.name for i in onx.graph.input] == ["x", "pair_0", "pair_1_c"]
    expected = model(X, pair, False, None)
    assert_same(expected, run_ort(onx, [X, pair[0], pair[1]["c"]]), 1e-5)


def test_args_as_a_dictionary():
    model = Fct2(lambda x, y: x - y)
    onx = to_onnx(model, {"y": X, "x": X * 3}, options=OPTIONS)
    assert sorted(i.name for i in onx.graph.input) == ["x", "y"]
    order = [i.name for i in onx.graph.input]
    feeds = {"y": X, "x": X * 3}
    assert_same(X * 2, run_ort(onx, [feeds[n] for n in order]), 1e-5)
    with pytest.raises(OptionError, match="both in args and in kwargs"):
        to_onnx(model, {"y": X}, {"y": X})


def test_input_and_output_names():
    model = Fct2(lambda x, y: (x + y, x))
    onx = to_onnx(model, (X, X), input_names=["a", "b"], output_names=["s", "t"], options=OPTIONS)
    assert [i.name for i in onx.graph.input] == ["a", "b"]
    assert [o.name for o in onx.graph.output] == ["s", "t"]
    assert_same((X + X, X), run_ort(onx, [X, X]), 1e-5)
    with pytest.raises(OptionError, match="input_names has 1 names"):
        to_onnx(model, (X, X), input_names=["a"])
    with pytest.raises(OptionError, match="duplicates"):
        to_onnx(model, (X, X), input_names=["a", "a"])
    with pytest.raises(OptionError, match="output_names must be 2"):
        to_onnx(model, (X, X), output_names=["a"])
    with pytest.raises(OptionError, match="name of an input"):
        to_onnx(model, (X, X), output_names=["a", "x"])


def test_names_equal_to_those_of_nodes():
    onx = check_export(lambda x: x + x * 2, (X,), input_names=["add"], output_names=["mul"])
    assert [i.name for i in onx.graph.input] == ["add"]
    assert [o.name for o in onx.graph.output] == ["mul"]


def test_input_named_as_a_weight():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(10))

        def forward(self, weight):
            return weight * self.weight

    onx = check_export(Model(), (X,))
    assert [i.name for i in onx.graph.input] == ["weight"]


def test_constant_and_repeated_outputs():
    check_export(lambda x: (x, x + 1, torch.ones(2), 3, x), (X,))
    check_export(lambda x: (x + 1,) * 2, (X,))


def test_no_copy_of_the_weights():
    model = torch.nn.Conv1d(3, 4, 2)
    _, builder = to_onnx(model, (torch.randn(1, 3, 5),), return_builder=True, options=OPTIONS)
    value = builder.initializers_dict["weight"]
    pointer = value.data_ptr() if isinstance(value, torch.Tensor) else value.ctypes.data
    assert pointer == model.weight.data_ptr()


def test_what_is_returned():
    model = MLP()
    onx, builder = to_onnx(model, (X,), return_builder=True, options=OPTIONS)
    assert isinstance(onx, onnx.ModelProto) and isinstance(builder, GraphBuilder)
    onx, report = to_onnx(model, (X,), return_optimize_report=True, options=OPTIONS)
    assert isinstance(report, list) and report
    result = to_onnx(model, (X,), return_builder=True, return_optimize_report=True, options=OPTIONS)
    assert len(result) == 3 and isinstance(result[1], GraphBuilder)


def test_filename(tmp_path):
    name = tmp_path / "model.onnx"
    onx = to_onnx(MLP(), (X,), filename=str(name), options=OPTIONS)
    assert onnx.load(name).SerializeToString() == onx.SerializeToString()


def test_filename_tells_the_format(tmp_path):
    name = tmp_path / "model.json"
    to_onnx(MLP(), (X,), filename=name, options=OPTIONS)
    assert name.read_text().lstrip().startswith("{")
    assert GraphBuilder(name).input_names == ["x"]


@pytest.mark.parametrize("name", ["missing/model.onnx", ".", "model.onnxtxt"])
def test_filename_is_checked_first(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="the name of a file|text format"):
        to_onnx(None, (X,), filename=name)


def test_a_wrong_model_is_not_saved(tmp_path):
    name = tmp_path / "model.onnx"
    name.write_bytes(b"before")

    def wrong(g, sts, outputs, x):
        return g.op.Abs(x, outputs=outputs)

    with pytest.raises(ValidationError):
        to_onnx(
            torch.nn.ReLU(),
            (-X.abs(),),
            filename=name,
            validate_onnx=True,
            dispatcher=Dispatcher({"aten::relu": wrong}),
        )
    assert name.read_bytes() == b"before"


def test_two_threads():
    model = MLP()
    expected = to_onnx(model, (X,), dynamic_shapes=({0: "b"},)).SerializeToString()
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(to_onnx, model, (X,), dynamic_shapes=({0: "b"},)) for _ in range(4)]
    assert [run.result().SerializeToString() for run in runs] == [expected] * 4


def test_weights_without_data():
    with pytest.raises(OptionError, match=r"'layers.0.weight' has no data .*device meta"):
        to_onnx(MLP().to("meta"), (X.to("meta"),))
    with torch._subclasses.fake_tensor.FakeTensorMode():
        model, x = MLP(), torch.randn(3, 10)
    with pytest.raises(OptionError, match=r"'layers.0.weight' has no data \(.*load the weights"):
        to_onnx(model, (x,))


@pytest.mark.parametrize(
    "parameter, value",
    [
        ("options", ["default"]),
        ("dispatcher", {}),
        ("export_options", 3),
        ("validate_onnx", "yes"),
        ("function_options", "inline"),
        ("target_opset", "18"),
        ("verbose", "yes"),
        ("external_threshold", "1024"),
        ("filename", 3),
        ("input_names", "x"),
        ("output_names", "y"),
        ("raise_list", 3),
        ("args", 3),
        ("kwargs", 3),
        ("target_opset", {"": "18"}),
    ],
)
def test_wrong_types(parameter, value):
    with pytest.raises(OptionError, match=f"{parameter} expects"):
        to_onnx(MLP(), **{"args": (X,), parameter: value})


def test_large_model(tmp_path):
    model = MLP()
    name = tmp_path / "model.onnx"
    container = to_onnx(
        model, (X,), large_model=True, external_threshold=64, filename=str(name), options=OPTIONS
    )
    assert hasattr(container, "save")
    import onnxruntime

    session = onnxruntime.InferenceSession(str(name), providers=["CPUExecutionProvider"])
    got = session.run(None, {session.get_inputs()[0].name: X.numpy()})
    assert_same(model(X), got, 1e-5)


def test_as_function():
    function = to_onnx(MLP(), (X,), as_function=True, options=OPTIONS)
    assert function is not None
    with pytest.raises(OptionError, match="validate_onnx needs a model"):
        to_onnx(MLP(), (X,), as_function=True, validate_onnx=True)


@pytest.mark.parametrize("opset", [15, 17, 18, 21, 23])
def test_target_opset(opset):
    onx = check_export(torch.nn.Sequential(MLP(), torch.nn.GELU()), (X,), target_opset=opset)
    assert {o.domain: o.version for o in onx.opset_import}[""] == opset


def test_wrong_options():
    with pytest.raises(ExportError, match="Arguments are torch tensors: torch.from_numpy"):
        to_onnx(MLP(), (X.numpy(),))
    for args, kwargs, why in ((None, None, "missing a required"), ((X,), {"z": X}, "unexpected")):
        with pytest.raises(OptionError, match=rf"do not fit MLP.forward\(x\): .*{why}.*'[xz]'"):
            to_onnx(MLP(), args, kwargs)
    with pytest.raises(OptionError, match="target_opset must be between"):
        to_onnx(MLP(), (X,), target_opset=7)
    with pytest.raises(OptionError, match="mod must be"):
        to_onnx("model", (X,))
    with pytest.raises(OptionError, match="Unknown strategy 'unknown'"):
        to_onnx(MLP(), (X,), export_options="unknown")


def test_exported_program():
    model = MLP()
    program = torch.export.export(model, (X,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    onx = to_onnx(program, options=OPTIONS, dynamic_shapes={"x": {0: "batch"}}, validate_onnx=True)
    assert onx.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert_same(model(X[:1]), run_ort(onx, [X[:1]]), 1e-5)


def test_validate():
    model = MLP()
    to_onnx(model, (X,), {}, validate_onnx=True, dynamic_shapes=({0: "b"},), options=OPTIONS)

    def wrong(g, sts, outputs, x):
        return g.op.Identity(x, outputs=outputs)

    from torch_interpreter import Dispatcher

    with pytest.raises(ValidationError, match="disagree on the arguments of the export"):
        to_onnx(
            model,
            (X,),
            validate_onnx=1e-5,
            dispatcher=Dispatcher({"aten::relu": wrong}),
            options=OPTIONS,
        )


def test_validate_with_other_sizes():
    """A value torch computed for the sizes of the export is wrong for the others."""
    from torch_interpreter import Dispatcher

    def constant(g, sts, outputs, x):
        import numpy as np

        return g.op.Mul(x, np.array([x_size], dtype=np.float32), outputs=outputs)

    x_size = 3

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.cos(x) if x.dim() == 1 else torch.relu(x) * 0 + x * x.shape[0]

    def bad_mul(g, sts, outputs, x, y):
        return constant(g, sts, outputs, x) if not isinstance(y, int) else g.op.Sub(x, x)

    dispatcher = Dispatcher({"aten::mul.Tensor": bad_mul})
    kwargs = {"dispatcher": dispatcher, "options": OPTIONS, "dynamic_shapes": ({0: "b"},)}
    with pytest.raises(ValidationError, match="disagree on larger dynamic dimensions"):
        to_onnx(Model(), (X,), validate_onnx=True, **kwargs)


def test_unknown_operator():
    @torch.library.custom_op("xoptim_tests::unknown", mutates_args=())
    def unknown(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @unknown.register_fake
    def _(x):
        return torch.empty_like(x)

    class Model(torch.nn.Module):
        def forward(self, x):
            return unknown(x) + 1

    with pytest.raises(FunctionNotFoundError) as info:
        to_onnx(Model(), (X,))
    text = str(info.value)
    for expected in (
        "xoptim_tests.unknown.default",
        "fx node 'unknown'",
        __file__.rsplit("/", 1)[-1],
        "Dispatcher({'xoptim_tests::unknown.default'",
    ):
        assert expected in text, text


@pytest.mark.parametrize(
    ("fct", "name"),
    [
        (lambda x: torch.linalg.inv(torch.polar(x, x)).real, "aten.linalg_inv_ex.default"),
        (lambda x: torch.linalg.det(torch.polar(x, x)).real, "aten._linalg_det.default"),
    ],
)
def test_operators_without_converter_on_complex_tensors(fct, name):
    with pytest.raises(FunctionNotFoundError, match=f"{name}' on complex tensors"):
        to_onnx(Fct1(fct), (torch.rand(3, 3),))


def test_complex_inputs_and_outputs_are_refused():
    with pytest.raises(ConversionError, match="The input 'x' is complex, give torch.view_as_real"):
        to_onnx(Fct1(lambda x: x.abs()), (X.to(torch.complex64),))
    with pytest.raises(ConversionError, match="The output 'output_0' is complex"):
        to_onnx(Fct1(lambda x: torch.polar(x, x)), (X,))


def test_inputs_are_not_modified():
    x = X.clone()
    check_export(lambda x: x.add_(1) * 2, (x,))
    assert torch.equal(x, X)


def test_verbose(capsys):
    to_onnx(MLP(), (X,), verbose=1, validate_onnx=True, options=OPTIONS)
    assert "validated on the arguments of the export" in capsys.readouterr().out


def test_equal_parameters_keep_their_names() -> None:
    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.LayerNorm(8))
    onx = to_onnx(model, (torch.rand(2, 8),))
    expected = {name for name, _ in model.named_parameters()}
    assert expected <= {i.name for i in onx.graph.initializer}


class Tied(torch.nn.Module):
    """The embedding is the last layer too."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 64)
        self.head = torch.nn.Linear(64, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("shift", torch.ones(64))
        self.register_buffer("again", self.shift, persistent=False)

    def forward(self, ids):
        return self.head(self.embedding(ids) + self.shift * self.again)


@pytest.mark.parametrize("strategy", ["nostrict", "strict", "nostrict-dec"])
@pytest.mark.parametrize("patterns", [None, "default", "default+onnxruntime"])
def test_tied_parameters_have_one_initializer(patterns: str | None, strategy: str) -> None:
    model = Tied()
    onx = to_onnx(
        model,
        (torch.arange(6).reshape(2, 3),),
        dynamic_shapes=({0: "batch", 1: "seq"},),
        options=patterns or OptimizationOptions(patterns=None),
        export_options=strategy,
        validate_onnx=True,
    )
    big = [(i.name, tuple(i.dims)) for i in onx.graph.initializer if len(i.dims) == 2]
    assert big == [("embedding.weight", (50, 64))]
    if patterns is None:
        names = {n for n, _ in (*model.named_parameters(), *model.named_buffers())}
        assert names <= {i.name for i in onx.graph.initializer}


@pytest.mark.parametrize("shared", [True, False])
def test_equal_parameters_are_merged_in_one_run(shared: bool) -> None:
    """Another parameter over the same memory, or over a copy of it."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 32))
    weight = model[0].weight.data
    model[1].weight = torch.nn.Parameter(weight if shared else weight.clone())
    onx = to_onnx(model, (torch.rand(2, 32),), validate_onnx=True)
    again = GraphBuilder(onx).to_onnx()
    for found in (onx, again):
        assert [i.name for i in found.graph.initializer if len(i.dims) == 2] == ["0.weight"]
