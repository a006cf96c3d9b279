"""Operators of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ut_xbuilder.shapes.shape_cases import In, check_runs, infer, is_fresh

from xbuilder.facts.facts import ResultFacts

ML = {"domain": "ai.onnx.ml", "opset": 3}
SIZES = [{"n": 2}, {"n": 5}]
X = ResultFacts(11, ("n", 3))


def one(op_type: str, inputs: list, **attributes: Any) -> ResultFacts:
    """Facts of the first output."""
    return infer(op_type, inputs, attributes=attributes, **ML)[0]


def test_like_the_first_input() -> None:
    """Shapes go through, types too or float."""
    for op_type in ("Binarizer", "Imputer"):
        assert one(op_type, [X]) == X
    for op_type in ("Normalizer", "Scaler"):
        assert one(op_type, [X]) == ResultFacts(1, ("n", 3))


@pytest.mark.parametrize(
    ("shape", "expected"), [(("n", 3), ("n", 2)), ((3,), (1, 2)), (("n", 2, 3), ("n", 2, 2))]
)
def test_array_feature_extractor(shape: tuple, expected: tuple) -> None:
    """Columns."""
    inputs = [In(shape), np.array([2, 0], np.int64)]
    given = {"domain": "ai.onnx.ml", "opset": 1}
    check_runs("ArrayFeatureExtractor", inputs, SIZES, [expected], **given)


@pytest.mark.parametrize(
    ("opset", "attributes", "elem_type", "expected"),
    [
        (1, {}, 8, 7),
        (1, {}, 7, 8),
        (2, {"values_floats": [1.0]}, 8, 1),
        (2, {"values_int64s": [1]}, 8, 7),
        (2, {"values_strings": ["s"]}, 7, 8),
        (4, {"values_tensor": np.array([1.0])}, 7, 11),
        (4, {}, 7, 0),
    ],
)
def test_label_encoder(opset: int, attributes: dict, elem_type: int, expected: int) -> None:
    """Types by opset."""
    given = {"attributes": attributes, "domain": "ai.onnx.ml", "opset": opset}
    found = infer("LabelEncoder", [ResultFacts(elem_type, ("n",))], **given)[0]
    assert found == ResultFacts(expected, ("n",))


def test_encoders() -> None:
    """Vectors out of words."""
    assert one("OneHotEncoder", [ResultFacts(7, ("n",))], cats_int64s=[1, 2, 3]).shape == ("n", 3)
    assert one("DictVectorizer", [ResultFacts()], string_vocabulary=["a", "b"]).shape == (1, 2)
    assert one("FeatureVectorizer", [X, X], inputdimensions=[3, 3]).shape == ("n", 6)
    assert one("CategoryMapper", [ResultFacts(8, ("n",))]) == ResultFacts(7, ("n",))
    assert one("CastMap", [ResultFacts()], cast_to="TO_INT64").type == 7


def test_regressors() -> None:
    """One column for each target."""
    assert one("LinearRegressor", [X], targets=2) == ResultFacts(1, ("n", 2))
    assert one("SVMRegressor", [X]) == ResultFacts(1, ("n", 1))
    assert one("TreeEnsembleRegressor", [X], n_targets=4) == ResultFacts(1, ("n", 4))
    assert one("TreeEnsembleRegressor", [ResultFacts(1, (3,))], n_targets=4).shape == (1, 4)
    given = {"domain": "ai.onnx.ml", "opset": 5, "attributes": {"n_targets": 4}}
    assert infer("TreeEnsemble", [X], **given)[0] == ResultFacts(11, ("n", 4))
    inputs = [In(("n", 3))]
    attributes = {"coefficients": [1.0] * 6, "intercepts": [0.0, 1.0], "targets": 2}
    given = {"domain": "ai.onnx.ml", "opset": 1}
    check_runs("LinearRegressor", inputs, SIZES, [("n", 2)], attributes=attributes, **given)


@pytest.mark.parametrize(
    ("op_type", "attributes", "columns"),
    [
        ("TreeEnsembleClassifier", {"classlabels_int64s": [0, 1, 2]}, 3),
        ("TreeEnsembleClassifier", {"classlabels_int64s": [0]}, None),
        ("LinearClassifier", {"classlabels_ints": [0, 1], "intercepts": [0.1]}, 2),
        ("LinearClassifier", {"classlabels_ints": [0, 1, 2], "intercepts": [0.1] * 3}, 3),
        ("LinearClassifier", {"classlabels_ints": [0, 1, 2]}, None),
        ("SVMClassifier", {"classlabels_ints": [0, 1], "prob_a": [1.0]}, 2),
        ("SVMClassifier", {"classlabels_ints": [0, 1, 2]}, None),
    ],
)
def test_classifiers(op_type: str, attributes: dict, columns: Any) -> None:
    """Labels and scores."""
    label, scores = infer(op_type, [X], 2, attributes=attributes, **ML)
    assert label == ResultFacts(7, ("n",))
    assert scores.type == 1 and scores.shape[0] == "n"
    assert is_fresh(scores.shape[1]) if columns is None else scores.shape[1] == columns
    names = {"classlabels_strings": ["a", "b"]}
    assert infer(op_type, [X], 2, attributes=names, **ML)[0].type == 8


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2]])
def test_linear_classifier_runs(labels: list) -> None:
    """Real runs, with and without one intercept for two classes."""
    count = len(labels)
    for rows in {count, 1 if count == 2 else count}:
        attributes = {
            "classlabels_ints": labels,
            "coefficients": [0.5] * (3 * rows),
            "intercepts": [0.1] * rows,
        }
        given = {"domain": "ai.onnx.ml", "opset": 1, "n_outputs": 2}
        expected = [("n",), ("n", count)]
        check_runs("LinearClassifier", [In(("n", 3))], SIZES, expected, attributes, **given)


def test_zip_map() -> None:
    """A sequence."""
    assert one("ZipMap", [X]).sequence is not None
