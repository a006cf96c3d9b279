"""Ensembles of trees that are scaled, or put side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.numpy_helper import from_array

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

ML = '<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3]>'


def stump(weights: tuple[float, float], tree: int = 0, target: int = 0) -> str:
    """Attributes of one tree with two leaves, which compares the first feature with 0.5."""
    return (
        f"nodes_treeids = [{tree}, {tree}, {tree}], nodes_nodeids = [0, 1, 2],"
        "nodes_featureids = [0, 0, 0], nodes_values = [0.5, 0.0, 0.0],"
        'nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = [1, 0, 0],'
        f"nodes_falsenodeids = [2, 0, 0], target_treeids = [{tree}, {tree}],"
        f"target_nodeids = [1, 2], target_ids = [{target}, {target}],"
        f"target_weights = [{weights[0]}, {weights[1]}]"
    )


def trees(
    name: str, more: str = "", weights: tuple[float, float] = (1.0, 2.0), x: str = "x"
) -> str:
    attributes = f"n_targets = 1, {stump(weights)}{more}"
    return f"{name} = ai.onnx.ml.TreeEnsembleRegressor <{attributes}> ({x})"


X = f"{ML} g (float[n, 2] x) => (float[n, k] y)"
BASE = ", base_values = [10.0]"
MODELS: dict[str, Any] = {
    "TreeEnsembleRegressorMul": {
        "leaves": (
            f"{X} <float c = {{3}}> {{ {trees('t')} y = Mul(t, c) }}",
            f"{X} {{ {trees('y', weights=(3.0, 6.0))} }}",
        ),
        "base values": (
            f"{X} <float[1,1] c = {{-2}}> {{ {trees('t', BASE)} y = Mul(c, t) }}",
            f"{X} {{ {trees('y', ', base_values = [-20.0]', (-2.0, -4.0))} }}",
        ),
    },
    "TreeEnsembleRegressorConcat": {
        "columns": (
            f"{X} {{ {trees('t')} {trees('u', BASE, (3.0, 4.0))} y = Concat <axis = 1> (t, u) }}",
            None,
        ),
        "Sigmoid": (
            f"{X} {{ {trees('t')} {trees('u', '', (3.0, -4.0))} a = Sigmoid(t) b = Sigmoid(u)"
            "y = Concat <axis = -1> (a, b) }",
            None,
        ),
        "rows": (
            f"{X} {{ {trees('t', BASE)} {trees('u', '', (3.0, 4.0))} y = Concat <axis = 0> (t, u) }}",
            None,
        ),
    },
}
TWO = (
    "n_targets = 2, nodes_treeids = [0, 0, 0, 1, 1, 1], nodes_nodeids = [0, 1, 2, 0, 1, 2],"
    "nodes_featureids = [0, 0, 0, 0, 0, 0], nodes_values = [0.5, 0.0, 0.0, 0.5, 0.0, 0.0],"
    'nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],'
    "nodes_truenodeids = [1, 0, 0, 1, 0, 0], nodes_falsenodeids = [2, 0, 0, 2, 0, 0],"
    "target_treeids = [0, 0, 1, 1], target_nodeids = [1, 2, 1, 2], target_ids = [0, 0, 1, 1],"
    "target_weights = [1.0, 2.0, 3.0, 4.0]"
)
MERGED = f"ai.onnx.ml.TreeEnsembleRegressor <{TWO}"
for _case, _after in (
    ("columns", f"{X} {{ y = {MERGED}, base_values = [0.0, 10.0]> (x) }}"),
    (
        "Sigmoid",
        f"{X} {{ t = {MERGED}> (x) y = Sigmoid(t) }}".replace("4.0]", "-4.0]"),
    ),
    (
        "rows",
        f"{X} <int64[2] s = {{-1, 1}}> {{ t = {MERGED}, base_values = [10.0, 0.0]> (x)"
        "u = Transpose <perm = [1, 0]> (t) y = Reshape(u, s) }",
    ),
):
    _cases = MODELS["TreeEnsembleRegressorConcat"]
    _cases[_case] = (_cases[_case][0], _after)

for _kind in ("MIN", "MAX"):
    _AGGREGATED = f', aggregate_function = "{_kind}"'
    MODELS["TreeEnsembleRegressorConcat"][_kind] = (
        f"{X} {{ {trees('t', _AGGREGATED)} {trees('u', BASE + _AGGREGATED, (3.0, 4.0))}"
        "y = Concat <axis = 1> (t, u) }",
        f"{X} {{ y = {MERGED}, base_values = [0.0, 10.0]{_AGGREGATED}> (x) }}",
    )
MODELS["TreeEnsembleRegressorMul"] |= {
    "Neg": (
        f"{X} {{ {trees('t', BASE)} y = Neg(t) }}",
        f"{X} {{ {trees('y', ', base_values = [-10.0]', (-1.0, -2.0))} }}",
    ),
    "one factor for each target": (
        f"{X} <float[1, 2] c = {{2, -3}}> {{ t = {MERGED}, base_values = [0.0, 10.0]> (x) y = Mul(t, c) }}",
        f"{X} {{ y = {MERGED}, base_values = [0.0, -30.0]> (x) }}".replace(
            "[1.0, 2.0, 3.0, 4.0]", "[2.0, 4.0, -9.0, -12.0]"
        ),
    ),
}
SUMMED = MERGED.replace("n_targets = 2", "n_targets = 1").replace(
    "[0, 0, 1, 1], target_weights", ""
)
SUMMED = SUMMED.replace("target_ids = [0, 0, 1, 1]", "target_ids = [0, 0, 0, 0]")
MODELS["TreeEnsembleRegressorSum"] = {
    "two stages": (
        f"{X} {{ {trees('t', BASE)} {trees('u', BASE, (3.0, 4.0))} y = Add(t, u) }}",
        f"{X} {{ y = {SUMMED}, base_values = [20.0]> (x) }}",
    ),
    "one has base values": (
        f"{X} {{ {trees('t', BASE)} {trees('u', '', (3.0, 4.0))} y = Sum(t, u) }}",
        f"{X} {{ y = {SUMMED}, base_values = [10.0]> (x) }}",
    ),
    "a difference": (
        f"{X} {{ {trees('t', BASE)} {trees('u', BASE, (3.0, 4.0))} y = Sub(t, u) }}",
        f"{X} {{ y = {SUMMED}, base_values = [0.0]> (x) }}".replace("3.0, 4.0]", "-3.0, -4.0]"),
    ),
    "three stages": (
        f"{X} {{ {trees('t')} {trees('u', '', (3.0, 4.0))} {trees('v')} w = Add(t, u) y = Add(w, v) }}",
        None,
    ),
}
_SUM = MODELS["TreeEnsembleRegressorSum"]["two stages"][0]
_MUL = MODELS["TreeEnsembleRegressorMul"]["leaves"][0]
_CONCAT = MODELS["TreeEnsembleRegressorConcat"]["columns"][0]
POST = ', post_transform = "LOGISTIC"'
REFUSED = {
    "TreeEnsembleRegressorSum": {
        "another input": (
            _SUM.replace("[n, 2] x", "[n, 2] x, float[n, 2] z").replace(
                trees("u", BASE, (3.0, 4.0)), trees("u", BASE, (3.0, 4.0), "z")
            ),
            "do not have the same input",
        ),
        "a term is no ensemble": (
            f"{X} {{ {trees('t')} u = Neg(x) y = Add(t, u) }}",
            "no ai.onnx.ml::TreeEnsembleRegressor before",
        ),
        "the first term is no ensemble": (
            f"{X} {{ {trees('t')} u = Neg(x) y = Add(u, t) }}",
            "not the first term",
        ),
        "the same twice": (f"{X} {{ {trees('t')} y = Add(t, t) }}", "is not the only use"),
        "one term": (f"{X} {{ {trees('t')} y = Sum(t) }}", "there is one ensemble only"),
        "the least leaves": (
            f"{X} {{ {trees('t', _AGGREGATED)} {trees('u')} y = Add(t, u) }}",
            "the leaves are not summed",
        ),
        "base values of two targets": (
            f"{X} {{ t = {MERGED}> (x) u = {MERGED}, base_values = [1.0, 2.0]> (x) y = Add(t, u) }}",
            "the leaves of a target may not be reached",
        ),
        "a leaf without a value": (
            _SUM.replace(
                "target_treeids = [0, 0],target_nodeids = [1, 2], target_ids = [0, 0],"
                "target_weights = [1.0, 2.0]",
                "target_treeids = [0],target_nodeids = [1], target_ids = [0],target_weights = [1.0]",
            ),
            "the leaves of a target may not be reached",
        ),
        "other numbers of targets": (
            f"{X} {{ t = {MERGED}> (x) {trees('u')} y = Add(t, u) }}",
            "the numbers of targets differ",
        ),
    },
    "TreeEnsembleRegressorMul": {
        "the sum is transformed": (
            f"{X} <float c = {{3}}> {{ {trees('t', POST)} y = Mul(t, c) }}",
            "the sum is transformed",
        ),
        "the leaves are not summed": (
            f"{X} <float c = {{3}}>"
            f" {{ {trees('t', ', aggregate_function = ' + chr(34) + 'MAX' + chr(34))} y = Mul(t, c) }}",
            "the leaves are not summed",
        ),
        "not a constant": (
            _MUL.replace("<float c = {3}>", "").replace("] x)", "] x, float c)"),
            "not a scalar constant",
        ),
        "factors of more columns than targets": (
            _MUL.replace("float c = {3}", "float[2] c = {3, 2}"),
            "not a scalar constant, nor one for each target",
        ),
        "a factor of a target is zero": (
            f"{X} <float[2] c = {{0, 1}}> {{ t = {MERGED}> (x) y = Mul(t, c) }}",
            "the factor is null",
        ),
        "one base value for two targets": (
            f"{X} <float[2] c = {{2, 3}}> {{ t = {MERGED}, base_values = [1.0]> (x) y = Mul(t, c) }}",
            "one base value for each target",
        ),
        "a target that is not counted": (
            f"{X} <float c = {{2}}> {{ t = {MERGED}> (x) y = Mul(t, c) }}".replace(
                "n_targets = 2", "n_targets = 1"
            ),
            "a target is not counted",
        ),
        "zero": (_MUL.replace("{3}", "{0}"), "the factor is null"),
        "infinite leaves": (_MUL.replace("{3}", "{3e38}"), "not a normal number"),
        "an output": (_MUL.replace("k] y)", "k] y, float[n, k] t)"), "not the only use"),
    },
    "TreeEnsembleRegressorConcat": {
        "the leaves are averaged": (
            _CONCAT.replace(BASE, f"{BASE}, aggregate_function = {chr(34)}AVERAGE{chr(34)}"),
            "the leaves are not summed",
        ),
        "the leaves of one are summed": (
            _CONCAT.replace(BASE, BASE + _AGGREGATED),
            "not aggregated in the same way",
        ),
        "no tree": (
            f"{X} {{ t = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1> (x)"
            " u = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1> (x) y = Concat <axis = 1> (t, u) }",
            "an ensemble has no tree",
        ),
        "another input": (
            f"{X} {{ n = Neg(x) {trees('t')} {trees('u', x='n')} y = Concat <axis = 1> (t, u) }}",
            "the same input",
        ),
        "the sum is transformed": (
            f"{X} {{ {trees('t', POST)} {trees('u', POST)} y = Concat <axis = 1> (t, u) }}",
            "the sum is transformed",
        ),
        "other attributes": (
            f"{X} {{ {trees('t')} {trees('u', ', nodes_hitrates_as_tensor = float[3] {1, 1, 1}')}"
            "y = Concat <axis = 1> (t, u) }",
            "the same attributes",
        ),
        "several targets, in rows": (
            f"{X} {{ {trees('t').replace('n_targets = 1', 'n_targets = 2')}"
            f"{trees('u').replace('n_targets = 1', 'n_targets = 2')} y = Concat <axis = 0> (t, u) }}",
            "several targets",
        ),
        "targets that are not counted": (
            f"{X} {{ {trees('t').replace('n_targets = 1,', '')} {trees('u')}"
            "y = Concat <axis = 1> (t, u) }",
            "the number of targets is not known",
        ),
        "one base value for two targets": (
            f"{X} {{ {trees('t', BASE).replace('n_targets = 1', 'n_targets = 2')} {trees('u')}"
            "y = Concat <axis = 1> (t, u) }",
            "one base value for each target",
        ),
        "something else beside": (_CONCAT.replace("(t, u)", "(t, x)"), "no ai.onnx.ml::Tree"),
        "alone": (
            _CONCAT.replace("(t, u)", "(t)").replace("y = C", "z = Neg(u) y = C"),
            "one ensemble",
        ),
        "an output": (_CONCAT.replace("k] y)", "k] y, float[n, k] u)"), "used elsewhere"),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-6, rtol=1e-6)
test_refuses = refusal_tests(REFUSED)


def random_trees(
    rng: np.random.Generator, name: str, wide: bool, base: bool, targets: int = 1
) -> onnx.NodeProto:
    """An ensemble of stumps, whose trees have any number."""
    n = int(rng.integers(1, 4))
    ids = sorted(rng.choice(9, n, replace=False).tolist())
    values = rng.integers(-2, 3, n)
    rows: dict[str, Any] = {
        "nodes_treeids": [i for i in ids for _ in range(3)],
        "nodes_nodeids": [0, 1, 2] * n,
        "nodes_featureids": [int(f) for f in rng.integers(0, 2, n) for _ in range(3)],
        "nodes_modes": ["BRANCH_LT", "LEAF", "LEAF"] * n,
        "nodes_truenodeids": [1, 0, 0] * n,
        "nodes_falsenodeids": [2, 0, 0] * n,
        "target_treeids": [i for i in ids for _ in range(2)],
        "target_nodeids": [1, 2] * n,
        "target_ids": rng.integers(0, targets, 2 * n).tolist(),
        "n_targets": targets,
    }
    floats = {
        "nodes_values": [float(v) for t in values for v in (t, 0, 0)],
        "target_weights": rng.standard_normal(2 * n).tolist(),
    }
    if base:
        floats["base_values"] = rng.standard_normal(targets).tolist()
    if rng.integers(2):
        rows["nodes_missing_value_tracks_true"] = rng.integers(0, 2, 3 * n).tolist()
    if rng.integers(2):
        rows["nodes_hitrates"] = [1.0] * (3 * n)
    for key, value in floats.items():
        rows[f"{key}_as_tensor" if wide else key] = from_array(np.array(value)) if wide else value
    return oh.make_node("TreeEnsembleRegressor", ["x"], [name], domain="ai.onnx.ml", **rows)


@pytest.mark.parametrize("pattern", sorted(MODELS))
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20), st.integers(2, 4), st.booleans(), st.booleans(), st.booleans())
def test_random_ensembles(
    pattern: str, seed: int, count: int, wide: bool, sigmoid: bool, rows: bool
) -> None:
    """Floats of 32 and 64 bits, base values, sides of missing values or not, no row of data."""
    rng = np.random.default_rng(seed)
    kind = TensorProto.DOUBLE if wide else TensorProto.FLOAT
    targets = [1 if rows else int(rng.integers(1, 4)) for _ in range(count)]
    is_sum = pattern == "TreeEnsembleRegressorSum"
    targets = targets[:1] * count if is_sum else targets
    nodes = [
        random_trees(rng, f"t{i}", wide, bool(rng.integers(2)) and not (is_sum and n > 1), n)
        for i, n in enumerate(targets)
    ]
    last = [n.output[0] for n in nodes]
    constants = []
    if pattern == "TreeEnsembleRegressorMul":
        nodes, last = nodes[:1], ["t0"]
        constants.append(from_array(np.array([rng.standard_normal()], np.float32), "c"))
        nodes.append(oh.make_node("Mul", ["t0", "c"], ["y"]))
    elif is_sum:
        nodes.append(oh.make_node("Sub" if count == 2 else "Sum", last, ["y"]))
    else:
        if sigmoid:
            nodes.extend(oh.make_node("Sigmoid", [t], [f"s{t}"]) for t in last)
            last = [f"s{t}" for t in last]
        nodes.append(oh.make_node("Concat", last, ["y"], axis=0 if rows else 1))
    graph = oh.make_graph(
        nodes,
        "trees",
        [oh.make_tensor_value_info("x", kind, ["n", 2])],
        [oh.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])],
        constants,
    )
    domains = [oh.make_opsetid("", 18), oh.make_opsetid("ai.onnx.ml", 3)]
    model = oh.make_model(graph, opset_imports=domains, ir_version=9)
    dtype = np.float64 if wide else np.float32
    feeds = [{"x": rng.integers(-3, 4, (n, 2)).astype(dtype)} for n in (5, 0)]
    feeds[0]["x"][0] = np.nan
    check_pattern(model, None, pattern, feeds=feeds, atol=1e-5, rtol=1e-5, reference=False)


def test_a_merged_ensemble_stays() -> None:
    """One ensemble left: nothing to put side by side any more."""
    after = MODELS["TreeEnsembleRegressorConcat"]["columns"][1]
    check_no_match(after, "TreeEnsembleRegressorConcat", "not the only use")
