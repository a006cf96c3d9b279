"""BatchNormalization that is training, for CUDA."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

P = "float[c] s, float[c] b, float[c] m, float[c] v"
TRAIN = "BatchNormalization <training_mode = 1, epsilon = 0.01>"
WRITTEN = "BatchNormalization <epsilon = 0.01>"
HEAD = f"g (float[n, c] x, {P}) => (float[n, c] y)"
DEEP = HEAD.replace("[n, c]", "[n, c, h, w]")
STATISTICS = (
    "mean = ReduceMean <keepdims = 1> (x, axes) d = Sub(x, mean) q = Mul(d, d)"
    "var = ReduceMean <keepdims = 0> (q, axes) flat = Squeeze(mean, axes)"
)
MODELS = {
    "OrtBatchNormalizationTraining": {
        "two dimensions": (
            f"{HEAD} {{ y = {TRAIN} (x, s, b, m, v) }}",
            f"{HEAD} <int64[1] axes = {{0}}> {{ {STATISTICS} y = {WRITTEN} (x, s, b, flat, var) }}",
        ),
        "four dimensions, results that nothing reads": (
            f"{DEEP} {{ y, rm, rv = {TRAIN} (x, s, b, m, v) }}",
            f"{DEEP} <int64[3] axes = {{0, 2, 3}}> {{ {STATISTICS}"
            f"y = {WRITTEN} (x, s, b, flat, var) }}",
        ),
    }
}
PLAIN = MODELS["OrtBatchNormalizationTraining"]["two dimensions"][0]
REFUSED = {
    "OrtBatchNormalizationTraining": {
        "inference": (PLAIN.replace(TRAIN, "BatchNormalization"), "it is not training"),
        "on CPU": (PLAIN, "the processor is not CUDA", {"processor": "CPU,CUDA"}),
        "the running mean is an output": (
            PLAIN.replace("y =", "y, r, q =").replace("] y)", "] y, float[c] r)"),
            "a running mean or variance is needed",
        ),
        "float16": (PLAIN.replace("float[", "float16["), "the types are not all float"),
    }
}

# onnxruntime has no kernel for the training mode on CPU
test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5, runtime=False, processor="CUDA")
test_refuses = refusal_tests(REFUSED, processor="CUDA")
