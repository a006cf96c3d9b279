"""Modules and operators kept as local functions."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
import pytest
import torch
from ut_torch_interpreter.export_checks import assert_same, op_types, run_ort

from torch_interpreter import ExportOptions, get_default_aten_as_function, to_onnx
from xbuilder import FunctionOptions, GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError

Linear, LayerNorm = torch.nn.Linear, torch.nn.LayerNorm


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = LayerNorm(4)
        self.linear = Linear(4, 4)

    def forward(self, x):
        return self.linear(self.norm(x).view(x.shape[0], -1)).relu()


class Parts(torch.nn.Module):
    """Nested, several outputs, numbers in and out."""

    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x, n):
        u, v = self.block(x).chunk(2, 1)
        return u, [v * n, x.shape[0] + n]


class Model(torch.nn.Module):
    """One block is called twice."""

    def __init__(self):
        super().__init__()
        self.first = Block()
        self.others = torch.nn.ModuleList([Block(), Block()])
        self.parts = Parts()

    def forward(self, x):
        x = self.first(x)
        for block in self.others:
            x = block(x)
        u, (v, n) = self.parts(x, x.shape[0])
        return self.first(x) + torch.cat([u, v], 1) * n, u


@pytest.fixture(autouse=True)
def same_weights():
    """The norms of rows that are almost constant amplify what is rounded, for some weights."""
    torch.manual_seed(0)


X = torch.arange(8.0).reshape(2, 4) / 8
ALL = [{Block}, {Parts, Linear}, {Block, Parts, LayerNorm}, True]
CONSTANT = FunctionOptions(
    export_as_function=True, name="any", domain="mine", move_initializer_to_constant=True
)


def export(model, args, dynamic_shapes=None, **kwargs):
    """Exports, compares with torch, then inlines the functions with onnx and with the builder."""
    onx = to_onnx(model, args, dynamic_shapes=dynamic_shapes, validate_onnx=1e-5, **kwargs)
    onnx.checker.check_model(onx, full_check=True)
    inlined = GraphBuilder(onx).to_onnx()
    assert onx.functions
    assert not inlined.functions
    with torch.no_grad():
        expected = model(*args)
    for other in (onx, onnx.inliner.inline_local_functions(onx), inlined):
        assert_same(expected, run_ort(other, args), 1e-5)
    return onx


def calls(onx, name):
    return [n for n in onx.graph.node if n.op_type == name]


@pytest.mark.parametrize("classes", ALL, ids=["one", "builtin", "three", "all"])
@pytest.mark.parametrize("options", [None, CONSTANT], ids=["inputs", "constants"])
@pytest.mark.parametrize("optimize", [False, True])
def test_modules(classes, options, optimize):
    export(
        Model(),
        (X,),
        ({0: "b"},),
        export_modules_as_functions=classes,
        function_options=options,
        optimize=optimize,
    )


def test_modules_of_one_class_share_a_function():
    model = Model()
    onx = export(model, (X,), ({0: "b"},), export_modules_as_functions={Block, Parts})
    assert sorted(f.name for f in onx.functions) == ["Block", "Parts"]
    names = ["norm.weight", "norm.bias", "linear.weight", "linear.bias"]
    assert list(next(f for f in onx.functions if f.name == "Block").input)[-4:] == names
    paths = ["first", "others.0", "others.1", "first"]
    assert [list(n.input)[-4:] for n in calls(onx, "Block")] == [
        [f"{path}.{name}" for name in names] for path in paths
    ]
    weights = {name for name, _ in model.named_parameters()}
    assert weights <= {i.name for i in onx.graph.initializer}


def test_weights_inside_the_functions():
    onx = export(
        Model(), (X,), ({0: "b"},), export_modules_as_functions={Block}, function_options=CONSTANT
    )
    assert {f.domain for f in onx.functions} == {"mine"}
    # four sets of weights
    assert len(onx.functions) == 4
    assert not [i for i in onx.graph.initializer if len(i.dims) == 2]
    # too big to be constants: they are inputs again
    options = FunctionOptions(
        export_as_function=True,
        name="any",
        move_initializer_to_constant=True,
        external_threshold=20,
    )
    onx = export(
        Model(), (X,), ({0: "b"},), export_modules_as_functions={Block}, function_options=options
    )
    assert "linear.weight" in onx.functions[0].input
    assert "linear.bias" not in onx.functions[0].input


def test_nested_functions_are_inlined_if_asked():
    options = FunctionOptions(export_as_function=True, name="any", inline=True)
    kept = export(Model(), (X,), export_modules_as_functions={Parts, Block})
    onx = export(
        Model(), (X,), export_modules_as_functions={Parts, Block}, function_options=options
    )
    for model, expected in ((kept, True), (onx, False)):
        parts = next(f for f in model.functions if f.name == "Parts")
        assert ("Block" in [n.op_type for n in parts.node]) is expected


@pytest.mark.parametrize("strategy", ["strict", "nostrict-dec", "decall"])
def test_strategies(strategy):
    onx = export(
        Model(), (X,), ({0: "b"},), export_modules_as_functions={Block}, export_options=strategy
    )
    assert len(calls(onx, "Block")) == 5


def test_exported_program():
    program = torch.export.export(Model(), (X,))
    onx = to_onnx(program, export_modules_as_functions={Block}, validate_onnx=True)
    assert len(calls(onx, "Block")) == 5


def test_an_output_of_the_module_is_an_output_of_the_model():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = Parts()

        def forward(self, x):
            u, (v, n) = self.parts(x, 3)
            return v, u, x, n

    onx = export(Twice(), (X,), ({0: "b"},), export_modules_as_functions={Parts}, optimize=False)
    assert len(calls(onx, "Parts")) == 1


def test_control_flow_inside_and_around():
    class Branch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = Linear(4, 4)

        def forward(self, x):
            return torch.cond(
                x.sum() > 0, lambda x: self.linear(x), lambda x: x - self.linear.bias, (x,)
            )

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.branch = Branch()

        def forward(self, x):
            with torch.no_grad():
                y = self.branch(x) + 1
            return y * self.branch(-x)

    for classes in ({Branch}, {Branch, Linear}):
        onx = export(Outer(), (X,), ({0: "b"},), export_modules_as_functions=classes)
        assert len(calls(onx, "Branch")) == 2


def test_a_node_of_another_module_cuts_a_function():
    class Inner(torch.nn.Module):
        def forward(self, x):
            return (x + 1) * 2

    class Around(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)

    program = torch.export.export(Around(), (X,))
    program = program.run_decompositions({})
    add, mul = [n for n in program.graph.nodes if n.op == "call_function"]
    with program.graph.inserting_after(add):
        neg = program.graph.call_function(torch.ops.aten.neg.default, (add,))
        free = program.graph.call_function(torch.ops.aten.abs.default, (add.args[0],))
    neg.meta["val"] = free.meta["val"] = add.meta["val"]
    mul.args = (neg, free)
    onx = to_onnx(program, export_modules_as_functions={Inner}, optimize=False)
    # abs needs nothing of the function, it comes before
    assert op_types(onx) == ["Abs", "Inner", "Neg", "Inner_2"]
    got = run_ort(onx, (X,))[0]
    np.testing.assert_allclose(got, (-(X + 1) * X.abs()).numpy(), rtol=1e-6)


# -- operators


class Attention(torch.nn.Module):
    def forward(self, q, k):
        f = torch.nn.functional.scaled_dot_product_attention
        u, v = f(q, k, k).split([1, 3], dim=1)
        return f(k, q, q, is_causal=True) + u, torch.split(v, 2, dim=1)[0]


SDPA, SPLIT = "aten.scaled_dot_product_attention.default", "aten.split_with_sizes.default"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            {SDPA},
            {"scaled_dot_product_attention_default", "scaled_dot_product_attention_default_2"},
        ),
        (
            {"aten::split_with_sizes", "aten.split.Tensor"},
            {"split_with_sizes_default", "split_with_sizes_default_2"},
        ),
    ],
)
@pytest.mark.parametrize("patterns", [None, "default"])
def test_operators(names, expected, patterns):
    args = (torch.rand(2, 4, 5, 8), torch.rand(2, 4, 5, 8))
    onx = export(
        Attention(),
        args,
        ({0: "b", 2: "s"}, {0: "b", 2: "s"}),
        export_options=ExportOptions(aten_as_function=names),
        options=OptimizationOptions(patterns=patterns),
    )
    found = {f.name for f in onx.functions}
    assert found and found <= expected | {"split_Tensor"}
    assert {f.domain for f in onx.functions} == {"aten"}


def test_default_operators():
    class Put(torch.nn.Module):
        def forward(self, x, i, v):
            return torch.index_copy(x.relu(), 0, i, v)

    names = get_default_aten_as_function()
    args = (X, torch.tensor([1]), torch.ones(1, 4))
    onx = export(Put(), args, export_options=ExportOptions(aten_as_function=names))
    assert [f.name for f in onx.functions] == ["index_copy_default"]
    for value in (None, False, set()):
        onx = to_onnx(Put(), args, export_options=ExportOptions(aten_as_function=value))
        assert not onx.functions


def metadata(proto):
    return {p.key: p.value for p in proto.metadata_props}


@pytest.mark.parametrize("patterns", [None, "default"])
def test_every_operator(patterns):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 3)

        def forward(self, x):
            y, _ = self.linear(x.reshape(-1, 4)).relu().max(dim=1)
            return y.reshape(x.shape[0], -1).relu()

    onx = export(
        Layer(),
        (torch.rand(2, 5, 4),),
        ({0: "b"},),
        export_options=ExportOptions(aten_as_function=True),
        options=OptimizationOptions(patterns=patterns),
    )
    called = [n for n in onx.graph.node if n.domain == "aten"]
    assert {n.op_type for n in onx.graph.node if not n.domain} <= {"Shape"}
    assert {f.name: metadata(f) for f in onx.functions} == {
        "reshape_default": {"aten_name": "aten.reshape.default"},
        "linear_default": {"aten_name": "aten.linear.default"},
        "relu_default": {"aten_name": "aten.relu.default"},
        "max_dim": {"aten_name": "aten.max.dim"},
        "reshape_default_2": {"aten_name": "aten.reshape.default"},
    }
    relus = [metadata(n) for n in called if n.op_type == "relu_default"]
    assert [m["aten_inputs"] for m in relus] == ["float[5*b,3]", "float[b,5]"]
    linear = metadata(next(n for n in called if n.op_type == "linear_default"))
    assert linear["aten_inputs"] == "float[5*b,4], float[3,4], float[3]"
    assert linear["aten_outputs"] == "float[5*b,3]"


def test_a_branch_is_not_an_operator():
    class Branches(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    onx = export(Branches(), (X,), export_options=ExportOptions(aten_as_function=True))
    assert [n.op_type for n in onx.graph.node if not n.domain] == ["If"]
    assert {f.name for f in onx.functions} >= {"sum_default", "sin_default", "cos_default"}


def test_both():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()

        def forward(self, q, k):
            return self.attention(q, k)[0]

    args = (torch.rand(2, 4, 5, 8), torch.rand(2, 4, 5, 8))
    onx = export(
        Layer(),
        args,
        export_modules_as_functions={Attention},
        export_options=ExportOptions(aten_as_function={SDPA}),
    )
    assert op_types(onx) == ["Attention"]
    assert {f.name.split("_")[0] for f in onx.functions} == {"Attention", "scaled"}


# -- errors


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"export_modules_as_functions": {torch.nn.GRU}}, "no submodule of the model is a"),
        ({"export_modules_as_functions": {Model}}, "no submodule of the model is a"),
        ({"export_modules_as_functions": Block}, "must be True, False or a set of classes"),
        ({"export_modules_as_functions": {"Block"}}, "expects subclasses of torch.nn.Module"),
        ({"export_modules_as_functions": True, "as_function": True}, "produces one function"),
        (
            {"export_modules_as_functions": {Block}, "export_options": "jit"},
            "does not say which module",
        ),
    ],
)
def test_refused(kwargs, message):
    with pytest.raises(OptionError, match=message):
        to_onnx(Model(), (X,), **kwargs)


def test_names_of_operators_are_a_set():
    with pytest.raises(OptionError, match="aten_as_function must be True, False, None or a set"):
        ExportOptions(aten_as_function="aten.histc.default")


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = Linear(4, 4)
        self.register_buffer("scale", torch.rand(4))

    def forward(self, x):
        return self.linear(x) * self.scale


class Middle(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = Inner(), LayerNorm(4)

    def forward(self, x):
        return self.norm(self.inner(x)).reshape(-1, 2, 2).transpose(1, 2).reshape(-1, 4)


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Middle(), Middle()

    def forward(self, x):
        return self.second(self.first(x)) + x.shape[0]


@pytest.mark.parametrize("threshold", [None, 0, 2**25])
def test_everything_is_saved_out_of_the_model(tmp_path, threshold):
    """Three levels of functions; the shapes they receive stay in the model."""
    model = torch.nn.Sequential(Outer(), Outer()).eval()
    options = None
    if threshold is not None:
        options = FunctionOptions(
            export_as_function=True,
            name="any",
            move_initializer_to_constant=True,
            external_threshold=threshold,
        )
    path = str(tmp_path / "model.onnx")
    to_onnx(
        model,
        (X,),
        dynamic_shapes=({0: "b"},),
        export_modules_as_functions={Inner, Middle, Outer},
        function_options=options,
        large_model=True,
        external_threshold=0,
        filename=path,
    )
    saved = onnx.load(path, load_external_data=False)
    assert {"Inner", "Middle", "Outer"} <= {f.name for f in saved.functions}
    outside = [i for i in saved.graph.initializer if i.data_location == onnx.TensorProto.EXTERNAL]
    assert outside or threshold == 2**25
    with torch.no_grad():
        expected = model(X)
    again = str(tmp_path / "again.onnx")
    GraphBuilder(path).to_onnx(large_model=True, external_threshold=0, inline=False).save(
        again, size_threshold=0
    )
    for name in (path, again):
        onnx.checker.check_model(name, full_check=True)
        session = onnxruntime.InferenceSession(name, providers=["CPUExecutionProvider"])
        got = session.run(None, {session.get_inputs()[0].name: X.numpy()})
        assert_same(expected, got, 1e-5)


@pytest.mark.parametrize("name", ["torch.cond", torch.cond, "cond"])
def test_branches_by_every_name(name):
    class Branches(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    onx = export(Branches(), (X,), export_options=ExportOptions(aten_as_function={name}))
    assert sorted(f.name for f in onx.functions) == ["false_graph_0", "true_graph_0"]


def test_unknown_operators():
    with pytest.raises(OptionError, match="aten_as_function: torch has no operator 'torch.add'"):
        export(torch.nn.ReLU(), (X,), export_options=ExportOptions(aten_as_function={"torch.add"}))
