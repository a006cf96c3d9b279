"""Converters of the user."""

from __future__ import annotations

import math
import operator

import numpy as np
import onnx
import pytest
import torch
from ut_torch_interpreter.export_checks import Fct1, check_export, op_types

from torch_interpreter import Dispatcher, ForceDispatcher, FunctionNotFoundError, to_onnx
from torch_interpreter.dispatch.dispatcher import canonical_name
from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError

X = torch.randn(3, 4)
OPTIONS = OptimizationOptions(patterns=None)


@torch.library.custom_op("xoptim_dispatch::twice", mutates_args=())
def twice(x: torch.Tensor, factor: float, mode: str) -> torch.Tensor:
    return x * factor


@twice.register_fake
def _(x, factor, mode):
    return torch.empty_like(x)


class Model(torch.nn.Module):
    def forward(self, x):
        return twice(x, 2.0, "mul") + 1


def convert_twice(g, sts, outputs, x, factor, mode):
    assert mode == "mul"
    return g.op.Mul(x, np.array([factor], dtype=np.float32), outputs=outputs)


KEYS = [
    "xoptim_dispatch::twice",
    "xoptim_dispatch::twice.default",
    "xoptim_dispatch.twice",
    "xoptim_dispatch.twice.default",
    "xoptim_dispatch_twice",
    "xoptim_dispatch_twice_default",
    "twice",
]


@pytest.mark.parametrize("key", KEYS)
def test_custom_op(key):
    onx = check_export(Model(), (X,), dispatcher=Dispatcher({key: convert_twice}))
    assert op_types(onx) == ["Mul", "Add"]


def test_custom_op_by_object():
    for key in (torch.ops.xoptim_dispatch.twice, torch.ops.xoptim_dispatch.twice.default):
        check_export(Model(), (X,), dispatcher=Dispatcher({key: convert_twice}))


@pytest.mark.parametrize(
    "key", ["aten_add_Tensor", "aten::add.Tensor", "aten.add.Tensor", "aten::add"]
)
def test_overwrite_a_converter(key):
    def add(g, sts, outputs, x, y):
        assert sts and sts.type == onnx.TensorProto.FLOAT and sts.shape == (3, 4)
        return g.op.Sum(x, np.array([y], dtype=np.float32), outputs=outputs)

    onx = check_export(lambda x: x + 1, (X,), dispatcher=Dispatcher({key: add}))
    assert op_types(onx) == ["Sum"]


def test_overwrite_a_python_function():
    def ceil(g, sts, outputs, x):
        return g.op.Cast(g.op.Add(g.op.Floor(x), np.array([1.0])), to=7, outputs=outputs)

    check_export(
        lambda x: x.sum() * math.ceil(x.shape[0] / 2),
        (X,),
        ({0: "a"},),
        [(X[:1],)],
        dispatcher=Dispatcher({"math.ceil": ceil}),
    )


def test_merge():
    a, b = Dispatcher({"twice": convert_twice, "x": len}), Dispatcher({"x": abs}, verbose=1)
    merged = a.merge(b)
    assert merged.supported == a.merge(other_dispatcher=b).supported == {"twice", "x"}
    assert merged.find_function("x") is abs and a.find_function("x") is len
    assert merged.verbose == 1 and merged.find_function("unknown") is None


def test_methods():
    dispatcher = Dispatcher({"aten_meth_cosh": len})
    assert dispatcher.find_method("cosh") is len and dispatcher.find_method("sinh") is None
    assert dispatcher.find_method("aten_meth_cosh") is len


def test_fallback_of_the_user():
    class Mine(Dispatcher):
        def fallback(self, name, fct, args, kwargs, builder):
            return fct or convert_twice

    check_export(Model(), (X,), dispatcher=Mine({}))


