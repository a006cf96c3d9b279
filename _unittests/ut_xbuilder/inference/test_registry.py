"""The inference of nodes that need another graph."""

from __future__ import annotations

import pytest

from xbuilder import OptionError
from xbuilder.inference.registry import CALL, graph_inference, infers


def test_every_owner_but_one_is_inferred() -> None:
    assert all(graph_inference(kind) for kind in ("If", "Loop", "Scan", CALL))
    assert graph_inference("SequenceMap") is None


def test_registered_once() -> None:
    with pytest.raises(OptionError, match="already registered"):
        infers("If")(lambda graph, record: None)
