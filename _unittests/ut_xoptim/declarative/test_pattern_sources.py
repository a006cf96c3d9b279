"""Inputs of the author of a pattern: annotations, arguments, results, models."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto
from ut_xoptim.unchecked import optimize_toys

from xbuilder.errors import OptionError, PatternError
from xoptim import EasyPatternOptimization, OnnxEasyPatternOptimization, make_pattern_from_onnx
from xoptim.declarative.pattern_sources import element_type_of
from xoptim.testing import check_no_match, model_from_text, optimize_with

BEFORE = "agraph (float[a] X, float[a] Z) => (float[a] Y) { Y = Mul(X, Z) }"


@pytest.mark.parametrize(
    "annotation,expected",
    [
        (inspect.Parameter.empty, 0),
        (str, 0),
        ("str", 0),
        (Any, 0),
        (TensorProto.FLOAT, TensorProto.FLOAT),
        ("TensorProto.INT64", TensorProto.INT64),
        ("onnx.TensorProto.BFLOAT16", TensorProto.BFLOAT16),
        ("'FLOAT'", TensorProto.FLOAT),
        ("float", TensorProto.FLOAT),
        (float, TensorProto.FLOAT),
        ("bool", TensorProto.BOOL),
        (bool, TensorProto.BOOL),
        ("double", TensorProto.DOUBLE),
        (np.float32, TensorProto.FLOAT),
        ("np.float64", TensorProto.DOUBLE),
        (np.dtype("int32"), TensorProto.INT32),
        ("numpy.int8", TensorProto.INT8),
        (np.bool_, TensorProto.BOOL),
    ],
)
def test_annotations(annotation: Any, expected: int) -> None:
    assert element_type_of(annotation) == expected


@pytest.mark.parametrize(
    "annotation",
    [
        "float[N, 4]", "FLOAT(N)", "(FLOAT, 4)", "nothing", "int", int, True, 99, 1.5, [1],
        np.ndarray, "np.ndarray", TensorProto, "TensorProto", ("float", ["N"]), list[int], "float128x",
        onnx.helper.make_tensor_type_proto(1, ["N"]), np.dtype("O"),
    ],
    ids=repr,
)  # fmt: skip
def test_annotations_that_mean_nothing(annotation: Any) -> None:
    with pytest.raises(OptionError, match=re.escape(repr(annotation))) as e:
        element_type_of(annotation)
    assert "TensorProto.FLOAT" in str(e.value)


def right(self, g, x, y):
    return g.op.Sub(x, y)


def two(self, g, x, y):
    return g.op.Mul(x, y)


def unused(self, g, x, y):
    return g.op.Mul(x, x)


def through(self, g, x, y):
    g.op.Mul(x, y)
    return x


def shape(self, g, x: "float[N]", y):  # noqa: F821, UP037
    return g.op.Mul(x, y)


def typed(self, g, x: TensorProto.FLOAT, y):
    return g.op.Mul(x, y)


def one(self, g, x):
    return g.op.Neg(x)


def three(self, g, x, y, z):
    return g.op.Neg(x)


def many(self, g, *x):
    return g.op.Mul(*x)


def default(self, g, x, y="w"):
    return g.op.Mul(x, y)


def keyword(self, g, x, *, y):
    return g.op.Mul(x, y)


def no_graph():
    return "r"


def number(self, g, x, y):
    return 3


def nothing(self, g, x, y):
    g.op.Mul(x, y)


def with_none(self, g, x, y):
    return g.op.Mul(x, y), None


def twice(self, g, x, y):
    r = g.op.Mul(x, y)
    return r, r


def captures(self, g, x, y):
    branch = onnx.parser.parse_graph("b () => (float[a] t) { t = Mul(x, y) }")
    return g.op.If(g.op.Greater(x, y), then_branch=branch, else_branch=branch)


#: functions of the pattern, the message when it is made or used
BAD = {
    "unused input": (unused, right, "match_pattern cannot be looked for: its input 'y' is read by"),
    "input as output": (through, right, "its output 'x' is not the result of a node"),
    "shape": (shape, right, r"argument 'x': annotation '?\W*float\[N\]\W* is not understood"),
    "shape in apply": (two, shape, "apply_pattern, argument 'x': annotation"),
    "type in apply": (two, typed, "'x' of apply_pattern must be given to argument 'x' of match"),
    "fewer inputs": (two, one, r"takes 2 inputs \['x', 'y'\], apply_pattern 1 \['x'\]"),
    "more inputs": (two, three, "apply_pattern 3"),
    "list": (many, right, r"argument '\*x' is not expected"),
    "default": (default, right, "argument \"y='w'\" is not expected"),
    "keyword": (keyword, right, "argument 'y' is not expected"),
    "number": (number, right, "match_pattern must return the names of its results, not 3"),
    "nothing": (nothing, right, "match_pattern must return the names of its results, not None"),
    "none": (with_none, right, "must return the names of its results"),
    "same result": (twice, right, "outputs .* must be different"),
    "capture": (captures, right, "a subgraph of node .* reads 'x'"),
    "number in apply": (two, number, "apply_pattern must return the names of its results, not 3"),
}


def wanted(self, g, x: TensorProto.FLOAT, y: TensorProto.FLOAT):
    return g.op.Neg(g.op.Mul(x, y))


def other_types(self, g, x: TensorProto.INT64, y: TensorProto.DOUBLE, **kwargs):
    return g.op.Mul(g.op.Neg(x), y)


@pytest.mark.parametrize(("name", "expected"), [("float", "Neg Mul"), ("int64", "Mul Neg")])
def test_only_the_types_of_match_are_checked(name: str, expected: str) -> None:
    text = f"agraph ({name}[n] x, {name}[n] y) => ({name}[n] z) {{ t = Mul(x, y) z = Neg(t) }}"
    model, _, _ = optimize_with(model_from_text(text), make(wanted, other_types))
    assert " ".join(n.op_type for n in model.graph.node) == expected


def make(match: Any, apply: Any) -> EasyPatternOptimization:
    body = {"match_pattern": match, "apply_pattern": apply}
    return type("Mine", (EasyPatternOptimization,), body)()


@pytest.mark.parametrize("case", BAD)
def test_mistakes_of_the_author(case: str) -> None:
    match, apply, message = BAD[case]
    with pytest.raises((OptionError, PatternError), match=message):
        optimize_toys(model_from_text(BEFORE), [make(match, apply)])


def test_no_argument() -> None:
    with pytest.raises(OptionError, match="must have the graph as first argument"):
        make(staticmethod(no_graph), right).roots  # noqa: B018
    for body in ({"match_pattern": two}, {"apply_pattern": two}):
        pattern = type("Half", (EasyPatternOptimization,), body)()
        with pytest.raises(NotImplementedError, match="Half must define"):
            pattern.roots  # noqa: B018


def test_types_are_checked() -> None:
    model, _, _ = optimize_toys(model_from_text(BEFORE), [make(typed, right)])
    assert [n.op_type for n in model.graph.node] == ["Sub"]
    check_no_match(BEFORE.replace("float", "double"), make(typed, right), "cannot be 'x'")


def parse(text: str, functions: str = "") -> onnx.ModelProto:
    domain = ', "d" : 1' if functions else ""
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18{domain}]> g {text}{functions}'
    )


INPUTS = "(float[a] x, float[a] y) => (float[a] r)"
GOOD = parse(f"{INPUTS} {{ r = Mul(x, y) }}")
OTHER = parse(f"{INPUTS} {{ r = Sub(x, y) }}")
SPARSE = onnx.ModelProto.FromString(GOOD.SerializeToString())
SPARSE.graph.sparse_initializer.add().values.name = "s"
NO_OPSET = onnx.ModelProto.FromString(GOOD.SerializeToString())
NO_OPSET.ClearField("opset_import")
DUPLICATED = onnx.ModelProto.FromString(GOOD.SerializeToString())
DUPLICATED.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1), "x"))
EXTERNAL = parse(f"{INPUTS} <float[1] w = {{1}}> {{ m = Mul(x, y) r = Add(m, w) }}")
EXTERNAL.graph.initializer[0].ClearField("float_data")
EXTERNAL.graph.initializer[0].data_location = TensorProto.EXTERNAL
EXTERNAL.graph.initializer[0].external_data.add(key="location", value="w.bin")
DAMAGED = onnx.ModelProto.FromString(EXTERNAL.SerializeToString())
DAMAGED.graph.initializer[0].CopyFrom(TensorProto(name="w", data_type=1, dims=[1], raw_data=b"123"))
FUNCTION = '<domain: "d", opset_import: ["" : 18]> F (a, b) => (c) { c = Mul(a, b) }'

#: one of the models, the words of the message, whether only the first model is refused
BAD_MODELS = {
    "path": ("model.onnx", "must be a ModelProto, not str; a file is loaded with onnx.load", False),
    "none": (None, "not NoneType", False),
    "graph": (GOOD.graph, "not GraphProto", False),
    "bytes": (GOOD.SerializeToString(), "not bytes", False),
    "empty": (onnx.ModelProto(), "it is empty", False),
    "no output": (parse("(float[a] x, float[a] y) => () { r = Mul(x, y) }"), "it is empty", False),
    "no opset": (NO_OPSET, "imports no opset", False),
    "unknown name": (parse(f"{INPUTS} {{ r = Mul(x, w) }}"), "Mul reads 'w'", False),
    "order": (parse(f"{INPUTS} {{ r = Neg(m) m = Mul(x, y) }}"), "Neg reads 'm'", False),
    "no such output": (parse(f"{INPUTS} {{ q = Mul(x, y) }}"), "nothing computes its output 'r'", False),
    "same result": (parse(f"{INPUTS} {{ r = Neg(x) r = Neg(y) }}"), "name 'r' is the one", False),
    "input and initializer": (DUPLICATED, "name 'x'", False),
    # nobody knows in which folder the file is, the current one is no answer
    "external": (EXTERNAL, "the content of 'w' is in another file, onnx.load", False),
    "damaged": (DAMAGED, "tensor 'w' is damaged, its content has 3 bytes", False),
    "sparse": (SPARSE, "sparse", False),
    "functions": (parse(f"{INPUTS} {{ r = d.F(x, y) }}", FUNCTION), "inline_local_functions", False),
    "capture": (
        parse(f"""{INPUTS} {{ c = Equal(x, y) r = If(c) <
        then_branch = t () => (float[a] t) {{ t = Neg(x) }},
        else_branch = e () => (float[a] e) {{ e = Neg(y) }}> }}"""),
        "a subgraph of node If reads",
        False,
    ),
    "unused input": (parse(f"{INPUTS} {{ r = Neg(x) }}"), "its input 'y' is read by no node", True),
    "input as output": (
        parse("(float[a] x, float[a] y) => (float[a] x) { r = Mul(x, y) }"),
        "its output 'x' is not the result of a node",
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_MODELS)
def test_bad_models(case: str) -> None:
    model, message, first_only = BAD_MODELS[case]
    with pytest.raises(OptionError, match=f"The first model of a pattern .*{message}"):
        make_pattern_from_onnx("Mine", model, GOOD)
    if first_only:
        assert make_pattern_from_onnx("Mine", GOOD, model).roots == ("Mul",)
    else:
        with pytest.raises(OptionError, match=f"The second model of a pattern .*{message}"):
            OnnxEasyPatternOptimization(GOOD, model)


@pytest.mark.parametrize("name", ["", None, 3])
def test_bad_name(name: Any) -> None:
    with pytest.raises(OptionError, match="needs a name"):
        make_pattern_from_onnx(name, GOOD, OTHER)


def test_good_models() -> None:
    pattern = make_pattern_from_onnx("Mine", GOOD, OTHER)
    model, _, _ = optimize_toys(model_from_text(BEFORE), [pattern])
    assert [n.op_type for n in model.graph.node] == ["Sub"]
