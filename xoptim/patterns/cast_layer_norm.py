"""A normalization between two casts: the operator casts by itself."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
from onnx import NodeProto, TensorProto

from xbuilder.op_traits import HALF_FLOATS

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..reading.neighbours import producer, reader

#: first opset whose GroupNormalization has a stash type
_GROUP_STASH = 21


@register_pattern(
    "default",
    roots=(
        "LayerNormalization",
        "GroupNormalization",
        "RMSNormalization",
        "SimplifiedLayerNormalization",
    ),
    priority=1,
    min_opset=17,
    precision="rounding",
)
class CastLayerNormalizationCastPattern(PatternOptimization):
    """Cast(norm(Cast(x), s, b)) -> norm(x, s', b'), x being float16 or bfloat16.

    1. the stash type is the type of the first Cast, the last one goes back to the type of x;
    2. s and b are casts of results of the type of x, which are used instead;
    3. s and b are constants which this type represents exactly; otherwise they would be rounded.
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        up = producer(g, node.input[0], "Cast")
        down = reader(g, node.output[0], "Cast")
        if up is None or down is None:
            return self.none(node, "Cast is not before and after")
        narrow = g.try_infer_type(up.input[0])
        if narrow not in HALF_FLOATS or g.try_infer_type(down.output[0]) != narrow:
            return self.none(node, "the casts do not come from and go back to a narrow type")
        wide = g.get_attribute_with_default(node, "stash_type", TensorProto.FLOAT)
        if g.try_infer_type(node.input[0]) != wide:
            return self.none(node, "the stash type is not the type of the computation")
        if node.op_type == "GroupNormalization" and g.main_opset < _GROUP_STASH:
            return self.none(node, "GroupNormalization has no stash type in this opset")
        if not all(self._is_narrow(g, name, narrow) for name in node.input[1:]):
            return self.none(node, "the scale or the bias would be rounded")

        def apply(g: GraphQueries, *_: NodeProto) -> list[NodeProto]:
            inputs = [up.input[0], *(self._narrowed(g, n, narrow) for n in node.input[1:])]
            outputs = [down.output[0], *node.output[1:]]
            attributes = node.attribute[:]
            return [g.make_node(node.op_type, inputs, outputs, attributes=attributes)]

        # the first cast may be used elsewhere: it goes away with its last use
        return MatchResult(self, [node, down], apply, insert_at=down)

    def _source(self, g: GraphQueries, name: str, narrow: int) -> str:
        """What a result is a cast of, if it has the narrow type."""
        cast = producer(g, name, "Cast")
        known = cast is not None and g.try_infer_type(cast.input[0]) == narrow
        return cast.input[0] if cast is not None and known else ""

    def _cast_exactly(self, g: GraphQueries, name: str, narrow: int) -> np.ndarray | None:
        """A constant in the narrow type, None if it is not one or if it would be rounded."""
        value = g.get_computed_constant(name)
        if value is None:
            return None
        with np.errstate(over="ignore"):
            rounded = value.astype(oh.tensor_dtype_to_np_dtype(narrow))
        same = np.array_equal(rounded.astype(value.dtype), value, equal_nan=True)
        return rounded if same else None

    def _is_narrow(self, g: GraphQueries, name: str, narrow: int) -> bool:
        if not name or self._source(g, name, narrow):
            return True
        return self._cast_exactly(g, name, narrow) is not None

    def _narrowed(self, g: GraphQueries, name: str, narrow: int) -> str:
        if not name:
            return ""
        source = self._source(g, name, narrow)
        return source or g.make_initializer("", self._cast_exactly(g, name, narrow))
