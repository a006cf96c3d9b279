"""Symbolic tracing before torch.export."""

from __future__ import annotations

import functools

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, assert_same, check_export, run_ort

from torch_interpreter import CustomTracer, ExportError, ExportOptions, to_onnx
from torch_interpreter.exporting.tracing import check_traced, trace_module
from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError

X = torch.randn(3, 4)
PLAIN = OptimizationOptions(patterns=None)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x, mask=None, scale=True, times=2):
        x = x.clone()
        if mask is not None:
            x = x * mask
        x[:, 0] = 5
        if scale:
            x = self.linear(x) * self.weight
        for i in range(times):
            x = x + i
        return x.reshape(-1, x.shape[1] // 2)


@pytest.mark.parametrize("strict", [False, True])
def test_arguments_without_tensor_are_constants(strict):
    model = Model()
    options = ExportOptions(tracing=True, strict=strict)
    for kwargs in ({}, {"times": 3}, {"scale": False}, {"mask": torch.ones(4)}):
        shapes = {"x": {0: "batch"}}
        onx = to_onnx(model, (X,), kwargs, dynamic_shapes=shapes, export_options=options)
        for x in (X, torch.randn(5, 4)):
            tensors = [v for v in (x, kwargs.get("mask")) if v is not None]
            assert_same(model(x, **kwargs), run_ort(onx, tensors), 1e-5)


def test_weights_keep_their_names():
    onx = to_onnx(Model(), (X,), export_options="tracing", optimize=False)
    names = {i.name for i in onx.graph.initializer}
    assert {"linear.weight", "linear.bias", "weight"} <= names


class Containers(torch.nn.Module):
    def forward(self, xs, named, *more, **others):
        return xs[0] + xs[1] * named["k"] + more[0] - others["z"]


def test_nested_arguments():
    args = ([X, X + 1], {"k": X}, X * 2)
    onx = to_onnx(Containers(), args, {"z": X}, export_options="tracing", options=PLAIN)
    values = [X, X + 1, X, X * 2, X]
    assert_same(Containers()(*args, z=X), run_ort(onx, values), 1e-5)


class Guarded(torch.nn.Module):
    """Decisions python cannot take on a placeholder."""

    def forward(self, x):
        return x * 2 if x.shape[0] > 2 else x


class Outer(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.inner = kind()

    def forward(self, x):
        return self.inner(x) + 1


def test_what_is_not_traced():
    with pytest.raises(ExportError, match="torch.fx cannot trace the model: TraceError") as raised:
        to_onnx(Outer(Guarded), (X,), export_options="tracing")
    assert "tracing_module_leaves" in str(raised.value)
    seen = []

    def condition(module, name):
        seen.append((type(module), name))
        return True

    for leaves in ({Guarded}, [Guarded], {Guarded: condition}):
        options = ExportOptions(tracing=True, tracing_module_leaves=leaves)
        onx = to_onnx(Outer(Guarded), (X,), export_options=options)
        assert_same(X * 2 + 1, run_ort(onx, [X]), 1e-5)
    assert seen == [(Guarded, "inner")]
    refused = ExportOptions(tracing=True, tracing_module_leaves={Guarded: lambda m, name: False})
    with pytest.raises(ExportError, match="torch.fx cannot trace"):
        to_onnx(Outer(Guarded), (X,), export_options=refused)


def test_a_number_declared_dynamic_is_not_constant():
    class Repeat(torch.nn.Module):
        def forward(self, x, times):
            return x * times

    x, shapes = torch.randn(2, 3), {"x": None, "times": torch.export.Dim.DYNAMIC}
    onx = to_onnx(Repeat(), (x, 3), dynamic_shapes=shapes, export_options="tracing")
    assert_same(x * 5, run_ort(onx, [x, 5]), 1e-5)
    traced = trace_module(Repeat(), (x, 3), {})
    assert torch.equal(traced(x, 5), x * 3)


def test_a_condition_that_sees_a_placeholder():
    def hidden(x):
        return x * 2 if isinstance(x, torch.Tensor) else x

    with pytest.raises(ExportError, match="traced and the model disagree"):
        to_onnx(Fct1(hidden), (X,), export_options="tracing")


def test_checking_changes_nothing():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5)).train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    check_traced(trace_module(model, (X,), {}), model, (X,), {})
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


