"""Models written as text, and the error of a test of patterns."""

from __future__ import annotations

from collections.abc import Iterable

import onnx.parser
from onnx import ModelProto

from xbuilder.errors import XoptimError
from xbuilder.operators.opsets import ir_version_for


class PatternTestError(AssertionError, XoptimError):
    """A pattern does not behave as its test expects.

    Example::

        >>> from xoptim.testing import check_no_match
        >>> text = "agraph (bool[n] x) => (bool[n] y) { a = Not(x)  b = Not(a)  y = Not(b) }"
        >>> try:
        ...     check_no_match(text, "NotNot")
        ... except PatternTestError as e:
        ...     print(str(e).splitlines()[0])
        the pattern matches: MatchResult: NotNot replaces [Not, Not]
    """


def model_from_text(
    text: str, opset: int = 18, domains: Iterable[str] = ("com.microsoft",)
) -> ModelProto:
    """Parses a model, or a graph alone, to which a header is added.

    :param text: ONNX text format
    :param opset: main opset of the header
    :param domains: other domains of the header, version 1
    """
    text = text.strip()
    if not text.startswith("<"):
        imports = ", ".join([f'"": {opset}', *(f'"{d}": 1' for d in domains)])
        text = f"<ir_version: {ir_version_for(opset)}, opset_import: [{imports}]>\n{text}"
    return onnx.parser.parse_model(text)
