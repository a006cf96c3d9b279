"""Optional values that are known to be there."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import (
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

GET = "g (float[a] x) => (float[a] y) { o = Optional(x) y = OptionalGetElement(o) }"
HAS = "g (float[a] x) => (bool y) { o = Optional(x) y = OptionalHasElement(o) }"
#: name -> (before, after)
MODELS = {
    "MissingOptionalGetElement": {
        "made": (GET, "g (float[a] x) => (float[a] y) { y = Identity(x) }"),
        "a tensor": (
            "g (float[a] x) => (float[a] y) { y = OptionalGetElement(x) }",
            "g (float[a] x) => (float[a] y) { y = Identity(x) }",
        ),
    },
    "MissingOptionalHasElement": {
        "made": (HAS, "g (float[a] x) => (bool y) <bool t = {1}> { y = Identity(t) }"),
        "a tensor": (
            "g (float[a] x) => (bool y) { y = OptionalHasElement(x) }",
            "g (float[a] x) => (bool y) <bool t = {1}> { y = Identity(t) }",
        ),
        "nothing": (
            "g (float[a] x) => (bool y, float[a] z) { y = OptionalHasElement() z = Neg(x) }",
            "g (float[a] x) => (bool y, float[a] z) <bool t = {0}> { y = Identity(t) z = Neg(x) }",
        ),
    },
}
GIVEN = "g (optional(float[a]) x) => (bool y) { y = OptionalHasElement(x) }"
REFUSED = {
    "MissingOptionalGetElement": {
        "a kernel": (GET, "onnxruntime loads", {"opset": 18}),
        "CUDA": (GET, "another processor", {"processor": "CUDA"}),
    },
    "MissingOptionalHasElement": {
        "a kernel": (HAS, "onnxruntime loads", {"opset": 18}),
        "an input": (GIVEN, "may not be there"),
    },
}
# the models before do not load
test_rewrites = rewrite_tests(MODELS, opset=28, runtime=False, reference=False)
test_refuses = refusal_tests(REFUSED, opset=28)


@pytest.mark.parametrize("text", [row[0] for table in MODELS.values() for row in table.values()])
def test_as_the_older_operator(text: str) -> None:
    found, _, _ = optimize_with(model_from_text(text, 28), "onnxruntime")
    feeds = {"x": np.array([1, -2], np.float32)}
    expected = run_onnxruntime(model_from_text(text, 18), feeds)
    for a, b in zip(expected, run_onnxruntime(found, feeds), strict=True):
        np.testing.assert_array_equal(a, b)
