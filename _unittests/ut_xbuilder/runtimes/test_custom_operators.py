"""Libraries of custom operators."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx.parser
import pytest

from xbuilder.errors import OptionError
from xbuilder.runtimes.custom_operators import (
    custom_libraries,
    custom_operators,
    loading_message,
)
from xbuilder.runtimes.sessions import plain_session

MODEL = """<ir_version: 8, opset_import: ["" : 18, "DOMAIN" : 1]>
g (float[n] x) => (float[n] p, float[n] q) { p, q = DOMAIN.NegPos(x) }"""


def _content(domain: str) -> bytes:
    content: bytes = onnx.parser.parse_model(MODEL.replace("DOMAIN", domain)).SerializeToString()
    return content


def test_not_a_library(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("text", encoding="utf-8")
    with (
        pytest.raises(OptionError, match=r"text\.so' is not a library of custom operators: .*load"),
        custom_operators(text),
    ):
        pytest.fail("the library is refused")
    with (
        pytest.raises(OptionError, match=r"none\.so' is not a file"),
        custom_operators(tmp_path / "none.so"),
    ):
        pytest.fail("the library is refused")
    assert custom_libraries() == ()


@pytest.mark.skipif(sys.platform == "win32", reason="it has another name")
def test_another_library() -> None:
    """A library that registers no operator."""
    import _ctypes

    with (
        pytest.raises(OptionError, match="RegisterCustomOps"),
        custom_operators(_ctypes.__file__),
    ):
        pytest.fail("the library is refused")


def test_no_library() -> None:
    """The message names the domain, unless it is one of onnxruntime."""
    with pytest.raises(Exception, match="is not a registered function") as found:
        plain_session(_content("ai.onnx.contrib"))
    assert loading_message(found.value).endswith("gives it the library of ai.onnx.contrib")
    with pytest.raises(Exception, match="is not a registered function") as found:
        plain_session(_content("com.microsoft"))
    assert loading_message(found.value).endswith("is not a registered function/op")
    assert loading_message(ValueError("the rank is wrong")) == "the rank is wrong"


def test_sessions() -> None:
    """A library is loaded once, in the context only."""
    package = pytest.importorskip(
        "onnxruntime_extensions", reason="it has no wheel for this version of Python"
    )
    library = package.get_library_path()
    with custom_operators(library), custom_operators(library):
        assert custom_libraries() == (str(Path(library).absolute()),)
        names = [output.name for output in plain_session(_content("ai.onnx.contrib")).get_outputs()]
    assert names == ["p", "q"] and custom_libraries() == ()
    with pytest.raises(Exception, match="is not a registered function"):
        plain_session(_content("ai.onnx.contrib"))
