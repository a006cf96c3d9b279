"""Einsum that another operator computes: every case, every reason to refuse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.patterns.products.einsum import terms_of
from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests


def one(node: str, x: str = "a, b, 4", y: str = "a, b, 4", constants: str = "") -> str:
    """A model with one operand."""
    return f"g (float[{x}] x) => (float[{y}] y) {constants} {{ y = {node} }}"


def two(node: str, x: str, z: str, y: str, elem_type: str = "float") -> str:
    """A model with two operands."""
    t = elem_type
    return f"g ({t}[{x}] x, {t}[{z}] z) => ({t}[{y}] y) {{ y = {node} }}"


def einsum(equation: str, args: str = "x, z") -> str:
    """The node."""
    return f'Einsum<equation = "{equation}">({args})'


def moved(shapes: tuple[str, str, str], body: str, axes: str = "") -> str:
    """A model with two operands and several nodes."""
    x, z, y = shapes
    constants = f"<int64[1] i = {axes}>" if axes else ""
    return f"g (float[{x}] x, float[{z}] z) => (float[{y}] y) {constants} {{ {body} }}"


SCORES = ("a, h, b, 4", "a, h, c, 4", "a, h, b, c")
HEADS = ("a, b, h, 4", "a, c, h, 4", "a, h, b, c")
POSITIONS = ("a, h, h, 4", "h, 3, 4", "a, h, h, 3")
VALUES = ("a, h, b, 5", "a, 5, h, 4", "a, b, h, 4")
MATMUL = ("a, h, b, 4", "a, h, 4, c", "a, h, b, c")
MATRICES = ("a, 4", "4, b", "a, b")

#: pattern -> case -> (before, after)
MODELS = {
    "Einsum": {
        "matrices of a batch": (
            two(einsum("bhik,bhkj->bhij"), *MATMUL),
            two("MatMul(x, z)", *MATMUL),
        ),
        "exchanged": (
            two(einsum("kj,ik->ij"), "4, b", "a, 4", "a, b"),
            two("MatMul(z, x)", "4, b", "a, 4", "a, b"),
        ),
        "implicit result": (two(einsum("ij,jk"), *MATRICES), two("MatMul(x, z)", *MATRICES)),
        "a weight": (
            two(einsum("bik, kj -> bij"), "a, b, 4", "4, c", "a, b, c"),
            two("MatMul(x, z)", "a, b, 4", "4, c", "a, b, c"),
        ),
        "less batches on the left": (
            two(einsum("hik,bhkj->bhij"), "h, b, 4", "a, h, 4, c", "a, h, b, c"),
            two("MatMul(x, z)", "h, b, 4", "a, h, 4, c", "a, h, b, c"),
        ),
        "integers": (
            two(einsum("ij,jk->ik"), *MATRICES, "int64"),
            two("MatMul(x, z)", *MATRICES, "int64"),
        ),
        "transposed on the right": (
            two(einsum("ik,jk->ij"), "a, 4", "b, 4", "a, b"),
            two("Gemm<transB = 1>(x, z)", "a, 4", "b, 4", "a, b"),
        ),
        "transposed on the left": (
            two(einsum("ki,kj->ij"), "4, a", "4, b", "a, b"),
            two("Gemm<transA = 1>(x, z)", "4, a", "4, b", "a, b"),
        ),
        "transposed on both sides": (
            two(einsum("ki,jk->ij"), "4, a", "b, 4", "a, b"),
            two("Gemm<transA = 1, transB = 1>(x, z)", "4, a", "b, 4", "a, b"),
        ),
        "the result is transposed": (
            two(einsum("ik,kj->ji"), "a, 4", "4, b", "b, a"),
            two("Gemm<transA = 1, transB = 1>(z, x)", "a, 4", "4, b", "b, a"),
        ),
        "a vector and a matrix": (
            two(einsum("i,ij->j"), "4", "4, b", "b"),
            two("MatMul(x, z)", "4", "4, b", "b"),
        ),
        "a matrix and a vector": (
            two(einsum("ij,i->j"), "4, b", "4", "b"),
            two("MatMul(z, x)", "4, b", "4", "b"),
        ),
        "inner product": (
            two(einsum("i,i->"), "4", "4", "1").replace("float[1] y", "float y"),
            two("MatMul(x, z)", "4", "4", "1").replace("float[1] y", "float y"),
        ),
        "ellipsis": (two(einsum("...ij,...jk->...ik"), *MATMUL), two("MatMul(x, z)", *MATMUL)),
        "ellipsis, implicit result": (
            two(einsum("...ij,...jk"), *MATMUL),
            two("MatMul(x, z)", *MATMUL),
        ),
        "ellipsis, a weight": (
            two(einsum("...k,kj->...j"), "a, b, 4", "4, c", "a, b, c"),
            two("MatMul(x, z)", "a, b, 4", "4, c", "a, b, c"),
        ),
        "an ellipsis of nothing": (
            two(einsum("...ik,...kj->...ij"), *MATRICES),
            two("MatMul(x, z)", *MATRICES),
        ),
        "ellipsis, transpose": (
            one(einsum("...ij->j...i", "x"), y="4, a, b"),
            one("Transpose<perm = [2, 0, 1]>(x)", y="4, a, b"),
        ),
        "scores of queries and keys": (
            two(einsum("bhid,bhjd->bhij"), *SCORES),
            moved(SCORES, "t = Transpose<perm = [0, 1, 3, 2]>(z) y = MatMul(x, t)"),
        ),
        "scores, ellipsis": (
            two(einsum("...id,...jd->...ij"), *SCORES),
            moved(SCORES, "t = Transpose<perm = [0, 1, 3, 2]>(z) y = MatMul(x, t)"),
        ),
        "transposed batch": (
            two(einsum("bki,bkj->bij"), "a, 4, b", "a, 4, c", "a, b, c"),
            moved(
                ("a, 4, b", "a, 4, c", "a, b, c"),
                "t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(t, z)",
            ),
        ),
        "scores, heads after the sequence": (
            two(einsum("bihd,bjhd->bhij"), *HEADS),
            moved(
                HEADS,
                "s = Transpose<perm = [0, 2, 1, 3]>(x) t = Transpose<perm = [0, 2, 3, 1]>(z)"
                " y = MatMul(s, t)",
            ),
        ),
        "values, heads after the sequence": (
            two(einsum("bhij,bjhd->bihd"), *VALUES),
            moved(
                VALUES,
                "s = Transpose<perm = [0, 2, 1, 3]>(z) t = MatMul(x, s)"
                " y = Transpose<perm = [0, 2, 1, 3]>(t)",
            ),
        ),
        "batches in another order": (
            two(einsum("bhik,hbkj->bhij"), "a, h, b, 4", "h, a, 4, c", "a, h, b, c"),
            moved(
                ("a, h, b, 4", "h, a, 4, c", "a, h, b, c"),
                "t = Transpose<perm = [1, 0, 2, 3]>(z) y = MatMul(x, t)",
            ),
        ),
        "a transposed weight": (
            two(einsum("bik,jk->bij"), "a, b, 4", "c, 4", "a, b, c"),
            moved(
                ("a, b, 4", "c, 4", "a, b, c"),
                "t = Transpose<perm = [1, 0]>(z) y = MatMul(x, t)",
            ),
        ),
        "the operands are exchanged": (
            two(einsum("bkj,bik->bij"), "a, 4, c", "a, b, 4", "a, b, c"),
            two("MatMul(z, x)", "a, 4, c", "a, b, 4", "a, b, c"),
        ),
        "exchanged, the result would be transposed": (
            two(einsum("bik,bjk->bji"), "a, b, 4", "a, c, 4", "a, c, b"),
            moved(
                ("a, b, 4", "a, c, 4", "a, c, b"),
                "t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(z, t)",
            ),
        ),
        "outer product": (
            two(einsum("i,j->ij"), "a", "b", "a, b"),
            moved(("a", "b", "a, b"), "t = Unsqueeze(x, i) y = Mul(z, t)", "{1}"),
        ),
        "product with the first dimension": (
            two(einsum("ij,i->ij"), "a, b", "a", "a, b"),
            moved(("a, b", "a", "a, b"), "t = Unsqueeze(z, i) y = Mul(x, t)", "{1}"),
        ),
        "a letter that is not summed": (
            two(einsum("ik,kj->ikj"), "a, 4", "4, b", "a, 4, b"),
            moved(("a, 4", "4, b", "a, 4, b"), "t = Unsqueeze(x, i) y = Mul(z, t)", "{2}"),
        ),
        "product with the dimension in the middle": (
            two(einsum("j,bjk->bjk"), "b", "a, b, c", "a, b, c"),
            moved(("b", "a, b, c", "a, b, c"), "t = Unsqueeze(x, i) y = Mul(z, t)", "{1}"),
        ),
        "transpose": (
            one(einsum("bij->jbi", "x"), y="4, a, b"),
            one("Transpose<perm = [2, 0, 1]>(x)", y="4, a, b"),
        ),
        "implicit transpose": (
            one(einsum("cab", "x"), y="b, 4, a"),
            one("Transpose<perm = [1, 2, 0]>(x)", y="b, 4, a"),
        ),
        "nothing": (
            "g (float[a, b] x) => (float[a, b] y)"
            '{ z = Einsum<equation = "ij->ij">(x) y = Relu(z) }',
            "g (float[a, b] x) => (float[a, b] y) { y = Relu(x) }",
        ),
        "sum": (
            one(einsum("bij->bj", "x"), y="a, 4"),
            one("ReduceSum<keepdims = 0>(x, i)", y="a, 4", constants="<int64[1] i = {1}>"),
        ),
        "sum of everything": (
            one(einsum("bij->", "x")).replace("[a, b, 4] y", " y"),
            one("ReduceSum<keepdims = 0>(x, i)", constants="<int64[3] i = {0, 1, 2}>").replace(
                "[a, b, 4] y", " y"
            ),
        ),
        "product": (
            two(einsum("ij,ij->ij"), "a, b", "a, b", "a, b"),
            two("Mul(x, z)", "a, b", "a, b", "a, b"),
        ),
        "product with the last dimensions": (
            two(einsum("j,bij->bij"), "4", "a, b, 4", "a, b, 4"),
            two("Mul(z, x)", "4", "a, b, 4", "a, b, 4"),
        ),
        "product with a scalar": (
            two(einsum(",ij->ij"), "1", "a, b", "a, b").replace("float[1] x", "float x"),
            two("Mul(z, x)", "1", "a, b", "a, b").replace("float[1] x", "float x"),
        ),
    }
}

REFUSED = {
    "Einsum": {
        "bfloat16, without kernel": (
            """g (bfloat16[a, b] x) => (bfloat16[a] y) { y = Einsum<equation = "ij->i">(x) }""",
            "runtimes have no kernel on CPU",
        ),
        "the letters of a product, not in its sum": (
            two(einsum("ij,kj->ij"), "a, b", "c, b", "a, b"),
            "neither one operator nor a product",
        ),
        "one operand out of two": (
            one(einsum("ij,jk->i", "x"), "a, b", "a"),
            "the operands are not those of the equation",
        ),
        "two operands instead of one": (
            two(einsum("ij->ij"), "a, b", "a, b", "a, b"),
            "the operands are not those of the equation",
        ),
        "diagonal": (one(einsum("ii->i", "x"), "a, a", "a"), "a letter stands twice"),
        "three operands": (
            "g (float[a, 4] x, float[4] z) => (float[a] y) {"
            ' y = Einsum<equation = "ij,j,j->i">(x, z, z) }',
            "more than two operands",
        ),
        "sum and transpose": (
            one(einsum("bij->jb", "x"), y="4, a"),
            "the letters that stay are in another order",
        ),
        "vector": (two(einsum("ij,j->i"), "a, 4", "4", "a"), "neither one operator nor a product"),
        "two sums": (
            two(einsum("ikl,klj->ij"), "a, 2, 3", "2, 3, b", "a, b"),
            "neither one operator nor a product",
        ),
        "a dimension 1 is broadcast": (
            two(einsum("ij,jk->ik"), "a, 1", "4, b", "a, b"),
            "the dimensions of the sum may differ",
        ),
        "a dimension may be 1": (
            two(einsum("ij,jk->ik"), "a, n", "4, b", "a, b"),
            "the dimensions of the sum may differ",
        ),
        "a dimension of Gemm may be 1": (
            two(einsum("ij,kj->ik"), "a, n", "b, 4", "a, b"),
            "the dimensions of the sum may differ",
        ),
        "ellipses of different lengths": (
            two(einsum("...ij,...jk->...ik"), "h, b, 4", "a, h, 4, c", "a, h, b, c"),
            "the ellipses are not the same",
        ),
        "an ellipsis that is summed": (
            two(einsum("...i,...i->i"), "a, 4", "a, 4", "4"),
            "the ellipses are not the same",
        ),
        "positions of the rows": (
            two(einsum("bhwc,hkc->bhwk"), *POSITIONS),
            "neither one operator nor a product",
        ),
        "a vector and several matrices": (
            two(einsum("i,bij->bj"), "4", "a, 4, b", "a, b"),
            "neither one operator nor a product",
        ),
        "several rows that are transposed": (
            two(einsum("bki,kj->bij"), "a, 4, b", "4, c", "a, b, c"),
            "neither one operator nor a product",
        ),
        "positions of the columns": (
            two(einsum("bhwc,wkc->bhwk"), *POSITIONS),
            "neither one operator nor a product",
        ),
        "both have letters of their own": (
            two(einsum("aik,bkj->abij"), "a, b, 4", "c, 4, d", "a, c, b, d"),
            "neither one operator nor a product",
        ),
        "an outer product of a batch": (
            two(einsum("bi,bj->bij"), "a, b", "a, c", "a, b, c"),
            "neither one operator nor a product",
        ),
        "a matrix and a vector of a batch": (
            two(einsum("bij,bj->bi"), "a, b, 4", "a, 4", "a, b"),
            "neither one operator nor a product",
        ),
        "a transposed dimension may be 1": (
            two(einsum("bhid,bhjd->bhij"), "a, h, b, n", "a, h, c, 4", "a, h, b, c"),
            "the dimensions of the sum may differ",
        ),
        "an inner product that may broadcast": (
            two(einsum("i,i->"), "n", "4", "1").replace("float[1] y", "float y"),
            "the dimensions of the sum may differ",
        ),
        "Gemm of integers": (
            two(einsum("ik,jk->ij"), "a, 4", "b, 4", "a, b", "int64"),
            "matrices that are not floats",
        ),
    }
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5)
test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize(
    ("equation", "ranks", "expected"),
    [
        ("ij,jk->ik", (), (("ij", "jk"), "ik")),
        (" i j , jk -> ki ", (), (("ij", "jk"), "ki")),
        ("ba", (), (("ba",), "ab")),
        ("ij,jk", (), (("ij", "jk"), "ik")),
        ("ij->", (), (("ij",), "")),
        ("ii->i", (), None),
        ("...i->i", (2,), None),
        ("...i->i...", (3,), (("01i",), "i01")),
        ("...ij,...jk", (3, 3), (("0ij", "0jk"), "0ik")),
        ("...i,i", (1, 1), (("i", "i"), "")),
        ("...i...->i...", (3,), None),
        ("...ij->...ij", (1,), None),
        ("..i->..i", (1,), None),
        ("...i,...i->...i", (2,), None),
        ("ij->ii", (), None),
    ],
)
def test_terms(equation: str, ranks: tuple[int, ...], expected: object) -> None:
    assert terms_of(equation, ranks) == expected


def test_old_opset() -> None:
    """The axes of ReduceSum are an attribute."""
    after = one("ReduceSum<keepdims = 0, axes = [1]>(x)", y="a, 4")
    check_pattern(MODELS["Einsum"]["sum"][0], after, "Einsum", opset=12, atol=1e-5)


def test_unknown_shape() -> None:
    text = two(einsum("ij,jk->ik"), "a, n", "m, b", "a, b")
    check_no_match(text, "Einsum", "the dimensions of the sum may differ")


#: equations with the pieces of their operands
EQUATIONS = [
    "bik,bkj->bij",
    "ik,kj->ij",
    "bik,kj->bij",
    "ki,jk->ij",
    "ik,jk->ji",
    "bij->jib",
    "bij->bi",
    "bij->",
    "bij,ij->bij",
    "j,bij->bij",
    "bik,bjk->bij",
    "bki,bkj->bji",
    "ibk,jbk->bij",
    "bik,kbj->ibj",
    "i,ij->j",
    "k,k->",
    "bij,bi->bij",
    "i,bij->bij",
    "b,i->bi",
]


@settings(max_examples=40, deadline=None)
@given(
    equation=st.sampled_from(EQUATIONS),
    sizes=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    static=st.booleans(),
)
def test_any_size(equation: str, sizes: list[int], static: bool) -> None:
    """Empty dimensions, dimensions 1, known or not. onnxruntime stops on an empty Einsum."""
    row = dict(zip("bijk", sizes, strict=True))
    operands, result = equation.split("->")
    shapes = [
        ", ".join(str(row[c]) if static else f"d{c}" for c in term)
        for term in (*operands.split(","), result)
    ]
    inputs = ", ".join(f"float[{s}] {name}" for s, name in zip(shapes[:-1], "xz", strict=False))
    output = f"float[{shapes[-1]}] y" if shapes[-1] else "float y"
    args = ", ".join("xz"[: len(shapes) - 1])
    text = f"g ({inputs}) => ({output}) {{ y = {einsum(equation, args)} }}"
    table = {f"d{c}": n for c, n in row.items()}
    runs = min(sizes) > 0
    check_pattern(text, None, "Einsum", sizes=table, atol=1e-5, runtime=runs)


@settings(max_examples=40, deadline=None)
@given(
    batch=st.sampled_from(["", "b", "bh"]),
    data=st.data(),
    sizes=st.lists(st.integers(1, 3), min_size=5, max_size=5),
    alone=st.booleans(),
)
def test_any_order(batch: str, data: st.DataObject, sizes: list[int], alone: bool) -> None:
    """A product of matrices, letters in any order, is always written; one batch may be broadcast."""
    first, second, result = (
        "".join(data.draw(st.permutations(batch + term))) for term in ("ik", "kj", "ij")
    )
    row = dict(zip("bhijk", sizes, strict=True))
    shapes = [
        ", ".join("1" if alone and c in batch and i == 1 else str(row[c]) for c in term)
        for i, term in enumerate((first, second, result))
    ]
    text = two(einsum(f"{first},{second}->{result}"), *shapes)
    model = check_pattern(text, None, "Einsum", atol=1e-5)
    assert "Einsum" not in [node.op_type for node in model.graph.node]


@pytest.mark.parametrize(
    ("scores", "values", "dims"),
    [
        ("bhid,bhjd->bhij", "bhij,bhjd->bhid", "b, 4, s, 16"),
        ("...id,...jd->...ij", "...ij,...jd->...id", "b, 4, s, 16"),
        ("bihd,bjhd->bhij", "bhij,bjhd->bihd", "b, s, 4, 16"),
    ],
)
def test_attention(scores: str, values: str, dims: str) -> None:
    """The attention of heads, written with Einsum, is one operator."""
    t = f"float[{dims}]"
    text = f"""g ({t} q, {t} k, {t} v) => ({t} y) <float c = {{0.25}}> {{
        s = {einsum(scores, "q, k")} t = Mul(s, c) w = Softmax<axis = -1>(t)
        y = {einsum(values, "w, v")}
    }}"""
    model = check_pattern(text, None, "default", opset=23, atol=1e-5)
    found = [node.op_type for node in model.graph.node if node.op_type != "Reshape"]
    assert found == ["Attention"]
