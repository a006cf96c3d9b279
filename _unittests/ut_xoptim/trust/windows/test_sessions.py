"""Sessions of another process: results, refusals, crashes."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from ut_xoptim.trust.sessions.crashing import only_where_it_crashes

from xoptim.testing import model_from_text
from xoptim.trust.sessions.session_child import answers, serve
from xoptim.trust.windows.sessions import CannotRunError, Sessions, shared_sessions

X = np.arange(4, dtype=np.float32)


def model(text: str) -> bytes:
    content: bytes = model_from_text(text).SerializeToString()
    return content


NEG = model("g (float[n] x, float[n] c) => (float[n] z) { y = Neg(x) z = Add(y, c) }")
TWICE = "g (float[n] x) => (float[n] z) { z = Add(x, x) }"
#: the lowest integer divided by -1 is no integer
CRASH = model("g (int64[n] x, int64[n] y) => (int64[n] z) { z = Div(x, y) }")


def test_run_and_close() -> None:
    sessions = Sessions()
    try:
        first = sessions.open(NEG, {"c": X})
        second = sessions.open(NEG, {"c": 2 * X})
        assert np.array_equal(sessions.run(first, {"x": X})[0], 0 * X)
        assert np.array_equal(sessions.run(second, {"x": X})[0], X)
        with pytest.raises(CannotRunError, match="x"):
            sessions.run(first, {"x": X.astype(np.int64)})
        with pytest.raises(CannotRunError):
            sessions.open(b"nothing", {})
        sessions.close(first)
        third = sessions.open(NEG, {"c": X})
        with pytest.raises(CannotRunError):
            sessions.run(first, {"x": X})
        assert np.array_equal(sessions.run(third, {"x": X})[0], 0 * X)
    finally:
        sessions.end()


def test_equal_results_are_one_object() -> None:
    """They are sent once."""
    text = """g (float[n] x) => (float[n] y, float[n] z, double[n] w)
    { y = Add(x, x) z = Add(x, x) w = Cast<to = 11>(y) }"""
    sessions = Sessions()
    try:
        number = sessions.open(model(text), {})
        y, z, w = sessions.run(number, {"x": X})
        assert y is z and w is not y and np.array_equal(y, 2 * X)
        with pytest.raises(CannotRunError, match="closed"):
            sessions.run(99, {"x": X})
    finally:
        sessions.end()


def test_equal_models_are_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large constants stay in the process, small ones come with the inputs; a model that is refused
    is not sent again."""
    sessions, asked = Sessions(), list[str]()
    ask = sessions._ask
    monkeypatch.setattr(sessions, "_ask", lambda *r: [asked.append(r[0]), ask(*r)][1])
    large = np.ones(1 << 15, dtype=np.float32)
    try:
        first, second = sessions.open(NEG, {"c": X}), sessions.open(NEG, {"c": 2 * X})
        assert asked == ["open"]
        third, fourth = sessions.open(NEG, {"c": large}), sessions.open(NEG, {"c": 2 * large})
        assert asked == ["open"] * 3
        found = [
            sessions.run(number, {"x": value})[0][-1]
            for number, value in ((first, X), (second, X), (third, large), (fourth, large))
        ]
        assert found == [0, 3, 0, 1]
        for _ in range(2):
            with pytest.raises(CannotRunError, match="Protobuf|protobuf|parse"):
                sessions.open(b"nothing", {})
        assert asked.count("open") == 4
    finally:
        sessions.end()


def test_the_process_forgets_the_oldest_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xoptim.trust.windows.sessions._KEPT", 1)
    sessions = Sessions()
    texts = [f"g (float[n] x) => (float[n] z) {{ z = {op}(x) }}" for op in ("Neg", "Abs", "Sin")]
    try:
        first, *others = (sessions.open(model(text), {}) for text in texts)
        for number in others:
            sessions.close(number)
        last = sessions.open(NEG, {"c": X})
        assert len(sessions._loaded) == 3  # one that is open, the last used one, the new one
        assert np.array_equal(sessions.run(first, {"x": X})[0], -X)
        assert np.array_equal(sessions.run(last, {"x": X})[0], 0 * X)
        again = sessions.open(model(texts[1]), {})
        assert np.array_equal(sessions.run(again, {"x": -X})[0], X)
    finally:
        sessions.end()


@only_where_it_crashes
def test_crash() -> None:
    sessions = Sessions()
    try:
        number = sessions.open(CRASH, {})
        ones = np.ones(2, dtype=np.int64)
        assert sessions.run(number, {"x": ones, "y": ones})[0].tolist() == [1, 1]
        with pytest.raises(CannotRunError, match="onnxruntime crashes, SIGFPE"):
            sessions.run(number, {"x": ones * np.iinfo(np.int64).min, "y": -ones})
        assert sessions.crashes == 1
        again = sessions.open(CRASH, {})
        assert sessions.run(again, {"x": ones, "y": ones})[0].tolist() == [1, 1]
    finally:
        sessions.end()


def test_shared() -> None:
    assert shared_sessions() is shared_sessions()


def test_child() -> None:
    """The program of the other process, in this one."""
    requests = io.BytesIO()
    for request in (
        ("open", 1, b"key", NEG, {"c": X}, [], [], ()),
        ("run", b"key", 1, {"x": X}),
        ("open", 2, b"key", None, {"c": 2 * X}, [1], [], ()),
        ("run", b"key", 2, {"x": X}),
        ("run", b"key", None, {"c": X}),
        ("run", b"key", 1, {"x": X}),
        ("open", 3, b"other", NEG, {}, [], [b"key"], ()),
        ("run", b"key", None, {"x": X, "c": X}),
    ):
        pickle.dump((request,), requests)
    requests.seek(0)
    replies = io.BytesIO()
    serve(answers(), requests, replies)
    replies.seek(0)
    assert pickle.load(replies) == (True, None)
    (found,) = pickle.load(replies)[1]
    assert np.array_equal(found, 0 * X)
    assert pickle.load(replies) == (True, None)  # the model is known, its constants are others
    (found,) = pickle.load(replies)[1]
    assert np.array_equal(found, X)
    refused = pickle.load(replies)
    assert refused[0] is False and "x" in refused[1]
    assert pickle.load(replies)[0] is False  # closed
    assert pickle.load(replies) == (True, None)
    assert pickle.load(replies)[0] is False  # dropped