def test_tracing_makes_no_decision_on_sizes():
    def fct(x):
        x = x.clone()
        x[0] = 1
        return torch.cat([x, x.sum(dim=0, keepdim=True)])

    check_export(fct, (X,), ({0: "a"},), [(torch.randn(6, 4),)], export_options="tracing")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"tracing_module_leaves": {Guarded}}, "no effect without tracing=True"),
        ({"tracing": True, "tracing_module_leaves": "Guarded"}, "expects classes"),
        ({"tracing": True, "tracing_module_leaves": Guarded}, "expects classes"),
        ({"tracing": True, "jit": True}, "goes with none of fake, tracing"),
        ({"fake": True, "jit": True}, "goes with none of fake, tracing"),
    ],
)
def test_options_that_contradict_each_other(kwargs, message):
    with pytest.raises(OptionError, match=message):
        ExportOptions(**kwargs)


class Wide(torch.nn.Module):
    """A decision about a dimension that is not dynamic."""

    def forward(self, x):
        return x * 2 if x.shape[1] > 2 else x


class Parts(torch.nn.Module):
    """Sizes as numbers of Python, parts that are assigned, a module that looks at its argument."""

    def __init__(self):
        super().__init__()
        self.inner = Wide()

    def forward(self, x, y=None):
        x = x.clone()
        x[:, 1:] = len(x)
        x[0] += 1
        if isinstance(y, torch.Tensor):
            x = x * y
        return self.inner(x[: int(x.shape[0] / 2)])


@pytest.mark.parametrize("leaves", [(Wide,), {Wide: lambda m, name: name == "inner"}])
def test_custom_tracer(leaves):
    """The graph is a module, which runs and is converted."""
    graph = CustomTracer(leaves).trace(Parts())
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["inner"]
    module = torch.fx.GraphModule(Parts(), graph)
    y = torch.full((4,), 2.0)
    assert torch.equal(module(X, y), Parts()(X, y))
    onx = to_onnx(module, (X, y), dynamic_shapes=({0: "n"}, {}), options=PLAIN)
    for x in (torch.randn(6, 4), torch.randn(9, 4)):
        assert_same(Parts()(x, y), run_ort(onx, [x, y]), 1e-5)


def test_custom_tracer_knows_the_arguments():
    """A value that is constant, an argument that is none; a function."""
    graph = CustomTracer((Wide,), {"x": X, "y": None}).trace(Parts())
    assert not [n for n in graph.nodes if n.op == "placeholder" and n.target == "y" and n.users]
    graph = CustomTracer((Wide,)).trace(Parts(), {"y": None})
    module = torch.fx.GraphModule(Parts(), graph)
    assert torch.equal(module(X, None), Parts()(X))
    assert len(CustomTracer().trace(lambda x: x + 1).nodes) == 3


def test_custom_tracer_fails():
    with pytest.raises(torch.fx.proxy.TraceError, match="control flow"):
        CustomTracer().trace(Parts())
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        CustomTracer().trace(Outer(lambda: None))


def test_custom_tracer_knows_the_types():
    class Types(torch.nn.Module):
        def forward(self, x):
            return x.to(int), x.to(dtype=float), x.to(bool), x.to(complex)

    graph = CustomTracer().trace(Types())
    found = torch.fx.GraphModule(Types(), graph)(torch.tensor([0.5, 2.0]))
    assert [y.dtype for y in found] == [torch.int64, torch.float64, torch.bool, torch.complex128]


def dynamic_cache(length):
    transformers = pytest.importorskip("transformers")
    cache = transformers.DynamicCache()
    for i in range(2):
        cache.update(torch.randn(1, 2, length, 4), torch.randn(1, 2, length, 4), i)
    return cache


def test_a_cache_is_read():
    class Read(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x, cache):
            keys, values = cache.update(self.linear(x), x, 0)
            total = keys.sum() + cache.get_seq_length()
            for layer in cache.layers:
                total = total + layer.keys.sum() * layer.values.shape[2]
            return torch.cond(total > 0, torch.add, torch.sub, (keys, values)), cache

    model = Read()
    past = [{2: "past"}] * 2
    onx = to_onnx(
        model,
        (torch.randn(1, 2, 3, 4), dynamic_cache(5)),
        dynamic_shapes=({2: "seq"}, [past, past]),
        export_options="tracing",
    )
    assert [o.name for o in onx.graph.output][1:3] == ["present.0.key", "present.1.key"]
    x, cache = torch.randn(1, 2, 2, 4), dynamic_cache(7)
    tensors = [getattr(layer, k) for k in ("keys", "values") for layer in cache.layers]
    found = run_ort(onx, [x, *tensors])
    expected, after = model(x, cache)
    assert_same(expected, found[:1], 1e-5)
    assert_same([layer.keys for layer in after.layers], found[1:3], 1e-5)


