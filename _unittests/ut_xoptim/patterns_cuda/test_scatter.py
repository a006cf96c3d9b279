"""ScatterND on zeros in one kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns_cuda.cuda_ops import (
    check,
    cuda_refusal_tests,
    cuda_rewrite_tests,
    only_on_cuda_test,
    spelled,
)

HEAD = "g (int64[2] s, int64[n, 1] i, float[n, 2] u) => (float[a, b] y)"
MASKED = "g (int64[2] s, int64[n] j, float[n, 2] u) => (float[a, b] y)"
C = "<int64 m = {1}, int64[1] last = {-1}, float zero = {0}>"
BEFORE = f"""{MASKED} {C} {{
    e = Equal(j, m) k = Unsqueeze(e, last) v = Where(k, zero, u) i = Unsqueeze(j, last)
    y = cuda.ScatterNDOfShape <reduction = "add"> (s, i, v)
}}"""
AFTER = f"""{MASKED} {C} {{
    i = Unsqueeze(j, last)
    y = cuda.MaskedScatterNDOfShape <maskedValue = 1, reduction = "add"> (s, i, u)
}}"""
LATER = BEFORE.replace("e = Equal(j, m) k = Unsqueeze(e, last)", "k = Equal(i, m)")
LATER = LATER.replace("i = Unsqueeze(j, last)", "").replace(
    "k = Equal", "i = Unsqueeze(j, last) k = Equal"
)


def _zeros(reduction: str, value: str = "") -> str:
    return f"""{HEAD} {{
        z = ConstantOfShape {value} (s) y = ScatterND <reduction = "{reduction}"> (z, i, u)
    }}"""


MODELS = {
    "ConstantOfShapeScatterND": {
        name: (
            _zeros(name),
            spelled(f'{HEAD} {{ y = cuda.ScatterNDOfShape <reduction = "{name}"> (s, i, u) }}'),
        )
        for name in ("add", "mul", "max", "min")
    },
    "MaskedShapeScatterND": {
        "compared first": (spelled(BEFORE), spelled(AFTER)),
        "compared after Unsqueeze": (spelled(LATER), spelled(AFTER)),
    },
}
REFUSED = {
    "ConstantOfShapeScatterND": {
        "no reduction": (_zeros("none"), "there is no reduction"),
        "not zeros": (_zeros("add", "<value = float[1] {1}>"), "not made of zeros"),
        "integers": (
            _zeros("add", "<value = int64[1] {0}>").replace("float", "int64"),
            "not float nor float16",
        ),
    },
    # each condition is a refusal
    "MaskedShapeScatterND": {
        "no mask": (BEFORE.replace("(s, i, v)", "(s, i, u)"), "no Where before"),
        "nothing is added": (BEFORE.replace('"add"', '"max"'), "add is expected"),
        "not replaced by zeros": (
            BEFORE.replace("zero = {0}", "zero = {1}"),
            "cannot be (the constant )?0",
        ),
        "the branches exchanged": (
            BEFORE.replace("(k, zero, u)", "(k, u, zero)"),
            "cannot be (the constant )?0",
        ),
        "other indices": (
            BEFORE.replace("Equal(j, m)", "Equal(o, m)").replace("] j,", "] j, int64[n] o,"),
            "cannot be 'j'",
        ),
        "another comparison": (BEFORE.replace("Equal(j", "Less(j"), "no Equal before"),
        "several masked indices": (
            BEFORE.replace("int64 m = {1}", "int64[2] m = {1, 0}")
            .replace("[n]", "[2]")
            .replace("[n,", "[2,"),
            "not a scalar constant",
        ),
        "a masked index that is not constant": (
            BEFORE.replace("int64 m = {1}, ", "").replace("] j,", "] j, int64 m,"),
            "not a scalar constant",
        ),
        "the mask is one row": (
            BEFORE.replace("k = Unsqueeze(e, last)", "k = Unsqueeze(e, first)")
            .replace("last = {-1}", "last = {-1}, int64[1] first = {0}")
            .replace("float[n, 2]", "float[n, n]"),
            "the mask is not one column",
        ),
        "several coordinates": (
            BEFORE.replace("i = Unsqueeze(j, last)", "i = Unsqueeze(j, first)").replace(
                "last = {-1}", "last = {-1}, int64[1] first = {0}"
            ),
            "several coordinates",
        ),
        "the mask broadcasts": (
            BEFORE.replace("float[n, 2] u", "float[1, 2] u"),
            "the mask may broadcast the updates",
        ),
        "the mask is used elsewhere": (
            BEFORE.replace("b] y)", "b] y, float[n, 2] v)"),
            "used elsewhere",
        ),
    },
}


def _feeds(pattern: str, indices: list[int]) -> dict[str, np.ndarray]:
    places = np.array(indices, np.int64)
    updates = np.arange(1, 1 + 2 * len(indices), dtype=np.float32).reshape(-1, 2)
    name = "j" if pattern.startswith("Masked") else "i"
    return {
        "s": np.array([3, 2]),
        name: places if name == "j" else places.reshape(-1, 1),
        "u": updates,
    }


test_rewrites = cuda_rewrite_tests(
    MODELS, lambda pattern, name, before: [_feeds(pattern, i) for i in ([0, 1, 1, 2], [])]
)
test_refuses = cuda_refusal_tests(REFUSED)
test_only_on_cuda = only_on_cuda_test(MODELS)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(MODELS)), st.lists(st.integers(0, 2), max_size=6))
def test_repeated_indices(pattern: str, indices: list[int]) -> None:
    check(next(iter(MODELS[pattern].values()))[0], None, pattern, [_feeds(pattern, indices)])


@pytest.mark.parametrize("pattern", ["ConstantOfShapeScatterND,MaskedShapeScatterND"])
def test_one_after_the_other(pattern: str) -> None:
    before = BEFORE.replace("y = cuda.ScatterNDOfShape", "z = ConstantOfShape(s) y = ScatterND")
    check(before.replace("(s, i, v)", "(z, i, v)"), AFTER, pattern, [_feeds("Masked", [0, 1, 2])])
