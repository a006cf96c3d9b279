"""The families of operators, each with its colors."""

from __future__ import annotations

from dataclasses import dataclass

from xbuilder.operators.op_traits import (
    CARRIERS,
    DEQUANTIZERS,
    ELEMENTWISE_BINARY,
    ELEMENTWISE_UNARY,
    GRAPH_OWNERS,
    RANDOM,
    REDUCTIONS,
    having,
)


@dataclass(frozen=True)
class Family:
    """A family of vertices that share a color.

    :param name: its name, a class of the style sheet
    :param words: its name for a reader
    :param light: fill and border on a light page
    :param dark: fill and border on a dark page
    """

    name: str
    words: str
    light: tuple[str, str]
    dark: tuple[str, str]


FAMILIES = {
    family.name: family
    for family in (
        Family("product", "products", ("#d6e6fb", "#4a82c8"), ("#1d3a5f", "#5d96dd")),
        Family("elementwise", "elementwise", ("#ddf1dc", "#5a9d57"), ("#1f4020", "#68b065")),
        Family("reduction", "reductions", ("#fbe6cf", "#c98435"), ("#523312", "#dc9a4d")),
        Family("layout", "shapes and indices", ("#ececf2", "#8a8aa3"), ("#33343f", "#8f90a8")),
        Family("attention", "attention, recurrent", ("#f4dcef", "#b2569f"), ("#4d1f45", "#cc74ba")),
        Family("quantization", "types", ("#f9f1c6", "#b29d26"), ("#453c0d", "#cbb747")),
        Family("control", "bodies, functions", ("#f8d9d8", "#c4524f"), ("#551e1d", "#de716e")),
        Family("other", "others", ("#f1f1f1", "#808080"), ("#303030", "#909090")),
        Family("end", "inputs, outputs", ("#ffffff", "#333333"), ("#111418", "#d0d0d0")),
    )
}

_WORDS = {
    "product": "Conv ConvInteger ConvTranspose DeformConv DynamicQuantizeMatMul Einsum FusedConv "
    "FusedGemm FusedMatMul Gemm GemmFastGelu MatMul MatMulInteger MatMulIntegerToFloat MatMulNBits "
    "NhwcFusedConv QGemm QLinearConv QLinearMatMul TransposeMatMul",
    "elementwise": "BiasGelu BiasSplitGelu Dropout FastGelu PRelu QuickGelu",
    "reduction": "ArgMax ArgMin AveragePool BatchNormalization BiasSoftmax CumSum "
    "EmbedLayerNormalization GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNorm "
    "GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax "
    "LpNormalization LpPool MaxPool MeanVarianceNormalization RMSNormalization "
    "SimplifiedLayerNormalization SkipGroupNorm SkipLayerNormalization "
    "SkipSimplifiedLayerNormalization Softmax TopK",
    "layout": "CenterCropPad Concat ConcatFromSequence Constant ConstantOfShape EyeLike "
    "GatherBlockQuantized GridSample NonZero OneHot Pad Range Resize ScatterElements ScatterND "
    "Shape Size SplitToSequence TensorScatter Trilu Upsample",
    "attention": "Attention GRU GroupQueryAttention LSTM MultiHeadAttention PackedAttention RNN "
    "RotaryEmbedding",
    "quantization": "Cast CastLike DynamicQuantizeLinear QuantizeLinear",
}


def _families() -> dict[str, str]:
    """The family of each operator, whatever its domain."""
    found = dict.fromkeys(GRAPH_OWNERS, "control")
    for op_types in (ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, having("elementwise", "variadic")):
        found.update(dict.fromkeys(op_types, "elementwise"))
    found.update(dict.fromkeys(CARRIERS | RANDOM, "layout"))
    found.update(dict.fromkeys(REDUCTIONS, "reduction"))
    found.update((op_type, "quantization") for _, op_type in DEQUANTIZERS)
    for name, words in _WORDS.items():
        found.update(dict.fromkeys(words.split(), name))
    return found


_FAMILIES = _families()


def family_of(op_type: str) -> Family:
    """The family of an operator, *others* for one that is not known.

    :param op_type: its type, whatever its domain

    >>> family_of("MatMul").name, family_of("Reshape").name, family_of("Mine").name
    ('product', 'layout', 'other')
    """
    return FAMILIES[_FAMILIES.get(op_type, "other")]
