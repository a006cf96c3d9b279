"""Names parts of a model with local functions, which are kept, to make them visible in a graph."""

from __future__ import annotations

from functools import lru_cache

import onnx
from onnx import FunctionProto, NodeProto

from ...analysis.arguments import int_attribute, other_input
from ...analysis.attention.rotated_halves import rotated_halves
from ...analysis.constants import scalar_value
from ...analysis.neighbours import consumers_of
from ...analysis.permutations import perm_of
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext, RewriteResult
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from ...declarative import rule

#: domain of the functions
DOMAIN = "investigation"
_ROTARY = "(x, sizes, z) => (y) { a, b = Split <axis = -1> (x, sizes) n = Neg(b)" + (
    " c = Concat <axis = -1> (n, a) y = Mul(c, z) }"
)
_POW_TANH = "(x, d, a, b) => (y) { p = Pow(x, d) m = Mul(p, a) s = Add(x, m) n = Mul(s, b)" + (
    " y = Tanh(n) }"
)


@lru_cache(maxsize=64)
def _function(name: str, body: str, opset: int) -> FunctionProto:
    header = f'<domain: "{DOMAIN}", opset_import: ["" : {opset}]>'
    return onnx.parser.parse_function(f"{header} {name} {body}")


def _call(
    g: RewriteContext,
    name: str,
    body: str,
    *inputs: Operand,
    outputs: int = 1,
    **attributes: object,
) -> NewNode:
    """A call to a function, with its definition.

    :param name: name of the function
    :param body: its parameters, its results and its nodes, as text
    :param inputs: the arguments
    :param outputs: number of results
    :param attributes: attributes of the call
    """
    function = _function(name, body, g.main_opset)
    return NewNode(name, inputs, attributes, DOMAIN, outputs, function=function)


@rewrite("investigation", root="Split", read_by="Neg", min_opset=13, sole_use=True)
def function_split_rotary_mul(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """a, b = Split(x), Concat(-b, a) * z -> SplitRotaryMul(x, z), a local function.

    Both halves have the same size, which is known, on the last axis.
    """
    found = rotated_halves(g, node)
    g.require(found.side == "right", "the second half does not change its sign")
    mul = g.after(found.result, "Mul")
    other = other_input(mul, found.result)
    new = _call(g, "SplitRotaryMul", _ROTARY, node.input[0], found.sizes, other)
    return {mul.output[0]: new}


@rule("investigation", "y = Tanh((x + Pow(x, d) * a) * b); y", min_opset=7)
def function_pow_tanh(
    g: RewriteContext, x: str, d: str, a: str, b: str, y: str
) -> dict[str, NewNode]:
    """Tanh((X + X ** d * a) * b) -> PowTanh(X, d, a, b), a local function; d, a, b are scalars."""
    scalars = all(scalar_value(g, name) is not None for name in (d, a, b))
    g.require(scalars, "the degree or a factor is not a scalar constant")
    return {y: _call(g, "PowTanh", _POW_TANH, x, d, a, b)}


def _packed(count: int) -> str:
    """The function of several products of one operand: one product, whose result is split."""
    rows = range(count)
    weights, pieces, results = (", ".join(f"{c}{i}" for i in rows) for c in "wpy")
    moved = " ".join(
        f"r{i} = Reshape(p{i}, shape) y{i} = Transpose <perm: ints = @perm> (r{i})" for i in rows
    )
    return f"""<perm> (x, shape, {weights}) => ({results}) {{
        w = Concat <axis = -1> ({weights}) m = MatMul(x, w)
        {pieces} = Split <axis = -1, num_outputs = {count}> (m) {moved}
    }}"""


@rewrite("investigation", root="MatMul", min_opset=18, precision="rounding", sole_use=True)
def function_packed_mat_mul(g: RewriteContext, node: NodeProto) -> RewriteResult:
    """Transpose(Reshape(MatMul(x, w))), for several w -> PackedMatMul(x, shape, w...).

    1. The weights are constant matrices of the same shape.
    2. The results are reshaped to the same shape, then moved with the same permutation.

    PackedMatMul is a local function: one product, whose result is split.
    """
    x, weight = g.inputs(node)
    siblings = consumers_of(g, x, "MatMul")
    if len(siblings) < 2 or siblings[0] is not node:
        return g.no("it is not the first of several products")
    g.look_at(*siblings)
    reshapes = [g.after(n, "Reshape") for n in siblings]
    moves = [g.after(n, "Transpose") for n in reshapes]
    shape = reshapes[0].input[1]
    same = all(n.input[1] == shape and int_attribute(n, "allowzero", 0) == 0 for n in reshapes)
    g.require(same, "the results are not reshaped to the same shape")
    perm = g.known(perm_of(g, moves[0]), "the permutation is not known")
    g.require(all(perm_of(g, n) == perm for n in moves), "the permutations differ")
    weights = [n.input[1] for n in siblings]
    constant = g.rank_or_none(weight) == 2 and all(map(g.is_constant, weights))
    g.require(constant, "the weights are not constant matrices")
    expected = g.shape_of(weight)
    equal = all(proven_equal(g, g.shape_of(w), expected) for w in weights)
    g.require(equal, "the weights do not have the same shape")
    name, body = f"PackedMatMul{len(weights)}", _packed(len(weights))
    new = _call(g, name, body, x, shape, *weights, outputs=len(weights), perm=list(perm))
    return {n.output[0]: new[i] for i, n in enumerate(moves)}
