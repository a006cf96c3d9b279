"""A plugin of pytest that keeps the models that ``check_pattern`` optimizes, for a GPU.

::

    XOPTIM_RECORD=checks.pickle PYTHONPATH=_doc/examples pytest -p tools.recorded_checks TESTS

Each model is kept with its test, its inputs, and what the pattern makes of it on CUDA. A pattern
that is not applied there is not kept.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

import xoptim.testing
from xbuilder.errors import XoptimError
from xoptim.testing import checks, make_feeds, model_from_text
from xoptim.testing.checks import optimize_with, size_tables


class Check(NamedTuple):
    """A model before and after a pattern, on CUDA.

    :param test: the test it comes from
    :param before: the serialized model
    :param after: the serialized model once the pattern is applied
    :param feeds: its inputs
    :param is_for_cuda: the test asks for CUDA, or CUDA gives another model than CPU
    :param atol: the absolute difference that the test accepts
    """

    test: str
    before: bytes
    after: bytes
    feeds: dict[str, np.ndarray]
    is_for_cuda: bool
    atol: float


_recorded: dict[bytes, Check] = {}
_check_pattern = checks.check_pattern


def _record(model: onnx.ModelProto, result: onnx.ModelProto, patterns: Any, options: Any) -> None:
    asked = str(options.pop("processor", "CPU"))
    feeds, sizes = options.pop("feeds", None), options.pop("sizes", None)
    atol = float(options.get("atol", 0.0))
    own = ("opset", "atol", "rtol", "reference", "runtime")
    others = {name: value for name, value in options.items() if name not in own}
    try:
        found, rows, _ = optimize_with(model, patterns, **others, processor="CUDA")
        given = list(feeds or ()) or [make_feeds(model, size_tables(model, sizes)[0])]
    except (XoptimError, ValueError, TypeError):
        return  # no input of this kind can be drawn: the test draws its own
    if not any(r.get("instances", 0) for r in rows if r["pattern"].startswith("apply_")):
        return
    after = found.SerializeToString(deterministic=True)
    changed = "CUDA" in asked or after != result.SerializeToString(deterministic=True)
    test = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)")
    before = model.SerializeToString(deterministic=True)
    _recorded[before + after] = Check(test, before, after, dict(given[0]), changed, atol)


def check_pattern(before: Any, after: Any, patterns: Any, *rest: Any, **options: Any) -> Any:
    """Checks a pattern as the tests do, and records it."""
    result = _check_pattern(before, after, patterns, *rest, **options)
    opset = rest[0] if rest else options.get("opset", 18)
    model = model_from_text(before, opset) if isinstance(before, str) else before
    _record(model, result, patterns, dict(options))
    return result


checks.check_pattern = xoptim.testing.check_pattern = check_pattern


def pytest_sessionfinish() -> None:
    """Writes what was recorded, what is for CUDA first."""
    found = sorted(_recorded.values(), key=lambda check: (not check.is_for_cuda, check.test))
    rows = [tuple(check) for check in found]  # read without this module
    Path(os.environ["XOPTIM_RECORD"]).write_bytes(pickle.dumps(rows))
