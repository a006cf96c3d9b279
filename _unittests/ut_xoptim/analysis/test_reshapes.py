"""The shape a Reshape gives."""

from __future__ import annotations

from xoptim.analysis.reshapes import reshaped
from xoptim.testing import model_from_text, optimizer_of


def test_a_null_element_copies_a_dimension() -> None:
    """`reshaped` keeps the inferred shape only if it holds for null dimensions."""
    cases = [
        ("a,1,b", "0 2", False),  # (0, 1) when both are null
        ("a,1,3", "0 2", True),
        ("a,b,1", "0 1", True),
        ("4,2,a", "2 -", False),  # (4, 0) when a is null
        ("a,4,2", "0 -", True),
        ("1,a,5", "1 0 2", True),  # null: there would be five elements, the model is not valid
        ("1,a,b", "1 2", False),
    ]
    for x, content, known in cases:
        parts = "".join(
            f"d{i} = Shape <start = {i}, end = {i + 1}> (x)\n" for i in range(x.count(",") + 1)
        )
        names = ", ".join("m" if c == "-" else f"d{c}" for c in content.split())
        model = model_from_text(
            f"""agraph (float[{x}] x) => (float[] y) <int64[1] m = {{-1}}> {{
                {parts} s = Concat <axis = 0> ({names})
                y = Reshape(x, s)
            }}"""
        )
        g = optimizer_of(model, ["Reshape"])
        found = reshaped(g, g.node_before("y"))
        assert (found is not None) is known, (x, content, found)
