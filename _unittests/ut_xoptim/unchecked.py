"""Toy rewrites that change values: what declares or runs them is tested, not what they compute."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto

from xbuilder import GraphBuilder
from xoptim.engine.engine import Engine
from xoptim.engine.outcomes import Application
from xoptim.testing import optimize_with
from xoptim.trust.windows.validation import Validation


class Unchecked(Validation):
    """Takes the place of the validation that `verifies=True` adds, and checks nothing."""

    def replaced(self, engine: Engine, done: Application) -> None:
        """Nothing."""

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """Nothing."""


def optimize_toys(
    model: ModelProto, patterns: Any, **options: Any
) -> tuple[ModelProto, list[dict[str, Any]], GraphBuilder]:
    """Runs patterns whose values are not compared; the invariants are checked."""
    return optimize_with(model, patterns, features=[Unchecked()], **options)
