"""Every change, printed."""

from __future__ import annotations

import io

import onnx.helper as oh
import pytest

from xbuilder import GraphBuilder
from xoptim.testing import model_from_text
from xoptim.toolkit.features import PrintListener

TEXT = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Identity(n) u = Abs(X) Y = Relu(m) }"


def test_one_line_for_each_change() -> None:
    builder, out = GraphBuilder(model_from_text(TEXT)), io.StringIO()
    listener, store = PrintListener(out), builder.store
    builder.attach_feature(listener)
    builder.remove_identity_nodes()
    store.rename_result("n", "k")
    store.add_outputs(["u"])
    store.append(oh.make_node("Exp", ["k"], ["e"]))
    store.sort({store.producers["u"]: -1})
    listener.active = False
    builder.remove_unused()
    listener.active = True
    builder.detach_feature(listener)
    assert out.getvalue().splitlines() == [
        "= attached, 4 nodes",
        "- Identity(n) -> m",
        "~ Relu(n) -> Y reads n instead of m",
        "~ n is k",
        "~ outputs: Y, u",
        "+ Exp(k) -> e",
        "~ 4 nodes sorted",
        "= detached, 3 nodes",
    ]


def test_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    GraphBuilder(model_from_text(TEXT)).attach_feature(PrintListener())
    assert capsys.readouterr().out == "= attached, 4 nodes\n"
