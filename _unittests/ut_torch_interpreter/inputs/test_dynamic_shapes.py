"""Dynamic shapes: what is accepted, the names in the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, Fct2, assert_same, check_export, run_ort

from torch_interpreter import (
    Dispatcher,
    ExportError,
    ExportOptions,
    make_undefined_dimension,
    to_onnx,
)
from torch_interpreter.inputs.dynamic_shapes import (
    DimensionNamer,
    needs_size_oblivious,
    user_name,
)
from xbuilder import OptimizationOptions

Dim = torch.export.Dim
X = torch.randn(4, 6)
OPTIONS = OptimizationOptions(patterns=None)


def dims(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def shapes(fct, args, dynamic_shapes, **kwargs):
    model = fct if isinstance(fct, torch.nn.Module) else (Fct1, Fct2)[len(args) - 1](fct)
    onx = to_onnx(model, args, dynamic_shapes=dynamic_shapes, options=OPTIONS, **kwargs)
    return [dims(i) for i in onx.graph.input], [dims(o) for o in onx.graph.output]


@pytest.mark.parametrize(
    "dim", ["batch", Dim("batch"), Dim("batch", min=1, max=100)], ids=["str", "Dim", "bounds"]
)
def test_user_names(dim):
    assert shapes(torch.cos, (X,), ({0: dim},)) == ([["batch", 6]], [["batch", 6]])


@pytest.mark.parametrize("hint", [Dim.DYNAMIC, Dim.AUTO], ids=["dynamic", "auto"])
def test_generated_names(hint):
    assert shapes(torch.cos, (X,), ({1: hint},)) == ([[4, "channel"]], [[4, "channel"]])
    assert shapes(torch.cos, (X,), ((None, hint),), input_names=["a"])[0] == [[4, "channel"]]
    larger, other = torch.rand(2, 3, 4, 5), torch.rand(6, 7, 8)
    specs = dict.fromkeys(range(4), hint), dict.fromkeys(range(3), hint)
    assert shapes(lambda x, y: x.sum() + y.sum(), (larger, other), specs)[0] == [
        ["batch", "channel", "D0", "D1"],
        ["batch1", "channel1", "D2"],
    ]
    named = {0: hint, 1: "batch", 2: "D0"}
    assert shapes(torch.cos, (other,), (named,))[0] == [["batch1", "batch", "D0"]]


def test_generated_names_of_equal_dimensions():
    hints = {0: Dim.AUTO, 1: Dim.AUTO}
    found = shapes(torch.add, (X, X + 1), (hints, hints))
    assert found == ([["batch", "channel"], ["batch", "channel"]], [["batch", "channel"]])


def test_static():
    assert shapes(torch.cos, (X,), ({0: Dim.STATIC, 1: "b"},))[0] == [[4, "b"]]
    assert shapes(torch.cos, (X,), None)[0] == [[4, 6]]
    assert shapes(torch.cos, (X,), {})[0] == [[4, 6]]


def test_structures():
    expected = [["a", 6], [4, "b"]]

    def fct(x, y):
        return x.sum() + y.sum()

    other = torch.randn(4, 6)
    for spec in (
        ({0: "a"}, {1: "b"}),
        [{0: "a"}, {1: "b"}],
        {"x": {0: "a"}, "y": {1: "b"}},
        {"y": (None, "b"), "x": ["a", None]},
    ):
        assert shapes(fct, (X, other), spec)[0] == expected
    assert shapes(fct, (X, other), {"x": {0: "a"}})[0] == [["a", 6], [4, 6]]


def test_same_tensor_twice():
    def fct(x, y):
        return x.sum() - y.mean()

    assert shapes(fct, (X, X), ({0: "a"}, {0: "b"}))[0] == [["a", 6], ["b", 6]]
    check_export(fct, (X, X), None, [(X, X + 1)])


def test_equal_dimensions_share_a_name():
    inputs, outputs = shapes(lambda x, y: x + y, (X, X + 1), ({0: "a"}, {0: Dim.DYNAMIC}))
    assert inputs == [["a", 6], ["a", 6]] and outputs == [["a", 6]]


def test_expressions():
    outputs = shapes(
        lambda x: (
            torch.cat([x, x]),
            x.reshape(-1),
            x[1:],
            torch.zeros((x.shape[0] + 1) // 2),
            torch.zeros(x.shape[0] % 3 + 2),
            torch.zeros(torch.sym_max(x.shape[0], x.shape[1])),
        ),
        (X,),
        ({0: "a", 1: "b"},),
    )[1]
    assert outputs[0] == ["2*a", "b"]
    assert outputs[1] == ["a*b"]
    assert outputs[2][0] in ("a-1", "max(0,a-1)")
    assert outputs[3][0].replace(" ", "") in ("(1+a)//2", "(a+1)//2", "ceildiv(a,2)")
    assert outputs[4][0].replace(" ", "") in ("2+a%3", "a%3+2")
    assert outputs[5] == ["max(a,b)"]


def test_derived_dimension():
    half = Dim("half", min=1, max=64)
    inputs, outputs = shapes(lambda x: x.reshape(-1, 2, 6), (X,), ({0: 2 * half},))
    assert inputs == [["2*half", 6]] and outputs == [["half", 2, 6]]


def test_one_is_a_size_like_others():
    x = torch.randn(1, 6)
    check_export(torch.cos, (x,), ({0: "a"},), [(torch.randn(5, 6),), (torch.randn(0, 6),)])


def test_nested():
    class Model(torch.nn.Module):
        def forward(self, x, pair):
            return x + pair[0] + pair[1]["k"]

    args = (X, (X + 1, {"k": X + 2}))
    spec = ({0: "a"}, ({0: "a"}, {"k": {0: "a"}}))
    onx = to_onnx(Model(), args, dynamic_shapes=spec, options=OPTIONS)
    assert [dims(i) for i in onx.graph.input] == [["a", 6]] * 3


@pytest.mark.parametrize("given", [{}, (), None], ids=["dict", "tuple", "none"])
def test_nothing_is_dynamic_among_lists_and_none(given):
    class Model(torch.nn.Module):
        def forward(self, x, nothing, several):
            return x + several[0] if nothing is None else nothing

    onx = to_onnx(Model(), (X, None, [X + 1, X]), dynamic_shapes=given, options=OPTIONS)
    assert [dims(i) for i in onx.graph.input] == [[4, 6]] * 3
    assert_same(2 * X + 1, run_ort(onx, [X, X + 1, X]), 1e-6)


def test_specialised_dimension():
    with pytest.raises(ExportError, match="A dimension declared dynamic became a constant"):
        to_onnx(Fct1(lambda x: x.reshape(4, 6, 1)), (X,), dynamic_shapes=({0: "a"},))
    with pytest.raises(ExportError, match="A dimension declared dynamic became a constant"):
        to_onnx(Fct1(lambda x: x.reshape(4, 6, 1)), (X,), dynamic_shapes=({0: Dim("a")},))


def test_specialised_dimension_is_reported(capsys):
    model = Fct1(lambda x: x.reshape(4, 6, 1))
    # torch keeps the dimension and adds an assertion to the graph otherwise
    guards = ExportOptions(prefer_deferred_runtime_asserts_over_guards=False)
    kwargs = {"export_options": guards, "verbose": 1, "options": OPTIONS}
    onx = to_onnx(model, (X,), dynamic_shapes=({0: Dim.AUTO},), **kwargs)
    assert dims(onx.graph.input[0]) == [4, 6]
    assert "became a constant: x.shape[0] == 4" in capsys.readouterr().out


def test_data_dependent_decision():
    with pytest.raises(ExportError, match="A python decision depends on the content"):
        to_onnx(Fct1(lambda x: x + 1 if x.sum() > 0 else x - 1), (X,))


def test_unbacked_dimension():
    onx = check_export(lambda x: x[x[:, 0] > 0], (X,), ({0: "a"},), [(torch.randn(9, 6),)])
    name = dims(onx.graph.output[0])[0]
    assert isinstance(name, str) and name != "a"


def test_make_undefined_dimension():
    assert make_undefined_dimension(3).__name__ == "DYN3"
    assert shapes(torch.cos, (X,), ({0: make_undefined_dimension(0)},))[0] == [["DYN0", 6]]


def test_make_undefined_dimension_of_a_custom_operator():
    """The number of rows of the result depends on the data."""

    def positive(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[x[:, 0] > 0], y[y > 0]

    def converter(g, sts, outputs, x, y):
        column = g.op.Slice(x, np.array([0]), np.array([1]), np.array([1]))
        above = g.op.Greater(g.op.Reshape(column, np.array([-1])), np.array(0, np.float32))
        g.op.Compress(x, above, axis=0, outputs=outputs[:1])
        some = g.op.Greater(y, np.array(0, np.float32))
        g.op.Compress(y, some, axis=0, outputs=outputs[1:])
        return outputs

    class Model(torch.nn.Module):
        def forward(self, x, y):
            a, b = torch.ops.undefined_dimension.positive(x, y)
            return a * 2, b + 1

    operator = torch.library.custom_op("undefined_dimension::positive", positive, mutates_args=())

    @operator.register_fake
    def _(x, y):
        first, second = make_undefined_dimension(0), make_undefined_dimension(1)
        assert isinstance(first, int | torch.SymInt)
        return x.new_empty((first, x.shape[1])), y.new_empty((second,))

    dispatcher = Dispatcher({"undefined_dimension::positive": converter})
    shapes = {0: "n"}, {0: "m"}
    onx = to_onnx(Model(), (X, X[0]), dynamic_shapes=shapes, dispatcher=dispatcher)
    first, second = map(dims, onx.graph.output)
    assert first[1:] == [6] and len({first[0], second[0], "n", "m"}) == 4
    x, y = torch.randn(9, 6), torch.randn(11)
    for got, expected in zip(run_ort(onx, (x, y)), Model()(x, y), strict=True):
        np.testing.assert_array_equal(got, expected.numpy())


def test_user_name():
    assert user_name("a") == "a" and user_name(Dim("b")) == "b" and user_name(2 * Dim("c")) == "c"
    assert user_name(Dim.AUTO) is None and user_name(None) is None and user_name(4) is None


def test_needs_size_oblivious():
    one = torch.zeros(1, 2)
    assert needs_size_oblivious([{0: "a"}], [one])
    assert not needs_size_oblivious([{1: "a"}], [one])
    assert not needs_size_oblivious([None], [one])
    assert not needs_size_oblivious([{0: Dim.STATIC}], [one])


def test_namer_prints_unknown_expressions_as_symbols():
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv()
    from torch._subclasses import FakeTensorMode

    fake = FakeTensorMode(shape_env=env, static_shapes=False).from_tensor(torch.zeros(5, 7))
    n, m = fake.shape
    namer = DimensionNamer()
    namer.name_symbol(n, "n")
    namer.name_symbol(n, "other")
    namer.name_symbol(m, "m")
    assert namer.dim(n) == "n" and namer.dim(3) == 3
    assert namer.dim(n * n) == "(n)*(n)"
    odd = (n**0.5).__trunc__()
    assert namer.dim(odd) == namer.dim(odd) == "dim_0"


@pytest.mark.parametrize("spec", ["t", Dim("t", max=8)], ids=["string", "dim"])
def test_a_named_number(spec):
    """torch gives no name to a number, the model does."""

    class Model(torch.nn.Module):
        def forward(self, x, t):
            return x[:t] * t

    onx = check_export(Model(), (torch.randn(8), 3), (None, spec), [(torch.randn(8), 5)])
    assert onx.graph.input[1].name == "t"
    assert onx.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "t"
