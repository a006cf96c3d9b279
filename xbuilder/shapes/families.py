"""The operators of each family of shape functions.

A family is imported when one of its operators is asked for, all of them for an operator that is not
here. ``_unittests/ut_xbuilder/shapes/test_families.py`` checks this table.
"""

from __future__ import annotations

#: module -> domain -> the operators its functions are for
FAMILIES: dict[str, dict[str, str]] = {
    "arithmetic.cast": {
        "": "BitCast Cast CastLike",
    },
    "arithmetic.elementwise": {
        "": """
            Abs Acos Acosh Add Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr
            BitwiseXor Ceil Celu Clip Cos Cosh CumProd CumSum Div Dropout Elu Erf Exp Floor Gelu
            HardSigmoid HardSwish Hardmax Identity LeakyRelu Log LogSoftmax Max Mean Min Mish
            Mod Mul Neg PRelu Pow Reciprocal Relu ReverseSequence Round Selu Shrink Sigmoid Sign
            Sin Sinh Softmax Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh
            ThresholdedRelu Trilu Where
        """,
    },
    "arithmetic.logical": {
        "": "And Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Not Or Xor",
    },
    "arithmetic.matmul": {
        "": "Det Einsum Gemm MatMul MatMulInteger QLinearMatMul",
    },
    "arithmetic.reduction": {
        "": """
            ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
            ReduceMin ReduceProd ReduceSum ReduceSumSquare
        """,
    },
    "domains.microsoft": {
        "": "SimplifiedLayerNormalization",
        "com.microsoft": """
            BeamSearch BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu BitmaskBiasDropout
            BitmaskDropout BranchwiseRMSNorm CDist ComplexMul ComplexMulConj CropAndResize
            DynamicTimeWarping EmbedLayerNormalization ExpandDims FastGelu FusedConv FusedGemm
            FusedMatMul FusedMatMulActivation GatedAdd GatedRMSNorm GatherND Gelu GemmFastGelu
            GemmFloat8 GreedySearch GridSample GroupNorm Inverse Irfft IsAllFinite
            MaxpoolWithMask MoE MulInteger MurmurHash3 NGramRepeatBlock NhwcConv NhwcFusedConv
            NhwcMaxPool Pad QuickGelu Range ReduceSumInteger Rfft SampleOp Sampling ScaledSiLU
            SimplifiedLayerNormalization SkipGroupNorm SkipLayerNormalization
            SkipSimplifiedLayerNormalization TorchEmbedding TransposeMatMul Trilu UnfoldTensor
            Unique
        """,
    },
    "domains.microsoft_attention": {
        "com.microsoft": """
            Attention CausalConvWithState DecoderAttention DecoderMaskedMultiHeadAttention
            GemmaRotaryEmbedding GroupQueryAttention LinearAttention LongformerAttention
            MRotaryEmbedding MultiHeadAttention PackedAttention PackedMultiHeadAttention
            PagedAttention QAttention RelativePositionBias RotaryEmbedding SparseAttention
        """,
    },
    "domains.microsoft_quant": {
        "com.microsoft": """
            AttnLSTM DequantizeLinear DequantizeWithOrder DynamicQuantizeLSTM
            DynamicQuantizeMatMul GatherBlockQuantized MatMulBnb4 MatMulFpQ4 MatMulInteger16
            MatMulIntegerToFloat MatMulNBits MatMulNBitsMlp MatMulNBitsQkv
            QEmbedLayerNormalization QGemm QLinearAdd QLinearAveragePool QLinearConcat
            QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearReduceMean
            QLinearSigmoid QLinearSoftmax QLinearWhere QMoE QOrderedGelu
            QOrderedLayerNormalization QOrderedMatMul QuantizeLinear QuantizeWithOrder
        """,
    },
    "domains.ml": {
        "ai.onnx.ml": """
            ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer
            FeatureVectorizer Imputer LabelEncoder LinearClassifier LinearRegressor Normalizer
            OneHotEncoder SVMClassifier SVMRegressor Scaler TreeEnsemble TreeEnsembleClassifier
            TreeEnsembleRegressor ZipMap
        """,
    },
    "domains.optim_cuda": {
        "onnx_extended.ortops.optim.cuda": """
            AddAdd AddMul AddSharedInput MaskedScatterNDOfShape MulAdd MulMul MulMulSigmoid
            MulSharedInput MulSigmoid MulSub NegXplus1 ReplaceZero Rotary ScatterNDOfShape
            SubMul Transpose2DCastFP16 Transpose2DCastFP32 TriMatrix
        """,
    },
    "domains.quantization": {
        "": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    },
    "domains.training": {
        "ai.onnx.preview.training": "Adagrad Adam Gradient Momentum",
        "com.microsoft": """
            AbsGrad BatchNormalizationGrad BiasFastGeluGrad_dX BiasGeluGrad_dX
            BroadcastGradientArgs ConvGrad DropoutGrad FastGeluGrad GatherElementsGrad
            GatherGrad GatherNDGrad GeluGrad LayerNormalizationGrad LeakyReluGrad LogSoftmaxGrad
            LogSoftmaxGrad_13 QuickGeluGrad ReluGrad SigmoidGrad
            SimplifiedLayerNormalizationGrad SinGrad SliceGrad SoftmaxCrossEntropyLossGrad
            SoftmaxCrossEntropyLossInternal SoftmaxCrossEntropyLossInternalGrad SoftmaxGrad
            SoftmaxGrad_13 TanhGrad
        """,
    },
    "layers.attention": {
        "": "Attention LinearAttention RotaryEmbedding",
        "ai.onnx.preview": "FlexAttention",
    },
    "layers.conv": {
        "": "CausalConvWithState Conv ConvInteger ConvTranspose DeformConv QLinearConv",
    },
    "layers.image": {
        "": "AffineGrid CenterCropPad Col2Im GridSample ImageDecoder",
    },
    "layers.loss": {
        "": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    },
    "layers.norm": {
        "": """
            BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization
            LpNormalization MeanVarianceNormalization RMSNormalization
        """,
    },
    "layers.pooling": {
        "": """
            AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool
            MaxUnpool RoiAlign
        """,
    },
    "layers.resize": {
        "": "Resize Upsample",
    },
    "layers.rnn": {
        "": "GRU LSTM RNN",
    },
    "layers.signal": {
        "": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT",
    },
    "moving.creation": {
        "": """
            Bernoulli Constant ConstantOfShape EyeLike Multinomial OneHot RandomNormal
            RandomNormalLike RandomUniform RandomUniformLike Range Shape Size
        """,
    },
    "moving.rearranging": {
        "": "DepthToSpace Expand Flatten SpaceToDepth Squeeze Tile Transpose Unsqueeze",
    },
    "moving.reshape": {
        "": "Reshape",
    },
    "moving.sequence": {
        "": """
            ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt
            SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
            SplitToSequence
        """,
    },
    "moving.slicing": {
        "": """
            Compress Concat Gather GatherElements GatherND Pad Scatter ScatterElements ScatterND
            Slice Split TensorScatter
        """,
    },
    "moving.sorting": {
        "": "NonMaxSuppression NonZero TopK Unique",
    },
    "moving.text": {
        "": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer",
    },
}

#: domain and operator type -> module
HOMES = {
    (domain, op_type): module
    for module, domains in FAMILIES.items()
    for domain, op_types in domains.items()
    for op_type in op_types.split()
}
