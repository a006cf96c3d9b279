"""Gather of the positions a Range counts."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.runtimes.sessions import plain_session
from xoptim.analysis.values.counted_positions import MISREAD
from xoptim.testing import model_from_text, refusal_tests, rewrite_tests

#: the first m elements along the last axis
_RUN = """g (float[2, m] z) => (float[2, m] y)
    <int64 zero = {0}, int64 one = {1}, int64[1] last = {0}> {
        x = Concat<axis = 1>(z, z) s = Shape<start = 1>(z) k = Squeeze(s, last)
        r = Range(zero, k, one) y = Gather<axis = -1>(x, r)
    }"""


#: one row after the other, the last one first
_BACKWARD = """g (float[n, 5] x) => (float[n, 5] y)
    <int64[1] one = {1}, int64 low = {-1}, int64[1] k = {0}> {
        s = Shape<end = 1>(x) l = Sub(s, one) z = Squeeze(l, k) r = Range(z, low, low)
        y = Gather(x, r)
    }"""
_REVERSED = """g (float[n, 5] x) => (float[n, 5] y)
    <int64[1] low = {-1}, int64[1] end = {-9223372036854775808}, int64[1] axis = {0}> {
        y = Slice(x, low, end, axis, low)
    }"""
#: from the first row, counted from the end
_NEGATIVE = """g (float[n, 5] x) => (float[m, 5] y) <int64[1] k = {0}, int64 zero = {0}, int64 two = {2}> {
    s = Shape<end = 1>(x) l = Neg(s) z = Squeeze(l, k) r = Range(z, zero, two) y = Gather(x, r)
}"""
#: from a position that another tensor gives
_SOMEWHERE = """g (float[7, 6] x, int64[2] t, float[m] w) => (float[p, q] y)
    <int32 low = {-1}, int64[1] k = {0}, int32 step = {-2}> {
        v = Reshape(x, t) s = Shape(w) z = Squeeze(s, k) i = Cast<to = 6>(z)
        r = Range(i, low, step) y = Gather(v, r)
    }"""
#: what onnxruntime would turn into a Slice between a and -1
_COORDINATES = """g (float[n, 5] x, int64 a) => (float[m, 5] y) <int64 low = {-1}, int64[1] k = {-1}> {
    r = Range(a, low, low) u = Unsqueeze(r, k) y = GatherND(x, u)
}"""
_LATER = """g (float[n] x) => (float[n] y)
    <int64 zero = {0}, int64 one = {1}, int64 low = {-1}, int64[1] k = {0}> {
        s = Shape(x) z = Squeeze(s, k) r = Range(zero, z, one) i = Add(r, low) y = Gather(x, i)
    }"""
#: the last rows of a table that has two more than there are words
_END = """g (float[n, 5] x) => (float[n, 5] y, int64[n] r)
    <int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] k = {0}, float[2, 5] a = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}> {
        s = Shape<end = 1>(x) z = Squeeze(s, k) r = Range(zero, z, one) i = Add(r, two)
        t = Concat<axis = 0>(a, x) y = Gather(t, i)
    }"""
_FIRST = "it does not count from a constant"
_SIZES = {
    "feeds": [{"x": np.arange(5 * n, dtype=np.float32).reshape(n, 5)} for n in (0, 1, 2, 3, 7)]
}

#: pattern -> case -> (before, after)
MODELS = {
    "GatherRange": {
        "the first ones": (
            _RUN,
            """g (float[2, m] z) => (float[2, m] y)
            <int64[1] zero = {0}, int64[1] last = {0}, int64[1] axis = {1}> {
                x = Concat<axis = 1>(z, z) s = Shape<start = 1>(z) k = Squeeze(s, last)
                e = Unsqueeze(k, last) y = Slice(x, zero, e, axis)
            }""",
        ),
        "from the second one, int32, a length nobody knows": (
            """g (float[2, 6] x, int64[2] t, float[m] z) => (float[p, q] y)
            <int32 one = {1}, int64[1] last = {0}> {
                v = Reshape(x, t) s = Shape(z) k = Squeeze(s, last) i = Cast<to = 6>(k)
                r = Range(one, i, one) y = Gather(v, r)
            }""",
            """g (float[2, 6] x, int64[2] t, float[m] z) => (float[p, q] y)
            <int32[1] one = {1}, int64[1] last = {0}, int32[1] axis = {0}> {
                v = Reshape(x, t) s = Shape(z) k = Squeeze(s, last) i = Cast<to = 6>(k)
                e = Unsqueeze(i, last) y = Slice(v, one, e, axis)
            }""",
            {
                "feeds": [
                    {
                        "x": np.arange(12, dtype=np.float32).reshape(2, 6),
                        "t": np.array([4, 3]),
                        "z": np.zeros(m, np.float32),
                    }
                    for m in (3, 4, 1, 0)
                ]
            },
        ),
        "backward": (_BACKWARD, _REVERSED, _SIZES),
        "one out of two, counted from the end": (
            _NEGATIVE,
            """g (float[n, 5] x) => (float[m, 5] y) <int64[1] zero = {0}, int64[1] two = {2},
                int64[1] end = {9223372036854775807}> { y = Slice(x, zero, end, zero, two) }""",
            _SIZES,
        ),
        "backward from a dimension, int32": (
            _SOMEWHERE,
            """g (float[7, 6] x, int64[2] t, float[m] w) => (float[p, q] y)
            <int64[1] k = {0}, int32[1] end = {-2147483648}, int32[1] axis = {0},
             int32[1] step = {-2}> {
                v = Reshape(x, t) s = Shape(w) z = Squeeze(s, k) i = Cast<to = 6>(z)
                u = Unsqueeze(i, k) y = Slice(v, u, end, axis, step)
            }""",
            {
                "feeds": [
                    {
                        "x": np.arange(42, dtype=np.float32).reshape(7, 6),
                        "t": np.array([14, 3]),
                        "w": np.zeros(m, np.float32),
                    }
                    for m in (0, 1, 4, 13)
                ]
            },
        ),
        "to the last row, of a Range read elsewhere": (
            _END,
            """g (float[n, 5] x) => (float[n, 5] y, int64[n] r)
            <int64 zero = {0}, int64 one = {1}, int64[1] k = {0}, int64[1] two = {2}, float[2, 5] a = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
             int64[1] end = {9223372036854775807}> {
                s = Shape<end = 1>(x) z = Squeeze(s, k) r = Range(zero, z, one)
                t = Concat<axis = 0>(a, x) y = Slice(t, two, end, k)
            }""",
            _SIZES,
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "GatherRange": [
        (
            _RUN.replace("x = Concat<axis = 1>(z, z)", "").replace(
                "last = {0}>", "last = {0}, float[2, 3] x = {1, 2, 3, 4, 5, 6}>"
            ),
            "the data are constant",
        ),
        (_RUN.replace("m] y)", "m] y, int64[m] r)"), "something else reads the Range"),
        (
            _RUN.replace("y = Gather", "o = Neg(r) y = Gather").replace(
                "m] y)", "m] y, int64[m] o)"
            ),
            "something else reads the Range",
        ),
        # -1 is the last one, a Slice from -1 to 2 is something else
        (
            _RUN.replace("zero = {0}", "zero = {-1}").replace("m] y", "p] y"),
            "it does not count from a constant",
        ),
        (
            _RUN.replace("one = {1}", "one = {2}").replace("m] y", "p] y"),
            "it does not count from a constant",
        ),
        (
            _RUN.replace("m] z)", "m] z, int64 a)")
            .replace("Range(zero", "Range(a")
            .replace("m] y", "p] y"),
            "it does not count from a constant",
        ),
        (
            _RUN.replace("m] z)", "m] z, int64 b)")
            .replace("zero, k", "zero, b")
            .replace("m] y", "p] y"),
            "the limit may be negative",
        ),
        (
            _RUN.replace("k = Squeeze(s, last)", "h = Squeeze(s, last) k = Sub(h, one)").replace(
                "m] y", "p] y"
            ),
            "the limit may be negative",
        ),
        (
            _RUN.replace("z) =>", "z, float[2, n] x) =>", 1).replace(
                "x = Concat<axis = 1>(z, z)", ""
            ),
            "the data may be shorter",
        ),
        # it does not begin with the last row
        (
            _BACKWARD.replace("one = {1}", "one = {2}").replace("float[n, 5] y", "float[m, 5] y"),
            _FIRST,
        ),
        # -2 is not the place before the first one
        (
            _BACKWARD.replace("Range(z, low, low)", "Range(z, two, low)")
            .replace("low = {-1},", "low = {-1}, int64 two = {-2},")
            .replace("float[n, 5] y", "float[m, 5] y"),
            _FIRST,
        ),
        # as many rows as another tensor has
        (
            _NEGATIVE.replace("x) =>", "x, float[m] w) =>").replace("end = 1>(x)", "end = 1>(w)"),
            _FIRST,
        ),
        # one row is left
        (_END.replace("two = {2}", "two = {1}"), "no Range before"),
        # from the last row, which is not a row to begin with
        (_END.replace("two = {2}", "two = {-2}"), "no Range before"),
        # each row of a matrix of positions
        (
            _END.replace("y = Gather(t, i)", "u = Unsqueeze(i, k) y = Gather(t, u)").replace(
                "float[n, 5] y", "float[1, n, 5] y"
            ),
            "no Range before",
        ),
        # as many positions as another tensor has rows
        (
            _END.replace("x) =>", "x, float[m] w) =>").replace("end = 1>(x)", "end = 1>(w)"),
            "no Range before",
        ),
    ],
    "GatherNDUnsqueeze": [(_COORDINATES, MISREAD)],
    "SwapRangeAddScalar": [(_LATER, MISREAD)],
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


#: what a user writes to read rows backward, or from the end
_DEFAULT_SESSION = {
    "backward": _BACKWARD,
    "from the end": _NEGATIVE,
    "coordinates": _BACKWARD.replace(
        "y = Gather(x, r)", "u = Unsqueeze(r, last) y = GatherND(x, u)"
    ).replace("k = {0}>", "k = {0}, int64[1] last = {-1}>"),
    "any position": _COORDINATES,
    "the last row first": _LATER.replace("float[n] x", "float[n, 5] x")
    .replace("float[n] y", "float[n, 5] y")
    .replace("Shape(x)", "Shape<end = 1>(x)"),
}


def outputs(model: ModelProto, feeds: dict[str, np.ndarray], optimizes: bool) -> list[np.ndarray]:
    """The outputs of a model, in a session as users open it, or without any optimization."""
    if not optimizes:
        return plain_session(model.SerializeToString()).run(None, feeds)
    ort = pytest.importorskip("onnxruntime")
    providers = ["CPUExecutionProvider"]
    session = ort.InferenceSession(model.SerializeToString(), providers=providers)
    return session.run(None, feeds)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("text", _DEFAULT_SESSION.values(), ids=_DEFAULT_SESSION)
def test_default_session(text, size):
    """onnxruntime's own optimizations do not make of the optimized model something else."""
    model = model_from_text(text)
    feeds = {"x": np.arange(5 * size, dtype=np.float32).reshape(size, 5)}
    if len(model.graph.input) == 2:
        feeds["a"] = np.array(size - 1)
    options = OptimizationOptions(patterns="default+onnxruntime")
    after = GraphBuilder(model, optimization_options=options).to_onnx()
    expected, found = outputs(model, feeds, False), outputs(after, feeds, True)
    np.testing.assert_array_equal(found[0], expected[0])