def test_results_have_the_names_given_to_the_converter():
    def cosine(g, sts, outputs, x):
        assert outputs == list(sts.names) == ["cos"] and sts.node.name == "cos"
        return g.op.Cos(x, outputs=outputs)

    model = Fct1(lambda x: torch.cos(x) + 1)
    dispatcher = Dispatcher({"aten::cos": cosine})
    onx = to_onnx(model, (X,), dispatcher=dispatcher, optimize=False)
    assert list(onx.graph.node[0].output) == ["cos"]


def test_results_are_renamed_when_the_converter_ignores_their_names():
    def cosine(g, sts, outputs, x):
        return g.op.Cos(x)

    model = Fct1(lambda x: torch.cos(x) + 1)
    dispatcher = Dispatcher({"aten::cos": cosine})
    onx = check_export(model, (X,), dispatcher=dispatcher, optimize=False)
    assert [list(n.output) for n in onx.graph.node] == [["cos"], ["output_0"]]
    assert onx.graph.node[1].input[0] == "cos"


class Wrapping(Dispatcher):
    """Calls the converters of the library as if they were written by a user."""

    def __init__(self, names):
        super().__init__({})
        self.names, self.called = names, []

    def fallback(self, name, fct, args, kwargs, builder):
        def wrapped(g, sts, outputs, *args, **kwargs):
            self.called.append(canonical_name(name))
            result = fct(g, sts, self.names, *args, **kwargs)
            if self.names:
                assert result == self.names[0] and g.has_type(result)
            return g.op.Identity(result, outputs=outputs)

        return wrapped if canonical_name(name) == "aten.view.default" else fct


@pytest.mark.parametrize("names", [None, ["mine"]])
def test_the_converters_of_the_library_have_the_signature_of_a_user(names):
    dispatcher = Wrapping(names)
    model = Fct1(lambda x: torch.cos(x).view((-1,)) + 1)
    shapes = ({0: "a"},)
    onx = check_export(model, (X,), shapes, dispatcher=dispatcher, optimize=False)
    assert dispatcher.called == ["aten.view.default"]
    produced = [n.output[0] for n in onx.graph.node]
    assert "view" in produced and ("mine" in produced) is (names is not None)


def test_what_torch_knows_may_be_hidden_from_a_converter_of_the_library():
    """A user who gives None as sts gets a shape computed by the graph."""

    class Hiding(Dispatcher):
        def fallback(self, name, fct, args, kwargs, builder):
            return lambda g, sts, outputs, *a, **k: fct(g, None, outputs, *a, **k)

    check_export(lambda x: x.view((-1, 2)) * 2, (X,), ({0: "a"},), dispatcher=Hiding({}))


def test_not_a_function():
    with pytest.raises(OptionError, match="must be a function"):
        Dispatcher({"twice": 3})


def test_force_dispatcher():
    kwargs = {"options": OPTIONS}
    onx = to_onnx(Model(), (X,), dispatcher=ForceDispatcher(version=3), **kwargs)
    node = onx.graph.node[0]
    assert (node.domain, node.op_type) == ("aten.lib", "xoptim_dispatch_twice_default")
    assert {o.domain: o.version for o in onx.opset_import}["aten.lib"] == 3
    assert list(node.input) == ["x"]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert attributes == {"factor": 2.0, "mode": b"mul"}
    assert onx.graph.node[1].op_type == "Add"


def test_force_dispatcher_signatures():
    signatures = {"xoptim_dispatch::twice": ["a", "scale", "how"]}
    dispatcher = ForceDispatcher(signatures, domain="mine", only_registered=True)
    onx = to_onnx(Model(), (X,), dispatcher=dispatcher, options=OPTIONS)
    assert onx.graph.node[0].domain == "mine"
    assert sorted(a.name for a in onx.graph.node[0].attribute) == ["how", "scale"]
    with pytest.raises(FunctionNotFoundError):
        to_onnx(Model(), (X,), dispatcher=ForceDispatcher({}, only_registered=True))
    with pytest.raises(OptionError, match="has no signature"):
        to_onnx(Model(), (X,), dispatcher=ForceDispatcher({}, strict=True))


