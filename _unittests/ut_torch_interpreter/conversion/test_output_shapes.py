"""Names of the dimensions of the outputs."""

from __future__ import annotations

import pytest
import torch

from torch_interpreter import to_onnx
from torch_interpreter.conversion.output_shapes import simplest_shape
from torch_interpreter.inputs.dynamic_shapes import DimensionNamer
from xbuilder import OptimizationOptions
from xbuilder.errors import OptionError

X, Y = torch.arange(6.0).reshape(2, 3), torch.arange(8.0).reshape(2, 4)
NAMES = ["z", "where", "s", "kept"]


class Model(torch.nn.Module):
    def forward(self, x, y):
        z = torch.cat([x, y], dim=1)
        kept = y.flatten()[(y > 0).flatten()]
        return z * 2, (x > 0).nonzero(), {"s": z.sum(1), "kept": torch.cat([kept, kept])}


def export(output_dynamic_shapes, **kwargs):
    return to_onnx(
        Model(),
        (X, Y),
        dynamic_shapes=({0: "b", 1: "p"}, {0: "b", 1: "s"}),
        output_names=NAMES,
        output_dynamic_shapes=output_dynamic_shapes,
        validate_onnx=True,
        **kwargs,
    )


def dims(onx):
    return [
        tuple(d.dim_param or d.dim_value for d in o.type.tensor_type.shape.dim)
        for o in onx.graph.output
    ]


ALL = [("b", "total"), ("count", 2), ("b",), ("twice",)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (({0: "b", 1: "total"}, {0: "count"}, None, {0: "twice"}), ALL),
        (({1: "total"}, ("count", None), {"s": None, "kept": ["twice"]}), ALL),
        ({"kept": {0: "twice"}, "where": {0: "count"}, "z": {1: "total"}}, ALL),
        ({"where": {0: torch.export.Dim("count")}}, [("b", "p+s"), ("count", 2), ("b",), None]),
        (({1: "s+p"}, {0: "count"}, None, None), [("b", "p+s"), ("count", 2), ("b",), None]),
    ],
)
@pytest.mark.parametrize("patterns", [None, "default"])
def test_names(spec, expected, patterns):
    found = dims(export(spec, options=OptimizationOptions(patterns=patterns)))
    for name, shape, wanted in zip(NAMES, found, expected, strict=True):
        assert wanted is None or shape == wanted, name


def test_one_output():
    class One(torch.nn.Module):
        def forward(self, x):
            return None, x.nonzero()

    for spec in ({0: "count"}, [{0: "count"}], [None, {0: "count"}]):
        assert dims(to_onnx(One(), (X,), output_dynamic_shapes=spec)) == [("count", 2)]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (({0: "b"},), "must describe the 4 outputs"),
        ({"unknown": {0: "n"}}, "must describe the 4 outputs"),
        (("b", {0: "n"}, None, None), "must describe the 4 outputs"),
        ((3, ["n"], {}, None, None), "must describe the 4 outputs"),
        (({5: "n"}, None, None, None), "axis 5 of output 'z': the output has 2 dimensions"),
        ((None, {1: "n"}, None, None), "this dimension is always 2"),
        (({0: "n"}, None, None, None), "already has the name 'b', use it instead of 'n'"),
        (({1: "b"}, None, None, None), "'b' is the name of another dimension"),
        (({1: "n"}, None, None, {0: "n"}), "'n' is already the name of another dimension"),
    ],
)
def test_refused(spec, message):
    with pytest.raises(OptionError, match=message):
        export(spec)


def test_output_without_dimension():
    class Size(torch.nn.Module):
        def forward(self, x):
            return x.shape[0]

    with pytest.raises(OptionError, match="this output is no tensor"):
        to_onnx(Size(), (X,), dynamic_shapes=({0: "b"},), output_dynamic_shapes=[{0: "n"}])


class Written(torch.nn.Module):
    """Torch knows the shape is the one of x, the nodes tell `b+min(1,b)-1`."""

    def forward(self, x):
        y = x.clone()
        y[1:, 0] = 7
        return y, torch.cat([x, x])


@pytest.mark.parametrize("optimize", [True, False])
def test_what_torch_says_simply(optimize):
    onx = to_onnx(
        Written(), (X.T,), dynamic_shapes=({0: "b"},), optimize=optimize, validate_onnx=True
    )
    assert dims(onx) == [("b", 2), ("2*b", 2)]


def test_simplest_shape():
    namer = DimensionNamer()
    namer.names["s0"] = "b"
    output = torch.zeros(2, 3, 4)
    assert simplest_shape(namer, output, ("b", "c+1", 4)) == ("b", 3, 4)
    assert simplest_shape(namer, output, (2, "b", 4)) is None
    assert simplest_shape(namer, output, (2, "b")) is None
    assert simplest_shape(namer, 3, ()) is None
