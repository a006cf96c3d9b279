"""The time of models, in turns."""

from __future__ import annotations

import io
import time

import onnx
import onnx.parser
import pytest
from rich.console import Console

import xoptim
from xbuilder.errors import OptionError
from xoptim.tasks import measure
from xoptim.tasks.measure import print_latency
from xoptim.trust.latency import Latency, fast_session
from xoptim.trust.verification import VerificationError

SLOW = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, n] x) => (float[n, n] y) {
    a = MatMul(x, x) b = MatMul(a, x) c = MatMul(b, x) d = MatMul(c, x) y = Neg(d) }"""


def models() -> tuple[onnx.ModelProto, onnx.ModelProto]:
    fast = SLOW[: SLOW.index("a =")] + "y = Neg(x) }"
    return onnx.parser.parse_model(SLOW), onnx.parser.parse_model(fast)


def test_rows():
    """The second one is faster on any machine: it has no product of matrices."""
    first, second = xoptim.measure(*models(), sizes={"n": 200}, blocks=3, seconds=0.02)
    assert (first.model, second.model, first.nodes, second.nodes) == ("model 1", "model 2", 5, 1)
    assert (first.ratio, first.low, first.high) == (1.0, 1.0, 1.0)
    assert 0 < second.low <= second.ratio <= second.high < 1
    assert second.milliseconds == pytest.approx(first.milliseconds * second.ratio)
    assert first.sizes == {"x": [200, 200]} and first.to_row()["threads"] == 1


@pytest.mark.parametrize("count,expected", [(1, [0.02]), (2, [0.04]), (3, [0.04] * 2)])
def test_the_first_model_runs_once_with_each_other(count, expected, monkeypatch):
    """A model alone takes the time of one model."""
    seconds = []

    def compare(first, second, feeds, blocks, each, clock):
        seconds.append(each)
        return Latency(2e-3 / len(seconds), 0.5, 0.4, 0.6)

    monkeypatch.setattr(measure, "compare_sessions", compare)
    given = [*models(), models()[1]][:count]
    found = xoptim.measure(*given, sizes={"n": 4}, seconds=0.04, memory=False)
    assert seconds == expected
    assert [m.ratio for m in found] == [1.0, 0.5, 0.5][:count]
    assert found[0].milliseconds == pytest.approx(2 / len(seconds)), "the best of its runs"
    assert all(m.milliseconds == pytest.approx(1 / len(seconds)) for m in found[1:])


def test_series():
    found = xoptim.measure(
        *models(), series={"n": [8, 120]}, blocks=1, seconds=0.001, warmup=2, memory=False
    )
    assert [(m.series["n"], m.nodes) for m in found] == [(8, 5), (8, 1), (120, 5), (120, 1)]
    assert [m.sizes["x"] for m in found] == [[8, 8]] * 2 + [[120, 120]] * 2
    assert found[2].milliseconds > found[0].milliseconds and found[0].memory is None
    out = Console(width=120, file=io.StringIO())
    print_latency(found, out)
    assert "4 measures, the first on x[8, 8]" in out.file.getvalue()
    with pytest.raises(OptionError, match="series of 'n' has no size"):
        xoptim.measure(*models(), series={"n": []})


def test_a_size_that_one_model_fixes():
    """Both run on it, in any order, unless other inputs are given."""
    first, second = models()
    second.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3
    second.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    del second.graph.output[0].type.tensor_type.shape.dim[:]
    how = {"blocks": 1, "seconds": 0.001, "memory": False}
    for pair in ((first, second), (second, first)):
        assert [m.sizes for m in xoptim.measure(*pair, **how)] == [{"x": [3, 3]}] * 2
    assert xoptim.verify(first, first).sizes != {"n": 3}
    assert xoptim.measure(first, second, inputs=[{}], **how)[0].sizes == {"x": [3, 3]}
    constant = onnx.parser.parse_model(SLOW.replace("[n, n]", "[3, 3]"))
    assert xoptim.verify(first, constant).sizes == {"n": 3}
    with pytest.raises(VerificationError, match="model 2 cannot be measured"):
        xoptim.measure(first, second, sizes={"n": 4}, **how)


def test_steps():
    seen = []
    how = {"blocks": 1, "seconds": 0.001, "memory": False}
    xoptim.measure(*models(), series={"n": [2, 3]}, on_step=lambda *s: seen.append(s), **how)
    assert seen == [("measures n=2", 0.0), ("measures n=3", 0.5)]
    xoptim.measure(*models(), sizes={"n": 2}, on_step=lambda *s: seen.append(s), **how)
    assert seen[2:] == [("measures", None)]


def test_memory():
    """The first one holds three results of 16 MB and its input at the same time."""
    wide = SLOW[: SLOW.index("a =")] + "a = Neg(x) b = Abs(x) c = Mul(a, b) y = Sub(c, a) }"
    first, second = xoptim.measure(
        onnx.parser.parse_model(wide), models()[1], sizes={"n": 2**11}, blocks=1, seconds=0.001
    )
    assert first.memory is not None and second.memory is not None
    assert 4**12 < second.memory < first.memory < 8 * 4**12


def test_files(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(models()[1], path)
    found = xoptim.measure(path, blocks=1, seconds=0.001, elapsed=True)
    assert [m.model for m in found] == [str(path)]
    out = Console(width=120, file=io.StringIO())
    print_latency(found, out)
    assert "1 thread, x[" in out.file.getvalue()


def test_the_first_session_takes_longer(monkeypatch):
    """Its time is not the one of the first model."""
    opened = []

    def slow_session(*args, **kwargs):
        opened.append(args)
        time.sleep(0.5 if len(opened) == 1 else 0)
        return fast_session(*args, **kwargs)

    monkeypatch.setattr(measure, "fast_session", slow_session)
    found = xoptim.measure(*models(), blocks=1, memory=False)
    assert len(opened) == 4 and found[0].load < 0.5


def test_refusals():
    with pytest.raises(OptionError, match="no model to measure"):
        xoptim.measure()
    other = onnx.parser.parse_model(SLOW.replace("float[n, n] x", "float[n, n] z, float[n, n] x"))
    with pytest.raises(VerificationError, match=r"model 2 .* are \['z', 'x'\], .* \['x'\]"):
        xoptim.measure(models()[0], other)
    with pytest.raises(VerificationError, match=r"model 2 .* are \['x'\], .* \['z', 'x'\]"):
        xoptim.measure(other, models()[0])


def test_types_that_numpy_lacks():
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (bfloat16[n] x) => (bfloat16[n] y) '
        "{ a = Cast<to = 1>(x) b = Neg(a) y = Cast<to = 16>(b) }"
    )
    found = xoptim.measure(model, model, sizes={"n": 8}, blocks=1, seconds=0.001)
    assert found[0].milliseconds > 0 and found[1].memory > 0