def test_a_cache_is_made():
    transformers = pytest.importorskip("transformers")

    class Made(torch.nn.Module):
        def forward(self, x):
            cache = transformers.DynamicCache()
            keys, values = cache.update(x, x * 2, 0)
            cache.update(values.relu(), keys, 1)
            return keys, cache

    x = torch.randn(1, 2, 3, 4)
    onx = to_onnx(Made(), (x,), dynamic_shapes=({2: "seq"},), export_options="tracing")
    names = [f"present.{i}.{k}" for k in ("key", "value") for i in range(2)]
    assert [o.name for o in onx.graph.output][1:] == names
    x = torch.randn(1, 2, 5, 4)
    assert_same([x, x, (x * 2).relu(), x * 2, x], run_ort(onx, [x]), 1e-6)


def test_parts_of_an_attribute_are_assigned():
    def fct(x):
        x = x.clone()
        x.T[0] = 1
        return x

    check_export(fct, (X,), ({0: "a"},), [(torch.randn(6, 4),)], export_options="tracing")


class Starred(torch.nn.Module):
    """Keyword-only arguments, which torch.fx puts before ``*xs``."""

    def forward(self, x, *xs, twice: bool = False, bias, **others):
        for other in xs[:1]:
            x = x * other
        for other in xs[1:]:
            x = x + other
        x = x * 2 if twice else x
        for name, value in others.items():
            x = x - value if name == "minus" else x
        return x / bias


@pytest.mark.parametrize("args", [(X,), (X, X + 1), (X, X + 2, X + 3)])
@pytest.mark.parametrize("kwargs", [{}, {"twice": True, "minus": torch.randn(4)}])
def test_keyword_only_arguments(args, kwargs):
    kwargs = {"bias": torch.full((4,), 3.0), **kwargs}
    shapes = {"x": {0: "n"}, "xs": tuple({0: "n"} for _ in args[1:]), "bias": None}
    onx = to_onnx(Starred(), args, kwargs, dynamic_shapes=shapes, export_options="tracing")
    tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
    assert_same(Starred()(*args, **kwargs), run_ort(onx, tensors), 1e-6)
    graph = CustomTracer(arguments={"xs": args[1:], "others": {}}).trace(Starred(), {"twice": True})
    names = [n.target for n in graph.nodes if n.op == "placeholder"]
    assert [n.rpartition("_")[0] or n for n in names] == ["x", "*xs", "twice", "bias", "**others"]


def as_tuple(function):
    """A decorator that takes any argument, as those of transformers do."""

    @functools.wraps(function)
    def wrapped(self, *args, as_list=False, **kwargs):
        found = function(self, *args, **kwargs)
        return [found] if as_list else (found, found + 1)

    return wrapped


class Decorated(torch.nn.Module):
    @as_tuple
    def forward(self, x, y=None, *more, scale=2.0, **options):
        y = x if y is None else y
        more = options.get("more", 0) if options else 0
        return x * scale + y + more


@pytest.mark.parametrize("args", [(torch.randn(3, 2),), (torch.randn(3, 2), torch.randn(3, 2))])
def test_a_decorated_forward(args):
    """torch.fx changes the code of the decorator, which has other parameters."""
    onx = to_onnx(Decorated(), args, export_options=ExportOptions(tracing=True))
    found = run_ort(onx, args)
    assert len(found) == 2
    assert_same(Decorated()(*args), found, 1e-6)


def test_a_decorated_model_of_transformers():
    """Its causal mask depends on the length: the model without its head is not traced."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, vocab_size=10, max_position_embeddings=32,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 10, (2, 5))
    options = ExportOptions(tracing=True, tracing_module_leaves={transformers.LlamaModel})
    onx = to_onnx(model, (), {"input_ids": ids, "use_cache": False}, export_options=options)
    with torch.no_grad():
        expected = model(input_ids=ids, use_cache=False).logits
    assert_same(expected, run_ort(onx, [ids])[:1], 1e-4)
