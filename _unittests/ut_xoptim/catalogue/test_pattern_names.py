"""Every name of a rewrite users may write is a pattern, in its set."""

from __future__ import annotations

import pytest

from xoptim import get_pattern, get_pattern_list

#: set -> names: what users of such a database know, "none" is what no set has
NAMES = {
    "default": """
        AttentionGQA BatchNormalization BatchNormalizationTraining Cast CastCast
        CastLayerNormalizationCast ClipClip ConcatEmpty ConcatGather ConcatReshape
        ConcatTwiceUnary ConstantToInitializer ConvBiasNull Dropout Expand ExpandBroadcast
        ExpandSwap ExpandUnsqueezeExpand FunctionAttention FunctionAttentionGQA
        FunctionCausalMask FunctionCausalMaskMulAdd FunctionCosSinCache
        FunctionHalfRotaryEmbedding GatherConcat GatherGather GatherShape GathersSplit Gelu
        GemmTranspose Identity LayerNormalization LayerNormalizationScale LeakyRelu MatMulAdd
        MatMulReshape2Of3 MaxRelu MulMulMatMul MulMulMulScalar MulUnsqueezeUnsqueeze NotNot
        NotWhere PadConv RMSNormalization RMSNormalizationMul ReduceArgTopK ReduceReshape
        Reshape Reshape2Of3 ReshapeMatMulReshape ReshapeReshape ReshapeReshapeBinary
        ReshapeSqueeze RotaryConcatPart RotaryEmbedding SameChildren SameChildrenFromInput
        SequenceConstructAt ShapeBasedConcatExpand ShapeBasedEditDistanceReshape
        ShapeBasedExpandBroadcast ShapeBasedExpandBroadcastMatMul ShapeBasedExpandCastWhereSwap
        ShapeBasedExpandSwap ShapeBasedIdentity ShapeBasedMatMulToMul ShapeBasedReshapeIsSqueeze
        ShapeBasedSameChildren ShapeBasedShapeShapeAdd ShapeBasedStaticExpand ShapeTranspose
        ShapedBasedReshape SliceSlice SlicesSplit SoftmaxCrossEntropyLossCast SplitConcat
        SplitToSequenceSequenceAt SqueezeAdd SqueezeBinaryUnsqueeze SqueezeUnsqueeze
        StaticConcatReshape SwapExpandReshape SwapExpandUnsqueeze SwapRangeAddScalar SwapUnary
        SwapUnsqueezeTranspose SwitchOrderBinary SwitchReshapeActivation TransposeEqualReshape
        TransposeGather TransposeMatMul TransposeReshapeMatMul TransposeReshapeTranspose
        TransposeTranspose UnsqueezeEqual UnsqueezeOrSqueezeReshape UnsqueezeReshape
        UnsqueezeShape UnsqueezeUnsqueeze WhereAdd
    """,
    "onnxruntime": """
        Attention3D BiasDropout BiasGelu BiasSoftmax BiasSplitGelu CausalConvWithState ComplexMul
        ComplexMulConj ContribGemmaRotaryEmbedding ContribRotaryEmbedding
        ContribRotaryEmbedding3D DecoderAttention EmbedLayerNormalization FusedConv FusedGemm
        FusedMatMul FusedMatMulDiv FusedMatMulTranspose FusedMatMulx2 GatedRelativePositionBias GeluErf
        GeluOrt GreedySearch GroupQueryAttention3D LinearAttention MissingCosSin MissingRange
        MissingReduceMax MissingTopK MoE MultiHeadAttention3D OrtBatchNormalizationTraining
        QuickGelu RelativePositionBias ReshapeGemm ReshapeGemmReshape
        SimplifiedLayerNormalization SimplifiedLayerNormalizationMul SkipLayerNormalization
        SkipSimplifiedLayerNormalization SkipSimplifiedLayerNormalizationMul
        TransposeFusedMatMulB
    """,
    "approximate": """
        CastCastBinary CastOpCast ComputationCastOpCast FastGelu ReduceSumNormalize Sub1Mul
    """,
    "experimental": """
        AddAddMulMul AddAddMulMulBroadcast AddMul AddMulBroadcast AddMulSharedInput
        AddMulSharedInputBroadcast AddMulTranspose ConstantOfShapeScatterND MaskedShapeScatterND
        MulSigmoid NegXplus1 ReplaceZero SimpleRotary SubMul SubMulBroadcast TransposeCast
        TriMatrix
    """,
    "investigation": """
        BinaryInvestigation FunctionPackedMatMul FunctionPowTanh FunctionSplitRotaryMul
    """,
    "ml": """
        TreeEnsembleRegressorConcat TreeEnsembleRegressorMul
    """,
    "fix": """
        AddReductionScatterND
    """,
    "none": """
        AlmostDoNothing GatherGrad SoftmaxGrad
    """,
}
ROWS = [(tag, name) for tag, names in NAMES.items() for name in names.split()]


@pytest.mark.parametrize(("tag", "name"), ROWS)
def test_name(tag: str, name: str) -> None:
    pattern = get_pattern(name)
    assert name in (pattern.name, *pattern.aliases)
    assert get_pattern(f"{name}Pattern") == pattern
    sets = set(pattern.tags) - {"exact", "rounding", "approximate"}
    assert (tag in pattern.tags) if tag != "none" else not sets


@pytest.mark.parametrize("tag", [tag for tag in NAMES if tag != "none"])
def test_a_set_holds_its_names(tag: str) -> None:
    found = {name for p in get_pattern_list(tag) for name in (p.name, *p.aliases)}
    assert set(NAMES[tag].split()) <= found


def test_names_are_given_once() -> None:
    assert len({name for _, name in ROWS}) == len(ROWS)
