"""Features of one graph."""

from __future__ import annotations

import pytest

from xbuilder import GraphBuilder, OptionError
from xoptim.testing import model_from_text
from xoptim.toolkit.features import GraphFeature, features_of

TEXT = "agraph (float[a] X) => (float[a] Y) { Y = Neg(X) }"


def test_one_graph_at_a_time() -> None:
    one, two = (GraphBuilder(model_from_text(TEXT)) for _ in range(2))
    feature = GraphFeature()
    with pytest.raises(OptionError, match="GraphFeature is attached to no graph"):
        assert feature.graph
    one.attach_feature(feature)
    assert feature.graph is one.graph
    with pytest.raises(OptionError, match="attached to another graph already"):
        two.attach_feature(feature)
    assert features_of(two.graph) == []
    one.detach_feature(feature)
    two.attach_feature(feature)
    assert feature.graph is two.graph
