"""onnxruntime in a process of its own."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import run
from ut_xoptim.trust.sessions.crashing import crashing_model, only_where_it_crashes

from xoptim.trust.sessions import session_process
from xoptim.trust.sessions.session_process import SessionError, SessionProcess, start_child
from xoptim.trust.verification import VerificationError, verify_models

NEG = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[N] x, string[N] s) => (float[N] y, string[N] t) { y = Neg(x) t = Identity(s) }
"""


def test_results_and_names_come_back():
    session = SessionProcess(onnx.parser.parse_model(NEG).SerializeToString())
    try:
        assert (session.inputs, session.defaults, session.outputs) == (["x", "s"], [], ["y", "t"])
        feeds = {"x": np.ones(3, np.float32), "s": np.array(["a", "é", ""], dtype=object)}
        y, t = session.run(None, feeds)
        assert y.tolist() == [-1, -1, -1] and t.tolist() == ["a", "é", ""]
        with pytest.raises(SessionError, match="rank"):
            session.run(None, {**feeds, "x": np.ones((3, 3), np.float32)})
        assert session.run(["y"], feeds)[0].tolist() == [-1, -1, -1], "it still answers"
    finally:
        session.close()
    session.close()


def test_a_model_that_does_not_load():
    with pytest.raises(SessionError):
        SessionProcess(b"this is no model")


def test_a_process_is_left_to_the_next_session():
    idle = []
    model, feeds = onnx.parser.parse_model(NEG), {"x": np.ones(1, np.float32), "s": np.array(["a"])}
    first = SessionProcess(model.SerializeToString(), idle=idle)
    process = first._process
    first.close()
    assert idle == [process] and process.poll() is None
    with pytest.raises(SessionError):
        SessionProcess(b"this is no model", idle=idle)
    assert idle == [process], "a model that is refused ends nothing"
    model.graph.node[0].op_type = "Abs"
    second = SessionProcess(model.SerializeToString(), idle=idle)
    try:
        assert second._process is process and not idle
        assert second.run(["y"], feeds)[0].tolist() == [1]
        with pytest.raises(AttributeError):
            second.run(["y"], {"x": lambda: None})
        assert process.poll() is not None, "a request that is half sent ends the process"
        assert second.run(["y"], feeds)[0].tolist() == [1] and second._process is not process
    finally:
        second._idle = None
        second.close()


def test_an_opener_needs_one_process_for_models_one_after_the_other(monkeypatch):
    started = []

    def start():
        started.append(start_child())
        return started[-1]

    monkeypatch.setattr(session_process, "start_child", start)
    model = onnx.parser.parse_model(NEG)
    assert verify_models(model, model, isolated=True).ok
    (process,) = started
    assert process.poll() is not None, "it ends with the comparison"


@only_where_it_crashes
def test_a_crash_is_an_error_and_the_session_starts_again():
    session = SessionProcess(crashing_model().SerializeToString())
    try:
        with pytest.raises(SessionError, match="SIGFPE.*--dim"):
            session.run(None, {"x": np.ones(3, np.float32)})
        assert session.run(None, {"x": np.ones(4096, np.float32)})[0].shape == (1,)
    finally:
        session.close()


@only_where_it_crashes
def test_sizes_of_sounds_are_tried_after_a_crash():
    """As with a model of speech, small sizes kill onnxruntime, and a signal is accepted."""
    for length in (4096, 16000):
        report = verify_models(crashing_model(length), crashing_model(length), isolated=True)
        assert report.ok and report.sizes == {"N": length}
    with pytest.raises(VerificationError, match=r"first model.*SIGFPE.*\['N'\].*--dim"):
        verify_models(crashing_model(10**6), crashing_model(10**6), isolated=True)
    assert verify_models(
        crashing_model(10**6), crashing_model(10**6), sizes={"N": 10**6}, isolated=True
    ).ok


@only_where_it_crashes
@pytest.mark.parametrize("command", ["optimize", "bisect"])
def test_commands_survive_a_crash(command, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(crashing_model(10**6), path)
    args = [path, tmp_path / "o.onnx", "--verify"] if command == "optimize" else [path]
    error = run(command, *args, "-p", "CastCast", code=1).stderr
    assert "SIGFPE" in error and "--dim" in error
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    run(command, *args, "-p", "CastCast", "--dim", "N=1000000")
