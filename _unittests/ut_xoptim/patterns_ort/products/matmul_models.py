"""Models of a product whose operands are transposed or multiplied."""

from __future__ import annotations


def model(
    body: str,
    a: str = "a, 5, 4",
    b: str = "a, 5, 3",
    y: str = "a, 4, 3",
    elem_type: str = "float",
    outputs: str = "",
    constants: str = "",
) -> str:
    """A model of two operands."""
    return f"""agraph ({elem_type}[{a}] A, {elem_type}[{b}] B) => ({elem_type}[{y}] Y{outputs}) {
        f"<{constants}>" if constants else ""
    } {{
    {body}
}}"""


LEFT = "t = Transpose<perm = [0, 2, 1]>(A) Y = MatMul(t, B)"
FUSED_LEFT = "Y = com.microsoft.FusedMatMul<transA = 1>(A, B)"
C = "float c = {4}"