def test_force_dispatcher_keeps_the_operators_with_a_signature():
    fct = Fct1(lambda x: torch.sinc(x) + 1)
    forced = ForceDispatcher({"aten::sinc": ["x"]})
    onx = to_onnx(fct, (X,), dispatcher=forced, options=OPTIONS)
    assert op_types(onx) == ["aten_sinc_default", "Add"]
    onx = to_onnx(fct, (X,), dispatcher=ForceDispatcher(), options=OPTIONS)
    assert {n.domain for n in onx.graph.node} == {""}


def test_canonical_names():
    assert canonical_name(torch.ops.aten.add.Tensor) == "aten.add.Tensor"
    assert canonical_name(operator.add) == "operator.add"
    assert canonical_name(math.ceil) == "math.ceil"
    assert canonical_name(torch.sym_max) == "torch.sym_max"
    assert canonical_name(torch.ops.higher_order.cond) == "higher_order.cond"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Dispatcher(3), "registered_functions expects a dictionary {name: function}"),
        (lambda: Dispatcher().merge(3), "other expects Dispatcher, not 3"),
        (lambda: Dispatcher().merge(), "other expects Dispatcher, not None"),
        (lambda: ForceDispatcher(["x"]), "signatures expects a dictionary {operator: names"),
        (lambda: ForceDispatcher(domain=3), "domain expects str, not 3"),
        (lambda: ForceDispatcher(version="1"), "version expects int, not '1'"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(OptionError, match=message):
        call()


def test_wrong_number_of_results():
    from torch_interpreter import ConversionError

    def one(g, sts, outputs, x, dim):
        return g.op.ReduceMax(x)

    with pytest.raises(ConversionError, match="returns 1 results"):
        to_onnx(Fct1(lambda x: x.max(1)[0]), (X,), dispatcher=Dispatcher({"aten::max.dim": one}))


class OwnError(Exception):
    """An error of the user."""


ERRORS = [ZeroDivisionError("nothing"), FunctionNotFoundError("own"), OwnError("mine")]


def check_raised(error, fct, args, dispatcher):
    """The error of the user arrives as it is, once, with the node as its only note."""
    vars(error).pop("__notes__", None)
    with pytest.raises(type(error)) as raised:
        to_onnx(fct, args, dispatcher=dispatcher)
    assert raised.value is error
    (note,) = error.__notes__
    assert "aten.cos.default" in note and "fx node 'cos'" in note
    assert 'File "' in note
    return note


@pytest.mark.parametrize("error", ERRORS, ids=[type(e).__name__ for e in ERRORS])
def test_error_in_a_converter(error):
    def broken(g, sts, outputs, *args):
        raise error

    dispatcher = Dispatcher({"aten::cos": broken})
    note = check_raised(error, Fct1(lambda x: x.cos()), (X,), dispatcher)
    assert "broken" in note


@pytest.mark.parametrize("error", ERRORS, ids=[type(e).__name__ for e in ERRORS])
def test_error_in_a_fallback(error):
    class Broken(Dispatcher):
        def fallback(self, name, fct, args, kwargs, builder):
            if "cos" in str(name):
                raise error
            return fct

    check_raised(error, Fct1(lambda x: x.cos()), (X,), Broken())


def test_error_in_a_converter_of_a_branch():
    error = KeyError("k")

    def broken(g, sts, outputs, *args):
        raise error

    def fct(x):
        return torch.cond(x.sum() > 0, lambda y: y.cos(), lambda y: y.sin(), (x,))

    check_raised(error, Fct1(fct), (X,), Dispatcher({"aten::cos": broken}))


def test_what_a_converter_returns_is_checked():
    from torch_interpreter import ConversionError

    def wrong(g, sts, outputs, x):
        return g.op.ReduceSum(x, keepdims=0)

    with pytest.raises(ConversionError, match=r"aten.cos.default failed on fx node 'cos': "):
        to_onnx(Fct1(torch.cos), (X,), dispatcher=Dispatcher({"aten::cos": wrong}))
