"""Removes Dropout nodes that drop nothing."""

from __future__ import annotations

from onnx import AttributeProto

from ...analysis.constants import is_filled_with
from ...authoring import RewriteContext
from ...declarative import rule


@rule("default", "Dropout(x, [ratio], [training], **attributes) -> x")
def dropout(g: RewriteContext, training: str, attributes: dict[str, AttributeProto]) -> None:
    """Dropout(X) -> Identity(X) when nothing reads the mask and nothing is dropped.

    1. From opset 12: `training_mode` is missing or is a constant equal to False.
    2. Opsets 7 to 11: always, the operator has no training mode.
    3. Before: attribute `is_test` is 1.
    """
    g.require(not training or is_filled_with(g, training, False), "it may be training")
    if g.main_opset < 7:
        is_test = attributes.get("is_test")
        g.require(is_test is not None and is_test.i, "it is training")
