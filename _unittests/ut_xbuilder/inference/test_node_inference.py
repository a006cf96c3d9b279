"""Types and shapes of results: conversions, inference of nodes, what files declare."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from onnx import TensorProto
from ut_xbuilder.graph_checks import parse

from xbuilder import (
    FactError,
    GraphBuilder,
    InferShapesOptions,
    OptimizationOptions,
    ResultFacts,
    register_shape_function,
)

MODEL = """
agraph (float[batch,3] x) => (float[A,B] y)
<float[W,Z] t>
{ t = Transpose(x) u = Neg(t) y = Transpose(u) }
"""


def shapes(options, text=MODEL):
    builder = GraphBuilder(parse(text), infer_shapes_options=options)
    return {n: builder.get_shape(n) if builder.has_shape(n) else None for n in ("t", "u", "y")}


def test_options():
    assert shapes(False) == {"t": ("W", "Z"), "u": None, "y": ("A", "B")}
    assert shapes(InferShapesOptions.NEW) == {"t": ("W", "Z"), "u": ("W", "Z"), "y": ("A", "B")}
    assert shapes(True) == {"t": (3, "batch"), "u": (3, "batch"), "y": ("batch", 3)}
    assert shapes(InferShapesOptions.BUILDER) == shapes(True)
    for option in (InferShapesOptions.ONNX, InferShapesOptions.DATA_PROP):
        found = shapes(option)
        assert len(found["u"]) == 2


def test_infer_again():
    builder = GraphBuilder(parse(MODEL), infer_shapes_options=False)
    assert builder.infer_shapes() > 0
    assert builder.has_shape("u")
    assert builder.infer_shapes() == 0


def test_a_symbol_is_not_specialised_by_a_declaration():
    """The batch was made dynamic, the file still declares 1 further."""
    text = MODEL.replace("float[A,B] y", "float[1,3] y").replace("float[W,Z] t", "float[3,1] t")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = GraphBuilder(parse(text), infer_shapes_options=True)
    assert builder.get_shape("t") == (3, "batch")
    assert list(builder.constraints.items()) == []


def test_a_declaration_fills_what_is_unknown():
    builder = GraphBuilder(
        parse(
            """
            <ir_version: 8, opset_import: ["": 18, "custom": 1]>
            agraph (float[batch] x) => (int64[M,K] y) <float[batch,5] u>
            { u = custom.Op(x) v = NonZero(u) y = Transpose(v) }
            """
        ),
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(trust_shapes=True),
    )
    assert builder.get_shape("u") == ("batch", 5)
    assert builder.get_shape("v")[0] == 2
    assert builder.get_shape("y")[1] == 2


def test_wrong_declarations_are_told_once():
    text = MODEL.replace("float[W,Z] t", "float[W,Z,5] t")
    with pytest.warns(UserWarning, match="'t'") as caught:
        builder = GraphBuilder(parse(text), infer_shapes_options=True)
    assert len([w for w in caught if "'t'" in str(w.message)]) == 1
    assert builder.get_shape("t") == (3, "batch")


def test_a_wrong_declaration_found_later():
    """Nothing was inferred when the file was read, a new node tells that it was wrong."""
    text = """
    agraph (float[batch,3] x) => (float[A,B] y) <float[3,4,5] t> { t = Transpose(x) y = Neg(t) }
    """
    builder = GraphBuilder(parse(text), infer_shapes_options=False)
    assert builder.get_shape("t") == (3, 4, 5)
    with pytest.warns(UserWarning, match="'t'"):
        builder.infer_shapes()
    assert builder.get_shape("t") == (3, "batch")


def test_contradictory_inferences_raise():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, (2, 3))
    builder.make_node("Neg", ["x"], ["y"])
    with pytest.raises(FactError, match=r"Neg\(x\).*set_shape"):
        builder.set_shape("y", (2, 4))
    with pytest.raises(FactError):
        builder.set_type("y", TensorProto.INT64)


def test_a_dimension_no_tensor_has_is_unknown():
    model = parse(
        "agraph (uint8[2, 9223372036854775807] x) => (uint8[2, n] y, int64[2] s)"
        "{ y = Concat <axis = 1> (x, x) s = Shape(y) }"
    )
    g = GraphBuilder(model)
    assert not g.has_shape("y")
    assert g.get_rank("y") == 2
    assert [n.op_type for n in g.to_onnx().graph.node] == ["Concat", "Shape"]


def test_unknown_operators_stop_nothing():
    builder = GraphBuilder(
        parse(
            '<ir_version: 8, opset_import: ["": 18, "custom": 1]> agraph (float[N] x) => (float[N] y) '
            "{ a, b = custom.Op(x) c = custom.Other(a) y = Add(c, b) }"
        ),
        infer_shapes_options=True,
    )
    assert not builder.has_type("a") and builder.get_type("y") == 1


def test_shape_functions_of_users():
    def double(ctx):
        return ResultFacts(ctx.type(0), (*ctx.shape(0), ctx.attr("n", 2)))

    register_shape_function("DoubleForTest", double, domain="custom.inference")
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("batch",))
    builder.anyop.DoubleForTest("x", n=5, outputs=["y"], domain="custom.inference")
    assert builder.get_shape("y") == ("batch", 5)


def raises(ctx):
    raise KeyError("axis")


WRONG_ANSWERS = {
    "raises": (raises, "KeyError"),
    "two results": (lambda ctx: [ResultFacts(1, (2,)), ResultFacts(1, (2,))], "2 results"),
    "no result": (lambda ctx: [], "0 results"),
    "not facts": (lambda ctx: (1, (2, 3)), "2 results"),
    "a number": (lambda ctx: 5, "not int"),
    "a list of shapes": (lambda ctx: [(2, 3)], "not tuple"),
    "float dimension": (lambda ctx: ResultFacts(1, (2.5, "a")), "2.5"),
    "none dimension": (lambda ctx: ResultFacts(1, (None, "a")), "None"),
    "empty dimension": (lambda ctx: ResultFacts(1, ("", "a")), "empty name"),
    "negative dimension": (lambda ctx: ResultFacts(1, (-1, "a")), "negative"),
    "negative rank": (lambda ctx: ResultFacts(1, None, -1), "negative"),
    "shape is a text": (lambda ctx: ResultFacts(1, "ab"), "'ab'"),
    "rank": (lambda ctx: ResultFacts(1, (2, "a"), 3), "contradicts"),
    "type": (lambda ctx: ResultFacts("float", (2, "a")), "'float'"),
    "float type": (lambda ctx: ResultFacts(1.5, (2, "a")), "1.5"),
    "content of another rank": (lambda ctx: ResultFacts(7, (2, "a"), None, (1, 2)), "content"),
    "content of another length": (lambda ctx: ResultFacts(7, (2,), None, (1, 2, 3)), "content"),
    "float content": (lambda ctx: ResultFacts(7, (1,), None, (1.5,)), "1.5"),
    "sequence": (lambda ctx: ResultFacts(sequence=(1, 2)), "not tuple"),
}


@pytest.mark.parametrize("case", WRONG_ANSWERS)
def test_wrong_shape_functions_of_users(case):
    """A warning that names the function, nothing is known, nothing stops."""
    function, reason = WRONG_ANSWERS[case]
    register_shape_function("WrongForTest", function, domain="custom.wrong", replace=True)
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("batch", 3))
    with pytest.warns(UserWarning, match=re.escape(reason)) as caught:
        builder.anyop.WrongForTest("x", outputs=["y"], domain="custom.wrong")
    name = "raises" if case == "raises" else "<lambda>"
    assert all(name in str(w.message) and "WrongForTest" in str(w.message) for w in caught)
    assert builder.facts["y"] == ResultFacts()
    builder.op.Neg("y", outputs=["z"])
    builder.make_tensor_output("z", elem_type=1, indexed=False)
    assert len(builder.to_onnx().graph.node) == 2


def test_shape_function_of_a_user_against_what_is_known():
    """A shape the user gave elsewhere contradicts the function, which is ignored."""
    wrong = lambda ctx: ResultFacts(1, (2, "a", 3))  # noqa: E731
    register_shape_function("WrongRankForTest", wrong, domain="custom.wrong", replace=True)
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("batch", 3))
    builder.set_shape("y", ("batch", 3))
    with pytest.warns(UserWarning, match="lambda.*WrongRankForTest"):
        builder.anyop.WrongRankForTest("x", outputs=["y"], domain="custom.wrong")
    assert builder.get_shape("y") == ("batch", 3)


def test_answers_of_users_are_put_in_normal_form():
    """Lists and integers of numpy are accepted."""

    def double(ctx):
        rows = [ResultFacts(np.int32(1), [np.int64(2), "a+a"]), None]
        return rows[: ctx.n_outputs]

    register_shape_function("ListForTest", double, domain="custom.lists", replace=True)
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("a",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.anyop.ListForTest("x", outputs=["y", "z"], domain="custom.lists")
    assert builder.facts["y"] == ResultFacts(1, (2, "2*a"))
    assert [type(d) for d in builder.get_shape("y")] == [int, str]
    assert builder.facts["z"] == ResultFacts()


def test_dimensions_that_are_not_expressions():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("batch size", "é"))
    builder.op.Neg("x", outputs=["y"])
    builder.make_tensor_output("y")
    onx = builder.to_onnx()
    assert [d.dim_param for d in onx.graph.output[0].type.tensor_type.shape.dim] == [
        "batch size",
        "é",
    ]


def test_a_model_is_inferred_by_default() -> None:
    model = parse("agraph (float[a,b] x) => (float[b,a] y) { t = Transpose(x) y = Neg(t) }")
    assert GraphBuilder(model).get_shape("t") == ("b", "a")
    assert not GraphBuilder(model, infer_shapes_options=False).has_shape("t")
    assert GraphBuilder(18).graph.infer_nodes
