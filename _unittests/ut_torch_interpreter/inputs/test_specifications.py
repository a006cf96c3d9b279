"""Parts left out of dynamic_shapes are static, whatever the structure of the arguments."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import pytest
import torch
from ut_torch_interpreter.export_checks import Fct, Fct1, Fct2, assert_same, run_ort

from torch_interpreter import to_onnx
from torch_interpreter.inputs.caches import register_caches
from torch_interpreter.inputs.specifications import flat_specifications, torch_dynamic_shapes
from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError

Dim = torch.export.Dim
X = torch.randn(4, 6)
OPTIONS = OptimizationOptions(patterns=None)


class Pair(NamedTuple):
    u: torch.Tensor
    v: torch.Tensor


@dataclasses.dataclass
class Record:
    u: torch.Tensor
    v: torch.Tensor


torch.export.register_dataclass(Record)


class Optional(torch.nn.Module):
    def forward(self, x, mask=None, y=None):
        x = x if y is None else x + y
        return x if mask is None else x * mask


class Keywords(torch.nn.Module):
    def forward(self, x, **others):
        return x + others["y"]


class Numbers(torch.nn.Module):
    def forward(self, x, n, f):
        return x * n + f


def first_two(p):
    return p[0] + p[1]


MODELS = {
    "optional": (Optional(), (X, None), {}),
    "last": (Optional(), (X,), {"y": X + 1}),
    "list": (Fct1(first_two), ([X, X + 1],), {}),
    "tuple": (Fct1(first_two), ((X, X + 1),), {}),
    "none": (Fct1(lambda p: p[0] * 2), ([X, None],), {}),
    "dict": (Fct1(lambda d: d["a"] + d["b"]), ({"a": X, "b": X + 1},), {}),
    "pair": (Fct1(first_two), (Pair(X, X + 1),), {}),
    "record": (Fct1(lambda r: r.u + r.v), (Record(X, X + 1),), {}),
    "deep": (Fct2(lambda x, p: x + p[0] + p[1]["k"]), (X, (X + 1, {"k": X + 2})), {}),
    "stars": (Fct(torch.add), (X, X + 1), {}),
    "keywords": (Keywords(), (X,), {"y": X + 1}),
    "numbers": (Numbers(), (X, 3, 2.5), {}),
}


def check(name, dynamic_shapes):
    """Exports, runs, returns the shapes of the inputs."""
    model, args, kwargs = MODELS[name]
    onx = to_onnx(model, args, kwargs, dynamic_shapes=dynamic_shapes, options=OPTIONS)
    leaves = torch.utils._pytree.tree_leaves((args, kwargs))
    tensors = [v for v in leaves if isinstance(v, torch.Tensor)]
    assert_same(model(*args, **kwargs), run_ort(onx, tensors), 1e-6)
    shapes = [i.type.tensor_type.shape.dim for i in onx.graph.input]
    return [[d.dim_param or d.dim_value for d in shape] for shape in shapes]


@pytest.mark.parametrize("dynamic_shapes", [{}, (), []], ids=["dict", "tuple", "list"])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_dynamic(name, dynamic_shapes):
    assert all(shape == [4, 6] for shape in check(name, dynamic_shapes))


A = {0: "a"}
PARTIAL = [
    ("optional", {"x": A}, 1),
    ("optional", {"x": A, "mask": {}}, 1),
    ("optional", (A, {}), 1),
    ("last", {"x": A, "y": A}, 2),
    ("last", [A, A], 2),
    ("none", {"x": [A, {}]}, 1),
    ("none", {"x": [A, None]}, 1),
    ("list", {"x": [A, A]}, 2),
    ("list", {"x": (A, A)}, 2),
    ("dict", {"x": {"b": A, "a": A}}, 2),
    ("pair", {"x": Pair(A, A)}, 2),
    ("pair", {"x": [A, A]}, 2),
    ("pair", {"x": {"v": A, "u": A}}, 2),
    ("record", {"x": [A, A]}, 2),
    ("record", {"x": Record(A, A)}, 2),
    ("record", {"x": {"u": A, "v": A}}, 2),
    ("deep", {"x": A, "y": (A, {"k": A})}, 3),
    ("stars", {"args": (A, A)}, 2),
    ("stars", ((A, A),), 2),
    ("stars", (A, A), 2),
    ("optional", {"x": {-2: "a"}}, 1),
    ("numbers", {"x": A}, 1),
    ("numbers", (A, {}, None), 1),
]


@pytest.mark.parametrize(
    "name, spec, count", PARTIAL, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(PARTIAL)]
)
def test_partial(name, spec, count):
    assert check(name, spec) == [["a", 6]] * count


def test_static_parts_of_a_structure():
    model = Fct2(lambda x, p: (x + 1, p[0] + p[1]["k"]))
    args = (X, (X + 1, {"k": X + 2}))
    for spec in ({"x": A}, {"x": A, "y": {}}, (A, ({}, {}))):
        onx = to_onnx(model, args, dynamic_shapes=spec, options=OPTIONS)
        shapes = [i.type.tensor_type.shape.dim for i in onx.graph.input]
        assert [s[0].dim_param for s in shapes] == ["a", "", ""]


def test_arguments_in_another_order():
    model = Fct2(lambda x, y: x.sum() + y.sum())
    kwargs = {"y": torch.randn(3, 5), "x": X}
    spec = {"x": {0: "a"}, "y": {1: "b"}}
    onx = to_onnx(model, kwargs=kwargs, dynamic_shapes=spec, options=OPTIONS)
    dims = {i.name: [d.dim_param for d in i.type.tensor_type.shape.dim] for i in onx.graph.input}
    assert dims == {"x": ["a", ""], "y": ["", "b"]}


WRONG = {
    "unknown": ("last", {"mask": A}, r"describes \['mask'\], arguments that the export does not"),
    "type": ("list", 3, "must be a dictionary of arguments or a list, not 3"),
    "count": ("optional", (A,), r"describes 1 values, there are 2: \['x', 'mask'\]"),
    "short": ("list", {"x": [A]}, r"\['x'\] describes 1 values, there are 2"),
    "axis": ("list", {"x": A}, r"\['x'\]\[0\] is 'a', which describes a number, .* a tensor"),
    "key": ("dict", {"x": {"z": A}}, r"\['x'\] describes \['z'\], the argument has \['a', 'b'\]"),
    "listed": ("dict", {"x": [A, A]}, r"must describe \['a', 'b'\], the parts of a dict"),
    "name": ("list", {"x": "a"}, r"must describe \[0, 1\], the parts of a list, not 'a'"),
    "none": ("none", {"x": [A, A]}, r"\['x'\]\[1\] is .* describes a tensor, the argument is None"),
    "far": ("optional", {"x": {2: "a"}}, r"\['x'\] describes axes \[2\], .* between -2 and 1"),
    "axis name": ("optional", {"x": {"0": "a"}}, r"\['x'\] describes axes \['0'\]"),
    "twice": ("optional", {"x": {0: "a", -2: "b"}}, r"describes an axis twice: \[-2, 0\]"),
    "axes": ("optional", {"x": ["a"]}, r"\['x'\] describes 1 axes, the argument has 2"),
    "stars": ("stars", (A, A, A), r"describes 3 values, there are 1: \['args'\]"),
    "number": ("numbers", {"n": A}, r"\['n'\] is .* describes a tensor, the argument is 3"),
}


@pytest.mark.parametrize("name, spec, message", WRONG.values(), ids=WRONG)
def test_wrong_structure(name, spec, message):
    model, args, kwargs = MODELS[name]
    with pytest.raises(OptionError, match=message):
        to_onnx(model, args, kwargs, dynamic_shapes=spec)


@pytest.mark.parametrize("spec", [{"x": A, "y": A}, {"x": A, "others": {"y": A}}])
def test_dynamic_keywords(spec):
    assert check("keywords", spec) == [["a", 6], ["a", 6]]


def test_flat_specifications():
    model, args = Fct(None), (X, (X, {"k": X}), 3)
    spec = {"args": ["skipped"]}
    with pytest.raises(OptionError, match="describes 1 values, there are 3"):
        flat_specifications(spec, model, args, {})
    spec = {"args": [A, [None, {"k": {1: "b"}}], None]}
    assert flat_specifications(spec, model, args, {}) == [A, None, {1: "b"}, None]
    assert flat_specifications(None, model, args, {}) == [None] * 4


def test_one_value_for_stars():
    model = Fct(torch.neg)
    for spec in ((A,), ((A,),), {"args": (A,)}):
        assert flat_specifications(spec, model, (X,), {}) == [A]


def test_torch_dynamic_shapes():
    model, args, kwargs = MODELS["keywords"]
    specs = flat_specifications({"x": {0: "a", 1: Dim.AUTO}}, model, args, kwargs)
    assert torch_dynamic_shapes(specs, model, args, kwargs) == {
        "x": {0: Dim.DYNAMIC, 1: Dim.AUTO},
        "y": None,
    }
    assert torch_dynamic_shapes([None, None], model, args, kwargs) is None


def test_shapes_computed_by_torch():
    collection = torch.export.ShapesCollection()
    args = MODELS["list"][1]
    collection[args[0][0]] = {0: Dim("a")}
    collection[args[0][1]] = {0: Dim("a")}
    assert check("list", collection) == [["a", 6]] * 2


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("by_name", [False, True])
def test_the_tensors_of_a_cache_layer_after_layer(layers, by_name):
    """Keys and values of each layer, in a list or in a dictionary, as other tools name them."""
    transformers = pytest.importorskip("transformers")
    cache = transformers.DynamicCache()
    for i in range(layers):
        cache.update(torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4), i)
    register_caches(cache)
    spec = [s for _ in range(layers) for s in ({0: "batch", 2: "past"}, {0: "batch"})]
    if by_name:
        spec = {f"{k}_{i}": spec[k == "value"] for i in range(layers) for k in ("key", "value")}
    found = flat_specifications({"x": spec}, Fct1(len), (cache,), {})
    assert found == [{0: "batch", 2: "past"}] * layers + [{0: "batch"}] * layers
    with pytest.raises(OptionError, match="dynamic_shapes"):
        flat_specifications({"x": [{0: "batch"}] * (2 * layers + 1)}, Fct1(len), (cache,), {})
